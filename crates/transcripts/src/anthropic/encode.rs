//! Neutral messages into Anthropic ones.

use std::borrow::Cow;

use epitome_loop::{Block, Message, RawJson, Role, ToolUse};

use super::{CALLER, SIGNATURE};
use crate::call_arguments;
use crate::call_id;
use crate::gemini;
use crate::json::{Array, Object, Source, Value, array, object};
use crate::loss::{LEFT_OUT, LossKind, Losses};
use crate::write::Item;

/// The elements of the list of messages. `same` says whether the session was read from this format, so that
/// the provider's own items may go back.
///
/// Tool results go together into one user message, with the user's words that follow them behind.
pub(crate) fn encode(items: &[Item], same: bool, losses: &mut Losses) -> Vec<Vec<u8>> {
    let mut encoder = Encoder { same, losses };
    let mut out = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let results = rest.iter().take_while(|item| is_result(item)).count();
        let followed = rest.get(results).is_some_and(|item| item.message.role() == Role::User);
        let taken = if results > 0 { results + usize::from(followed) } else { 1 };
        let (group, behind) = rest.split_at(taken.min(rest.len()));
        rest = behind;
        out.extend(encoder.group(group));
    }
    out
}

fn is_result(item: &Item) -> bool {
    item.message.role() == Role::Tool
}

/// The system prompt: a string for one text, else text blocks; nothing when there is no text.
pub(crate) fn encode_system(items: &[Item], losses: &mut Losses) -> Option<Vec<u8>> {
    let mut texts = Vec::new();
    for block in items.iter().flat_map(|item| item.message.blocks().iter()) {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => texts.push(text.as_str()),
            _ => losses.add(LossKind::Opaque),
        }
    }
    match texts.as_slice() {
        [] => None,
        [text] => serde_json::to_vec(text).ok(),
        texts => Some(array(|list| texts.iter().for_each(|text| text_block(list, text)))),
    }
}

