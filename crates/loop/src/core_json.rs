//! The canonical core JSON of a message. Its length drives the estimate by which the tail is chosen.
//!
//! This is not the wire: keys are capitalized and sorted within a block, absent parts are left out. The form
//! is the reference implementation's and is proven by its vectors; the tail choice must agree with it.

use crate::json_text::{JsonBytes, JsonLength, JsonSink};
use crate::{Block, MAX_BLOCK_DEPTH, Message, RawJson, SharedText, ToolResult, Usage};

/// Writes the core JSON of a message. What stands in results that nest deeper than [`MAX_BLOCK_DEPTH`] is left out:
/// no valid message has it.
#[must_use]
pub fn core_json(message: &Message) -> Vec<u8> {
    let mut out = JsonBytes::default();
    write_message(&mut out, message);
    out.into_bytes()
}

/// The length in bytes of [`core_json`], without writing it.
#[must_use]
pub fn core_json_len(message: &Message) -> u64 {
    let mut length = JsonLength::default();
    write_message(&mut length, message);
    length.get()
}

/// The estimate used to choose the tail: a quarter of the core JSON's bytes, rounded up.
#[must_use]
pub fn tail_estimate(message: &Message) -> u64 {
    core_json_len(message).div_ceil(4)
}

fn write_message(out: &mut impl JsonSink, message: &Message) {
    out.plain("{\"role\":\"");
    out.plain(message.role().as_str());
    out.plain("\"");
    if !message.blocks().is_empty() {
        out.plain(",\"blocks\":");
        write_blocks(out, message.blocks(), MAX_BLOCK_DEPTH);
    }
    match message {
        Message::User { .. } | Message::System { .. } => {}
        Message::Assistant { usage, .. } => {
            if let Some(usage) = usage {
                write_usage(out, usage);
            }
        }
        Message::ToolResult { tool_use_id, is_error, .. } => {
            out.plain(",\"tool_use_id\":");
            out.string(tool_use_id);
            if *is_error {
                out.plain(",\"is_error\":true");
            }
        }
    }
    out.plain("}");
}

fn write_usage(out: &mut impl JsonSink, usage: &Usage) {
    let Usage { input, output, cache_read, cache_creation, reasoning } = *usage;
    out.plain(",\"usage\":{");
    let mut first = true;
    for (key, count) in [
        ("\"InputTokens\":", input),
        ("\"OutputTokens\":", output),
        ("\"CacheReadTokens\":", cache_read),
        ("\"CacheCreationTokens\":", cache_creation),
        ("\"ReasoningTokens\":", reasoning),
    ] {
        if count.get() != 0 {
            out.plain(if first { "" } else { "," });
            out.plain(key);
            out.number(count.get());
            first = false;
        }
    }
    out.plain("}");
}

/// Writes blocks in which results may nest `deeper` times.
fn write_blocks(out: &mut impl JsonSink, blocks: &[Block], deeper: usize) {
    out.plain("[");
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.plain(",");
        }
        write_block(out, block, deeper);
    }
    out.plain("]");
}

