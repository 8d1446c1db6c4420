//! A digest of the messages that are left out, made by rules.

use std::sync::Arc;

use epitome_loop::{Message, SummaryRequest, TokenCount};

use super::excerpt::Room;
use super::framing::section_lines;
use crate::Extractive;

/// The messages that are left out: from `first` up to `last`, without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Middle {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// What the messages say, in at most so many tokens, between marks that say who made it; `None` when there is no room for
/// anything.
pub(super) fn digest_of(messages: &[Message], middle: Middle, most: u64, room: &Room<'_>) -> Option<String> {
    const OPEN: &str = "<left-out notes, picked from these messages by rules and not by a model>\n";
    const CLOSE: &str = "<left-out end of notes>\n";
    let marks = room.judge.tokens(OPEN) + room.judge.tokens(CLOSE);
    let transcript: Arc<[Message]> = messages.get(middle.first..middle.last)?.into();
    let request = SummaryRequest {
        transcript,
        previous: None,
        instructions: room.instructions.cloned(),
        max_tokens: TokenCount(most.checked_sub(marks)?),
        max_bytes: None,
        estimator: Arc::clone(&room.judge.estimator),
        correction: None,
        carry_constraints: true,
    };
    // The XML of these sections takes no less than their lines.
    let draft = Extractive::new().summarize_now(&request).ok()?;
    Some(format!("{OPEN}{}{CLOSE}", section_lines(&draft.sections)))
}
