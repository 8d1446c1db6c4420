//! Messages and the blocks they are made of.

use std::sync::Arc;

use crate::{RawJson, SharedBytes, SharedText, Usage};

/// Deepest nesting of tool results inside tool results that any function here accepts, and that any reader makes.
///
/// A value that is built deeper by hand is refused, but dropping it recurses as deep as it is.
pub const MAX_BLOCK_DEPTH: usize = 128;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The person, or the program in the person's place.
    User,
    /// The model.
    Assistant,
    /// The host's standing instructions.
    System,
    /// A tool's answer to a call of the model.
    Tool,
}

impl Role {
    /// The stable name used on the wire: `user`, `assistant`, `system`, `tool`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }
}

/// The blocks of a message, shared: cloning copies a pointer.
pub type Blocks = Arc<[Block]>;

/// One message of a conversation. Its kind fixes its role, so the two cannot contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// What the user said.
    User {
        /// Content in order.
        blocks: Blocks,
    },
    /// What the model said and which tools it called.
    Assistant {
        /// Content in order.
        blocks: Blocks,
        /// What the provider reported for the request that produced this message.
        usage: Option<Usage>,
    },
    /// Standing instructions of the host.
    System {
        /// Content in order.
        blocks: Blocks,
    },
    /// The outcome of one tool call.
    ToolResult {
        /// Content in order.
        blocks: Blocks,
        /// Which call this answers.
        tool_use_id: SharedText,
        /// Whether the tool failed.
        is_error: bool,
    },
}

impl Message {
    /// A user message with one text block.
    #[must_use]
    pub fn user(text: impl Into<SharedText>) -> Self {
        Self::User { blocks: Arc::from([Block::text(text)]) }
    }

    /// An assistant message with one text block and no usage.
    #[must_use]
    pub fn assistant(text: impl Into<SharedText>) -> Self {
        Self::Assistant { blocks: Arc::from([Block::text(text)]), usage: None }
    }

    /// A system message with one text block.
    #[must_use]
    pub fn system(text: impl Into<SharedText>) -> Self {
        Self::System { blocks: Arc::from([Block::text(text)]) }
    }

    /// A tool result with one text block.
    #[must_use]
    pub fn tool_result(
        tool_use_id: impl Into<SharedText>,
        text: impl Into<SharedText>,
        is_error: bool,
    ) -> Self {
        Self::ToolResult { blocks: Arc::from([Block::text(text)]), tool_use_id: tool_use_id.into(), is_error }
    }

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::User { .. } => Role::User,
            Self::Assistant { .. } => Role::Assistant,
            Self::System { .. } => Role::System,
            Self::ToolResult { .. } => Role::Tool,
        }
    }

    /// The content in order.
    #[must_use]
    pub fn blocks(&self) -> &Blocks {
        match self {
            Self::User { blocks }
            | Self::Assistant { blocks, .. }
            | Self::System { blocks }
            | Self::ToolResult { blocks, .. } => blocks,
        }
    }

    /// The tool calls of an assistant message at its top level, in order; none for other messages.
    ///
    /// Calls inside other messages or inside nested results are text to a provider, not open obligations.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUse> {
        let blocks: &[Block] = match self {
            Self::Assistant { blocks, .. } => blocks,
            _ => &[],
        };
        blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: SharedText,
    },
    /// The model's refusal to answer. Never to be merged with text.
    Refusal {
        /// The model's words.
        text: SharedText,
    },
    /// A picture.
    Image(Image),
    /// A recording.
    Audio(Audio),
    /// A file.
    Document(Document),
    /// The model's reasoning.
    Thinking(Thinking),
    /// A call of a tool.
    ToolUse(ToolUse),
    /// A tool's answer inside a message (some formats nest them).
    ToolResult(ToolResult),
    /// A provider's item that must not be touched: server-side calls and their results, encrypted reasoning
    /// or compaction items. It may stand in the kept tail, byte for byte, and never enters a summary.
    Opaque(Opaque),
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<SharedText>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The stable name of the kind, as used on the wire and in reports.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Refusal { .. } => "refusal",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::Document(_) => "document",
            Self::Thinking(_) => "thinking",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Opaque(_) => "opaque",
        }
    }
}

