//! The strict parser of the summary grammar: one scan over the bytes, no recursion, no repair.
//!
//! The grammar is the owner's: one root `conversation_summary` without attributes or namespace, five
//! children in order, text only, `goal` and `state` not blank, nothing outside the root. The verdict and the
//! reason equal the reference implementation's; the one named difference is that numeric references to
//! characters that XML 1.0 forbids are refused here.
//!
//! Every input costs time linear in its length; the only allocation is the returned text.

mod markup;
mod text;
mod xml_name;

use std::borrow::Cow;
use std::ops::Range;

use epitome_loop::{
    InvalidSummary, InvalidSummaryReason, SUMMARY_ROOT, Section, SharedText, SummarySections,
};

use self::markup::{Markup, Scanner};
use self::text::{decode, is_blank};

/// A summary that the strict parser accepted: the bytes as they came, and where the sections are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSummary {
    raw: SharedText,
    ranges: [Range<usize>; 5],
}

impl ConversationSummary {
    /// The accepted document, exactly the given bytes.
    #[must_use]
    pub fn raw(&self) -> &SharedText {
        &self.raw
    }

    /// The text of one section, with entities and line ends decoded.
    #[must_use]
    pub fn text(&self, section: Section) -> Cow<'_, str> {
        decode(self.encoded(section))
    }

    /// The five sections as lists of items, one a line.
    #[must_use]
    pub fn sections(&self) -> SummarySections {
        let mut sections = SummarySections::default();
        for section in Section::ALL {
            *sections.items_mut(section) = SummarySections::items_of_text(&self.text(section));
        }
        sections
    }

    fn encoded(&self, section: Section) -> &str {
        let range = Section::ALL.iter().zip(&self.ranges).find(|(each, _)| **each == section);
        range.and_then(|(_, range)| self.raw.get(range.clone())).unwrap_or_default()
    }
}

/// Parses a summary under the strict grammar.
///
/// # Errors
/// [`InvalidSummary`] with the reason of the first fault met reading left to right: `xml_syntax`, `xml_root`,
/// `xml_structure` or `xml_content`; a CDATA section anywhere is `xml_structure`, whatever else is wrong.
pub fn parse_summary(bytes: &[u8]) -> Result<ConversationSummary, InvalidSummary> {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let ranges = judge(bytes, bytes.len())?;
            Ok(ConversationSummary { raw: SharedText::from(text), ranges })
        }
        // A document that is not UTF-8 is refused; the scan says for what.
        Err(fault) => match judge(bytes, fault.valid_up_to()) {
            Ok(_) => Err(InvalidSummaryReason::XmlSyntax.into()),
            Err(reason) => Err(reason),
        },
    }
}

/// Parses a summary that is held as text already; nothing is copied.
///
/// # Errors
/// As [`parse_summary`].
pub fn parse_summary_text(text: SharedText) -> Result<ConversationSummary, InvalidSummary> {
    let ranges = judge(text.as_bytes(), text.len())?;
    Ok(ConversationSummary { raw: text, ranges })
}

fn judge(bytes: &[u8], valid: usize) -> Result<[Range<usize>; 5], InvalidSummary> {
    section_ranges(bytes, valid).map_err(|reason| {
        // A CDATA section never gets past the scan, so only a refused document needs this look.
        let cdata = memchr::memmem::find(bytes, b"<![CDATA[").is_some();
        if cdata { InvalidSummaryReason::XmlStructure.into() } else { reason.into() }
    })
}

/// Walks the markup and says where the text of each section lies. `valid` is how far the bytes are UTF-8.
fn section_ranges(bytes: &[u8], valid: usize) -> Result<[Range<usize>; 5], InvalidSummaryReason> {
    use InvalidSummaryReason::{XmlRoot, XmlStructure};
    let mut scanner = Scanner::new(bytes, valid);
    open_root(&mut scanner)?;
    let mut ranges: [Range<usize>; 5] = Default::default();
    for (section, range) in Section::ALL.into_iter().zip(&mut ranges) {
        *range = read_section(&mut scanner, section)?;
    }
    match next_between(&mut scanner)? {
        Markup::End { name } if name == SUMMARY_ROOT.as_bytes() => {}
        Markup::End { .. } => return Err(InvalidSummaryReason::XmlSyntax),
        _ => return Err(XmlStructure),
    }
    if !scanner.at_end() {
        return match scanner.next()? {
            Markup::End { .. } => Err(InvalidSummaryReason::XmlSyntax),
            _ => Err(XmlStructure),
        };
    }
    for (section, range) in Section::ALL.into_iter().zip(&ranges) {
        if section.is_required() && is_blank(bytes.get(range.clone()).unwrap_or_default()) {
            return Err(InvalidSummaryReason::XmlContent);
        }
    }
    return Ok(ranges);

    fn open_root(scanner: &mut Scanner<'_>) -> Result<(), InvalidSummaryReason> {
        if scanner.at_end() {
            return Err(XmlRoot);
        }
        if scanner.take_tag("<", SUMMARY_ROOT) {
            return Ok(());
        }
        match scanner.next()? {
            Markup::Start { name, plain, empty } => {
                let (prefix, local) = split_name(name);
                if local != SUMMARY_ROOT.as_bytes() {
                    Err(XmlRoot)
                } else if prefix || !plain || empty {
                    // An empty root closes at once, without its five children.
                    Err(XmlStructure)
                } else {
                    Ok(())
                }
            }
            Markup::End { .. } => Err(InvalidSummaryReason::XmlSyntax),
            Markup::Text { .. } | Markup::Other => Err(XmlStructure),
        }
    }
}

fn read_section(scanner: &mut Scanner<'_>, section: Section) -> Result<Range<usize>, InvalidSummaryReason> {
    use InvalidSummaryReason::{XmlStructure, XmlSyntax};
    let name = section.as_str().as_bytes();
    let empty = if scanner.take_tag("<", section.as_str()) {
        false
    } else {
        match next_between(scanner)? {
            Markup::Start { name: found, plain: true, empty } if found == name => empty,
            Markup::End { name } if name != SUMMARY_ROOT.as_bytes() => return Err(XmlSyntax),
            _ => return Err(XmlStructure),
        }
    };
    let start = scanner.position();
    if empty {
        return Ok(start..start);
    }
    let mut range = start..start;
    loop {
        if scanner.take_tag("</", section.as_str()) {
            return Ok(range);
        }
        match scanner.next()? {
            Markup::Text { range: text } => range = text,
            Markup::End { name: found } if found == name => return Ok(range),
            Markup::End { .. } => return Err(XmlSyntax),
            Markup::Start { .. } | Markup::Other => return Err(XmlStructure),
        }
    }
}

/// The next markup between children; white space there, also as references, is passed over.
fn next_between<'a>(scanner: &mut Scanner<'a>) -> Result<Markup<'a>, InvalidSummaryReason> {
    match scanner.next()? {
        Markup::Text { range } => {
            if !is_blank(scanner.slice(range)) {
                return Err(InvalidSummaryReason::XmlStructure);
            }
            // Text never follows text.
            scanner.next()
        }
        markup => Ok(markup),
    }
}

/// Whether a name has a namespace prefix, and its local part. A colon at either end is part of the name.
fn split_name(name: &[u8]) -> (bool, &[u8]) {
    match memchr::memchr(b':', name).map(|at| name.split_at(at)) {
        Some((prefix, [_, local @ ..])) if !prefix.is_empty() && !local.is_empty() => (true, local),
        _ => (false, name),
    }
}
