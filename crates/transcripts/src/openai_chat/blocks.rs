//! Content of chat messages: text, or a list of parts.

use epitome_loop::{Block, Opaque, SharedText, Thinking};

use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::openai_parts::{self, text};

/// The blocks of a content: a string, a list of parts or of strings, one part, or nothing.
pub(super) fn content(value: Option<Value<'_>>, faults: &mut Faults) -> Vec<Block> {
    let Some(value) = value else { return Vec::new() };
    match value.kind() {
        Kind::Array => value.elements().filter_map(|part| self::part(part, faults)).collect(),
        _ => part(value, faults).into_iter().collect(),
    }
}

/// Thinking blocks as LiteLLM logs them, in Anthropic's form.
pub(super) fn thinking_blocks(value: Option<Value<'_>>, faults: &mut Faults) -> Vec<Block> {
    let elements = value.into_iter().flat_map(Value::elements);
    elements
        .map(|block| {
            let [kind, thinking, signature] = faults.pick(block, ["type", "thinking", "signature"]);
            match kind {
                Some(kind) if kind.is_text("thinking") => Block::Thinking(Thinking::new(
                    faults.string(thinking),
                    faults.string(signature),
                    crate::anthropic::SIGNATURE,
                    None,
                )),
                _ => opaque(block, kind, faults),
            }
        })
        .collect()
}

/// One part; nothing for empty text, which providers refuse.
fn part(part: Value<'_>, faults: &mut Faults) -> Option<Block> {
    match part.kind() {
        Kind::String => text(faults.string(Some(part))),
        Kind::Null => None,
        Kind::Object => typed_part(part, faults),
        Kind::Array | Kind::Number | Kind::Bool => {
            faults.unknown_items += 1;
            Some(opaque(part, None, faults))
        }
    }
}

fn typed_part(part: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [kind, words, refusal, image, audio, file] =
        faults.pick(part, ["type", "text", "refusal", "image_url", "input_audio", "file"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let mapped = if is("text") || is("input_text") || is("output_text") {
        return text(faults.string(words));
    } else if is("refusal") {
        return openai_parts::refusal(faults.string(refusal));
    } else if is("image_url") {
        let address = image.and_then(|it| if it.kind() == Kind::String { Some(it) } else { it.get("url") });
        address.and_then(|address| openai_parts::image(address, faults))
    } else if is("input_audio") {
        audio.and_then(|audio| openai_parts::audio(audio, faults))
    } else if is("file") {
        file.and_then(|file| openai_parts::file(file, faults))
    } else {
        faults.unknown_items += 1;
        None
    };
    Some(mapped.unwrap_or_else(|| opaque(part, kind, faults)))
}

/// An item kept as it stands.
pub(super) fn opaque(value: Value<'_>, kind: Option<Value<'_>>, faults: &mut Faults) -> Block {
    let kind = SharedText::from(faults.string(kind));
    Block::Opaque(Opaque { kind, raw: raw_json(value.bytes(), &mut faults.text) })
}
