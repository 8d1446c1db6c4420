//! From what a model answers to the five sections: tolerant in, strict out.
//!
//! Models answer almost in the form that they were asked for: in a fence, behind a sentence of introduction, with a bare
//! `&`, as JSON, as Markdown. Each such thing is repaired here, by name, and nothing is guessed: an answer of which a part
//! would be lost is refused instead. What comes out is rendered and judged by the strict parser like anybody's summary;
//! this reader and that judge share nothing.

mod envelope;
mod json;
mod markdown;
mod xml;

use std::borrow::Cow;
use std::collections::HashSet;

use epitome_loop::{InvalidSummaryReason, Section, SummarySections};

/// A longer answer is not looked at.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// What was repaired in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Repair {
    /// Characters that XML has no place for were left out.
    ForbiddenCharacters,
    /// A byte-order mark in front was left out.
    ByteOrderMark,
    /// White space around the answer was left out.
    OuterWhiteSpace,
    /// Reasoning in tags of its own in front was left out.
    Reasoning,
    /// The mark by which a model ends its turn was left out.
    EndToken,
    /// The fence around the answer was left out.
    CodeFence,
    /// Text around the summary was left out: an introduction, a farewell. Never markup.
    TextAround,
    /// An XML declaration was left out.
    Declaration,
    /// A bare `&` was taken for itself.
    BareAmpersand,
    /// A bare `<` was taken for itself.
    BareLessThan,
    /// A section in CDATA was taken as text.
    Cdata,
    /// Elements for single items were taken as lines.
    ItemElements,
    /// Sections were put in order.
    SectionOrder,
    /// Sections that may be empty and were left out were added.
    MissingSections,
    /// The answer was JSON.
    Json,
    /// The answer was Markdown.
    Markdown,
    /// What a section says twice was left in once.
    RepeatedItems,
}

/// What a model said, in sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizedAnswer {
    /// The sections; goal and state say something.
    pub sections: SummarySections,
    /// What was repaired, each once, in the order of [`Repair`].
    pub repairs: Vec<Repair>,
}

impl Repair {
    /// The stable name, as records have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ForbiddenCharacters => "forbidden_characters",
            Self::ByteOrderMark => "byte_order_mark",
            Self::OuterWhiteSpace => "outer_white_space",
            Self::Reasoning => "reasoning",
            Self::EndToken => "end_token",
            Self::CodeFence => "code_fence",
            Self::TextAround => "text_around",
            Self::Declaration => "declaration",
            Self::BareAmpersand => "bare_ampersand",
            Self::BareLessThan => "bare_less_than",
            Self::Cdata => "cdata",
            Self::ItemElements => "item_elements",
            Self::SectionOrder => "section_order",
            Self::MissingSections => "missing_sections",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::RepeatedItems => "repeated_items",
        }
    }
}

/// Reads a model's answer.
///
/// # Errors
/// The reason for which it is no summary: `byte_limit` for one that is too long, `output_shape` for one that says nothing,
/// `xml_root` where there are no sections in any form, `xml_syntax` for a summary that is cut off, `xml_structure` where a
/// part would be lost or stands twice, `xml_content` without a goal or a state.
pub fn normalize_answer(text: &str) -> Result<NormalizedAnswer, InvalidSummaryReason> {
    if text.len() > MAX_ANSWER_BYTES {
        return Err(InvalidSummaryReason::ByteLimit);
    }
    let mut repairs = Vec::new();
    let text = without_forbidden(text, &mut repairs);
    let bare = envelope::unwrap(&text, &mut repairs)?;
    if bare.is_empty() {
        return Err(InvalidSummaryReason::OutputShape);
    }
    let mut sections = if let Some(document) = xml::find(bare) {
        xml::read(bare, document, &mut repairs)?
    } else if let Some(value) = json::find(bare, &mut repairs)? {
        json::read(&value, &mut repairs)?
    } else {
        markdown::read(bare, &mut repairs)?
    };
    // An item that is nothing but a mark says nothing, whatever form it came in.
    for section in Section::ALL {
        let items = sections.items_mut(section);
        // Escapes of XML and JSON stand for any character.
        let texts = items.iter().map(|item| without_forbidden(item, &mut repairs));
        *items = texts.flat_map(|text| SummarySections::items_of_text(&text)).collect();
        let (said, mut seen) = (items.len(), HashSet::new());
        items.retain(|item| seen.insert(item.clone()));
        if items.len() < said {
            repairs.push(Repair::RepeatedItems);
        }
    }
    if sections.goal.is_empty() || sections.state.is_empty() {
        return Err(InvalidSummaryReason::XmlContent);
    }
    repairs.sort_unstable();
    repairs.dedup();
    Ok(NormalizedAnswer { sections, repairs })
}

/// Notes that text around a summary is left out. Markup is no introduction: whoever put it there wants it to be read. Nor
/// are the marks of reasoning and calls: what stands in them is no answer.
fn leave_out(text: &str, repairs: &mut Vec<Repair>) -> Result<(), InvalidSummaryReason> {
    const MARKS: [&str; 4] = ["<|", "[THINK]", "[TOOL_CALLS]", "\u{25c1}think\u{25b7}"];
    if MARKS.iter().any(|mark| text.contains(mark)) {
        return Err(InvalidSummaryReason::XmlStructure);
    }
    let mut behind_brackets = text.split('<').skip(1);
    let is_markup =
        |rest: &str| rest.starts_with(|next: char| next.is_alphabetic() || matches!(next, '/' | '!' | '?'));
    if behind_brackets.any(is_markup) {
        return Err(InvalidSummaryReason::XmlStructure);
    }
    repairs.push(Repair::TextAround);
    Ok(())
}

/// A text without the characters that XML has no place for.
fn without_forbidden<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> Cow<'a, str> {
    if !text.contains(is_forbidden) {
        return Cow::Borrowed(text);
    }
    repairs.push(Repair::ForbiddenCharacters);
    Cow::Owned(text.replace(is_forbidden, ""))
}

/// Characters that XML has no place for.
fn is_forbidden(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}'
    )
}

#[cfg(test)]
mod tests;
