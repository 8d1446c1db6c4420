//! Writing: a compaction input as compact JSON. Key order, escapes and the treatment of raw JSON are part of
//! the format.

use epitome_loop::json_text::{JsonBytes, JsonLength, JsonSink};
use epitome_loop::{Block, CompactionInput, Message, Opaque, RawJson, SharedText, ToolResult, Usage};

use super::WIRE_VERSION;

/// Encodes a compaction input as wire v1. The input was checked when it was built, so this cannot fail.
#[must_use]
pub fn encode_input(input: &CompactionInput) -> Vec<u8> {
    encode_messages(input, input.transcript().iter(), encoded_len(input))
}

/// The length in bytes of what [`encode_input`] writes, without writing it.
#[must_use]
pub fn encoded_len(input: &CompactionInput) -> u64 {
    frame_len(input) + joined_len(input.transcript().iter().map(message_len))
}

/// Encodes with these messages in place of the input's own. `len` is the known length of the result.
pub(crate) fn encode_messages<'a>(
    input: &CompactionInput,
    messages: impl Iterator<Item = &'a Message>,
    len: u64,
) -> Vec<u8> {
    let mut out = JsonBytes::with_capacity(usize::try_from(len).unwrap_or(0));
    write_frame(&mut out, input, |out| {
        for (at, message) in messages.enumerate() {
            out.plain(if at > 0 { "," } else { "" });
            write_message(out, message);
        }
    });
    out.into_bytes()
}

/// The length of everything but the messages.
pub(crate) fn frame_len(input: &CompactionInput) -> u64 {
    let mut length = JsonLength::default();
    write_frame(&mut length, input, |_| {});
    length.get()
}

/// The length of one encoded message.
pub(crate) fn message_len(message: &Message) -> u64 {
    let mut length = JsonLength::default();
    write_message(&mut length, message);
    length.get()
}

/// The length of messages in a list, commas included.
pub(crate) fn joined_len(lengths: impl ExactSizeIterator<Item = u64>) -> u64 {
    let commas = lengths.len().saturating_sub(1) as u64;
    commas + lengths.sum::<u64>()
}

fn write_frame<S: JsonSink>(out: &mut S, input: &CompactionInput, messages: impl FnOnce(&mut S)) {
    out.plain("{\"version\":");
    out.number(WIRE_VERSION);
    out.plain(",\"basis\":{\"revision\":");
    out.number(input.basis().revision.0);
    out.plain(",\"through_event_id\":");
    out.string(&input.basis().through_event_id.to_string());
    out.plain("},\"model\":{\"provider\":");
    out.string(&input.model().provider);
    out.plain(",\"model\":");
    out.string(&input.model().model);
    out.plain("},\"request_fingerprint\":");
    out.string(&input.request_fingerprint().to_string());
    out.plain(",\"transcript\":[");
    messages(out);
    out.plain("],\"max_summary_tokens\":");
    out.number(input.max_summary_tokens().get());
    out.plain("}");
}

fn write_message(out: &mut impl JsonSink, message: &Message) {
    out.plain("{\"role\":\"");
    out.plain(message.role().as_str());
    out.plain("\",\"blocks\":");
    write_blocks(out, message.blocks());
    match message {
        Message::User { .. } | Message::System { .. } => {}
        Message::Assistant { usage: None, .. } => out.plain(",\"usage\":null"),
        Message::Assistant { usage: Some(usage), .. } => write_usage(out, usage),
        Message::ToolResult { tool_use_id, is_error, .. } => {
            out.plain(",\"tool_use_id\":");
            out.string(tool_use_id);
            write_is_error(out, *is_error);
        }
    }
    out.plain("}");
}

fn write_usage(out: &mut impl JsonSink, usage: &Usage) {
    let Usage { input, output, cache_read, cache_creation, reasoning } = *usage;
    out.plain(",\"usage\":{\"input_tokens\":");
    out.number(input.get());
    out.plain(",\"output_tokens\":");
    out.number(output.get());
    out.plain(",\"cache_read_tokens\":");
    out.number(cache_read.get());
    out.plain(",\"cache_creation_tokens\":");
    out.number(cache_creation.get());
    out.plain(",\"reasoning_tokens\":");
    out.number(reasoning.get());
    out.plain("}");
}