/// Tool definitions. Functions of OpenAI become tools; others that have no schema are left out.
pub(crate) fn encode_tools(tools: &[RawJson], losses: &mut Losses) -> Vec<Vec<u8>> {
    let encoded = tools.iter().map(|tool| {
        let source = Source::small(tool.as_str().as_bytes());
        let value = source.whole();
        if value.has("input_schema") {
            return Some(source.bytes().to_vec());
        }
        if let Some(declared) = gemini::declaration(value) {
            return Some(object(|out| {
                out.raw("name", declared.name);
                if let Some(description) = declared.description {
                    out.raw("description", description);
                }
                out.raw("input_schema", &declared.schema);
            }));
        }
        let function = value.get("function").unwrap_or(value);
        let ([name, description, parameters], _) = function.pick(["name", "description", "parameters"]);
        let Some(name) = name else {
            losses.add(LossKind::Tool);
            return None;
        };
        Some(object(|out| {
            out.raw("name", name.bytes());
            if let Some(description) = description {
                out.raw("description", description.bytes());
            }
            out.raw("input_schema", parameters.map_or(br#"{"type":"object"}"#, Value::bytes));
        }))
    });
    encoded.collect::<Vec<_>>().into_iter().flatten().collect()
}

struct Encoder<'a> {
    same: bool,
    losses: &'a mut Losses,
}

impl Encoder<'_> {
    /// One message; nothing when it is empty, or when nothing of the model's words can be held.
    fn group(&mut self, group: &[Item]) -> Option<Vec<u8>> {
        let role = group.first()?.message.role();
        if let [Item { message: Message::User { blocks }, .. }] = group
            && let [Block::Text { text }] = &**blocks
            && !text.is_empty()
        {
            return Some(object(|out| {
                out.text("role", "user");
                out.text("content", text);
            }));
        }
        let mut content = array(|list| group.iter().for_each(|item| self.message(list, &item.message)));
        if content == b"[]" {
            let was_empty = group.iter().all(|item| item.message.blocks().is_empty());
            if role == Role::Assistant || was_empty {
                return None;
            }
            content = array(|list| text_block(list, LEFT_OUT));
        }
        Some(object(|out| {
            out.text("role", if role == Role::Assistant { "assistant" } else { "user" });
            out.raw("content", &content);
        }))
    }

    fn message(&mut self, list: &mut Array<'_>, message: &Message) {
        match message {
            Message::ToolResult { blocks, tool_use_id, is_error } => {
                list.object(|out| self.result(out, tool_use_id, blocks, *is_error));
            }
            Message::System { blocks } => {
                // The API knows no system message between others.
                self.losses.add(LossKind::SystemAsUser);
                blocks.iter().for_each(|block| self.block(list, block));
            }
            Message::User { blocks } | Message::Assistant { blocks, .. } => {
                blocks.iter().for_each(|block| self.block(list, block));
            }
        }
    }

    fn block(&mut self, list: &mut Array<'_>, block: &Block) {
        let loss = match block {
            Block::Text { text } => return text_block(list, text),
            Block::Refusal { text } => {
                self.losses.add(LossKind::Refusal);
                return text_block(list, text);
            }
            // Without bytes and address there is nothing to send.
            Block::Image(image) if image.data.is_none() && image.url.is_empty() => LossKind::Image,
            Block::Image(image) => {
                return list.object(|out| {
                    out.text("type", "image");
                    out.object("source", |out| match &image.data {
                        Some(data) => base64_source(out, &image.media_type, data),
                        None => {
                            out.text("type", "url");
                            out.text("url", &image.url);
                        }
                    });
                });
            }
            // Another format's file without bytes and text is nothing to send.
            Block::Document(document)
                if !self.same && document.data.is_none() && document.text.is_empty() =>
            {
                return;
            }
            Block::Document(document) => {
                return list.object(|out| {
                    out.text("type", "document");
                    out.object("source", |out| match &document.data {
                        Some(data) => base64_source(out, &document.media_type, data),
                        None => {
                            out.text("type", "text");
                            out.text("media_type", "text/plain");
                            out.text("data", &document.text);
                        }
                    });
                    out.text_if_any("title", &document.name);
                });
            }
            Block::Thinking(thinking)
                if thinking.signature_format == SIGNATURE && !thinking.signature.is_empty() =>
            {
                return list.object(|out| {
                    out.text("type", "thinking");
                    out.text("thinking", &thinking.thinking);
                    out.text("signature", &thinking.signature);
                });
            }
            Block::ToolUse(call) => return self.call(list, call),
            Block::Opaque(opaque) if self.same => return list.raw(opaque.raw.as_str().as_bytes()),
            Block::Thinking(_) => LossKind::Thinking,
            Block::Audio(_) => LossKind::Audio,
            // As a block of its own it would answer a call that nobody made.
            Block::ToolResult(_) => LossKind::NestedResult,
            _ => LossKind::Opaque,
        };
        self.losses.add(loss);
    }

    /// A result; the API nests no results in it.
    fn result(&mut self, out: &mut Object<'_>, id: &str, blocks: &[Block], is_error: bool) {
        out.text("type", "tool_result");
        out.text("tool_use_id", &self.id(id));
        if !blocks.is_empty() {
            out.array("content", |list| {
                blocks.iter().for_each(|block| self.block(list, block));
            });
        }
        if is_error {
            out.boolean("is_error", true);
        }
    }

    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.same { Cow::Borrowed(id) } else { call_id::portable(id) }
    }

    fn call(&mut self, list: &mut Array<'_>, call: &ToolUse) {
        list.object(|out| {
            out.text("type", "tool_use");
            out.text("id", &self.id(&call.id));
            out.text("name", &call.name);
            call_arguments::write_object(out, "input", call.input.as_ref(), self.losses);
            match &call.provider_state {
                Some(caller) if call.provider_state_format == CALLER => {
                    out.raw("caller", caller.as_str().as_bytes());
                }
                Some(_) => self.losses.add(LossKind::CallState),
                None => {}
            }
        });
    }
}

/// A text; nothing for an empty one, which the API refuses.
fn text_block(list: &mut Array<'_>, text: &str) {
    if text.is_empty() {
        return;
    }
    list.object(|out| {
        out.text("type", "text");
        out.text("text", text);
    });
}

fn base64_source(out: &mut Object<'_>, media_type: &str, data: &[u8]) {
    out.text("type", "base64");
    out.text("media_type", media_type);
    out.base64("data", data);
}
