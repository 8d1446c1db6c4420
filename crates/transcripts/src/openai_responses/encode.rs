//! Neutral messages into items.

use std::borrow::Cow;

use epitome_loop::{Block, Image, Message, Opaque, Role, Thinking, ToolUse};

use super::blocks::is_part_kind;
use super::calls::CallKinds;
use super::{ITEM, NAMESPACE, SIGNATURE};
use crate::call_id;
use crate::json::{Array, Object, Source, object};
use crate::loss::{LEFT_OUT, LossKind, Losses};
use crate::media;
use crate::openai_chat::{CUSTOM_CALL, arguments_text};
use crate::write::Item;

/// Items for messages. `same` says whether the session holds items of this API already, so that the provider's
/// own may go back.
pub(crate) fn encode(items: &[Item], kinds: &CallKinds, same: bool, losses: &mut Losses) -> Vec<Vec<u8>> {
    items.iter().flat_map(|item| encode_message(&item.message, kinds, same, losses)).collect()
}

/// The items for one message; none when nothing of the model's words can be held.
pub(crate) fn encode_message(
    message: &Message,
    kinds: &CallKinds,
    same: bool,
    losses: &mut Losses,
) -> Vec<Vec<u8>> {
    let mut encoder = Encoder { same, kinds, losses, out: Vec::new() };
    match message {
        Message::ToolResult { blocks, tool_use_id, is_error } => {
            encoder.result(blocks, tool_use_id, *is_error);
        }
        _ => encoder.blocks(message),
    }
    encoder.out
}

struct Encoder<'a> {
    same: bool,
    kinds: &'a CallKinds,
    losses: &'a mut Losses,
    out: Vec<Vec<u8>>,
}

impl<'a> Encoder<'a> {
    /// Content between items goes together into one message.
    fn blocks(&mut self, message: &Message) {
        let role = match message.role() {
            Role::Assistant => "assistant",
            Role::System => "developer",
            Role::User | Role::Tool => "user",
        };
        let before = self.out.len();
        let mut parts = Vec::new();
        for block in message.blocks().iter() {
            let item = match block {
                Block::Thinking(thinking) if role == "assistant" => self.reasoning(thinking),
                Block::ToolUse(call) if role == "assistant" => Some(self.call(call)),
                Block::Opaque(opaque) if self.same && is_item_of_its_own(message.role(), opaque) => {
                    Some(opaque.raw.as_str().as_bytes().to_vec())
                }
                block => {
                    parts.extend(self.part(block, message.role()));
                    continue;
                }
            };
            if let Some(item) = item {
                self.flush(role, &mut parts);
                self.out.push(item);
            }
        }
        if parts.is_empty() && self.out.len() == before {
            match message.role() {
                _ if message.blocks().is_empty() && self.same => {}
                Role::User if !message.blocks().is_empty() => parts.push(text_part("input_text", LEFT_OUT)),
                _ => return,
            }
            self.out.push(message_item(role, &parts));
        } else {
            self.flush(role, &mut parts);
        }
    }

    fn flush(&mut self, role: &str, parts: &mut Vec<Vec<u8>>) {
        if !parts.is_empty() {
            self.out.push(message_item(role, &std::mem::take(parts)));
        }
    }

    /// Reasoning goes back only to the provider that sealed it.
    fn reasoning(&mut self, thinking: &Thinking) -> Option<Vec<u8>> {
        let Thinking { thinking: words, signature, signature_format, provider_state, provider_state_format } =
            thinking;
        let is_ours = signature_format == SIGNATURE || provider_state_format == SIGNATURE;
        let is_unsigned = self.same && signature.is_empty();
        if !is_ours && !is_unsigned {
            self.losses.add(LossKind::Thinking);
            return None;
        }
        let state = provider_state.as_ref().map_or("{}", |state| state.as_str());
        let source = Source::small(state.as_bytes());
        let state = source.whole();
        let in_content = state.has("summary");
        Some(object(|out| {
            out.text("type", "reasoning");
            for (key, value) in state.fields().filter(|(key, _)| *key != b"summary") {
                out.raw(&String::from_utf8_lossy(key), value.bytes());
            }
            let (words_in, kind) =
                if in_content { ("content", "reasoning_text") } else { ("summary", "summary_text") };
            if in_content {
                out.raw("summary", b"[]");
            }
            out.array(words_in, |list| {
                if !words.is_empty() {
                    list.raw(&text_part(kind, words));
                }
            });
            out.text_if_any("encrypted_content", signature);
        }))
    }