/// A picture, by address, by value, or both.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Image {
    /// For example `image/png`; may be empty when the source does not say.
    pub media_type: SharedText,
    /// Where it can be had; empty when it is given by value.
    pub url: SharedText,
    /// The picture's bytes. Absent and empty are told apart on the wire.
    pub data: Option<SharedBytes>,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Audio {
    /// For example `audio/wav`.
    pub media_type: SharedText,
    /// The recording's bytes.
    pub data: Option<SharedBytes>,
}

/// A file: its bytes, its extracted text, or both.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Document {
    /// For example `application/pdf`.
    pub media_type: SharedText,
    /// File name; may be empty.
    pub name: SharedText,
    /// The file's bytes.
    pub data: Option<SharedBytes>,
    /// The file's text, where the source gives it.
    pub text: SharedText,
}

/// The model's reasoning. A signed one is valid only unchanged, in its message, for the model that made it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Thinking {
    /// The reasoning; may be empty while the signature is not.
    pub thinking: SharedText,
    /// The provider's signature; empty when there is none.
    pub signature: SharedText,
    /// Whose signature it is; empty when there is none.
    pub signature_format: SharedText,
    /// Opaque state of the provider that belongs to this reasoning.
    pub provider_state: Option<RawJson>,
    /// Whose state it is; empty when there is none.
    pub provider_state_format: SharedText,
}

impl Thinking {
    /// Reasoning with its signature and state, made consistent: a state without a format, a format without
    /// a state, and a signature format without a signature are dropped.
    #[must_use]
    pub fn new(
        thinking: impl Into<SharedText>,
        signature: impl Into<SharedText>,
        signature_format: impl Into<SharedText>,
        provider_state: Option<(RawJson, SharedText)>,
    ) -> Self {
        let signature = signature.into();
        let signature_format =
            if signature.is_empty() { SharedText::default() } else { signature_format.into() };
        let (provider_state, provider_state_format) = consistent_state(provider_state);
        Self { thinking: thinking.into(), signature, signature_format, provider_state, provider_state_format }
    }
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ToolUse {
    /// The call's id; unique only among the calls that are open at the same time.
    pub id: SharedText,
    /// The tool's name.
    pub name: SharedText,
    /// The arguments, byte for byte as the model wrote them.
    pub input: Option<RawJson>,
    /// Opaque state of the provider that belongs to this call.
    pub provider_state: Option<RawJson>,
    /// Whose state it is; empty when there is none.
    pub provider_state_format: SharedText,
}

impl ToolUse {
    /// A call with its state made consistent: a state without a format is dropped.
    #[must_use]
    pub fn new(
        id: impl Into<SharedText>,
        name: impl Into<SharedText>,
        input: Option<RawJson>,
        provider_state: Option<(RawJson, SharedText)>,
    ) -> Self {
        let (provider_state, provider_state_format) = consistent_state(provider_state);
        Self { id: id.into(), name: name.into(), input, provider_state, provider_state_format }
    }
}

/// A tool's answer as a block inside a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Which call this answers.
    pub tool_use_id: SharedText,
    /// What the tool returned; results may nest up to [`MAX_BLOCK_DEPTH`].
    pub content: Blocks,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// A provider's item, kept byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// The provider's name for the item, for example `server_tool_use` or `compaction`.
    pub kind: SharedText,
    /// The item as it stood in the source.
    pub raw: RawJson,
}

fn consistent_state(state: Option<(RawJson, SharedText)>) -> (Option<RawJson>, SharedText) {
    match state {
        Some((state, format)) if !format.is_empty() => (Some(state), format),
        _ => (None, SharedText::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_drop_halves_that_mean_nothing_alone() {
        let state = || RawJson::parse("{}").unwrap();
        let thinking = Thinking::new("t", "", "anthropic", Some((state(), SharedText::default())));
        assert!(thinking.signature_format.is_empty());
        assert!(thinking.provider_state.is_none());
        let call = ToolUse::new("i", "n", None, Some((state(), SharedText::from("gemini"))));
        assert_eq!(call.provider_state_format, "gemini");
        assert!(call.provider_state.is_some());
    }

    #[test]
    fn debug_of_a_message_shows_no_content() {
        let shown = format!("{:?}", Message::tool_result("canary-id", "canary", false));
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn clones_share_their_text() {
        let message = Message::user("x".repeat(1000));
        let copy = message.clone();
        assert!(Arc::ptr_eq(message.blocks(), copy.blocks()));
    }
}
