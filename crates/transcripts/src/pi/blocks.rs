//! Content of pi messages.

use epitome_loop::{Block, Image, Opaque, SharedText, Thinking, ToolUse};

use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::media;

/// The blocks of a content: a string, a list, or nothing. `signature` names whose signatures it carries.
pub(super) fn content(content: Option<Value<'_>>, signature: &str, faults: &mut Faults) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.kind() {
        Kind::Array => content.elements().filter_map(|element| block(element, signature, faults)).collect(),
        _ => block(content, signature, faults).into_iter().collect(),
    }
}

fn block(block: Value<'_>, signature_format: &str, faults: &mut Faults) -> Option<Block> {
    if block.kind() == Kind::String {
        return text(faults.string(Some(block)));
    }
    let [kind, words, thinking, signature, data, media_type] =
        faults.pick(block, ["type", "text", "thinking", "thinkingSignature", "data", "mimeType"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    if is("text") {
        text(faults.string(words))
    } else if is("thinking") {
        let (thinking, signature) = (faults.string(thinking), faults.string(signature));
        // An aborted turn leaves an empty signature behind, which signs nothing.
        (!thinking.is_empty() || !signature.is_empty())
            .then(|| Block::Thinking(Thinking::new(thinking, signature, signature_format, None)))
    } else if is("toolCall") {
        let [id, name, arguments, thought] =
            faults.pick(block, ["id", "name", "arguments", "thoughtSignature"]);
        let input = arguments.map(|arguments| raw_json(arguments.bytes(), &mut faults.text));
        let state = thought
            .map(|thought| (raw_json(thought.bytes(), &mut faults.text), SharedText::from(signature_format)));
        Some(Block::ToolUse(ToolUse::new(faults.string(id), faults.string(name), input, state)))
    } else if is("image") {
        let Some(data) = data.and_then(media::base64) else {
            faults.invalid_base64 += 1;
            return Some(opaque(block, kind, faults));
        };
        let media_type = faults.string(media_type).into();
        Some(Block::Image(Image { media_type, url: SharedText::default(), data: Some(data) }))
    } else if block.kind() == Kind::Null {
        None
    } else {
        faults.unknown_items += 1;
        Some(opaque(block, kind, faults))
    }
}

pub(super) fn text(text: String) -> Option<Block> {
    (!text.is_empty()).then(|| Block::text(text))
}

fn opaque(value: Value<'_>, kind: Option<Value<'_>>, faults: &mut Faults) -> Block {
    let kind = SharedText::from(faults.string(kind));
    Block::Opaque(Opaque { kind, raw: raw_json(value.bytes(), &mut faults.text) })
}