fn write_blocks(out: &mut impl JsonSink, blocks: &[Block]) {
    out.plain("[");
    for (at, block) in blocks.iter().enumerate() {
        out.plain(if at > 0 { "," } else { "" });
        write_block(out, block);
    }
    out.plain("]");
}

fn write_block(out: &mut impl JsonSink, block: &Block) {
    out.plain("{\"type\":\"");
    out.plain(block.kind());
    out.plain("\"");
    match block {
        Block::Text { text } | Block::Refusal { text } => write_field(out, ",\"text\":", text),
        Block::Image(image) => {
            write_field(out, ",\"media_type\":", &image.media_type);
            write_field(out, ",\"source\":{\"url\":", &image.url);
            out.plain(",\"data\":");
            out.data(image.data.as_deref());
            out.plain("}");
        }
        Block::Audio(audio) => {
            write_field(out, ",\"media_type\":", &audio.media_type);
            out.plain(",\"data\":");
            out.data(audio.data.as_deref());
        }
        Block::Document(document) => {
            write_field(out, ",\"media_type\":", &document.media_type);
            write_field(out, ",\"name\":", &document.name);
            out.plain(",\"data\":");
            out.data(document.data.as_deref());
            write_field(out, ",\"text\":", &document.text);
        }
        Block::Thinking(thinking) => {
            write_field(out, ",\"thinking\":", &thinking.thinking);
            write_field(out, ",\"signature\":", &thinking.signature);
            write_optional(out, ",\"signature_format\":", &thinking.signature_format);
            write_state(out, thinking.provider_state.as_ref(), &thinking.provider_state_format);
        }
        Block::ToolUse(call) => {
            write_field(out, ",\"id\":", &call.id);
            write_field(out, ",\"name\":", &call.name);
            out.plain(",\"input\":");
            match &call.input {
                Some(input) => out.raw(input),
                None => out.plain("null"),
            }
            write_state(out, call.provider_state.as_ref(), &call.provider_state_format);
        }
        Block::ToolResult(ToolResult { tool_use_id, content, is_error }) => {
            write_field(out, ",\"tool_use_id\":", tool_use_id);
            out.plain(",\"content\":");
            write_blocks(out, content);
            write_is_error(out, *is_error);
        }
        // A compaction input never holds one; written whole, so that nothing would be hidden if it did.
        Block::Opaque(Opaque { kind, raw }) => {
            write_field(out, ",\"kind\":", kind);
            out.plain(",\"raw\":");
            out.raw(raw);
        }
        _ => {}
    }
    out.plain("}");
}

fn write_field(out: &mut impl JsonSink, key: &'static str, text: &SharedText) {
    out.plain(key);
    out.string(text);
}

fn write_optional(out: &mut impl JsonSink, key: &'static str, text: &SharedText) {
    if !text.is_empty() {
        write_field(out, key, text);
    }
}

fn write_state(out: &mut impl JsonSink, state: Option<&RawJson>, format: &SharedText) {
    if let Some(state) = state {
        out.plain(",\"provider_state\":");
        out.raw(state);
    }
    write_optional(out, ",\"provider_state_format\":", format);
}

fn write_is_error(out: &mut impl JsonSink, is_error: bool) {
    out.plain(if is_error { ",\"is_error\":true" } else { ",\"is_error\":false" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{ContextBasis, ContextRevision, EventId, ModelKey, RequestFingerprint, TokenCount};

    #[test]
    fn the_known_length_is_the_written_length() {
        let messages = [
            Message::user("a <b> & c"),
            Message::Assistant {
                blocks: [Block::Refusal { text: "no".into() }].into(),
                usage: Some(Usage::default()),
            },
            Message::tool_result("c\n", "r", true),
        ];
        let input = CompactionInput::new(
            ContextBasis { revision: ContextRevision(7), through_event_id: EventId::from_bytes([1; 16]) },
            ModelKey::new("p", "m"),
            RequestFingerprint::from_bytes([2; 32]),
            messages.into(),
            TokenCount(512),
        )
        .unwrap();
        let wire = encode_input(&input);
        assert_eq!(wire.len() as u64, encoded_len(&input));
        let text = String::from_utf8(wire).unwrap();
        assert!(
            text.contains(r#"{"role":"user","blocks":[{"type":"text","text":"a \u003cb\u003e \u0026 c"}]}"#)
        );
    }
}
