//! Fitting a compaction input into the byte limit of the hustle that reads it.

use std::fmt;
use std::sync::{Arc, LazyLock};

use epitome_loop::{Block, Blocks, CompactionInput, Message};
use thiserror::Error;

use crate::wire::{encode_messages, frame_len, joined_len, message_len};

/// What stands in place of a tool result that was left out.
pub const OMITTED_TOOL_RESULT: &str = "[old tool result omitted for compaction]";

/// An encoded input that keeps the byte limit.
#[derive(Clone, PartialEq, Eq)]
pub struct FittedInput {
    /// The wire.
    pub bytes: Vec<u8>,
    /// Indices of the tool results whose bodies were left out, ascending.
    pub stubbed: Vec<usize>,
}

/// Sizes alone: the bytes are the conversation.
impl fmt::Debug for FittedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, stubbed } = self;
        f.debug_struct("FittedInput").field("bytes", &bytes.len()).field("stubbed", stubbed).finish()
    }
}

/// The input does not fit, whatever tool results are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the compaction input takes {size} bytes at least; the limit is {limit}")]
pub struct CompactionInputTooLarge {
    /// The byte limit.
    pub limit: u64,
    /// The smallest size that was reached.
    pub size: u64,
}

/// Encodes the input within a byte limit (spec: wire v1, fitting).
///
/// If the whole is over the limit, the bodies of tool results are left out, oldest first, each only if that
/// makes it shorter, until it fits. What users and the model said is never left out. Each message is
/// measured once and written once.
///
/// # Errors
/// [`CompactionInputTooLarge`] with the smallest size that was reached.
pub fn fit_input(input: &CompactionInput, limit: u64) -> Result<FittedInput, CompactionInputTooLarge> {
    let lengths: Vec<u64> = input.transcript().iter().map(message_len).collect();
    let mut size = frame_len(input) + joined_len(lengths.iter().copied());
    // Where there is no room at all, leaving out is pointless; the whole size is reported, as by the reference.
    if limit == 0 {
        return Err(CompactionInputTooLarge { limit, size });
    }
    let mut stubs: Vec<(usize, Message)> = Vec::new();
    for (at, (message, len)) in input.transcript().iter().zip(lengths).enumerate() {
        if size <= limit {
            break;
        }
        let Some(stub) = stub_of(message) else { continue };
        let shorter = message_len(&stub);
        if shorter < len {
            size -= len - shorter;
            stubs.push((at, stub));
        }
    }
    if size > limit {
        return Err(CompactionInputTooLarge { limit, size });
    }
    let mut replacements = stubs.iter().peekable();
    let messages = input.transcript().iter().enumerate().map(|(at, message)| {
        replacements.next_if(|(stubbed, _)| *stubbed == at).map_or(message, |(_, stub)| stub)
    });
    let bytes = encode_messages(input, messages, size);
    Ok(FittedInput { bytes, stubbed: stubs.into_iter().map(|(at, _)| at).collect() })
}

fn stub_of(message: &Message) -> Option<Message> {
    static STUB: LazyLock<Blocks> = LazyLock::new(|| Arc::from([Block::text(OMITTED_TOOL_RESULT)]));
    match message {
        Message::ToolResult { tool_use_id, is_error, .. } => Some(Message::ToolResult {
            blocks: STUB.clone(),
            tool_use_id: tool_use_id.clone(),
            is_error: *is_error,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_sizes_alone() {
        let fitted = FittedInput { bytes: b"canary".to_vec(), stubbed: vec![3] };
        assert_eq!(format!("{fitted:?}"), "FittedInput { bytes: 6, stubbed: [3] }");
    }
}
