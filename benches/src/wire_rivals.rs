//! The shape of wire v1 as serde derives it: what one writes without thinking of strictness or speed. It takes
//! what ours refuses (unknown order of fields is fine for both, but here a block may have the keys of another
//! type), so it does less.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{Block, CompactionInput, Message, RawJson, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An input.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputShape {
    version: u64,
    basis: BasisShape,
    model: ModelShape,
    request_fingerprint: String,
    transcript: Vec<MessageShape>,
    max_summary_tokens: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BasisShape {
    revision: u64,
    through_event_id: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelShape {
    provider: String,
    model: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageShape {
    role: String,
    blocks: Vec<BlockShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<UsageShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageShape {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
    reasoning_tokens: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockShape {
    r#type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<SourceShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature_format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_state: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_state_format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Vec<BlockShape>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceShape {
    url: String,
    data: Option<String>,
}

impl InputShape {
    /// Reads a document; `None` if it is none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Writes it as serde_json does, into memory that grows.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Its length in bytes, by writing it to nowhere.
    #[must_use]
    pub fn counted(&self) -> u64 {
        let mut sink = CountingSink(0);
        serde_json::to_writer(&mut sink, self).map_or(0, |()| sink.0)
    }

    /// How many messages it has.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.transcript.len()
    }
}

impl From<&CompactionInput> for InputShape {
    fn from(input: &CompactionInput) -> Self {
        Self {
            version: 1,
            basis: BasisShape {
                revision: input.basis().revision.0,
                through_event_id: input.basis().through_event_id.to_string(),
            },
            model: ModelShape {
                provider: input.model().provider.to_string(),
                model: input.model().model.to_string(),
            },
            request_fingerprint: input.request_fingerprint().to_string(),
            transcript: input.transcript().iter().map(MessageShape::from).collect(),
            max_summary_tokens: input.max_summary_tokens().get(),
        }
    }
}

impl From<&Message> for MessageShape {
    fn from(message: &Message) -> Self {
        let (usage, tool_use_id, is_error) = match message {
            Message::User { .. } | Message::System { .. } => (None, None, None),
            Message::Assistant { usage, .. } => (usage.as_ref().map(UsageShape::from), None, None),
            Message::ToolResult { tool_use_id, is_error, .. } => {
                (None, Some(tool_use_id.to_string()), Some(*is_error))
            }
        };
        Self {
            role: message.role().as_str().to_owned(),
            blocks: message.blocks().iter().map(BlockShape::from).collect(),
            usage,
            tool_use_id,
            is_error,
        }
    }
}

impl From<&Usage> for UsageShape {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input.get(),
            output_tokens: usage.output.get(),
            cache_read_tokens: usage.cache_read.get(),
            cache_creation_tokens: usage.cache_creation.get(),
            reasoning_tokens: usage.reasoning.get(),
        }
    }
}

impl From<&Block> for BlockShape {
    fn from(block: &Block) -> Self {
        let text = |text: &str| Some(text.to_owned());
        let raw = |raw: &RawJson| RawValue::from_string(raw.as_str().to_owned()).ok();
        let data = |data: &[u8]| STANDARD.encode(data);
        let shape = Self { r#type: block.kind().to_owned(), ..Self::default() };
        match block {
            Block::Text { text: said } | Block::Refusal { text: said } => Self { text: text(said), ..shape },
            Block::Image(image) => Self {
                media_type: text(&image.media_type),
                source: Some(SourceShape {
                    url: image.url.to_string(),
                    data: image.data.as_deref().map(data),
                }),
                ..shape
            },
            Block::Audio(audio) => {
                Self { media_type: text(&audio.media_type), data: audio.data.as_deref().map(data), ..shape }
            }
            Block::Document(document) => Self {
                media_type: text(&document.media_type),
                name: text(&document.name),
                data: document.data.as_deref().map(data),
                text: text(&document.text),
                ..shape
            },
            Block::Thinking(thinking) => Self {
                thinking: text(&thinking.thinking),
                signature: text(&thinking.signature),
                provider_state: thinking.provider_state.as_ref().and_then(raw),
                ..shape
            },
            Block::ToolUse(call) => Self {
                id: text(&call.id),
                name: text(&call.name),
                input: call.input.as_ref().and_then(raw),
                provider_state: call.provider_state.as_ref().and_then(raw),
                ..shape
            },
            Block::ToolResult(result) => Self {
                tool_use_id: text(&result.tool_use_id),
                content: Some(result.content.iter().map(Self::from).collect()),
                is_error: Some(result.is_error),
                ..shape
            },
            _ => shape,
        }
    }
}

/// Adds up what is written to it.
struct CountingSink(u64);

impl io::Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
