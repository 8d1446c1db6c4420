//! Checks that a transcript can be worked on at all.

use thiserror::Error;

use crate::{Block, MAX_BLOCK_DEPTH, Message};

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
}

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
    match messages.iter().position(|message| holds_opaque(message.blocks())) {
        Some(message) => Err(TranscriptError::Opaque { message }),
        None => Ok(()),
    }
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

/// Only called after the depth check, so recursion is bounded.
fn holds_opaque(blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match block {
        Block::Opaque(_) => true,
        Block::ToolResult(result) => holds_opaque(&result.content),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolResult;
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
}
