//! The smallest input that a registry counts on is what the encoder writes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use epitome_loop::{
    CompactionInput, ContextBasis, ContextRevision, EventId, Message, ModelKey, RequestFingerprint,
    SMALLEST_INPUT_BYTES, TokenCount,
};
use epitome_sessionruntime::encode_input;

fn encoded(model: ModelKey, message: Message, number: u64) -> Vec<u8> {
    let basis =
        ContextBasis { revision: ContextRevision(number), through_event_id: EventId::from_bytes([1; 16]) };
    let fingerprint = RequestFingerprint::from_bytes([1; 32]);
    let transcript = Arc::from([message]);
    let input = CompactionInput::new(basis, model, fingerprint, transcript, TokenCount(number)).unwrap();
    encode_input(&input)
}

fn empty_messages() -> [Message; 4] {
    let blocks = || Arc::from([]);
    [
        Message::User { blocks: blocks() },
        Message::System { blocks: blocks() },
        Message::Assistant { blocks: blocks(), usage: None },
        Message::ToolResult { blocks: blocks(), tool_use_id: "".into(), is_error: false },
    ]
}

#[test]
fn the_encoder_reaches_the_smallest_size_and_never_goes_below() {
    let least = |message| encoded(ModelKey::new("p", "m"), message, 1).len();
    let sizes = empty_messages().map(least);
    assert_eq!(sizes.iter().min(), Some(&SMALLEST_INPUT_BYTES), "{sizes:?}");
    // Each part alone makes it larger, so no smaller choice of another part can make up for it.
    let [user, ..] = empty_messages();
    assert!(encoded(ModelKey::new("pp", "m"), user.clone(), 1).len() > SMALLEST_INPUT_BYTES);
    assert!(encoded(ModelKey::new("p", "\u{1}"), user.clone(), 1).len() > SMALLEST_INPUT_BYTES);
    assert!(encoded(ModelKey::new("p", "m"), user, 10).len() > SMALLEST_INPUT_BYTES);
}
