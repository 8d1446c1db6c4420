//! Reads the values that vectors describe into our types, naming what our types cannot hold.
//!
//! The form is that of the reference: a Go program's values, in which a message can be nil, a role can
//! contradict its kind, a string can be any bytes, and raw JSON can be broken. Here the type system refuses
//! all of that; [`ReadError`] says which.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{
    Audio, Block, Blocks, ContextBasis, ContextRevision, Document, EventId, Image, Message, ModelKey,
    RawJson, RequestFingerprint, SharedBytes, SharedText, Thinking, TokenCount, ToolResult, ToolUse, Usage,
};
use serde_json::Value;

/// A vector describes a value that our types cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ReadError {
    /// A null message.
    #[error("nil message")]
    NilMessage,
    /// A null block.
    #[error("nil block")]
    NilBlock,
    /// A null counter.
    #[error("nil counter")]
    NilCounter,
    /// A role that contradicts the message's kind.
    #[error("role contradiction")]
    RoleContradiction,
    /// Text that is not UTF-8.
    #[error("text not utf-8")]
    NotUtf8,
    /// Raw JSON that is not JSON.
    #[error("invalid raw json")]
    InvalidJson,
    /// A negative number where ours has no sign.
    #[error("negative number")]
    Negative,
    /// A number or a name that is outside a closed list of ours.
    #[error("outside a closed list")]
    OutsideEnum,
    /// Settings of evidence tools, which we do not have.
    #[error("evidence tools")]
    EvidenceTools,
    /// Not a value of the described form at all: the vector file is at fault.
    #[error("malformed vector")]
    Malformed,
}

type Read<T> = Result<T, ReadError>;

/// Reads a list of messages; null is the empty list.
///
/// # Errors
/// [`ReadError`] for the first message that cannot be held.
pub fn read_messages(value: &Value) -> Read<Vec<Message>> {
    list(value)?.iter().map(read_message).collect()
}

/// Reads one message.
///
/// # Errors
/// [`ReadError`] when it cannot be held.
pub fn read_message(value: &Value) -> Read<Message> {
    let kind = word(value, "kind")?;
    if kind == "nil" || flag(value, "typed_nil") {
        return Err(ReadError::NilMessage);
    }
    let blocks = read_blocks(&value["blocks"])?;
    let message = match kind {
        "user" => Message::User { blocks },
        "ai" => Message::Assistant { blocks, usage: read_usage(&value["usage"])? },
        "system" => Message::System { blocks },
        "tool_result" => Message::ToolResult {
            blocks,
            tool_use_id: text(value, "tool_use_id")?,
            is_error: flag(value, "is_error"),
        },
        _ => return Err(ReadError::Malformed),
    };
    match &value["role"] {
        Value::Null => Ok(message),
        Value::String(role) if role == message.role().as_str() => Ok(message),
        _ => Err(ReadError::RoleContradiction),
    }
}

fn read_blocks(value: &Value) -> Read<Blocks> {
    list(value)?.iter().map(read_block).collect()
}

fn read_block(value: &Value) -> Read<Block> {
    let kind = word(value, "kind")?;
    if kind == "nil" || flag(value, "typed_nil") {
        return Err(ReadError::NilBlock);
    }
    let text = |key| text(value, key);
    Ok(match kind {
        "text" => Block::Text { text: text("text")? },
        "refusal" => Block::Refusal { text: text("text")? },
        "image" => Block::Image(Image {
            media_type: text("media_type")?,
            url: text("url")?,
            data: data(value, "data_b64")?,
        }),
        "audio" => Block::Audio(Audio { media_type: text("media_type")?, data: data(value, "data_b64")? }),
        "document" => Block::Document(Document {
            media_type: text("media_type")?,
            name: text("name")?,
            data: data(value, "data_b64")?,
            text: text("text")?,
        }),
        // Not by the constructors: the reference encodes halves that these would drop.
        "thinking" => Block::Thinking(Thinking {
            thinking: text("thinking")?,
            signature: text("signature")?,
            signature_format: text("signature_format")?,
            provider_state: state(value)?,
            provider_state_format: text("provider_state_format")?,
        }),
        "tool_use" => Block::ToolUse(ToolUse {
            id: text("id")?,
            name: text("name")?,
            input: raw_json(value, "input_raw")?,
            provider_state: state(value)?,
            provider_state_format: text("provider_state_format")?,
        }),
        "tool_result" => Block::ToolResult(ToolResult {
            tool_use_id: text("tool_use_id")?,
            content: read_blocks(&value["content"])?,
            is_error: flag(value, "is_error"),
        }),
        _ => return Err(ReadError::Malformed),
    })
}

