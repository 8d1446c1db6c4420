//! Answers of Responses in one piece.

use epitome_loop::{Block, FinishReason, ModelCallErrorKind, RawJson, Thinking, ToolUse, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::{Draft, usage_with_cache_inside};
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

/// A response, whole or at its end in an event.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default)]
    output: Option<Vec<Item>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: String,
    /// Of messages and reasoning.
    #[serde(default)]
    content: Option<Vec<Part>>,
    /// Of reasoning.
    #[serde(default)]
    summary: Option<Vec<Part>>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    /// Of calls of tools that take any text.
    #[serde(default)]
    input: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// Input includes what is cached, output includes reasoning.
    fn usage(self) -> Usage {
        let Self { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = self;
        let cached = input_tokens_details.unwrap_or_default().cached_tokens.unwrap_or(0);
        let reasoning = output_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0);
        usage_with_cache_inside(input_tokens, cached, 0, output_tokens, reasoning)
    }
}

/// Reads an answer.
pub(super) fn read(body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
    object::<Response<'_>>(body)?.draft()
}

impl Response<'_> {
    pub(super) fn draft(self) -> Result<Draft, ModelCallErrorKind> {
        let Self { error, status, incomplete_details, output, usage, model } = self;
        if let Some(kind) = error_in_answer(error) {
            return Err(kind);
        }
        let finish = match (status.as_deref(), incomplete_details.and_then(|details| details.reason)) {
            (Some("completed"), _) => FinishReason::Stop,
            (Some("incomplete"), reason) => match reason.as_deref() {
                Some("content_filter") => FinishReason::Refused,
                // An answer that is not whole is cut, whatever cut it.
                _ => FinishReason::Length,
            },
            (Some("failed" | "cancelled"), _) => return Err(ModelCallErrorKind::Status(200)),
            // No status, or one of an answer that is still made.
            _ => return Err(ModelCallErrorKind::Malformed),
        };
        let items = output.ok_or(ModelCallErrorKind::Malformed)?;
        let usage = usage.map(WireUsage::usage);
        let mut draft = Draft { finish: Some(finish), usage, model, ..Draft::default() };
        for item in items {
            push_item(&mut draft, item);
        }
        Ok(draft)
    }
}

fn push_item(draft: &mut Draft, item: Item) {
    let Item { kind, content, summary, call_id, name, arguments, input } = item;
    match kind.as_str() {
        "message" => {
            for Part { kind, text, refusal } in content.into_iter().flatten() {
                match kind.as_str() {
                    "output_text" => draft.push_text(text.unwrap_or_default()),
                    "refusal" => draft.push_refusal(refusal.or(text).unwrap_or_default()),
                    _ => {}
                }
            }
        }
        "reasoning" => {
            let parts = summary.into_iter().flatten().chain(content.into_iter().flatten());
            let texts: Vec<String> = parts.filter_map(|part| part.text).collect();
            let words = texts.join("\n");
            draft.blocks.push(Block::Thinking(Thinking::new(words, "", "", None)));
        }
        "function_call" | "custom_tool_call" => {
            let given = arguments.or(input).filter(|text| !text.is_empty());
            let given = given.map(|text| RawJson::parse_or_quote(&text));
            let call = ToolUse::new(call_id.unwrap_or_default(), name.unwrap_or_default(), given, None);
            draft.blocks.push(Block::ToolUse(call));
        }
        // Work of the provider's own tools, of which none were offered.
        _ => {}
    }
}
