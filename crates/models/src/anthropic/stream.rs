//! Answers of Messages in events.

use std::collections::BTreeMap;

use epitome_loop::{ModelCallErrorKind, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{Part, StopDetails, WireUsage, push_call, push_end, push_thinking};
use crate::answer::Draft;
use crate::dialect::EventReader;
use crate::provider_error::error_in_answer;
use crate::wire_json::object;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    message: Option<Head>,
    #[serde(default)]
    index: u64,
    #[serde(default, borrow)]
    content_block: Option<Part<'a>>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

/// More of a block, or of the end.
#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Option<StopDetails>,
}

/// A block while it comes.
#[derive(Default)]
struct Growing {
    kind: String,
    text: String,
    signature: String,
    id: String,
    name: String,
    json: String,
}

/// Puts the blocks together.
#[derive(Default)]
pub(super) struct Reader {
    blocks: BTreeMap<u64, Growing>,
    usage: WireUsage,
    model: Option<String>,
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
    begun: bool,
    whole: bool,
}

impl Reader {
    fn begin_block(&mut self, index: u64, part: Part<'_>) {
        let Part { kind, text, thinking, signature, id, name, input } = part;
        let block = Growing {
            kind,
            text: text.or(thinking).unwrap_or_default(),
            signature: signature.unwrap_or_default(),
            id: id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            // An empty object stands for arguments that are still to come.
            json: input.map(|input| input.get().to_owned()).filter(|json| json != "{}").unwrap_or_default(),
        };
        self.blocks.insert(index, block);
    }

    fn grow(&mut self, index: u64, delta: Delta) {
        let Delta { text, thinking, signature, partial_json, stop_reason, stop_details } = delta;
        self.stop_reason = stop_reason.or(self.stop_reason.take());
        self.stop_details = stop_details.or(self.stop_details.take());
        let Some(block) = self.blocks.get_mut(&index) else { return };
        block.text.push_str(text.or(thinking).as_deref().unwrap_or_default());
        block.signature.push_str(signature.as_deref().unwrap_or_default());
        block.json.push_str(partial_json.as_deref().unwrap_or_default());
    }
}

impl EventReader for Reader {
    fn take(&mut self, data: &[u8]) -> Result<(), ModelCallErrorKind> {
        let Event { kind, error, message, index, content_block, delta, usage } = object(data)?;
        if let Some(kind) = error_in_answer(error) {
            return Err(kind);
        }
        match kind.as_deref() {
            Some("message_start") => {
                let Head { model, usage } = message.ok_or(ModelCallErrorKind::Malformed)?;
                self.begun = true;
                self.model = model;
                self.usage.update(usage.unwrap_or_default());
            }
            Some("content_block_start") => {
                self.begin_block(index, content_block.ok_or(ModelCallErrorKind::Malformed)?);
            }
            Some("content_block_delta" | "message_delta") => {
                self.usage.update(usage.unwrap_or_default());
                self.grow(index, delta.ok_or(ModelCallErrorKind::Malformed)?);
            }
            Some("message_stop") => self.whole = true,
            Some("error") => return Err(ModelCallErrorKind::Status(200)),
            Some(_) => {}
            None => return Err(ModelCallErrorKind::Malformed),
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<Draft, ModelCallErrorKind> {
        let Self { blocks, usage, model, stop_reason, stop_details, begun, whole } = *self;
        if !whole {
            return Err(ModelCallErrorKind::Network);
        }
        if !begun {
            return Err(ModelCallErrorKind::Malformed);
        }
        let mut draft = Draft { usage: usage.usage(), model, ..Draft::default() };
        for Growing { kind, text, signature, id, name, json } in blocks.into_values() {
            match kind.as_str() {
                "text" => draft.push_text(text),
                "thinking" | "redacted_thinking" => push_thinking(&mut draft, text, signature),
                "tool_use" => {
                    let json = if json.is_empty() { "{}" } else { &json };
                    // Arguments that were cut are no JSON any more.
                    push_call(&mut draft, id, name, Some(RawJson::parse_or_quote(json)));
                }
                _ => {}
            }
        }
        push_end(&mut draft, stop_reason.as_deref(), stop_details)?;
        Ok(draft)
    }
}
