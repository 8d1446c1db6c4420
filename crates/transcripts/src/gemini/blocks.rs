//! Parts into blocks, and turns into messages.

use epitome_loop::{
    Audio, Block, Document, Image, Message, Opaque, RawJson, SharedText, Thinking, ToolUse, Usage,
};

use super::turn::{Data, Part, Response, Speaker, Turn, parts_of};
use super::{SIGNATURE, SIGNS_BEFORE};
use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::media;

/// What a turn is: one message of the model; of the user one for each response, and one for everything else.
pub(super) fn messages(turn: &Turn<'_>, usage: Option<Usage>, faults: &mut Faults) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut others = Vec::new();
    for part in &turn.parts {
        match (&part.data, turn.speaker) {
            (Data::Response(response), Speaker::User) => messages.push(result(response, faults)),
            // A response of the model or a call of the user has no counterpart.
            (Data::Response(_), Speaker::Model) | (Data::Call { .. }, Speaker::User) => {
                faults.unknown_items += 1;
                others.push(opaque(part.value, "", faults));
            }
            _ => push_blocks(part, &mut others, faults),
        }
    }
    match turn.speaker {
        Speaker::Model => messages.push(Message::Assistant { blocks: others.into(), usage }),
        Speaker::User if messages.is_empty() || !others.is_empty() => {
            messages.push(Message::User { blocks: others.into() });
        }
        Speaker::User => {}
    }
    messages
}

fn push_blocks(part: &Part<'_>, out: &mut Vec<Block>, faults: &mut Faults) {
    let block = match &part.data {
        Data::Text { words, is_thought } => {
            let (words, signature) = (faults.string(*words), faults.string(part.signature));
            if *is_thought || words.is_empty() {
                if !words.is_empty() || !signature.is_empty() {
                    out.push(Block::Thinking(Thinking::new(words, signature, SIGNATURE, None)));
                }
                return;
            }
            Block::text(words)
        }
        Data::Thought { subject, description } => {
            let thought = match (subject.is_empty(), description.is_empty()) {
                (true, true) => return,
                (true, false) => description.clone(),
                (false, _) => format!("**{subject}** {description}"),
            };
            out.push(Block::Thinking(Thinking { thinking: thought.into(), ..Thinking::default() }));
            return;
        }
        Data::Call { id, name, args } => {
            let args = args.map(|args| raw_json(args.bytes(), &mut faults.text));
            let state = part.signature.map(|signature| {
                (raw_json(signature.bytes(), &mut faults.text), SharedText::from(SIGNATURE))
            });
            out.push(Block::ToolUse(ToolUse::new(id.as_str(), name.as_str(), args, state)));
            return;
        }
        Data::Inline(inline) => match file_by_value(*inline, faults) {
            Some(block) => block,
            None => return out.push(opaque(part.value, "inlineData", faults)),
        },
        Data::File(file) => match picture_by_address(*file, faults) {
            Some(block) => block,
            None => return out.push(opaque(part.value, "fileData", faults)),
        },
        Data::Item(kind) => return out.push(opaque(part.value, kind, faults)),
        Data::Unknown if part.value.kind() == Kind::Null => return,
        Data::Unknown if part.value.fields().next().is_none() && part.value.is_object() => return,
        Data::Unknown | Data::Response(_) => {
            faults.unknown_items += 1;
            return out.push(opaque(part.value, "", faults));
        }
    };
    out.push(block);
    let signature = faults.string(part.signature);
    if !signature.is_empty() {
        // Text and pictures have no place for a signature; it follows them.
        let state = (RawJson::parse_or_quote("{}"), SharedText::from(SIGNS_BEFORE));
        out.push(Block::Thinking(Thinking::new("", signature, SIGNATURE, Some(state))));
    }
}

fn result(response: &Response<'_>, faults: &mut Faults) -> Message {
    let mut blocks = Vec::new();
    let mut is_error = false;
    if let Some(value) = response.response {
        let (text, failed) = response_text(value, faults);
        is_error = failed;
        if !text.is_empty() {
            blocks.push(Block::text(text));
        }
    }
    for part in &parts_of(response.parts, faults) {
        push_blocks(part, &mut blocks, faults);
    }
    Message::ToolResult { blocks: blocks.into(), tool_use_id: response.id.as_str().into(), is_error }
}

/// What a response says, and whether it says that the function failed. The text is that of a field that
/// stands alone under one of the usual names; any other object is its JSON.
pub(super) fn response_text(value: Value<'_>, faults: &mut Faults) -> (String, bool) {
    const NAMES: [&[u8]; 6] = [b"output", b"error", b"result", b"content", b"text", b"return_value"];
    if value.kind() == Kind::String {
        return (faults.string(Some(value)), false);
    }
    let mut fields = value.fields();
    let (first, second) = (fields.next(), fields.next());
    let is_error = second.is_none() && first.is_some_and(|(name, _)| name == b"error");
    match first {
        None if value.is_object() => (String::new(), false),
        Some((name, text)) if second.is_none() && NAMES.contains(&name) && text.kind() == Kind::String => {
            (faults.string(Some(text)), is_error)
        }
        _ => (raw_json(value.bytes(), &mut faults.text).as_str().to_owned(), is_error),
    }
}

fn file_by_value(inline: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [media_type, media_type_snake, data, name, name_snake] =
        faults.pick(inline, ["mimeType", "mime_type", "data", "displayName", "display_name"]);
    let media_type = SharedText::from(faults.string(media_type.or(media_type_snake)));
    let Some(data) = data.and_then(media::base64) else {
        faults.invalid_base64 += 1;
        return None;
    };
    let data = Some(data);
    Some(if media_type.starts_with("image/") {
        Block::Image(Image { media_type, url: SharedText::default(), data })
    } else if media_type.starts_with("audio/") {
        Block::Audio(Audio { media_type, data })
    } else {
        let name = faults.string(name.or(name_snake)).into();
        Block::Document(Document { media_type, name, data, text: SharedText::default() })
    })
}

/// A picture by address. Other files by address have no counterpart.
fn picture_by_address(file: Value<'_>, faults: &mut Faults) -> Option<Block> {
    let [media_type, media_type_snake, address, address_snake] =
        faults.pick(file, ["mimeType", "mime_type", "fileUri", "file_uri"]);
    let media_type = SharedText::from(faults.string(media_type.or(media_type_snake)));
    let url = SharedText::from(faults.string(address.or(address_snake)));
    let is_picture = media_type.starts_with("image/") && !url.is_empty();
    is_picture.then(|| Block::Image(Image { media_type, url, data: None }))
}

fn opaque(value: Value<'_>, kind: &str, faults: &mut Faults) -> Block {
    Block::Opaque(Opaque { kind: kind.into(), raw: raw_json(value.bytes(), &mut faults.text) })
}
