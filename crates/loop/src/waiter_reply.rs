//! The id of the reply that each waiter for a compaction gets.
//!
//! It is worked out from the attempt, the command and the outcome, so that a reply written again after a crash
//! has the id it had before (spec: wire v1, waiter reply id).

use sha2::{Digest as _, Sha256};

use crate::{AttemptId, CommandId, WaiterReplyId};

/// Says what is hashed, so that no other use of the same bytes gives the same id. The reference's tag.
const TAG: &[u8] = b"looprig.compaction.waiter-reply.v1\0";

/// The id of the reply to the command that waited for this attempt; `resolved` says whether it got what it
/// waited for. A version-8 UUID.
#[must_use]
pub fn waiter_reply_id(attempt: AttemptId, command: CommandId, resolved: bool) -> WaiterReplyId {
    let digest = Sha256::new()
        .chain_update(TAG)
        .chain_update(attempt.as_bytes())
        .chain_update(command.as_bytes())
        .chain_update([u8::from(resolved)])
        .finalize();
    let digest: [u8; 32] = digest.into();
    let head = digest.first_chunk::<16>().copied().unwrap_or_default();
    WaiterReplyId::from_bytes(*uuid::Builder::from_custom_bytes(head).into_uuid().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_is_part_of_the_id() {
        let (attempt, command) = (AttemptId::default(), CommandId::default());
        // From the reference's vectors.
        let id = |resolved| waiter_reply_id(attempt, command, resolved).to_string();
        assert_eq!(id(true), "e39d4db8-c4bb-85d9-9112-973bd48a5afe");
        assert_eq!(id(false), "403ee765-9f7b-8826-b111-61590c50870a");
    }
}
