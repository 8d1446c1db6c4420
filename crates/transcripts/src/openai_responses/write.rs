//! Writing lists of items.

use std::ops::Range;

use epitome_loop::{Block, Message};

use super::calls::CallKinds;
use super::grouping::Part;
use super::log::Conversation;
use super::{encode, encode_message, encode_tools};
use crate::container::{List, whole_field};
use crate::conversation::REPLY_FIELD;
use crate::json::object;
use crate::loss::Losses;
use crate::session::Original;
use crate::write::{Element, Item, Piece, apply, is_earlier_summary, join};
use crate::{Format, Session};

/// What a list of items is written again from.
#[derive(Clone, Debug)]
pub(crate) struct ResponsesList {
    /// The list.
    list: List,
    /// The items of each original.
    pub(crate) parts: Vec<Vec<Part>>,
    /// The instructions beside the input.
    instructions: Option<Range<usize>>,
    /// What a whole list is written in the place of: an input that is one string, or nothing at all.
    replaced: Option<Range<usize>>,
    /// The id of a reply whose conversation is written out.
    continues: Option<Range<usize>>,
}

impl ResponsesList {
    pub(super) fn of(
        conversation: &Conversation<'_>,
        instructions: Option<Range<usize>>,
        has_reply: bool,
    ) -> Self {
        let mut list = conversation.list.clone();
        if has_reply {
            // Left in its place beside the items, it would be read a second time.
            list.reply = conversation.object.and_then(|object| whole_field(object, REPLY_FIELD));
        }
        let input = conversation.object.and_then(|object| object.get("input"));
        let replaced = match input.filter(|input| !input.is_array()) {
            Some(input) if list.elements.is_empty() => Some(input.range()),
            _ => Some(list.inside.clone()).filter(|_| list.document.is_empty()),
        };
        Self {
            replaced,
            list,
            parts: Vec::new(),
            instructions,
            continues: conversation.continues.map(|id| id.range()),
        }
    }
}

/// Writes what stays of a list of items.
pub(crate) fn write_kept(
    session: &Session,
    file: &ResponsesList,
    pieces: Vec<Piece>,
    losses: &mut Losses,
) -> Vec<u8> {
    let kinds = CallKinds::of(&session.messages);
    let mut elements = Vec::new();
    let mut instructions = None;
    for (at, piece) in pieces.into_iter().enumerate() {
        match piece {
            Piece::Original { original, .. } => {
                for part in file.parts.get(original).into_iter().flatten() {
                    if file.instructions.as_ref() == Some(&part.range) {
                        instructions = Some(None);
                    } else {
                        elements.push(Element::Original(Original {
                            range: part.range.clone(),
                            wrap: part.wrap,
                            messages: 0,
                        }));
                    }
                }
            }
            Piece::Encoded(mut items) => {
                if at == 0
                    && file.instructions.is_some()
                    && let Some(Item { message: Message::System { .. }, .. }) = items.first()
                {
                    instructions = Some(Some(text_of(&items.remove(0).message)));
                }
                let encoded = encode(&items, &kinds, true, losses);
                elements.extend(encoded.into_iter().map(Element::Encoded));
            }
        }
    }
    let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
    if let Some(place) = &file.instructions {
        match instructions {
            Some(None) => {}
            Some(Some(text)) => edits.push((place.clone(), serde_json::to_vec(&text).unwrap_or_default())),
            None => edits.push((place.clone(), b"null".to_vec())),
        }
    }
    edits.extend(file.continues.clone().map(|id| (id, b"null".to_vec())));
    edits.extend(file.list.reply.clone().map(|reply| (reply, Vec::new())));
    match &file.replaced {
        Some(place) => {
            let inside = List { inside: place.start..place.start, ..file.list.clone() };
            let list = [b"[", join(&session.source, &inside, &elements).as_slice(), b"]"].concat();
            edits.push((place.clone(), list));
        }
        None => edits.push((file.list.inside.clone(), join(&session.source, &file.list, &elements))),
    }
    apply(&session.source, file.list.document.clone(), edits)
}

/// Writes a session that was read from another format: leading instructions beside the input, the rest in it.
pub(crate) fn write_new(session: &Session, pieces: Vec<Piece>, losses: &mut Losses) -> Vec<u8> {
    let NewList { instructions, items } =
        NewList::of(session, pieces, &CallKinds::of(&session.messages), losses);
    let tools = encode_tools(&session.tools, is_item_format(session.format), losses);
    object(|out| {
        if let Some(model) = &session.model {
            out.text("model", &model.model);
        }
        if let Some(instructions) = instructions {
            out.text("instructions", &instructions);
        }
        out.array("input", |list| items.iter().for_each(|item| list.raw(&item.json)));
        if !tools.is_empty() {
            out.array("tools", |list| tools.iter().for_each(|tool| list.raw(tool)));
        }
    })
}

/// What a list that is written anew holds.
pub(crate) struct NewList {
    /// The text of the first system message, which has a place of its own.
    pub(crate) instructions: Option<String>,
    /// The items in order.
    pub(crate) items: Vec<NewItem>,
}

/// An item of a list that is written anew.
pub(crate) struct NewItem {
    /// The item.
    pub(crate) json: Vec<u8>,
    /// The message, when it is a summary.
    pub(crate) summary: Option<Message>,
}

impl NewList {
    /// Items that the source has already stay byte for byte; the rest is encoded.
    pub(crate) fn of(session: &Session, pieces: Vec<Piece>, kinds: &CallKinds, losses: &mut Losses) -> Self {
        let same = is_item_format(session.format);
        let mut list = Self { instructions: None, items: Vec::new() };
        for (at, piece) in pieces.into_iter().enumerate() {
            match piece {
                Piece::Original { original, message: index } => {
                    let message = session.messages.get(index);
                    if at == 0 && list.take_instructions(message) {
                        continue;
                    }
                    let summary = message.filter(|_| is_earlier_summary(session, index)).cloned();
                    let parts = session.container.parts().get(original).into_iter().flatten();
                    list.items.extend(parts.map(|part| {
                        let (open, close) = part.wrap;
                        let inner = session.source.get(part.range.clone()).unwrap_or_default();
                        let json = [open.as_bytes(), inner, close.as_bytes()].concat();
                        NewItem { json, summary: summary.clone() }
                    }));
                }
                Piece::Encoded(items) => {
                    for (number, item) in items.into_iter().enumerate() {
                        if at + number == 0 && list.take_instructions(Some(&item.message)) {
                            continue;
                        }
                        let encoded = encode_message(&item.message, kinds, same, losses);
                        let summary = item.is_summary.then_some(item.message);
                        list.items.extend(
                            encoded.into_iter().map(|json| NewItem { json, summary: summary.clone() }),
                        );
                    }
                }
            }
        }
        list
    }

    fn take_instructions(&mut self, message: Option<&Message>) -> bool {
        let Some(message @ Message::System { blocks }) = message else { return false };
        let is_text = blocks.iter().all(|block| matches!(block, Block::Text { .. }));
        if is_text && !blocks.is_empty() {
            self.instructions = Some(text_of(message));
        }
        self.instructions.is_some()
    }
}

/// Whether sessions of a format hold items of the Responses API.
pub(crate) fn is_item_format(format: Format) -> bool {
    matches!(format, Format::OpenAiResponses | Format::CodexRollout)
}

/// The text of a message's text blocks.
pub(crate) fn text_of(message: &Message) -> String {
    let texts = message.blocks().iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}
