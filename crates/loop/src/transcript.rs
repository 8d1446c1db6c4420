//! Checks that a transcript can be worked on at all.

use thiserror::Error;

use crate::json_scan::MAX_JSON_DEPTH;
use crate::{Block, MAX_BLOCK_DEPTH, Message, RawJson};

/// A transcript cannot be compacted as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// There is no message.
    #[error("the transcript is empty")]
    Empty,
    /// Tool results nest deeper than [`MAX_BLOCK_DEPTH`].
    #[error("message {message}: tool results nest deeper than {MAX_BLOCK_DEPTH}")]
    Depth {
        /// Index of the message.
        message: usize,
    },
    /// A provider's item that must not be summarized stands in the part that would be.
    #[error("message {message}: a provider's opaque item cannot be summarized")]
    Opaque {
        /// Index of the message.
        message: usize,
    },
    /// A tool's input or a provider's state nests so deep that the whole, written as wire v1, would have more
    /// than [`MAX_JSON_DEPTH`] levels, and nobody would read it back.
    #[error("message {message}: raw JSON nests too deep")]
    RawDepth {
        /// Index of the message.
        message: usize,
    },
}

/// Levels of objects and arrays around a value inside a block of a message: document, transcript, message,
/// blocks, block.
const LEVELS_AROUND_A_VALUE: usize = 5;

/// Levels that each nested tool result adds: its content and a block in it.
const LEVELS_OF_A_RESULT: usize = 2;

/// Checks the nesting of every message. Text is not looked at.
///
/// # Errors
/// [`TranscriptError::Depth`] for the first message that nests too deep.
pub fn validate_depth(messages: &[Message]) -> Result<(), TranscriptError> {
    for (message, content) in messages.iter().enumerate() {
        if too_deep(content.blocks(), MAX_BLOCK_DEPTH) {
            return Err(TranscriptError::Depth { message });
        }
    }
    Ok(())
}

/// Checks a transcript that is to be summarized: not empty, nesting within bounds, nothing opaque.
///
/// # Errors
/// [`TranscriptError`] with the first fault.
pub fn validate_transcript(messages: &[Message]) -> Result<(), TranscriptError> {
    if messages.is_empty() {
        return Err(TranscriptError::Empty);
    }
    validate_depth(messages)?;
    for (message, content) in messages.iter().enumerate() {
        match unfit_block(content.blocks(), MAX_JSON_DEPTH - LEVELS_AROUND_A_VALUE) {
            None => {}
            Some(Unfit::Opaque) => return Err(TranscriptError::Opaque { message }),
            Some(Unfit::RawDepth) => return Err(TranscriptError::RawDepth { message }),
        }
    }
    Ok(())
}

/// `levels` counts the nested results that are still allowed, so recursion is bounded by it.
fn too_deep(blocks: &[Block], levels: usize) -> bool {
    blocks.iter().any(|block| match block {
        Block::ToolResult(result) => match levels.checked_sub(1) {
            Some(left) => too_deep(&result.content, left),
            None => true,
        },
        _ => false,
    })
}

/// Why a block cannot be summarized.
enum Unfit {
    Opaque,
    RawDepth,
}

/// The first block that cannot be summarized. `levels` are left for raw JSON. Only called after the depth
/// check, so recursion is bounded.
fn unfit_block(blocks: &[Block], levels: usize) -> Option<Unfit> {
    let too_deep = |raw: &Option<RawJson>| raw.as_ref().is_some_and(|raw| raw.depth() > levels);
    blocks.iter().find_map(|block| match block {
        Block::Opaque(_) => Some(Unfit::Opaque),
        Block::ToolUse(call) if too_deep(&call.input) || too_deep(&call.provider_state) => {
            Some(Unfit::RawDepth)
        }
        Block::Thinking(thinking) if too_deep(&thinking.provider_state) => Some(Unfit::RawDepth),
        Block::ToolResult(result) => unfit_block(&result.content, levels.saturating_sub(LEVELS_OF_A_RESULT)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ToolResult, ToolUse};
    use std::sync::Arc;

    fn nested(levels: usize) -> Message {
        let mut block = Block::text("x");
        for _ in 0..levels {
            block = Block::ToolResult(ToolResult {
                tool_use_id: "n".into(),
                content: Arc::from([block]),
                is_error: false,
            });
        }
        Message::User { blocks: Arc::from([block]) }
    }

    #[test]
    fn nesting_is_bounded_at_128() {
        assert_eq!(validate_transcript(&[nested(128)]), Ok(()));
        assert_eq!(
            validate_transcript(&[nested(0), nested(129)]),
            Err(TranscriptError::Depth { message: 1 })
        );
        assert_eq!(validate_transcript(&[]), Err(TranscriptError::Empty));
    }

    #[test]
    fn raw_json_may_be_as_deep_as_the_wire_can_be_read() {
        let call = |levels: usize| {
            let input = RawJson::parse("[".repeat(levels) + &"]".repeat(levels)).unwrap();
            Block::ToolUse(ToolUse::new("i", "n", Some(input), None))
        };
        let assistant = |block| Message::Assistant { blocks: Arc::from([block]), usage: None };
        let nested = |block| {
            Block::ToolResult(ToolResult {
                tool_use_id: "n".into(),
                content: Arc::from([block]),
                is_error: false,
            })
        };
        let deepest = MAX_JSON_DEPTH - LEVELS_AROUND_A_VALUE;
        let refused = Err(TranscriptError::RawDepth { message: 0 });
        assert_eq!(validate_transcript(&[assistant(call(deepest))]), Ok(()));
        assert_eq!(validate_transcript(&[assistant(call(deepest + 1))]), refused);
        assert_eq!(validate_transcript(&[assistant(nested(call(deepest - 2)))]), Ok(()));
        assert_eq!(validate_transcript(&[assistant(nested(call(deepest - 1)))]), refused);
    }
}
