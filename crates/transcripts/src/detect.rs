//! Which format a source has, by its content.

use crate::conversation::Conversation;
use crate::json::Value;
use crate::{ForeignFormat, ReadError};

/// How the messages of a list are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Responses,
    Gemini,
}

/// Whether a source is a log of Inspect packed as a zip archive.
pub(crate) fn is_inspect_archive(source: &[u8]) -> bool {
    source.starts_with(b"PK\x03\x04") && memchr::memmem::find(source, b"_journal/").is_some()
}

/// Whether a source is a pi session: its first record says so, or, when that is damaged, holds a message as pi
/// does.
pub(crate) fn is_pi(values: &[Value<'_>]) -> bool {
    values.first().is_some_and(|first| {
        let ([kind, id, message, session], _) = first.find(["type", "id", "message", "sessionId"]);
        let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
        is("session") && id.is_some()
            || is("message") && message.is_some_and(|message| message.has("role")) && session.is_none()
    })
}

/// The foreign format of a source, by the keys of its first record.
pub(crate) fn foreign(values: &[Value<'_>]) -> Option<ForeignFormat> {
    let first = match values {
        [one] if one.is_array() => one.elements().next()?,
        [first, ..] => *first,
        [] => return None,
    };
    by_record(first)
}

/// The foreign format of a source that holds no messages, by the keys of any of its first records.
pub(crate) fn foreign_record(values: &[Value<'_>]) -> Option<ForeignFormat> {
    values.iter().take(50).find_map(|value| by_record(*value))
}

fn by_record(record: Value<'_>) -> Option<ForeignFormat> {
    use ForeignFormat as F;
    let keys = Keys::of(record);
    let has = |names: &[&str]| names.iter().all(|name| keys.get(name).is_some());
    let kind_is =
        |kinds: &[&str]| keys.get("type").is_some_and(|kind| kinds.iter().any(|name| kind.is_text(name)));
    if kind_is(&["init"]) && has(&["session_id", "model"]) {
        Some(F::GeminiStreamJson)
    } else if has(&["trajectory"]) && (has(&["history"]) || has(&["info"]))
        || has(&["trajectory_format", "messages"])
    {
        Some(F::SweAgent)
    } else if has(&["schema_version", "steps"]) {
        Some(F::Atif)
    } else if has(&["messages", "events"]) && (has(&["epoch"]) || has(&["scores"]))
        || has(&["eval", "samples"])
    {
        Some(F::Inspect)
    } else if keys.get("kind").is_some_and(|kind| kind.inner().ends_with(b"Event"))
        || has(&["source", "action", "args"])
        || has(&["source", "observation", "extras"])
    {
        Some(F::OpenHands)
    } else if has(&["lc", "kwargs"]) || kind_is(&["human", "ai"]) {
        Some(F::LangChain)
    } else if keys.get("conversations").is_some_and(|list| first_has(list, "from")) {
        Some(F::ShareGpt)
    } else if has(&["working_dir", "message_count"])
        || keys.get("conversation").is_some_and(Value::is_array)
        || keys.0.first().is_some_and(|(_, value)| {
            value.get("input").is_some_and(|input| input.has("system") && input.has("messages"))
        })
    {
        Some(F::Goose)
    } else if keys.get("object").is_some_and(|object| object.is_text("response"))
        || has(&["choices"]) && !has(&["messages"])
        || kind_is(&["message"]) && has(&["content", "usage"])
        || has(&["candidates"])
        || has(&["output", "stopReason"])
    {
        Some(F::ReplyAlone)
    } else {
        None
    }
}

/// The fields of a record, collected once: looking for each of many keys in the source takes a walk over the
/// whole record.
struct Keys<'a>(Vec<(&'a [u8], Value<'a>)>);

impl<'a> Keys<'a> {
    fn of(record: Value<'a>) -> Self {
        // No format that is recognized here has more keys at the top.
        Self(record.fields().take(100).collect())
    }

    fn get(&self, name: &str) -> Option<Value<'a>> {
        self.0.iter().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| *value)
    }
}

/// How the messages of a conversation are to be read.
///
/// What only one format can have decides: calls beside the content, and results as messages of their own. Then
/// the first block that tells, since tools put system messages before messages of Anthropic too.
pub(crate) fn dialect(conversation: &Conversation<'_>) -> Result<Dialect, ReadError> {
    let mut by_content = None;
    let mut has_system = false;
    for message in &conversation.messages {
        match mark(*message, by_content.is_none()) {
            Some(Mark::Shape(verdict)) => return verdict,
            Some(Mark::Content(verdict)) => {
                by_content.get_or_insert(verdict);
            }
            Some(Mark::System) => has_system = true,
            None => {}
        }
    }
    if let Some(verdict) = by_content {
        return verdict;
    }
    if has_system {
        return Ok(Dialect::OpenAi);
    }
    let Some(object) = conversation.object else { return Ok(Dialect::OpenAi) };
    let keys = Keys::of(object);
    if keys.get("contents").is_some() && keys.get("messages").is_none() {
        return Ok(Dialect::Gemini);
    }
    let anthropic_tools = keys.get("tools").is_some_and(|tools| first_has(tools, "input_schema"));
    let claude = keys.get("model").is_some_and(|model| model.inner().starts_with(b"claude"));
    let anthropic = ["system", "anthropic_version", "mcp_servers", "stop_sequences"];
    if anthropic_tools || claude || anthropic.iter().any(|name| keys.get(name).is_some()) {
        return Ok(Dialect::Anthropic);
    }
    if keys.get("toolConfig").or(keys.get("inferenceConfig")).is_some() {
        return unsupported(ForeignFormat::BedrockConverse);
    }
    Ok(Dialect::OpenAi)
}

type Verdict = Result<Dialect, ReadError>;

fn unsupported(format: ForeignFormat) -> Verdict {
    Err(ReadError::NotSupportedYet { format })
}

/// What tells the formats apart in one message.
enum Mark {
    /// Its keys or its role.
    Shape(Verdict),
    /// A block of its content.
    Content(Verdict),
    /// It is a system message, which Anthropic does not have.
    System,
}

fn mark(message: Value<'_>, look_inside: bool) -> Option<Mark> {
    let ([role, content, tool_calls, parts, kind, id, call, refusal], _) = message.find([
        "role",
        "content",
        "tool_calls",
        "parts",
        "type",
        "tool_call_id",
        "function_call",
        "refusal",
    ]);
    if parts.is_some() {
        return Some(Mark::Shape(Ok(Dialect::Gemini)));
    }
    if role.is_none() && kind.is_some() {
        return Some(Mark::Shape(Ok(Dialect::Responses)));
    }
    if let Some(call) = tool_calls.and_then(|calls| calls.elements().next()) {
        // Inspect names the function where chat completions hold an object.
        let inspect = call.get("function").is_some_and(|function| !function.is_object());
        let verdict = if inspect { unsupported(ForeignFormat::Inspect) } else { Ok(Dialect::OpenAi) };
        return Some(Mark::Shape(verdict));
    }
    let role_is = |names: [&str; 2]| role.is_some_and(|role| names.iter().any(|name| role.is_text(name)));
    if role_is(["tool", "function"]) || id.or(call).or(refusal).is_some() {
        return Some(Mark::Shape(Ok(Dialect::OpenAi)));
    }
    if role_is(["system", "developer"]) {
        return Some(Mark::System);
    }
    let blocks = content.filter(|_| look_inside).into_iter().flat_map(Value::elements);
    blocks.into_iter().find_map(by_block).map(Mark::Content)
}

fn by_block(block: Value<'_>) -> Option<Verdict> {
    const OPENAI: [&[u8]; 4] = [b"image_url", b"input_audio", b"file", b"refusal"];
    const ANTHROPIC: [&[u8]; 6] =
        [b"thinking", b"redacted_thinking", b"image", b"document", b"compaction", b"container_upload"];
    const GOOSE: [&[u8]; 2] = [b"toolRequest", b"toolResponse"];
    const BEDROCK: [&str; 4] = ["text", "toolUse", "toolResult", "image"];
    let Some(kind) = block.get("type") else {
        let bedrock = BEDROCK.iter().any(|key| block.has(key));
        return bedrock.then(|| unsupported(ForeignFormat::BedrockConverse));
    };
    let kind = kind.inner();
    if OPENAI.contains(&kind) {
        Some(Ok(Dialect::OpenAi))
    } else if ANTHROPIC.contains(&kind) || kind.ends_with(b"tool_use") || kind.ends_with(b"tool_result") {
        Some(Ok(Dialect::Anthropic))
    } else if GOOSE.contains(&kind) {
        Some(unsupported(ForeignFormat::Goose))
    } else if kind.starts_with(b"input_") || kind == b"output_text" {
        Some(Ok(Dialect::Responses))
    } else {
        None
    }
}

fn first_has(list: Value<'_>, key: &str) -> bool {
    list.elements().next().is_some_and(|first| first.has(key))
}
