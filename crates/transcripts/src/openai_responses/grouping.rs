//! Gathers the items of the model that follow each other into one message.

use std::ops::Range;

use epitome_loop::{Block, Message, Opaque, Usage};

use super::items::Mapped;
use crate::assembly::{Assembly, as_it_stands};
use crate::faults::Faults;

/// Where an item stands in the source, and what is written before and behind its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// What makes an item of bytes that are none by themselves.
    pub(crate) wrap: (&'static str, &'static str),
}

impl Part {
    /// An item that is written as it stands.
    pub(crate) fn item(range: Range<usize>) -> Self {
        Self { range, wrap: ("", "") }
    }

    /// A string that is the whole content of a user message.
    pub(crate) fn user_text(range: Range<usize>) -> Self {
        let open = "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":";
        Self { range, wrap: (open, "}]}") }
    }
}

/// A list of messages under way.
pub(crate) struct Grouping<'a> {
    into: &'a mut Assembly,
    /// The items of each original.
    parts: Vec<Vec<Part>>,
    open: Open,
}

/// What the model said and may go on saying.
#[derive(Default)]
struct Open {
    blocks: Vec<Block>,
    /// The items it came from; `None` where one of them does not stand in the source.
    parts: Vec<Option<Part>>,
    faults: Faults,
    usage: Option<Usage>,
}

impl<'a> Grouping<'a> {
    pub(crate) fn new(into: &'a mut Assembly) -> Self {
        Self { into, parts: Vec::new(), open: Open::default() }
    }

    /// The assembly, for what is no item. Closes what the model said.
    pub(crate) fn assembly(&mut self) -> &mut Assembly {
        self.close();
        self.into
    }

    /// Takes an item that has been mapped with `faults`. It stands at `part`, if it stands in the source.
    /// Returns whether it is sent.
    pub(crate) fn take(&mut self, mapped: Mapped, part: Option<Part>, faults: Faults) -> bool {
        match mapped {
            Mapped::Side => return false,
            Mapped::Model(blocks) => {
                self.open.blocks.extend(blocks);
                self.open.parts.push(part);
                self.open.faults.add(faults);
            }
            Mapped::Message(message) => {
                self.close();
                self.put(message, vec![part], faults);
            }
            Mapped::Compaction(item) => {
                self.close();
                self.put(compaction(item), vec![part], faults);
            }
        }
        true
    }

    /// What the provider reported for the request that the newest items of the model answer.
    pub(crate) fn report(&mut self, usage: Usage) {
        if !self.open.parts.is_empty() {
            self.open.usage = Some(usage);
        }
    }

    /// The items of each original.
    pub(crate) fn finish(mut self) -> Vec<Vec<Part>> {
        self.close();
        self.parts
    }

    fn close(&mut self) {
        let Open { blocks, parts, faults, usage } = std::mem::take(&mut self.open);
        if parts.is_empty() {
            return;
        }
        if let Some(usage) = usage {
            self.into.reported = Some((self.into.len(), usage));
        }
        self.put(Message::Assistant { blocks: blocks.into(), usage }, parts, faults);
    }

    fn put(&mut self, message: Message, parts: Vec<Option<Part>>, faults: Faults) {
        self.into.faults = faults;
        let parts: Option<Vec<Part>> = parts.into_iter().collect();
        match parts.and_then(|parts| Some((parts.first()?.range.clone(), parts))) {
            Some((range, parts)) => {
                self.into.close(as_it_stands(range), vec![message]);
                self.parts.push(parts);
            }
            None => self.into.close_without_original(message),
        }
    }
}

/// A compaction item as a message. It is neither the user's nor the model's, and it must stay wherever the
/// conversation is cut: nobody but its provider can read it, so no summary can take its place.
fn compaction(item: Opaque) -> Message {
    Message::System { blocks: [Block::Opaque(item)].into() }
}
