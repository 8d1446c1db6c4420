//! Answers of chat completions in one piece.

use std::fmt;

use epitome_loop::{Block, ModelCallErrorKind, RawJson, Thinking, ToolUse};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::usage::WireUsage;
use crate::answer::Draft;
use crate::finish_word::finish_of;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// OpenRouter puts an upstream's failure here.
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// What a message says, or a piece of it.
#[derive(Deserialize, Default)]
pub(super) struct Said {
    #[serde(default)]
    pub(super) content: Option<Content>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    /// DeepSeek's, llama.cpp's and older vLLM's name for reasoning.
    #[serde(default)]
    pub(super) reasoning_content: Option<String>,
    /// OpenRouter's, Ollama's and newer vLLM's name for reasoning.
    #[serde(default)]
    pub(super) reasoning: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<WireCall>>,
    /// The older form of one call.
    #[serde(default)]
    pub(super) function_call: Option<WireFunction>,
}

#[derive(Deserialize)]
pub(super) struct WireCall {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<WireFunction>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireFunction {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Option<String>,
}

/// Text, or parts of it.
#[derive(Default)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) refusal: String,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content { text: text.to_owned(), ..Content::default() })
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content { text, ..Content::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut content = Content::default();
                while let Some(Part { kind, text, refusal }) = parts.next_element()? {
                    // Reasoning is a part of its own at some servers, and no answer.
                    let is_said =
                        kind.as_deref().is_none_or(|kind| matches!(kind, "text" | "output_text" | "refusal"));
                    if !is_said {
                        continue;
                    }
                    content.text.push_str(text.as_deref().unwrap_or_default());
                    content.refusal.push_str(refusal.as_deref().unwrap_or_default());
                }
                Ok(content)
            }
        }
        from.deserialize_any(Either)
    }
}

/// Reads an answer.
pub(super) fn read(body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
    let Body { error, choices, usage, model } = object(body)?;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    // One choice is asked for; a further one is none of ours.
    let choice = choices.into_iter().flatten().next().ok_or(ModelCallErrorKind::Malformed)?;
    let Choice { message, finish_reason, error } = choice;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    let finish = finish_reason.as_deref().map(finish_of).transpose()?;
    let said = message.ok_or(ModelCallErrorKind::Malformed)?;
    let mut draft = Draft { usage: usage.and_then(WireUsage::usage), model, ..Draft::default() };
    draft.finish = finish;
    push_said(&mut draft, said);
    Ok(draft)
}

/// Adds what a whole message says: reasoning, text, refusal, calls.
pub(super) fn push_said(draft: &mut Draft, said: Said) {
    let Said { content, refusal, reasoning_content, reasoning, tool_calls, function_call } = said;
    let thinking = reasoning_content.or(reasoning).unwrap_or_default();
    if !thinking.is_empty() {
        draft.blocks.push(Block::Thinking(Thinking::new(thinking, "", "", None)));
    }
    let content = content.unwrap_or_default();
    draft.push_text(content.text);
    draft.push_refusal(content.refusal);
    draft.push_refusal(refusal.unwrap_or_default());
    let older = function_call.map(|function| WireCall { index: None, id: None, function: Some(function) });
    for WireCall { index: _, id, function } in tool_calls.into_iter().flatten().chain(older) {
        let WireFunction { name, arguments } = function.unwrap_or_default();
        // Arguments are text that need not be JSON.
        let input = arguments.filter(|text| !text.is_empty()).map(|text| RawJson::parse_or_quote(&text));
        let call = ToolUse::new(id.unwrap_or_default(), name.unwrap_or_default(), input, None);
        draft.blocks.push(Block::ToolUse(call));
    }
}
