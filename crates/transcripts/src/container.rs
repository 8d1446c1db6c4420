//! What stands around the messages in a source, so that it can be written around other messages.

use std::ops::Range;

use crate::claude_code::ClaudeFile;
use crate::codex::CodexFile;
use crate::gemini::RecordFile;
use crate::json::Value;
use crate::openai_responses::{Part, ResponsesList};
use crate::pi::PiFile;

/// What stands around the messages.
#[derive(Clone, Debug)]
pub(crate) enum Container {
    /// A list of messages, in an array or on lines.
    List(List),
    /// A list of items of the Responses API.
    Responses(ResponsesList),
    /// The records of a pi session.
    Pi(PiFile),
    /// The records of a Codex rollout.
    Codex(CodexFile),
    /// The lines of a Gemini session.
    GeminiRecords(RecordFile),
    /// The records of a session or a stream of Claude Code.
    Claude(ClaudeFile),
    /// Nothing: the session was made of messages, not read.
    Made,
}

impl Container {
    /// Whether what is sent has a system prompt and tools that are not in the source.
    pub(crate) fn lacks_prompt(&self) -> bool {
        match self {
            Self::List(list) => list.lacks_prompt,
            Self::Responses(_) | Self::Made => false,
            Self::Pi(_) | Self::Codex(_) | Self::GeminiRecords(_) | Self::Claude(_) => true,
        }
    }

    /// The items of each original, where messages are made of items.
    pub(crate) fn parts(&self) -> &[Vec<Part>] {
        match self {
            Self::Responses(list) => &list.parts,
            Self::Codex(file) => &file.parts,
            Self::List(_) | Self::Pi(_) | Self::GeminiRecords(_) | Self::Claude(_) | Self::Made => &[],
        }
    }
}

/// A list of messages in a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    /// The bytes that a written transcript is made from: the whole source, or one request of a log.
    pub(crate) document: Range<usize>,
    /// Where the elements stand, without the brackets around them.
    pub(crate) inside: Range<usize>,
    /// Every element, those that are not sent any more included.
    pub(crate) elements: Vec<Range<usize>>,
    /// Whether the elements are in an array; otherwise they are lines.
    pub(crate) in_array: bool,
    /// The value of the field that holds the system prompt beside the messages, and the whole field.
    pub(crate) system: Option<SystemField>,
    /// The field with a reply that has become one of the messages; it is left out of what is written.
    pub(crate) reply: Option<Range<usize>>,
    /// Whether the elements are records of a Gemini session.
    pub(crate) gemini_records: bool,
    /// Whether what is sent has a system prompt and tools that are not in the document.
    pub(crate) lacks_prompt: bool,
}

/// The field `system` of an Anthropic request.
#[derive(Clone, Debug)]
pub(crate) struct SystemField {
    /// Its value.
    pub(crate) value: Range<usize>,
    /// The whole field with one comma, as it would be taken out.
    pub(crate) field: Range<usize>,
}

impl List {
    /// The list that an array with these elements is.
    pub(crate) fn array(array: Value<'_>, elements: &[Value<'_>], document: Range<usize>) -> Self {
        let range = array.range();
        Self {
            document,
            inside: range.start + 1..range.end.saturating_sub(1),
            elements: elements.iter().map(|value| value.range()).collect(),
            in_array: true,
            ..Self::default()
        }
    }

    /// The list that the values of a whole source are.
    pub(crate) fn lines(values: &[Value<'_>], document: Range<usize>) -> Self {
        Self {
            inside: document.clone(),
            document,
            elements: values.iter().map(|value| value.range()).collect(),
            in_array: false,
            ..Self::default()
        }
    }
}

/// Where a field of an object stands with one comma, so that the object stays valid without it.
pub(crate) fn whole_field(object: Value<'_>, name: &str) -> Option<Range<usize>> {
    let mut before = object.range().start + 1;
    let mut fields = object.fields_with_places().peekable();
    while let Some((key, value, _)) = fields.next() {
        let end = value.range().end;
        if key == name.as_bytes() {
            let is_first = before == object.range().start + 1;
            return Some(match fields.peek() {
                Some(&(_, _, next_key)) if is_first => before..next_key,
                _ => before..end,
            });
        }
        before = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Source;

    #[test]
    fn an_object_stays_valid_without_a_field() {
        for (json, rest) in [
            (r#"{"a":1, "x":2 , "b":3}"#, r#"{"a":1 , "b":3}"#),
            (r#"{ "x":2, "b":3}"#, r#"{"b":3}"#),
            (r#"{"a":1,"x":[1,2]}"#, r#"{"a":1}"#),
            (r#"{"x":2 }"#, "{ }"),
            (r#"{"x":2,"x":3}"#, r#"{"x":3}"#),
        ] {
            let source = Source::small(json.as_bytes());
            let field = whole_field(source.whole(), "x").unwrap();
            let mut without = json.to_owned();
            without.replace_range(field, "");
            assert_eq!(without, rest);
        }
    }
}
