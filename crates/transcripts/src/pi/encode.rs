//! Neutral messages into pi messages.

use std::collections::HashMap;

use epitome_loop::{Block, Message, ModelKey, RawJson, Role, SharedText, Usage};

use crate::json::{Array, Object, array, object, sendable};
use crate::loss::{LEFT_OUT, LossKind, Losses};

/// Encodes messages one after another; it remembers which tool a call named, because results repeat it.
pub(super) struct Encoder<'a> {
    /// Whether the session was read from this format, so that its own items may go back.
    pub(super) same: bool,
    /// The model that assistant messages are said to come from.
    pub(super) model: ModelKey,
    /// Milliseconds since 1970 as JSON.
    pub(super) timestamp: String,
    pub(super) losses: &'a mut Losses,
    pub(super) tools: HashMap<SharedText, SharedText>,
}

impl Encoder<'_> {
    /// The `message` of a record; nothing for a system message, which has no place in the format, and when
    /// nothing of the model's words can be held.
    pub(super) fn message(&mut self, message: &Message) -> Option<Vec<u8>> {
        self.remember_calls(message);
        if message.role() == Role::System {
            self.losses.add(LossKind::System);
            return None;
        }
        let mut content = array(|list| message.blocks().iter().for_each(|block| self.block(list, block)));
        if content == b"[]" && !message.blocks().is_empty() {
            match message.role() {
                Role::Assistant => return None,
                Role::User => content = array(|list| text(list, LEFT_OUT)),
                Role::System | Role::Tool => {}
            }
        }
        match message {
            Message::System { .. } => None,
            Message::User { .. } => Some(object(|out| {
                out.text("role", "user");
                out.raw("content", &content);
                out.raw("timestamp", self.timestamp.as_bytes());
            })),
            Message::Assistant { usage, .. } => Some(object(|out| {
                out.text("role", "assistant");
                out.raw("content", &content);
                out.text("api", self.api());
                out.text("provider", &self.model.provider);
                out.text("model", &self.model.model);
                self::usage(out, usage.unwrap_or_default());
                let calls = message.tool_calls().next().is_some();
                out.text("stopReason", if calls { "toolUse" } else { "stop" });
                out.raw("timestamp", self.timestamp.as_bytes());
            })),
            Message::ToolResult { tool_use_id, is_error, .. } => Some(object(|out| {
                out.text("role", "toolResult");
                out.text("toolCallId", tool_use_id);
                out.text("toolName", self.tools.get(tool_use_id).map_or("", SharedText::as_str));
                out.raw("content", &content);
                out.boolean("isError", *is_error);
                out.raw("timestamp", self.timestamp.as_bytes());
            })),
        }
    }

    /// Remembers which tool each call named.
    pub(super) fn remember_calls(&mut self, message: &Message) {
        if message.role() == Role::Assistant {
            self.tools.extend(message.tool_calls().map(|call| (call.id.clone(), call.name.clone())));
        }
    }

    /// Whether the program passes a call's state on to the model that made it.
    fn holds_state(&self, format: &str) -> bool {
        format == crate::gemini::SIGNATURE && self.model.provider == "google"
    }

    fn api(&self) -> &'static str {
        match self.model.provider.as_str() {
            "anthropic" => "anthropic-messages",
            "google" => "google-generative-ai",
            _ => "openai-completions",
        }
    }

    fn block(&mut self, list: &mut Array<'_>, block: &Block) {
        let loss = match block {
            Block::Text { text } => return self::text(list, text),
            Block::Refusal { text } => {
                self.losses.add(LossKind::Refusal);
                return self::text(list, text);
            }
            Block::Image(image) => match &image.data {
                Some(data) => {
                    return list.object(|out| {
                        out.text("type", "image");
                        out.base64("data", data);
                        out.text("mimeType", &image.media_type);
                    });
                }
                None => LossKind::Image,
            },
            Block::Document(document) if document.data.is_none() => {
                return self::text(list, &document.text);
            }
            Block::Thinking(thinking) if thinking.thinking.is_empty() && thinking.signature.is_empty() => {
                return;
            }
            Block::Thinking(thinking)
                if self.same
                    || thinking.signature.is_empty()
                    || thinking.signature_format == crate::anthropic::SIGNATURE
                        && self.model.provider == "anthropic"
                    || thinking.signature_format == crate::gemini::SIGNATURE
                        && !thinking.thinking.is_empty()
                        && self.model.provider == "google" =>
            {
                return list.object(|out| {
                    out.text("type", "thinking");
                    out.text("thinking", &thinking.thinking);
                    out.text("thinkingSignature", &thinking.signature);
                });
            }
            Block::ToolUse(call) => {
                return list.object(|out| {
                    out.text("type", "toolCall");
                    out.text("id", &call.id);
                    out.text("name", &call.name);
                    self.arguments(out, call.input.as_ref());
                    match &call.provider_state {
                        Some(state) if self.same || self.holds_state(&call.provider_state_format) => {
                            out.raw("thoughtSignature", &one_line(state));
                        }
                        Some(_) => self.losses.add(LossKind::CallState),
                        None => {}
                    }
                });
            }
            Block::Opaque(opaque) if self.same => return list.raw(&one_line(&opaque.raw)),
            Block::Thinking(_) => LossKind::Thinking,
            Block::Audio(_) => LossKind::Audio,
            Block::Document(_) => LossKind::Document,
            Block::ToolResult(_) => LossKind::NestedResult,
            _ => LossKind::Opaque,
        };
        self.losses.add(loss);
    }

    fn arguments(&mut self, out: &mut Object<'_>, input: Option<&RawJson>) {
        match input.map(one_line) {
            None => out.raw("arguments", b"{}"),
            Some(json) if json.starts_with(b"{") => out.raw("arguments", &json),
            Some(json) => {
                self.losses.add(LossKind::Arguments);
                out.object("arguments", |out| out.raw("arguments", &json));
            }
        }
    }
}

/// JSON without line breaks, which would end a record.
fn one_line(json: &RawJson) -> Vec<u8> {
    // Outside of strings a line break is white space, and inside of them there is none.
    let spaced = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
    sendable(json).trim_ascii().bytes().map(spaced).collect()
}

/// A text; nothing for an empty one, which providers refuse.
fn text(list: &mut Array<'_>, text: &str) {
    if text.is_empty() {
        return;
    }
    list.object(|out| {
        out.text("type", "text");
        out.text("text", text);
    });
}

fn usage(out: &mut Object<'_>, usage: Usage) {
    out.object("usage", |out| {
        out.number("input", usage.input.get());
        out.number("output", usage.output.get());
        out.number("cacheRead", usage.cache_read.get());
        out.number("cacheWrite", usage.cache_creation.get());
        out.number("totalTokens", usage.total_tokens().unwrap_or_default().get());
        out.object("cost", |out| {
            ["input", "output", "cacheRead", "cacheWrite", "total"].iter().for_each(|key| out.number(key, 0));
        });
    });
}
