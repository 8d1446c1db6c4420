//! Neutral messages into contents.

use std::borrow::Cow;
use std::collections::HashMap;

use epitome_loop::{Block, Message, Role, SharedText, ToolUse};

use super::blocks::response_text;
use super::{SIGNATURE, SIGNS_BEFORE, UNNAMED, is_ours};
use crate::call_arguments;
use crate::call_id;
use crate::faults::Faults;
use crate::json::{Array, Found, Object, Values, array, object};
use crate::loss::{LEFT_OUT, LossKind, Losses};
use crate::write::Item;

/// The elements of the list of contents. `same` says whether the session was read from this format, so that
/// the provider's own items may go back.
pub(crate) fn encode(items: &[Item], same: bool, names: &mut CallNames, losses: &mut Losses) -> Vec<Vec<u8>> {
    let content = |content: Content| {
        object(|out| {
            out.text("role", if content.is_model { "model" } else { "user" });
            out.raw("parts", &content.parts);
        })
    };
    contents(items, same, names, losses).into_iter().map(content).collect()
}

/// The system prompt: a content without a role; nothing when there is no text.
pub(crate) fn encode_system(items: &[Item], losses: &mut Losses) -> Option<Vec<u8>> {
    let mut parts = Vec::new();
    for block in items.iter().flat_map(|item| item.message.blocks().iter()) {
        match block {
            Block::Text { text } => parts.push(object(|out| out.text("text", text))),
            _ => losses.add(LossKind::Opaque),
        }
    }
    (!parts.is_empty())
        .then(|| object(|out| out.array("parts", |list| parts.iter().for_each(|part| list.raw(part)))))
}

/// Which function each call named, because responses repeat it.
#[derive(Default)]
pub(crate) struct CallNames(HashMap<SharedText, SharedText>);

impl CallNames {
    /// Remembers the calls of a message.
    pub(crate) fn remember(&mut self, message: &Message) {
        self.0.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
    }

    fn of(&self, id: &SharedText) -> &str {
        // The API refuses a response without a name.
        self.0.get(id).map_or("unknown_function", SharedText::as_str)
    }
}

/// An encoded content.
pub(super) struct Content {
    pub(super) is_model: bool,
    /// Whether it is a summary of what stood before.
    pub(super) is_summary: bool,
    /// The list of its parts.
    pub(super) parts: Vec<u8>,
}

/// Responses in a row go into one content: the API counts them against the calls.
pub(super) fn contents(
    items: &[Item],
    same: bool,
    names: &mut CallNames,
    losses: &mut Losses,
) -> Vec<Content> {
    let mut encoder = Encoder { same, names, losses };
    let mut out = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let results = rest.iter().take_while(|item| item.message.role() == Role::Tool).count();
        let (group, behind) = rest.split_at(results.clamp(1, rest.len()));
        rest = behind;
        out.extend(encoder.content(group));
    }
    out
}

struct Encoder<'a> {
    same: bool,
    names: &'a mut CallNames,
    losses: &'a mut Losses,
}

