//! Answers of Messages in one piece.

use epitome_loop::{Block, FinishReason, ModelCallErrorKind, RawJson, Thinking, TokenCount, ToolUse, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::SIGNATURE;
use crate::answer::Draft;
use crate::finish_word::finish_of;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default, borrow)]
    content: Option<Vec<Part<'a>>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<StopDetails>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    model: Option<String>,
}

/// Why a model refused, where that is said.
#[derive(Deserialize)]
pub(super) struct StopDetails {
    #[serde(default)]
    pub(super) explanation: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) signature: Option<String>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default, borrow)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// What a later event says takes the place of what an earlier one said.
    pub(super) fn update(&mut self, later: Self) {
        let Self {
            input_tokens,
            output_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            output_tokens_details,
        } = later;
        self.input_tokens = input_tokens.or(self.input_tokens);
        self.output_tokens = output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens_details = output_tokens_details.or(self.output_tokens_details.take());
    }

    /// Input excludes what is cached; output includes reasoning, which is told apart only by newer versions.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.input_tokens.is_none() && self.output_tokens.is_none() {
            return None;
        }
        let tokens = |number: Option<u64>| TokenCount(number.unwrap_or(0));
        Some(Usage {
            input: tokens(self.input_tokens),
            output: tokens(self.output_tokens),
            cache_read: tokens(self.cache_read_input_tokens),
            cache_creation: tokens(self.cache_creation_input_tokens),
            reasoning: tokens(self.output_tokens_details.as_ref().and_then(|known| known.thinking_tokens)),
        })
    }
}

/// Reads an answer.
pub(super) fn read(body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
    let Body { kind, error, content, stop_reason, stop_details, usage, model } = object(body)?;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    if kind.as_deref() != Some("message") {
        return Err(ModelCallErrorKind::Malformed);
    }
    let parts = content.ok_or(ModelCallErrorKind::Malformed)?;
    let usage = usage.and_then(|usage| usage.usage());
    let mut draft = Draft { usage, model, ..Draft::default() };
    for part in parts {
        push_part(&mut draft, part);
    }
    push_end(&mut draft, stop_reason.as_deref(), stop_details)?;
    Ok(draft)
}

fn push_part(draft: &mut Draft, part: Part<'_>) {
    let Part { kind, text, thinking, signature, id, name, input } = part;
    match kind.as_str() {
        "text" => draft.push_text(text.unwrap_or_default()),
        "thinking" => push_thinking(draft, thinking.unwrap_or_default(), signature.unwrap_or_default()),
        // Reasoning that only the provider can read.
        "redacted_thinking" => push_thinking(draft, String::new(), String::new()),
        "tool_use" => {
            let input = input.and_then(|input| RawJson::parse(input.get()).ok());
            push_call(draft, id.unwrap_or_default(), name.unwrap_or_default(), input);
        }
        _ => {}
    }
}

pub(super) fn push_thinking(draft: &mut Draft, words: String, signature: String) {
    draft.blocks.push(Block::Thinking(Thinking::new(words, signature, SIGNATURE, None)));
}

pub(super) fn push_call(draft: &mut Draft, id: String, name: String, input: Option<RawJson>) {
    draft.blocks.push(Block::ToolUse(ToolUse::new(id, name, input, None)));
}

/// Why it ended, with the words of a refusal.
pub(super) fn push_end(
    draft: &mut Draft,
    reason: Option<&str>,
    details: Option<StopDetails>,
) -> Result<(), ModelCallErrorKind> {
    draft.finish = reason.map(finish_of).transpose()?;
    if draft.finish == Some(FinishReason::Refused) {
        draft.push_refusal(details.and_then(|details| details.explanation).unwrap_or_default());
    }
    Ok(())
}
