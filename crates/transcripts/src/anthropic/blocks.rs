//! Content blocks.

use epitome_loop::{Block, Document, Image, Opaque, RawJson, SharedText, Thinking, ToolUse};

use super::{CALLER, SIGNATURE};
use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::media;

/// One block of a content list; nothing for empty text, which the API refuses.
pub(super) fn block(block: Value<'_>, faults: &mut Faults) -> Option<Block> {
    match block.kind() {
        Kind::String => return text(faults.string(Some(block))),
        Kind::Null => return None,
        Kind::Object => {}
        Kind::Array | Kind::Number | Kind::Bool => {
            faults.unknown_items += 1;
            return Some(opaque(block, None, faults));
        }
    }
    let [kind, words, thinking, signature, source] =
        faults.pick(block, ["type", "text", "thinking", "signature", "source"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let mapped = if is("text") {
        return text(faults.string(words));
    } else if is("thinking") {
        let (thinking, signature) = (faults.string(thinking), faults.string(signature));
        Some(Block::Thinking(Thinking::new(thinking, signature, SIGNATURE, None)))
    } else if is("tool_use") {
        Some(tool_use(block, faults))
    } else if is("image") {
        source.and_then(|source| image(source, faults))
    } else if is("document") {
        source.and_then(|source| document(block, source, faults))
    } else {
        if !kind.is_some_and(is_known_item) {
            faults.unknown_items += 1;
        }
        None
    };
    Some(mapped.unwrap_or_else(|| opaque(block, kind, faults)))
}

/// The blocks of a content: absent, a string, or a list.
pub(crate) fn content(content: Option<Value<'_>>, faults: &mut Faults) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.kind() {
        Kind::Array => content.elements().filter_map(|element| block(element, faults)).collect(),
        _ => block(content, faults).into_iter().collect(),
    }
}

/// Items of the provider that are kept as they are: what it ran itself, and what only it can read.
fn is_known_item(kind: Value<'_>) -> bool {
    const OTHERS: [&[u8]; 5] =
        [b"redacted_thinking", b"compaction", b"container_upload", b"search_result", b"tool_reference"];
    let kind = kind.inner();
    kind.ends_with(b"_tool_use") || kind.ends_with(b"_tool_result") || OTHERS.contains(&kind)
}

fn tool_use(call: Value<'_>, faults: &mut Faults) -> Block {
    let [id, name, input, caller] = faults.pick(call, ["id", "name", "input", "caller"]);
    let state = caller.map(|caller| (raw_json(caller.bytes(), &mut faults.text), SharedText::from(CALLER)));
    let input: Option<RawJson> = input.map(|input| raw_json(input.bytes(), &mut faults.text));
    Block::ToolUse(ToolUse::new(faults.string(id), faults.string(name), input, state))
}

fn image(source: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [kind, media_type, data, url] = faults.pick(source, ["type", "media_type", "data", "url"]);
    let media_type = SharedText::from(faults.string(media_type));
    if kind.is_some_and(|kind| kind.is_text("url")) {
        let url = SharedText::from(faults.string(url));
        return Some(Block::Image(Image { media_type, url, data: None }));
    }
    let data = bytes(kind, data, faults)?;
    Some(Block::Image(Image { media_type, url: SharedText::default(), data: Some(data) }))
}

/// A document by value. One by address, by file id, or made of blocks stays opaque.
fn document(block: Value<'_>, source: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [kind, media_type, data] = faults.pick(source, ["type", "media_type", "data"]);
    let name = SharedText::from(faults.string(block.get("title")));
    let media_type = SharedText::from(faults.string(media_type));
    if kind.is_some_and(|kind| kind.is_text("text")) {
        let text = SharedText::from(faults.string(data));
        return Some(Block::Document(Document { media_type, name, data: None, text }));
    }
    let data = bytes(kind, data, faults)?;
    Some(Block::Document(Document { media_type, name, data: Some(data), text: SharedText::default() }))
}

fn bytes(
    kind: Option<Value<'_>>,
    data: Option<Value<'_>>,
    faults: &mut Faults,
) -> Option<epitome_loop::SharedBytes> {
    if !kind.is_some_and(|kind| kind.is_text("base64")) {
        return None;
    }
    let data = media::base64(data?);
    faults.invalid_base64 += u64::from(data.is_none());
    data
}

fn text(text: String) -> Option<Block> {
    (!text.is_empty()).then(|| Block::text(text))
}

fn opaque(value: Value<'_>, kind: Option<Value<'_>>, faults: &mut Faults) -> Block {
    let kind = SharedText::from(faults.string(kind));
    Block::Opaque(Opaque { kind, raw: raw_json(value.bytes(), &mut faults.text) })
}