    fn call(&mut self, call: &ToolUse) -> Vec<u8> {
        if call.provider_state_format == ITEM
            && let Some(item) = &call.provider_state
        {
            return item.as_str().as_bytes().to_vec();
        }
        let is_custom = call.provider_state_format == CUSTOM_CALL;
        object(|out| {
            out.text("type", if is_custom { "custom_tool_call" } else { "function_call" });
            out.text("call_id", &self.id(&call.id));
            out.text("name", &call.name);
            if is_custom {
                out.raw("input", call.input.as_ref().map_or(b"\"\"", |input| input.as_str().as_bytes()));
                return;
            }
            match &call.provider_state {
                Some(namespace) if call.provider_state_format == NAMESPACE => {
                    out.raw("namespace", namespace.as_str().as_bytes());
                }
                Some(_) => self.losses.add(LossKind::CallState),
                None => {}
            }
            out.text("arguments", &arguments_text(call.input.as_ref()));
        })
    }

    /// The answer to a call, in the form that its kind asks for.
    fn result(&mut self, blocks: &[Block], id: &str, is_error: bool) {
        let kind = self.kinds.of_call(id);
        if let [Block::Opaque(opaque)] = blocks
            && !is_part_kind(&opaque.kind)
            && (self.same || kind != "function_call")
        {
            self.out.push(opaque.raw.as_str().as_bytes().to_vec());
            return;
        }
        if is_error && kind != "apply_patch_call" {
            self.losses.add(LossKind::ErrorFlag);
        }
        let parts: Vec<Vec<u8>> = blocks.iter().filter_map(|block| self.part(block, Role::Tool)).collect();
        let id = self.id(id);
        let item = object(|out| match kind {
            "shell_call" => answer(out, "shell_call_output", &id, |out| {
                out.array("output", |list| shell_chunks(list, blocks, is_error));
            }),
            "apply_patch_call" => answer(out, "apply_patch_call_output", &id, |out| {
                out.text("status", if is_error { "failed" } else { "completed" });
                output(out, blocks, &parts);
            }),
            "computer_call" => answer(out, "computer_call_output", &id, |out| match blocks {
                [Block::Image(image)] => out.object("output", |out| {
                    out.text("type", "computer_screenshot");
                    out.text("image_url", &image_address(image));
                }),
                blocks => output(out, blocks, &parts),
            }),
            "mcp_approval_request" => {
                out.text("type", "mcp_approval_response");
                out.text("approval_request_id", &id);
                out.boolean("approve", false);
                out.text("reason", &blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"));
            }
            "local_shell_call" => {
                out.text("type", "local_shell_call_output");
                out.text("id", &id);
                output(out, blocks, &parts);
            }
            "custom_tool_call" => {
                answer(out, "custom_tool_call_output", &id, |out| output(out, blocks, &parts));
            }
            "tool_search_call" => answer(out, "tool_search_output", &id, |out| output(out, blocks, &parts)),
            "function_call" | "item_reference" => {
                answer(out, "function_call_output", &id, |out| output(out, blocks, &parts));
            }
            kind => answer(out, &format!("{kind}_output"), &id, |out| output(out, blocks, &parts)),
        });
        self.out.push(item);
    }

    /// Calls that are kept as items have their ids in them.
    fn id<'b>(&self, id: &'b str) -> Cow<'b, str> {
        let is_function = matches!(self.kinds.of_call(id), "function_call" | "custom_tool_call");
        if self.same || !is_function { Cow::Borrowed(id) } else { call_id::portable(id) }
    }

    fn part(&mut self, block: &Block, role: Role) -> Option<Vec<u8>> {
        let carries_media = matches!(role, Role::User | Role::Tool);
        let loss = match block {
            // The API refuses empty text.
            Block::Text { text } | Block::Refusal { text } if text.is_empty() => return None,
            Block::Text { text } => {
                let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
                return Some(text_part(kind, text));
            }
            Block::Refusal { text } if role == Role::Assistant => {
                return Some(object(|out| {
                    out.text("type", "refusal");
                    out.text("refusal", text);
                }));
            }
            Block::Refusal { text } => {
                self.losses.add(LossKind::Refusal);
                return Some(text_part("input_text", text));
            }
            Block::Image(image) if carries_media => {
                return Some(object(|out| {
                    out.text("type", "input_image");
                    out.text("image_url", &image_address(image));
                }));
            }
            Block::Audio(audio) if role == Role::User => match &audio.data {
                Some(data) => {
                    return Some(object(|out| {
                        out.text("type", "input_audio");
                        out.object("input_audio", |out| {
                            out.base64("data", data);
                            out.text("format", audio.media_type.rsplit('/').next().unwrap_or_default());
                        });
                    }));
                }
                None => LossKind::Audio,
            },
            Block::Document(document) => match &document.data {
                None if document.text.is_empty() => return None,
                None => {
                    let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
                    return Some(text_part(kind, &document.text));
                }
                Some(data) if carries_media => {
                    return Some(object(|out| {
                        out.text("type", "input_file");
                        out.text_if_any("filename", &document.name);
                        out.text("file_data", &media::to_data_address(&document.media_type, data));
                    }));
                }
                Some(_) => LossKind::Document,
            },
            Block::Opaque(opaque) if self.same => return Some(opaque.raw.as_str().as_bytes().to_vec()),
            Block::Image(_) => LossKind::Image,
            Block::Audio(_) => LossKind::Audio,
            Block::Thinking(_) => LossKind::Thinking,
            Block::ToolResult(_) => LossKind::NestedResult,
            _ => LossKind::Opaque,
        };
        self.losses.add(loss);
        None
    }
}

