//! Inputs for the paths of the wire.

use std::sync::Arc;

use epitome_loop::{
    CompactionInput, ContextBasis, ContextRevision, EventId, Message, ModelKey, RequestFingerprint,
    TokenCount,
};

use epitome_sessionruntime::{decode_input, encode_input};

use crate::agent_text::agent_session;

/// An input with a session of about so many bytes, as it lies in memory after it was read. (While a session is
/// made up, its texts come to lie wherever the pieces that they are made of leave room; a rival's copy would lie
/// better.)
#[must_use]
pub fn wire_input(bytes: usize) -> CompactionInput {
    let made_up = input_of(agent_session(bytes));
    let read = made_up.and_then(|input| decode_input(&encode_input(&input)).ok());
    read.unwrap_or_else(|| unreachable!("a made-up session is a valid input"))
}

/// An input with these messages; `None` if they cannot be one.
pub(crate) fn input_of(transcript: Arc<[Message]>) -> Option<CompactionInput> {
    let model = ModelKey::new("anthropic", "claude-sonnet-4-5");
    CompactionInput::new(
        basis(),
        model,
        RequestFingerprint::from_bytes([2; 32]),
        transcript,
        TokenCount(2_000),
    )
    .ok()
}

pub(crate) fn basis() -> ContextBasis {
    ContextBasis { revision: ContextRevision(7), through_event_id: EventId::from_bytes([1; 16]) }
}
