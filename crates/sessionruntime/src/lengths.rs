//! The lengths of a session's messages, each worked out once.

use std::sync::OnceLock;

use epitome_loop::{Message, core_json_len};

/// How many bytes each message takes in its core form, as far as somebody asked.
pub(crate) struct Lengths<'a> {
    messages: &'a [Message],
    known: Vec<OnceLock<u64>>,
}

impl<'a> Lengths<'a> {
    pub(crate) fn new(messages: &'a [Message]) -> Self {
        Self { messages, known: vec![OnceLock::new(); messages.len()] }
    }

    /// 0 for a message that is not there.
    pub(crate) fn of(&self, at: usize) -> u64 {
        match (self.messages.get(at), self.known.get(at)) {
            (Some(message), Some(length)) => *length.get_or_init(|| core_json_len(message)),
            _ => 0,
        }
    }
}
