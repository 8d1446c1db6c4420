//! Messages into Epitome JSON.

use epitome_loop::{Block, Message, ModelKey, RawJson, SharedBytes, ToolResult, Usage};

use super::VERSION;
use crate::json::{Array, Object, object, sendable};
use crate::write::Item;

/// A whole document.
pub(crate) fn encode_document(model: Option<&ModelKey>, tools: &[RawJson], items: &[Item]) -> Vec<u8> {
    object(|document| {
        document.number("epitome", VERSION);
        if let Some(model) = model {
            document.object("model", |key| {
                key.text("provider", &model.provider);
                key.text("model", &model.model);
            });
        }
        if !tools.is_empty() {
            document.array("tools", |list| tools.iter().for_each(|tool| list.raw(tool.as_str().as_bytes())));
        }
        document.array("messages", |list| encode(items).iter().for_each(|message| list.raw(message)));
    })
}

/// The elements of the list of messages.
pub(crate) fn encode(items: &[Item]) -> Vec<Vec<u8>> {
    items.iter().map(|item| object(|out| message(out, item))).collect()
}

fn message(out: &mut Object<'_>, item: &Item) {
    out.text("role", item.message.role().as_str());
    if item.is_summary {
        out.boolean("summary", true);
    }
    match &item.message {
        Message::User { blocks } | Message::System { blocks } => content(out, blocks),
        Message::Assistant { blocks, usage } => {
            content(out, blocks);
            if let Some(usage) = usage {
                self::usage(out, usage);
            }
        }
        Message::ToolResult { blocks, tool_use_id, is_error } => {
            out.text("tool_use_id", tool_use_id);
            if *is_error {
                out.boolean("is_error", true);
            }
            content(out, blocks);
        }
    }
}

fn usage(out: &mut Object<'_>, usage: &Usage) {
    let Usage { input, output, cache_read, cache_creation, reasoning } = *usage;
    out.object("usage", |out| {
        out.number("input", input.get());
        out.number("output", output.get());
        out.number("cache_read", cache_read.get());
        out.number("cache_creation", cache_creation.get());
        out.number("reasoning", reasoning.get());
    });
}

fn content(out: &mut Object<'_>, blocks: &[Block]) {
    out.array("content", |list| blocks.iter().for_each(|block| self::block(list, block)));
}

/// Nested results are as deep as they were built, which every way of building them bounds.
fn block(list: &mut Array<'_>, block: &Block) {
    list.object(|out| {
        out.text("type", block.kind());
        match block {
            Block::Text { text } | Block::Refusal { text } => out.text("text", text),
            Block::Image(image) => {
                out.text_if_any("media_type", &image.media_type);
                out.text_if_any("url", &image.url);
                data(out, image.data.as_ref());
            }
            Block::Audio(audio) => {
                out.text_if_any("media_type", &audio.media_type);
                data(out, audio.data.as_ref());
            }
            Block::Document(document) => {
                out.text_if_any("media_type", &document.media_type);
                out.text_if_any("name", &document.name);
                data(out, document.data.as_ref());
                out.text_if_any("text", &document.text);
            }
            Block::Thinking(thinking) => {
                out.text("thinking", &thinking.thinking);
                out.text_if_any("signature", &thinking.signature);
                out.text_if_any("signature_format", &thinking.signature_format);
                state(out, thinking.provider_state.as_ref(), &thinking.provider_state_format);
            }
            Block::ToolUse(call) => {
                out.text("id", &call.id);
                out.text("name", &call.name);
                if let Some(input) = &call.input {
                    out.raw("input", sendable(input).as_bytes());
                }
                state(out, call.provider_state.as_ref(), &call.provider_state_format);
            }
            Block::ToolResult(ToolResult { tool_use_id, content, is_error }) => {
                out.text("tool_use_id", tool_use_id);
                if *is_error {
                    out.boolean("is_error", true);
                }
                self::content(out, content);
            }
            Block::Opaque(opaque) => {
                out.text("kind", &opaque.kind);
                out.raw("raw", opaque.raw.as_str().as_bytes());
            }
            // A kind that a later release of the shared words adds has no form here yet.
            _ => {}
        }
    });
}

fn data(out: &mut Object<'_>, data: Option<&SharedBytes>) {
    if let Some(data) = data {
        out.base64("data", data);
    }
}

fn state(out: &mut Object<'_>, state: Option<&RawJson>, format: &str) {
    if let Some(state) = state {
        out.raw("provider_state", state.as_str().as_bytes());
        out.text("provider_state_format", format);
    }
}
