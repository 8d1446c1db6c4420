//! Content of message items and outputs of calls.

use epitome_loop::{Block, Opaque};

use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::openai_parts::{self, text};

/// The blocks of a content or an output: a string, a list of parts, one part, or nothing.
pub(super) fn content(value: Option<Value<'_>>, faults: &mut Faults) -> Vec<Block> {
    let Some(value) = value else { return Vec::new() };
    match value.kind() {
        Kind::Array => value.elements().filter_map(|part| self::part(part, faults)).collect(),
        _ => part(value, faults).into_iter().collect(),
    }
}

/// One part; nothing for empty text, which the API refuses.
fn part(part: Value<'_>, faults: &mut Faults) -> Option<Block> {
    match part.kind() {
        Kind::String => return text(faults.string(Some(part))),
        Kind::Null => return None,
        Kind::Object => {}
        Kind::Array | Kind::Number | Kind::Bool => {
            faults.unknown_items += 1;
            return Some(opaque(part, None, faults));
        }
    }
    let [kind, words, refusal, image, audio, stdout, stderr] =
        faults.pick(part, ["type", "text", "refusal", "image_url", "input_audio", "stdout", "stderr"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let mapped = if is("input_text") || is("output_text") || is("text") {
        return text(faults.string(words));
    } else if is("refusal") {
        return openai_parts::refusal(faults.string(refusal));
    } else if is("input_image") || is("computer_screenshot") {
        image.and_then(|image| openai_parts::image(image, faults))
    } else if is("input_audio") {
        audio.and_then(|audio| openai_parts::audio(audio, faults))
    } else if is("input_file") {
        openai_parts::file(part, faults)
    } else if kind.is_none() && stdout.or(stderr).is_some() {
        // What a shell command printed, in the output of a shell call.
        let printed = [faults.string(stdout), faults.string(stderr)];
        return text(printed.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"));
    } else {
        faults.unknown_items += 1;
        None
    };
    Some(mapped.unwrap_or_else(|| opaque(part, kind, faults)))
}

/// The kind of an opaque part whose own type does not tell that it is a part.
pub(super) const PART: &str = "content_part";

/// The kind of an opaque item whose own type reads like that of a part.
pub(super) const ITEM: &str = "item";

/// Whether a kind is that of a part of a content, and not of an item.
pub(super) fn is_part_kind(kind: &str) -> bool {
    kind.starts_with("input_") || kind.starts_with("output_") || kind == PART
}

/// A part kept as it stands.
fn opaque(part: Value<'_>, kind: Option<Value<'_>>, faults: &mut Faults) -> Block {
    let kind = Some(faults.string(kind)).filter(|kind| is_part_kind(kind)).unwrap_or(PART.to_owned());
    Block::Opaque(Opaque { kind: kind.into(), raw: raw_json(part.bytes(), &mut faults.text) })
}

/// An item kept as it stands.
pub(super) fn opaque_item(item: Value<'_>, kind: Value<'_>, faults: &mut Faults) -> Block {
    let kind = Some(faults.string(Some(kind))).filter(|kind| !is_part_kind(kind)).unwrap_or(ITEM.to_owned());
    Block::Opaque(Opaque { kind: kind.into(), raw: raw_json(item.bytes(), &mut faults.text) })
}
