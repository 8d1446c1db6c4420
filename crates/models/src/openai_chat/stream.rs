//! Answers of chat completions in events.

use std::collections::BTreeMap;

use epitome_loop::ModelCallErrorKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{Content, Said, WireCall, WireFunction, push_said};
use super::usage::WireUsage;
use crate::answer::Draft;
use crate::dialect::EventReader;
use crate::finish_word::finish_of;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Said>,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// Puts the first choice together.
#[derive(Default)]
pub(super) struct Reader {
    draft: Draft,
    text: String,
    refusal: String,
    reasoning: String,
    /// Calls by their place in the answer.
    calls: BTreeMap<u64, WireCall>,
    /// There was something of an answer.
    begun: bool,
    /// The server said that the answer is whole.
    whole: bool,
}

impl Reader {
    fn take_said(&mut self, said: Said) {
        let Said { content, refusal, reasoning_content, reasoning, tool_calls, function_call } = said;
        let Content { text, refusal: refused } = content.unwrap_or_default();
        self.text.push_str(&text);
        self.refusal.push_str(&refused);
        self.refusal.push_str(refusal.as_deref().unwrap_or_default());
        self.reasoning.push_str(reasoning_content.or(reasoning).as_deref().unwrap_or_default());
        for call in tool_calls.into_iter().flatten() {
            self.take_call(call);
        }
        if let Some(function) = function_call {
            self.take_call(WireCall { index: Some(0), id: None, function: Some(function) });
        }
    }

    /// The first piece of a call has its id and name, all have pieces of its arguments. Servers that number no
    /// calls send each in one piece.
    fn take_call(&mut self, piece: WireCall) {
        let next = self.calls.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        let place = piece.index.unwrap_or(next);
        let call = self.calls.entry(place).or_insert(WireCall { index: None, id: None, function: None });
        if call.id.is_none() {
            call.id = piece.id.filter(|id| !id.is_empty());
        }
        let WireFunction { name, arguments } = piece.function.unwrap_or_default();
        let function = call.function.get_or_insert_default();
        if function.name.is_none() {
            function.name = name.filter(|name| !name.is_empty());
        }
        function.arguments.get_or_insert_default().push_str(arguments.as_deref().unwrap_or_default());
    }
}

impl EventReader for Reader {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelCallErrorKind> {
        if data.trim_ascii() == b"[DONE]" {
            self.whole = true;
            return Ok(());
        }
        let Chunk { error, choices, usage, model } = object(data)?;
        if let Some(kind) = error_in_answer(error) {
            return Err(kind);
        }
        if let Some(usage) = usage.and_then(WireUsage::usage) {
            self.draft.usage = Some(usage);
        }
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.draft.model.get_or_insert(model);
        }
        for Choice { index, delta, finish_reason } in choices.into_iter().flatten() {
            if index != 0 {
                continue;
            }
            self.begun = true;
            self.take_said(delta.unwrap_or_default());
            if let Some(reason) = finish_reason.filter(|reason| !reason.is_empty()) {
                self.draft.finish = Some(finish_of(&reason)?);
                self.whole = true;
            }
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<Draft, ModelCallErrorKind> {
        let Self { mut draft, text, refusal, reasoning, calls, begun, whole } = *self;
        if !whole {
            return Err(ModelCallErrorKind::Network);
        }
        if !begun {
            return Err(ModelCallErrorKind::Malformed);
        }
        let said = Said {
            content: Some(Content { text, refusal }),
            refusal: None,
            reasoning_content: None,
            reasoning: Some(reasoning),
            tool_calls: Some(calls.into_values().collect()),
            function_call: None,
        };
        push_said(&mut draft, said);
        Ok(draft)
    }
}
