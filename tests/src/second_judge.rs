//! An independent judge of summaries, on top of roxmltree.
//!
//! roxmltree is a lenient reader: it hides a declaration, a byte-order mark, white space around the root, CDATA,
//! a colon in front of a name, and references to what is no character (it puts U+FFFD there). What it hides is checked on
//! the raw text. Its handling of attributes is quadratic, so nothing with an attribute reaches it, and nothing
//! large. Line ends are made one before it reads, as XML says (2.11): it leaves a carriage return in front of a
//! reference as it is.

use epitome_loop::{SUMMARY_ROOT, Section};
use roxmltree::{Document, Node, ParsingOptions};

/// Longest document that is judged.
const MOST_BYTES: usize = 256 * 1024;

/// Root, five children and text around and inside them, with room to spare for what is to be refused.
const MOST_NODES: u32 = 64;

/// What the second judge says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecondVerdict {
    /// A summary; the decoded text of its sections, in the order of [`Section::ALL`].
    Accepted(Vec<String>),
    /// Not a summary.
    Refused,
    /// Too long to be judged here.
    TooLong,
}

/// Judges a document by the summary grammar, without our parser.
#[must_use]
pub fn second_judge(bytes: &[u8]) -> SecondVerdict {
    if bytes.len() > MOST_BYTES {
        return SecondVerdict::TooLong;
    }
    match accepted(bytes) {
        Some(sections) => SecondVerdict::Accepted(sections),
        None => SecondVerdict::Refused,
    }
}

fn accepted(bytes: &[u8]) -> Option<Vec<String>> {
    let raw = std::str::from_utf8(bytes).ok()?.replace("\r\n", "\n").replace('\r', "\n");
    let raw = raw.as_str();
    if raw.contains("<![CDATA[")
        || tags(raw).any(|tag| tag.contains(['=', ':']))
        || refers_to_no_character(raw)
    {
        return None;
    }
    let options = ParsingOptions { nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(raw, options).ok()?;
    let root = document.root_element();
    // One test that catches declaration, byte-order mark, and anything else outside the root.
    if root.range() != (0..raw.len()) || !is_plain(root, SUMMARY_ROOT) {
        return None;
    }
    let mut children = root.children().filter(|node| !is_white_text(*node));
    let mut sections = Vec::new();
    for section in Section::ALL {
        let text = text_of(children.next()?, section)?;
        if section.is_required() && text.chars().all(char::is_whitespace) {
            return None;
        }
        sections.push(text);
    }
    children.next().is_none().then_some(sections)
}

/// What stands between angle brackets. An equals sign there is an attribute and a colon a prefix, or part of
/// something else that the grammar has no place for.
fn tags(raw: &str) -> impl Iterator<Item = &str> {
    raw.split('<').skip(1).filter_map(|after| after.split('>').next())
}

fn refers_to_no_character(raw: &str) -> bool {
    let references = raw.split("&#").skip(1).filter_map(|after| Some(after.split_once(';')?.0));
    references
        .filter_map(|digits| match digits.strip_prefix('x') {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        })
        .any(|code: u32| char::from_u32(code).is_none())
}

fn is_plain(element: Node<'_, '_>, name: &str) -> bool {
    element.is_element()
        && element.tag_name().name() == name
        && element.tag_name().namespace().is_none()
        && element.attributes().len() == 0
        && element.namespaces().len() == 0
}

fn is_white_text(node: Node<'_, '_>) -> bool {
    node.is_text() && node.text().is_some_and(|text| text.chars().all(char::is_whitespace))
}

fn text_of(element: Node<'_, '_>, section: Section) -> Option<String> {
    if !is_plain(element, section.as_str()) {
        return None;
    }
    element.children().map(|node| if node.is_text() { node.text() } else { None }).collect()
}
