//! Contents taken apart into parts, in both spellings of their keys.

use crate::ReadError;
use crate::faults::Faults;
use crate::json::{Kind, Value};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The user, or a tool in the user's place.
    User,
    /// The model.
    Model,
}

/// One content: a role and its parts.
pub(super) struct Turn<'a> {
    pub(super) speaker: Speaker,
    pub(super) parts: Vec<Part<'a>>,
    /// What went wrong while it was taken apart.
    pub(super) faults: Faults,
    /// Where the element or record begins that it stems from.
    pub(super) home: usize,
}

/// One part. A part names what it holds by its key.
pub(super) struct Part<'a> {
    /// The part as it stands; a call or a result of a session record where that is no part.
    pub(super) value: Value<'a>,
    pub(super) data: Data<'a>,
    /// `thoughtSignature`, which any part may have.
    pub(super) signature: Option<Value<'a>>,
}

/// What a part holds.
pub(super) enum Data<'a> {
    /// Words, spoken or thought.
    Text { words: Option<Value<'a>>, is_thought: bool },
    /// A thought as session records list them: a subject and a description.
    Thought { subject: String, description: String },
    /// A call of a function.
    Call { id: String, name: String, args: Option<Value<'a>> },
    /// A function's answer.
    Response(Response<'a>),
    /// A file by value.
    Inline(Value<'a>),
    /// A file by address.
    File(Value<'a>),
    /// An item of the provider that is kept as it stands, and its name.
    Item(&'static str),
    /// Something else.
    Unknown,
}

/// A function's answer.
pub(super) struct Response<'a> {
    pub(super) id: String,
    pub(super) name: String,
    /// An object; a string where a session record holds text alone.
    pub(super) response: Option<Value<'a>>,
    /// Files that came with it.
    pub(super) parts: Option<Value<'a>>,
}

impl<'a> Turn<'a> {
    /// Takes an element of a list of contents apart. An error report ends with a bare list of parts, which
    /// the user was about to send.
    pub(super) fn of_content(element: Value<'a>, index: usize) -> Result<Self, ReadError> {
        let mut faults = Faults::default();
        let home = element.range().start;
        if element.is_array() {
            let parts = parts_of(Some(element), &mut faults);
            return Ok(Self { speaker: Speaker::User, parts, faults, home });
        }
        let [role, parts, content] = faults.pick(element, ["role", "parts", "content"]);
        if !element.is_object() || parts.or(role).is_none() || parts.is_none() && content.is_some() {
            return Err(ReadError::NotAMessage { message: index });
        }
        let is = |name: &str| role.is_some_and(|role| role.is_text(name));
        let speaker = if is("model") {
            Speaker::Model
        } else if role.is_none() || is("user") || is("function") || is("tool") {
            Speaker::User
        } else {
            return Err(ReadError::UnknownRole { message: index });
        };
        let parts = parts_of(parts, &mut faults);
        Ok(Self { speaker, parts, faults, home })
    }
}

/// The parts of a content: a list, one part, or text alone.
pub(super) fn parts_of<'a>(value: Option<Value<'a>>, faults: &mut Faults) -> Vec<Part<'a>> {
    let Some(value) = value else { return Vec::new() };
    match value.kind() {
        Kind::Array => value.elements().map(|element| Part::of(element, faults)).collect(),
        _ => vec![Part::of(value, faults)],
    }
}

impl<'a> Part<'a> {
    fn of(value: Value<'a>, faults: &mut Faults) -> Self {
        if value.kind() == Kind::String {
            let data = Data::Text { words: Some(value), is_thought: false };
            return Self { value, data, signature: None };
        }
        let [
            words,
            thought,
            signature,
            signature_snake,
            call,
            call_snake,
            response,
            response_snake,
            inline,
            inline_snake,
        ] = faults.pick(
            value,
            [
                "text",
                "thought",
                "thoughtSignature",
                "thought_signature",
                "functionCall",
                "function_call",
                "functionResponse",
                "function_response",
                "inlineData",
                "inline_data",
            ],
        );
        let is_thought = thought.is_some_and(Value::is_true);
        let data = if let Some(call) = call.or(call_snake) {
            Data::of_call(call, faults)
        } else if let Some(response) = response.or(response_snake) {
            Data::of_response(response, faults)
        } else if let (Some(inline), false) = (inline.or(inline_snake), is_thought) {
            // What says which part of a video counts has no place elsewhere.
            match value.get("videoMetadata").or_else(|| value.get("video_metadata")) {
                Some(_) => Data::Item("inlineData"),
                None => Data::Inline(inline),
            }
        } else if words.is_some() {
            Data::Text { words, is_thought }
        } else {
            Data::of_other(value)
        };
        Self { value, data, signature: signature.or(signature_snake) }
    }
}

impl<'a> Data<'a> {
    /// A call, in a part or in a session record.
    pub(super) fn of_call(call: Value<'a>, faults: &mut Faults) -> Self {
        let [id, name, args] = faults.pick(call, ["id", "name", "args"]);
        Self::Call { id: faults.string(id), name: faults.string(name), args }
    }

    fn of_response(response: Value<'a>, faults: &mut Faults) -> Self {
        let [id, name, response, parts] = faults.pick(response, ["id", "name", "response", "parts"]);
        Self::Response(Response { id: faults.string(id), name: faults.string(name), response, parts })
    }

    fn of_other(value: Value<'a>) -> Self {
        const ITEMS: [(&str, &str); 6] = [
            ("executableCode", "executable_code"),
            ("codeExecutionResult", "code_execution_result"),
            ("toolCall", "tool_call"),
            ("toolResponse", "tool_response"),
            ("inlineData", "inline_data"),
            ("videoMetadata", "video_metadata"),
        ];
        let ([file, file_snake], _) = value.pick(["fileData", "file_data"]);
        if let Some(file) = file.or(file_snake) {
            let limited = value.has("videoMetadata") || value.has("video_metadata");
            return if limited { Self::Item("fileData") } else { Self::File(file) };
        }
        let known = ITEMS.into_iter().find(|(camel, snake)| value.has(camel) || value.has(snake));
        known.map_or(Self::Unknown, |(camel, _)| Self::Item(camel))
    }
}