/// An empty state is left out by the reference as an absent one is.
fn state(value: &Value) -> Read<Option<RawJson>> {
    match &value["provider_state_raw"] {
        Value::String(empty) if empty.is_empty() => Ok(None),
        _ => raw_json(value, "provider_state_raw"),
    }
}

fn raw_json(value: &Value, key: &str) -> Read<Option<RawJson>> {
    match &value[key] {
        Value::Null => Ok(None),
        given => RawJson::parse(string(given)?).map(Some).map_err(|_| ReadError::InvalidJson),
    }
}

pub(crate) fn read_usage(value: &Value) -> Read<Option<Usage>> {
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(Usage {
        input: tokens(value, "input_tokens")?,
        output: tokens(value, "output_tokens")?,
        cache_read: tokens(value, "cache_read_tokens")?,
        cache_creation: tokens(value, "cache_creation_tokens")?,
        reasoning: tokens(value, "reasoning_tokens")?,
    }))
}

/// The identity that inputs and outputs carry.
pub(crate) struct Identity {
    pub(crate) basis: ContextBasis,
    pub(crate) model: ModelKey,
    pub(crate) request_fingerprint: RequestFingerprint,
}

pub(crate) fn read_identity(value: &Value) -> Read<Identity> {
    let fingerprint = word(value, "request_fingerprint")?;
    Ok(Identity {
        basis: read_basis(&value["basis"])?,
        model: read_model(&value["model"])?,
        request_fingerprint: RequestFingerprint::parse(fingerprint).map_err(|_| ReadError::Malformed)?,
    })
}

pub(crate) fn read_basis(value: &Value) -> Read<ContextBasis> {
    let event = EventId::parse(word(value, "through_event_id")?).map_err(|_| ReadError::Malformed)?;
    Ok(ContextBasis { revision: ContextRevision(number(value, "revision")?), through_event_id: event })
}

pub(crate) fn read_model(value: &Value) -> Read<ModelKey> {
    Ok(ModelKey { provider: text(value, "provider")?, model: text(value, "model")? })
}

pub(crate) fn tokens(value: &Value, key: &str) -> Read<TokenCount> {
    number(value, key).map(TokenCount)
}

pub(crate) fn number(value: &Value, key: &str) -> Read<u64> {
    match &value[key] {
        Value::Number(number) if number.is_i64() && !number.is_u64() => Err(ReadError::Negative),
        number => number.as_u64().ok_or(ReadError::Malformed),
    }
}

pub(crate) fn word<'a>(value: &'a Value, key: &str) -> Read<&'a str> {
    value[key].as_str().ok_or(ReadError::Malformed)
}

/// Absent flags are false.
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value[key] == Value::Bool(true)
}

/// Text by key; absent text is empty.
pub(crate) fn text(value: &Value, key: &str) -> Read<SharedText> {
    match &value[key] {
        Value::Null => Ok(SharedText::default()),
        given => string(given),
    }
}

/// A string of the reference: JSON text, or `{"b64"}` for bytes that are not UTF-8.
pub(crate) fn string(value: &Value) -> Read<SharedText> {
    match value {
        Value::String(text) => Ok(SharedText::from(text.as_str())),
        Value::Object(_) => {
            let bytes = base64_bytes(&value["b64"])?;
            String::from_utf8(bytes).map(SharedText::from).map_err(|_| ReadError::NotUtf8)
        }
        _ => Err(ReadError::Malformed),
    }
}

fn data(value: &Value, key: &str) -> Read<Option<SharedBytes>> {
    match &value[key] {
        Value::Null => Ok(None),
        given => base64_bytes(given).map(|bytes| Some(SharedBytes::from(bytes))),
    }
}

pub(crate) fn base64_bytes(value: &Value) -> Read<Vec<u8>> {
    let text = value.as_str().ok_or(ReadError::Malformed)?;
    STANDARD.decode(text).map_err(|_| ReadError::Malformed)
}

fn list(value: &Value) -> Read<&[Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => Err(ReadError::Malformed),
    }
}
