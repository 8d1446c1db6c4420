//! What the content of a message costs, split by kind of block.

use std::collections::BTreeMap;

use epitome_loop::{Block, Document, Message, Opaque, RawJson, Thinking, ToolUse};

use crate::framing::Framing;
use crate::media::MediaRules;
use crate::opaque_json::opaque_tokens;
use crate::text_size::TextSize;

/// All that is needed to put a price on content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tariff {
    pub(crate) text: TextSize,
    pub(crate) media: MediaRules,
    pub(crate) framing: Framing,
}

/// Tokens of some content, split by the kind of block they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentCost {
    by_kind: [u64; KINDS.len()],
}

/// The kinds in the order of [`ContentCost`].
const KINDS: [&str; 10] = [
    "text",
    "refusal",
    "image",
    "audio",
    "document",
    "thinking",
    "tool_use",
    "tool_result",
    "opaque",
    "other",
];

impl ContentCost {
    pub(crate) fn total(&self) -> u64 {
        self.by_kind.iter().fold(0, |sum, &tokens| sum.saturating_add(tokens))
    }

    /// Adds the kinds that cost something to a table.
    pub(crate) fn add_to(&self, table: &mut BTreeMap<&'static str, u64>) {
        for (&kind, &tokens) in KINDS.iter().zip(&self.by_kind).filter(|&(_, &tokens)| tokens > 0) {
            let sum = table.entry(kind).or_default();
            *sum = sum.saturating_add(tokens);
        }
    }

    fn charge(&mut self, kind: &'static str, tokens: u64) {
        let known = KINDS.iter().position(|&name| name == kind).unwrap_or(KINDS.len() - 1);
        if let Some(sum) = self.by_kind.get_mut(known) {
            *sum = sum.saturating_add(tokens);
        }
    }
}

impl Tariff {
    /// The cost of a message's content, without the marks around the message. Blocks inside a nested tool
    /// result are charged to their own kind, the marks of the result to `tool_result`.
    ///
    /// Nesting is walked with a list of what is left, not by recursion, so its depth does not matter.
    pub(crate) fn content(&self, blocks: &[Block]) -> ContentCost {
        let mut cost = ContentCost::default();
        let mut left: Vec<&[Block]> = vec![blocks];
        while let Some(blocks) = left.pop() {
            for block in blocks {
                cost.charge(block.kind(), self.block(block));
                if let Block::ToolResult(result) = block {
                    left.push(&result.content);
                }
            }
        }
        cost
    }

    /// The marks around a message.
    pub(crate) fn frame(&self, message: &Message) -> u64 {
        match message {
            Message::ToolResult { .. } => self.framing.message.saturating_add(self.framing.tool_result),
            _ => self.framing.message,
        }
    }

    /// A message with the marks around it.
    pub(crate) fn message(&self, message: &Message) -> u64 {
        self.frame(message).saturating_add(self.content(message.blocks()).total())
    }

    /// The cost of tool definitions. Providers turn the JSON into a form of their own, which is rarely longer.
    pub(crate) fn tools(&self, tools: &[RawJson]) -> u64 {
        if tools.is_empty() {
            return 0;
        }
        let each = |tool: &RawJson| self.text.tokens(tool.as_str()).saturating_add(self.framing.tool);
        tools.iter().map(each).fold(self.framing.tools, u64::saturating_add)
    }

    /// One block, without the content of a nested tool result.
    fn block(&self, block: &Block) -> u64 {
        match block {
            Block::Text { text } | Block::Refusal { text } => self.text.tokens(text),
            Block::Image(image) => self.media.image(image),
            Block::Audio(audio) => self.media.audio(audio),
            Block::Document(document) => self.document(document),
            Block::Thinking(thinking) => self.thinking(thinking),
            Block::ToolUse(call) => self.tool_use(call),
            Block::ToolResult(_) => self.framing.tool_result,
            Block::Opaque(Opaque { raw, .. }) => opaque_tokens(raw, &self.media),
            // A kind that this version does not know cannot be looked into.
            _ => UNKNOWN_BLOCK,
        }
    }

    /// Text where the source gives it, otherwise the bytes.
    fn document(&self, document: &Document) -> u64 {
        let body = if document.text.is_empty() {
            self.media.document_bytes(document)
        } else {
            self.text.tokens(&document.text)
        };
        body.saturating_add(self.text.tokens(&document.name))
    }

    /// The reasoning, its signature and its state: a signed block costs something even when its text is empty.
    fn thinking(&self, thinking: &Thinking) -> u64 {
        let Thinking { thinking, signature, signature_format: _, provider_state, provider_state_format: _ } =
            thinking;
        let state = provider_state.as_ref().map_or(0, |state| opaque_tokens(state, &self.media));
        self.text.tokens(thinking).saturating_add(sealed_tokens(signature.len())).saturating_add(state)
    }

    fn tool_use(&self, call: &ToolUse) -> u64 {
        let ToolUse { id: _, name, input, provider_state, provider_state_format: _ } = call;
        let input = input.as_ref().map_or(0, |input| self.text.tokens(input.as_str()));
        let state = provider_state.as_ref().map_or(0, |state| opaque_tokens(state, &self.media));
        self.framing
            .tool_call
            .saturating_add(self.text.tokens(name))
            .saturating_add(input)
            .saturating_add(state)
    }
}

/// Tokens for encrypted or signed bytes in base64: a quarter of the length, which providers' figures show to
/// be an upper bound.
pub(crate) fn sealed_tokens(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX).div_ceil(4)
}

/// For a block of a kind that is newer than this crate.
const UNKNOWN_BLOCK: u64 = 1_000;