/// Whether an opaque block was an item, and not a part of a message.
fn is_item_of_its_own(role: Role, opaque: &Opaque) -> bool {
    match role {
        Role::Assistant | Role::System => !is_part_kind(&opaque.kind),
        Role::User | Role::Tool => false,
    }
}

fn message_item(role: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    object(|out| {
        out.text("type", "message");
        out.text("role", role);
        out.array("content", |list| list_parts(list, parts));
    })
}

fn answer(out: &mut Object<'_>, kind: &str, id: &str, fill: impl FnOnce(&mut Object<'_>)) {
    out.text("type", kind);
    out.text("call_id", id);
    fill(out);
}

/// A string for text alone, else a list of parts.
fn output(out: &mut Object<'_>, blocks: &[Block], parts: &[Vec<u8>]) {
    match blocks {
        [] => out.text("output", ""),
        [Block::Text { text }] => out.text("output", text),
        _ => out.array("output", |list| list_parts(list, parts)),
    }
}

fn list_parts(list: &mut Array<'_>, parts: &[Vec<u8>]) {
    parts.iter().for_each(|part| list.raw(part));
}

fn text_part(kind: &str, text: &str) -> Vec<u8> {
    object(|out| {
        out.text("type", kind);
        out.text("text", text);
    })
}

fn text(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

fn image_address(image: &Image) -> String {
    match &image.data {
        Some(data) => media::to_data_address(&image.media_type, data),
        None => image.url.as_str().to_owned(),
    }
}

/// What a shell printed, one chunk for each text.
fn shell_chunks(list: &mut Array<'_>, blocks: &[Block], is_error: bool) {
    for text in blocks.iter().filter_map(text) {
        list.object(|out| {
            out.text("stdout", text);
            out.text("stderr", "");
            out.object("outcome", |out| {
                out.text("type", "exit");
                out.number("exit_code", u64::from(is_error));
            });
        });
    }
}
