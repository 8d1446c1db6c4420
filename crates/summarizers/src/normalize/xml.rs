//! Almost right XML.

use std::borrow::Cow;

use epitome_loop::{InvalidSummaryReason, SUMMARY_ROOT, Section, SharedText, SummarySections};

use super::{Repair, leave_out};

/// Where the summary stands in an answer.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    before: &'a str,
    /// Between the tags of the root; `None` when it is never closed.
    inside: Option<&'a str>,
    behind: &'a str,
}

/// Finds the root. A root that is only spoken of, without sections in it, is none.
pub(super) fn find(text: &str) -> Option<Document<'_>> {
    let (before, rest) = text.split_once("<conversation_summary")?;
    let rest = rest.trim_start().strip_prefix('>')?;
    let close = "</conversation_summary";
    let Some((inside, behind)) = rest.rsplit_once(close) else {
        return Some(Document { before, inside: None, behind: "" });
    };
    let behind = behind.trim_start().strip_prefix('>');
    Some(Document { before, inside: behind.map(|_| inside), behind: behind.unwrap_or_default() })
}

/// Reads the sections.
pub(super) fn read(
    text: &str,
    document: Document<'_>,
    repairs: &mut Vec<Repair>,
) -> Result<SummarySections, InvalidSummaryReason> {
    let Document { before, inside, behind } = document;
    // What is cut off may have lost more than its end.
    let inside = inside.ok_or(InvalidSummaryReason::XmlSyntax)?;
    if text.matches("</conversation_summary").count() > 1 {
        return Err(InvalidSummaryReason::XmlStructure);
    }
    let before = without_declaration(before.trim(), repairs);
    // In a string of JSON its line breaks and quotes are escapes.
    if before.ends_with('"') && behind.trim_start().starts_with('"') {
        return Err(InvalidSummaryReason::XmlStructure);
    }
    for around in [before, behind] {
        if !around.trim().is_empty() {
            leave_out(around, repairs)?;
        }
    }
    let mut sections = SummarySections::default();
    let mut seen = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let (section, content, behind) = next_section(rest)?;
        if seen.contains(&section) {
            return Err(InvalidSummaryReason::XmlStructure);
        }
        seen.push(section);
        *sections.items_mut(section) = items(content, repairs);
        rest = behind.trim_start();
    }
    if !seen.is_sorted() {
        repairs.push(Repair::SectionOrder);
    }
    if seen.len() < Section::ALL.len() {
        repairs.push(Repair::MissingSections);
    }
    Ok(sections)
}

fn without_declaration<'a>(before: &'a str, repairs: &mut Vec<Repair>) -> &'a str {
    match before.strip_prefix("<?xml").and_then(|declared| declared.split_once("?>")) {
        Some((_, rest)) => {
            repairs.push(Repair::Declaration);
            rest.trim()
        }
        None => before,
    }
}

/// The section that comes next, its content, and what follows it.
fn next_section(text: &str) -> Result<(Section, &str, &str), InvalidSummaryReason> {
    let structure = InvalidSummaryReason::XmlStructure;
    // Text between two sections would be lost.
    let tag = text.strip_prefix('<').ok_or(structure)?;
    let is_of = |section: &Section| {
        let rest = tag.strip_prefix(section.as_str());
        rest.is_some_and(|rest| {
            rest.starts_with(|next: char| next == '>' || next == '/' || next.is_whitespace())
        })
    };
    let section = Section::ALL.into_iter().find(is_of).ok_or(structure)?;
    let rest = tag.strip_prefix(section.as_str()).unwrap_or_default().trim_start();
    if let Some(behind) = rest.strip_prefix("/>") {
        return Ok((section, "", behind));
    }
    // Anything else than the end of the tag is an attribute.
    let rest = rest.strip_prefix('>').ok_or(structure)?;
    let (content, behind) =
        rest.split_once(&format!("</{}", section.as_str())).ok_or(InvalidSummaryReason::XmlSyntax)?;
    let behind = behind.trim_start().strip_prefix('>').ok_or(structure)?;
    // A section that seems to end inside of CDATA or of a comment ends elsewhere.
    let is_open = |open: &str, close: &str| {
        content.rsplit_once(open).is_some_and(|(_, opened)| !opened.contains(close))
    };
    if is_open("<![CDATA[", "]]>") || is_open("<!--", "-->") {
        return Err(structure);
    }
    Ok((section, content, behind))
}

/// Elements that models put around single items.
const ITEM_ELEMENTS: [&str; 4] = ["item", "li", "entry", "bullet"];

fn items(content: &str, repairs: &mut Vec<Repair>) -> Vec<SharedText> {
    let mut content = Cow::Borrowed(content);
    for element in ITEM_ELEMENTS {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        // Closed as often as opened; anything else is text that speaks of such elements.
        let opened = content.matches(&open).count();
        if opened > 0 && opened == content.matches(&close).count() {
            repairs.push(Repair::ItemElements);
            content = Cow::Owned(content.replace(&open, "\n").replace(&close, "\n"));
        }
    }
    SummarySections::items_of_text(&decoded(&content, repairs))
}

/// The text of a section: entities decoded, what is bare taken for itself.
fn decoded(content: &str, repairs: &mut Vec<Repair>) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    // Looked for but once: an answer may open any number and close none.
    let mut may_close = true;
    while let Some(at) = rest.find(['&', '<']) {
        let (plain, marked) = rest.split_at(at);
        text.push_str(plain);
        if let Some(cdata) = marked.strip_prefix("<![CDATA[").filter(|_| may_close) {
            let closed = cdata.split_once("]]>");
            may_close = closed.is_some();
            if let Some((inner, behind)) = closed {
                repairs.push(Repair::Cdata);
                text.push_str(inner);
                rest = behind;
                continue;
            }
        }
        if let Some((character, behind)) = entity(marked) {
            text.push(character);
            rest = behind;
            continue;
        }
        let mut characters = marked.chars();
        let bare = characters.next();
        repairs.push(if bare == Some('&') { Repair::BareAmpersand } else { Repair::BareLessThan });
        text.extend(bare);
        rest = characters.as_str();
    }
    text.push_str(rest);
    text
}

/// The character that an entity at the front stands for, and what follows it.
fn entity(text: &str) -> Option<(char, &str)> {
    let text = text.strip_prefix('&')?;
    let end = text.find(|character: char| character != '#' && !character.is_ascii_alphanumeric())?;
    let (name, behind) = text.split_at_checked(end)?;
    let behind = behind.strip_prefix(';')?;
    let character = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) if hex.len() <= 8 => u32::from_str_radix(hex, 16).ok()?,
                Some(_) => return None,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)?
        }
    };
    Some((character, behind))
}

/// The root's name is the grammar's.
const _: () = assert!(matches!(SUMMARY_ROOT.as_bytes(), b"conversation_summary"));