fn write_block(out: &mut impl JsonSink, block: &Block, deeper: usize) {
    match block {
        Block::Text { text } => {
            out.plain("{\"Text\":");
            out.string(text);
            out.plain(",\"type\":\"text\"}");
        }
        Block::Refusal { text } => {
            out.plain("{\"Text\":");
            out.string(text);
            out.plain(",\"type\":\"refusal\"}");
        }
        Block::Image(image) => {
            out.plain("{\"MediaType\":");
            out.string(&image.media_type);
            out.plain(",\"Source\":{\"URL\":");
            out.string(&image.url);
            out.plain(",\"Data\":");
            out.data(image.data.as_deref());
            out.plain("},\"type\":\"image\"}");
        }
        Block::Audio(audio) => {
            out.plain("{\"Data\":");
            out.data(audio.data.as_deref());
            out.plain(",\"MediaType\":");
            out.string(&audio.media_type);
            out.plain(",\"type\":\"audio\"}");
        }
        Block::Document(document) => {
            out.plain("{\"Data\":");
            out.data(document.data.as_deref());
            out.plain(",\"MediaType\":");
            out.string(&document.media_type);
            out.plain(",\"Name\":");
            out.string(&document.name);
            out.plain(",\"Text\":");
            out.string(&document.text);
            out.plain(",\"type\":\"document\"}");
        }
        Block::Thinking(thinking) => {
            out.plain("{");
            write_state(out, thinking.provider_state.as_ref(), &thinking.provider_state_format, false);
            out.plain("\"Signature\":");
            out.string(&thinking.signature);
            if !thinking.signature_format.is_empty() {
                out.plain(",\"SignatureFormat\":");
                out.string(&thinking.signature_format);
            }
            out.plain(",\"Thinking\":");
            out.string(&thinking.thinking);
            out.plain(",\"type\":\"thinking\"}");
        }
        Block::ToolUse(call) => {
            out.plain("{\"ID\":");
            out.string(&call.id);
            out.plain(",\"Input\":");
            match &call.input {
                Some(input) => out.raw(input),
                None => out.plain("null"),
            }
            out.plain(",\"Name\":");
            out.string(&call.name);
            write_state(out, call.provider_state.as_ref(), &call.provider_state_format, true);
            out.plain(",\"type\":\"tool_use\"}");
        }
        Block::ToolResult(ToolResult { tool_use_id, content, is_error }) => {
            out.plain("{");
            if let Some(deeper) = deeper.checked_sub(1).filter(|_| !content.is_empty()) {
                out.plain("\"content\":");
                write_blocks(out, content, deeper);
                out.plain(",");
            }
            if *is_error {
                out.plain("\"is_error\":true,");
            }
            out.plain("\"tool_use_id\":");
            out.string(tool_use_id);
            out.plain(",\"type\":\"tool_result\"}");
        }
        // Ours: the reference has no such block. Its size is what will be sent.
        Block::Opaque(opaque) => {
            out.plain("{\"Kind\":");
            out.string(&opaque.kind);
            out.plain(",\"Raw\":");
            out.raw(&opaque.raw);
            out.plain(",\"type\":\"opaque\"}");
        }
    }
}

/// The two state keys stand first in a thinking block and last in a call, because keys are sorted.
fn write_state(out: &mut impl JsonSink, state: Option<&RawJson>, format: &SharedText, comma_before: bool) {
    if let Some(state) = state {
        out.plain(if comma_before { ",\"ProviderState\":" } else { "\"ProviderState\":" });
        out.raw(state);
        out.plain(if comma_before { "" } else { "," });
    }
    if !format.is_empty() {
        out.plain(if comma_before { ",\"ProviderStateFormat\":" } else { "\"ProviderStateFormat\":" });
        out.string(format);
        out.plain(if comma_before { "" } else { "," });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opaque, ToolUse};

    #[test]
    fn length_is_the_length_of_the_json() {
        let call = ToolUse::new("c", "n", Some(RawJson::parse(" { } ").unwrap()), None);
        let blocks = vec![
            Block::text("<&>\n"),
            Block::ToolUse(call),
            Block::Opaque(Opaque { kind: "compaction".into(), raw: RawJson::parse("{\"a\":1}").unwrap() }),
        ];
        let message = Message::Assistant {
            blocks: blocks.into(),
            usage: Some(Usage { output: crate::TokenCount(1234), ..Usage::default() }),
        };
        let json = core_json(&message);
        assert_eq!(json.len() as u64, core_json_len(&message));
        assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
    }

    #[test]
    fn results_are_written_as_deep_as_they_may_nest() {
        let nested = |levels: usize| {
            let mut block = Block::text("innermost");
            for _ in 0..levels {
                let content = [block].into();
                block = Block::ToolResult(ToolResult { tool_use_id: "c".into(), content, is_error: false });
            }
            String::from_utf8(core_json(&Message::User { blocks: [block].into() })).unwrap()
        };
        assert!(nested(MAX_BLOCK_DEPTH).contains("innermost"));
        for too_deep in [MAX_BLOCK_DEPTH + 1, 2_000] {
            let json = nested(too_deep);
            assert!(!json.contains("innermost"));
            assert_eq!(json.matches("tool_result").count(), MAX_BLOCK_DEPTH + 1);
        }
    }

    #[test]
    fn estimate_rounds_up() {
        assert_eq!(core_json(&Message::user("one")).len(), 55);
        assert_eq!(tail_estimate(&Message::user("one")), 14);
    }
}
