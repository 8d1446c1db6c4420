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
        walk(content.blocks(), 0, &mut |_, _| {}).map_err(|TooDeep| TranscriptError::Depth { message })?;
    }
    Ok(())
}

/// Checks a transcript that is to be summarized: not empty, nesting within bounds, nothing opaque, nothing that
/// could not be read back from the wire.
///
/// # Errors
/// [`TranscriptError`] with the first fault; one of nesting anywhere outweighs the others.
pub fn validate_transcript(messages: &[Message]) -> Result<(), TranscriptError> {
    if messages.is_empty() {
        return Err(TranscriptError::Empty);
    }
    let mut unfit = None;
    for (message, content) in messages.iter().enumerate() {
        let mut look = |block: &Block, results: usize| {
            if unfit.is_none() {
                unfit = unfit_block(block, results).map(|what| what.at(message));
            }
        };
        walk(content.blocks(), 0, &mut look).map_err(|TooDeep| TranscriptError::Depth { message })?;
    }
    unfit.map_or(Ok(()), Err)
}

/// Tool results nest deeper than they may.
struct TooDeep;

/// Visits every block with the number of tool results around it. Recursion is bounded by [`MAX_BLOCK_DEPTH`].
fn walk(blocks: &[Block], results: usize, visit: &mut impl FnMut(&Block, usize)) -> Result<(), TooDeep> {
    for block in blocks {
        visit(block, results);
        if let Block::ToolResult(result) = block {
            if results == MAX_BLOCK_DEPTH {
                return Err(TooDeep);
            }
            walk(&result.content, results + 1, visit)?;
        }
    }
    Ok(())
}

/// Why a block cannot be summarized.
enum Unfit {
    Opaque,
    RawDepth,
}

impl Unfit {
    fn at(self, message: usize) -> TranscriptError {
        match self {
            Self::Opaque => TranscriptError::Opaque { message },
            Self::RawDepth => TranscriptError::RawDepth { message },
        }
    }
}

/// Why a block inside so many tool results cannot be summarized, if it cannot.
fn unfit_block(block: &Block, results: usize) -> Option<Unfit> {
    let levels = MAX_JSON_DEPTH - LEVELS_AROUND_A_VALUE - LEVELS_OF_A_RESULT * results;
    let too_deep = |raw: &Option<RawJson>| raw.as_ref().is_some_and(|raw| raw.depth() > levels);
    match block {
        Block::Opaque(_) => Some(Unfit::Opaque),
        Block::ToolUse(call) if too_deep(&call.input) || too_deep(&call.provider_state) => {
            Some(Unfit::RawDepth)
        }
        Block::Thinking(thinking) if too_deep(&thinking.provider_state) => Some(Unfit::RawDepth),
        _ => None,
    }
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
        assert_eq!(validate_depth(&[nested(129)]), Err(TranscriptError::Depth { message: 0 }));
        // Nesting outweighs what else is wrong, wherever it stands.
        let raw = RawJson::parse("{}").unwrap();
        let opaque = Block::Opaque(crate::Opaque { kind: "x".into(), raw });
        let opaque = Message::User { blocks: Arc::from([opaque]) };
        let both = [opaque.clone(), nested(0), nested(129)];
        assert_eq!(validate_transcript(&both), Err(TranscriptError::Depth { message: 2 }));
        assert_eq!(validate_transcript(&both[..2]), Err(TranscriptError::Opaque { message: 0 }));
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