impl Encoder<'_> {
    /// One content; nothing when it is empty, or when nothing of the model's words can be held.
    fn content(&mut self, group: &[Item]) -> Option<Content> {
        let first = &group.first()?.message;
        let is_model = first.role() == Role::Assistant;
        group.iter().for_each(|item| self.names.remember(&item.message));
        let mut parts = array(|list| group.iter().for_each(|item| self.message(list, &item.message)));
        if parts == b"[]" {
            if first.role() != Role::User || first.blocks().is_empty() {
                return None;
            }
            parts = array(|list| list.object(|part| part.text("text", LEFT_OUT)));
        }
        Some(Content { is_model, is_summary: group.first()?.is_summary, parts })
    }

    fn message(&mut self, list: &mut Array<'_>, message: &Message) {
        match message {
            Message::ToolResult { blocks, tool_use_id, is_error } => {
                self.result(list, tool_use_id, blocks, *is_error);
            }
            Message::System { blocks } => {
                // The API knows no system message between others.
                self.losses.add(LossKind::SystemAsUser);
                self.parts(list, blocks);
            }
            Message::User { blocks } | Message::Assistant { blocks, .. } => self.parts(list, blocks),
        }
    }

    /// The blocks of a message. A signature that belongs to the block before it goes into that block's part.
    fn parts(&mut self, list: &mut Array<'_>, blocks: &[Block]) {
        let mut blocks = blocks.iter().peekable();
        while let Some(block) = blocks.next() {
            let signature = blocks.next_if(|next| signs_before(next).is_some()).and_then(signs_before);
            self.part(list, block, signature);
        }
    }

    fn part(&mut self, list: &mut Array<'_>, block: &Block, signature: Option<&str>) {
        let sign = |out: &mut Object<'_>| {
            if let Some(signature) = signature {
                out.text("thoughtSignature", signature);
            }
        };
        let mut text = |text: &str| {
            // An empty text is refused, unless it is there for its signature.
            if text.is_empty() && signature.is_none() {
                return;
            }
            list.object(|out| {
                out.text("text", text);
                sign(out);
            });
        };
        let loss = match block {
            Block::Text { text: words } => return text(words),
            Block::Refusal { text: words } => {
                self.losses.add(LossKind::Refusal);
                return text(words);
            }
            Block::Document(document) if document.data.is_none() => return text(&document.text),
            // Without bytes and address there is nothing to send.
            Block::Image(image) if image.data.is_none() && image.url.is_empty() => LossKind::Image,
            Block::Image(image) => match &image.data {
                Some(data) => {
                    return list.object(|out| {
                        inline(out, &image.media_type, "", data);
                        sign(out);
                    });
                }
                None => {
                    return list.object(|out| {
                        out.object("fileData", |file| {
                            file.text_if_any("mimeType", &image.media_type);
                            file.text("fileUri", &image.url);
                        });
                        sign(out);
                    });
                }
            },
            Block::Audio(epitome_loop::Audio { media_type, data: Some(data) }) => {
                return list.object(|out| {
                    inline(out, media_type, "", data);
                    sign(out);
                });
            }
            Block::Document(epitome_loop::Document { media_type, name, data: Some(data), .. }) => {
                return list.object(|out| {
                    inline(out, media_type, if self.same { name } else { "" }, data);
                    sign(out);
                });
            }
            Block::Thinking(thinking) if thinking.thinking.is_empty() && thinking.signature.is_empty() => {
                return;
            }
            Block::Thinking(thinking)
                if is_ours(&thinking.signature_format) || self.same && thinking.signature.is_empty() =>
            {
                return list.object(|out| {
                    out.text("text", &thinking.thinking);
                    if !thinking.thinking.is_empty() {
                        out.boolean("thought", true);
                    }
                    out.text_if_any("thoughtSignature", &thinking.signature);
                });
            }
            Block::ToolUse(call) => return list.object(|out| self.call(out, call)),
            Block::Opaque(opaque) if self.same => return list.raw(opaque.raw.as_str().as_bytes()),
            Block::Thinking(_) => LossKind::Thinking,
            Block::Audio(_) => LossKind::Audio,
            Block::ToolResult(_) => LossKind::NestedResult,
            _ => LossKind::Opaque,
        };
        self.losses.add(loss);
        if signature.is_some() {
            self.losses.add(LossKind::Thinking);
        }
    }

    fn call(&mut self, out: &mut Object<'_>, call: &ToolUse) {
        out.object("functionCall", |out| {
            if let Some(id) = self.id(&call.id) {
                out.text("id", &id);
            }
            out.text("name", &call.name);
            call_arguments::write_object(out, "args", call.input.as_ref(), self.losses);
        });
        match &call.provider_state {
            Some(signature) if is_ours(&call.provider_state_format) => {
                out.raw("thoughtSignature", signature.as_str().as_bytes());
            }
            Some(_) => self.losses.add(LossKind::CallState),
            None => {}
        }
    }

    /// A response. Files in it stay in it in its own format; for the others they follow as parts, which every
    /// model of the provider reads.
    fn result(&mut self, list: &mut Array<'_>, id: &SharedText, blocks: &[Block], is_error: bool) {
        let (text, others): (String, Vec<Block>) = if self.same {
            // The response says the first, and its own parts the others.
            let (first, others) = match blocks.split_first() {
                Some((first, others)) if words(first).is_some() => (words(first), others),
                _ => (None, blocks),
            };
            (first.unwrap_or_default().to_owned(), others.to_vec())
        } else {
            let texts: Vec<&str> = blocks.iter().filter_map(words).collect();
            (texts.join("\n"), blocks.iter().filter(|block| words(block).is_none()).cloned().collect())
        };
        let files = array(|list| self.parts(list, &others));
        let files = files.strip_prefix(b"[").and_then(|files| files.strip_suffix(b"]")).unwrap_or_default();
        list.object(|out| {
            out.object("functionResponse", |out| {
                if let Some(id) = self.id(id) {
                    out.text("id", &id);
                }
                out.text("name", self.names.of(id));
                match as_response(&text, is_error) {
                    Some(json) => out.raw("response", json.as_bytes()),
                    None => out.object("response", |out| {
                        out.text(if is_error { "error" } else { "output" }, &text);
                    }),
                }
                if self.same && !files.is_empty() {
                    out.array("parts", |list| list.raw(files));
                }
            });
        });
        if !self.same && !files.is_empty() {
            list.raw(files);
        }
    }

    /// The id to write; none where the source had none on either side.
    fn id<'a>(&self, id: &'a str) -> Option<Cow<'a, str>> {
        if id.starts_with(UNNAMED) {
            return None;
        }
        Some(if self.same { Cow::Borrowed(id) } else { call_id::portable(id) })
    }
}

/// The signature of a block that signs the one before it.
fn signs_before(block: &Block) -> Option<&str> {
    match block {
        Block::Thinking(thinking)
            if thinking.provider_state_format == SIGNS_BEFORE && thinking.signature_format == SIGNATURE =>
        {
            Some(&thinking.signature)
        }
        _ => None,
    }
}

fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } | Block::Refusal { text } => Some(text),
        _ => None,
    }
}

/// The text itself, when it is an object that would be read as this very text.
fn as_response(text: &str, is_error: bool) -> Option<&str> {
    if !text.starts_with('{') {
        return None;
    }
    let mut values = Values::new(text.as_bytes(), 0);
    let Some(Found::Value(range)) = values.next() else { return None };
    if range != (0..text.len()) {
        return None;
    }
    let source = values.into_source();
    let read = response_text(source.value(range), &mut Faults::default());
    (read == (text.to_owned(), is_error)).then_some(text)
}

fn inline(out: &mut Object<'_>, media_type: &str, name: &str, data: &[u8]) {
    out.object("inlineData", |file| {
        file.text("mimeType", media_type);
        file.text_if_any("displayName", name);
        file.base64("data", data);
    });
}
