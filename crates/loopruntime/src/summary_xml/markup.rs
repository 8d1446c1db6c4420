//! Splits XML into markup the way the reference's decoder does, and refuses what is not well formed.

use std::ops::Range;

use epitome_loop::InvalidSummaryReason;

use super::text::{Quote, text_end};
use super::xml_name::name_at;

/// One piece of a document.
pub(super) enum Markup<'a> {
    /// Text up to the next tag; valid, with its references unresolved.
    Text { range: Range<usize> },
    /// A start tag. `plain` means without attributes, `empty` that it closes itself.
    Start { name: &'a [u8], plain: bool, empty: bool },
    /// An end tag.
    End { name: &'a [u8] },
    /// A comment, a processing instruction or declaration, or a directive: nothing the grammar has room for.
    Other,
}

type Step<T> = Result<T, InvalidSummaryReason>;

const SYNTAX: InvalidSummaryReason = InvalidSummaryReason::XmlSyntax;

/// How much of a tag with attributes is read. The grammar has no attributes, so a longer tag is refused for
/// them, and a fault further on is not looked for.
const MAX_TAG_BYTES: usize = 64 * 1024;

/// A position in a document. Asking for markup at the end is a syntax fault: something is still open.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// How far the bytes are valid UTF-8.
    valid: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8], valid: usize) -> Self {
        Self { bytes, at: 0, valid }
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// The next piece of markup.
    pub(super) fn next(&mut self) -> Step<Markup<'a>> {
        match self.rest() {
            [] => Err(SYNTAX),
            [b'<', b'/', ..] => {
                self.at += 2;
                self.end_tag()
            }
            [b'<', b'?', ..] => {
                self.at += 2;
                self.instruction()
            }
            [b'<', b'!', ..] => {
                self.at += 2;
                self.comment_or_directive()
            }
            [b'<', ..] => {
                self.at += 1;
                self.start_tag()
            }
            _ => {
                let start = self.at;
                self.at += text_end(self.rest(), self.valid.saturating_sub(start), Quote::None)?;
                Ok(Markup::Text { range: start..self.at })
            }
        }
    }

    /// Passes over a tag in its canonical spelling, if it stands here: `open`, the name, `>`.
    pub(super) fn take_tag(&mut self, open: &str, name: &str) -> bool {
        let after = self
            .rest()
            .strip_prefix(open.as_bytes())
            .and_then(|rest| rest.strip_prefix(name.as_bytes()))
            .and_then(|rest| rest.strip_prefix(b">"));
        if after.is_some() {
            self.at += open.len() + name.len() + 1;
        }
        after.is_some()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn byte(&mut self) -> Step<u8> {
        let byte = *self.rest().first().ok_or(SYNTAX)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        self.at += space_len(self.rest(), 0);
    }

    /// A name; it must end before the document does.
    fn name(&mut self) -> Step<&'a [u8]> {
        self.any_name().map(|(name, _)| name)
    }

    /// A name with at most one colon.
    fn qualified_name(&mut self) -> Step<&'a [u8]> {
        match self.any_name()? {
            (name, false) => Ok(name),
            (_, true) => Err(SYNTAX),
        }
    }

    fn any_name(&mut self) -> Step<(&'a [u8], bool)> {
        let rest = self.rest();
        let (len, colons) = name_at(rest).ok_or(SYNTAX)?;
        let (name, after) = rest.split_at_checked(len).ok_or(SYNTAX)?;
        self.at += len;
        if after.is_empty() { Err(SYNTAX) } else { Ok((name, colons)) }
    }

    fn end_tag(&mut self) -> Step<Markup<'a>> {
        let name = self.qualified_name()?;
        self.skip_space();
        if self.byte()? == b'>' { Ok(Markup::End { name }) } else { Err(SYNTAX) }
    }

    fn start_tag(&mut self) -> Step<Markup<'a>> {
        let start = self.at;
        let name = self.qualified_name()?;
        let mut plain = true;
        loop {
            self.skip_space();
            match self.rest().first().ok_or(SYNTAX)? {
                b'>' => {
                    self.at += 1;
                    return Ok(Markup::Start { name, plain, empty: false });
                }
                b'/' => {
                    self.at += 1;
                    return match self.byte()? {
                        b'>' => Ok(Markup::Start { name, plain, empty: true }),
                        _ => Err(SYNTAX),
                    };
                }
                // Its attributes refuse the document whatever they are; a tag this long is not read on.
                _ if self.at - start > MAX_TAG_BYTES => {
                    return Ok(Markup::Start { name, plain: false, empty: false });
                }
                _ => {
                    plain = false;
                    self.attribute()?;
                }
            }
        }
    }

    fn attribute(&mut self) -> Step<()> {
        let rest = self.rest();
        let Some((name, false)) = name_at(rest) else { return Err(SYNTAX) };
        let equals = name + space_len(rest, name);
        if rest.get(equals) != Some(&b'=') {
            return Err(SYNTAX);
        }
        let open = equals + 1 + space_len(rest, equals + 1);
        let quote = match rest.get(open) {
            Some(b'"') => Quote::Double,
            Some(b'\'') => Quote::Single,
            _ => return Err(SYNTAX),
        };
        let value = rest.get(open + 1..).unwrap_or_default();
        let len = text_end(value, self.valid.saturating_sub(self.at + open + 1), quote)?;
        self.at += open + 1 + len + 1;
        Ok(())
    }

    fn comment_or_directive(&mut self) -> Step<Markup<'a>> {
        match self.byte()? {
            b'-' => {
                if self.byte()? != b'-' {
                    return Err(SYNTAX);
                }
                let dashes = memchr::memmem::find(self.rest(), b"--").ok_or(SYNTAX)?;
                self.at += dashes + 2;
                if self.byte()? == b'>' { Ok(Markup::Other) } else { Err(SYNTAX) }
            }
            // A CDATA section is refused before any reason that is found here.
            b'[' => Err(SYNTAX),
            _ => self.directive(),
        }
    }

    /// A directive such as `<!DOCTYPE ...>`: quotes hide angle brackets, angle brackets nest, and a comment
    /// inside hides everything.
    fn directive(&mut self) -> Step<Markup<'a>> {
        let mut quote = None;
        let mut depth = 0_usize;
        loop {
            let byte = self.byte()?;
            match (byte, quote) {
                (_, Some(open)) if byte == open => quote = None,
                (_, Some(_)) => {}
                (b'\'' | b'"', None) => quote = Some(byte),
                (b'>', None) => match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => return Ok(Markup::Other),
                },
                (b'<', None) => {
                    if self.rest().starts_with(b"!--") {
                        self.at += 3;
                        let end = memchr::memmem::find(self.rest(), b"-->").ok_or(SYNTAX)?;
                        self.at += end + 3;
                    } else {
                        depth += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn instruction(&mut self) -> Step<Markup<'a>> {
        let target = self.name()?;
        self.skip_space();
        let end = memchr::memmem::find(self.rest(), b"?>").ok_or(SYNTAX)?;
        let content = self.slice(self.at..self.at + end);
        self.at += end + 2;
        if target == b"xml" {
            let supported =
                |value: &[u8], known: &[u8]| value.is_empty() || value.eq_ignore_ascii_case(known);
            if !supported(pseudo_attribute(content, b"version="), b"1.0")
                || !supported(pseudo_attribute(content, b"encoding="), b"utf-8")
            {
                return Err(SYNTAX);
            }
        }
        Ok(Markup::Other)
    }
}

/// How much white space stands at this place.
fn space_len(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).unwrap_or(rest.len())
}

/// The value of a pseudo attribute in an XML declaration, found as the reference finds it: the first `key=`
/// that is followed by a quoted value.
fn pseudo_attribute<'a>(content: &'a [u8], key: &[u8]) -> &'a [u8] {
    let finder = memchr::memmem::Finder::new(key);
    let mut rest = content;
    while let Some(at) = finder.find(rest) {
        let Some((&quote, value)) = rest.get(at + key.len()..).and_then(<[u8]>::split_first) else { break };
        if matches!(quote, b'\'' | b'"') {
            return memchr::memchr(quote, value).and_then(|end| value.get(..end)).unwrap_or_default();
        }
        rest = value;
    }
    &[]
}
