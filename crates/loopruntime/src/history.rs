//! Whether messages may stand as a history: nesting within bounds, order and pairing legal.

use std::collections::HashMap;

use epitome_loop::{Message, TranscriptError, validate_depth};
use thiserror::Error;

/// A history is not legal as a kept tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The first message is not the user's.
    #[error("message {message}: a history begins with the user")]
    Anchor {
        /// Index of the message.
        message: usize,
    },
    /// A call has no id, or the id of a call that is still open.
    #[error("message {message}: a tool call has no id of its own")]
    ToolCall {
        /// Index of the message.
        message: usize,
    },
    /// A result answers no open call.
    #[error("message {message}: a tool result answers no open call")]
    ToolResult {
        /// Index of the message.
        message: usize,
    },
    /// The model or the system speaks while a call is open.
    #[error("message {message}: only the user may speak between a call and its result")]
    Interrupted {
        /// Index of the message.
        message: usize,
    },
    /// A call is never answered.
    #[error("message {message}: a tool call is never answered")]
    OrphanToolCall {
        /// Index of the message that holds the call.
        message: usize,
    },
}

/// Checks that no message nests deeper than allowed.
///
/// # Errors
/// [`TranscriptError::Depth`] with the first message that does.
pub fn check_message_graph(messages: &[Message]) -> Result<(), TranscriptError> {
    validate_depth(messages)
}

/// Checks that messages may stand as a kept tail: the user first, every call answered, and nobody but the
/// user between a call and its results. An empty tail is legal.
///
/// # Errors
/// [`HistoryError`] with the first fault.
pub fn check_retained_history(messages: &[Message]) -> Result<(), HistoryError> {
    let mut open = OpenCalls::default();
    for (at, message) in messages.iter().enumerate() {
        if at == 0 && !matches!(message, Message::User { .. }) {
            return Err(HistoryError::Anchor { message: at });
        }
        if matches!(message, Message::Assistant { .. } | Message::System { .. }) && !open.is_empty() {
            return Err(HistoryError::Interrupted { message: at });
        }
        open.follow(at, message)?;
    }
    match open.first() {
        Some(message) => Err(HistoryError::OrphanToolCall { message }),
        None => Ok(()),
    }
}

/// The calls that wait for a result, by id. Ids may repeat over a conversation, but not among open calls, so
/// a result belongs to the nearest call before it.
#[derive(Default)]
pub(crate) struct OpenCalls<'a> {
    by_id: HashMap<&'a str, usize>,
}

impl<'a> OpenCalls<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The earliest message that holds an open call.
    pub(crate) fn first(&self) -> Option<usize> {
        self.by_id.values().copied().min()
    }

    /// Opens the calls of a message, or closes the call that it answers and says which message held it.
    pub(crate) fn follow(&mut self, at: usize, message: &'a Message) -> Result<Option<usize>, HistoryError> {
        if let Message::ToolResult { tool_use_id, .. } = message {
            let call = self.by_id.remove(tool_use_id.as_str());
            return call.map(Some).ok_or(HistoryError::ToolResult { message: at });
        }
        for call in message.tool_calls() {
            if call.id.is_empty() || self.by_id.insert(&call.id, at).is_some() {
                return Err(HistoryError::ToolCall { message: at });
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{Block, ToolUse};

    fn call(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "tool", None, None)));
        Message::Assistant { blocks: calls.collect(), usage: None }
    }

    fn result(id: &str) -> Message {
        Message::tool_result(id, "r", false)
    }

    #[test]
    fn pairs_may_be_parted_by_the_user_alone() {
        let user = || Message::user("u");
        assert_eq!(check_retained_history(&[]), Ok(()));
        assert_eq!(
            check_retained_history(&[user(), call(&["a", "b"]), user(), result("b"), result("a")]),
            Ok(())
        );
        assert_eq!(
            check_retained_history(&[user(), call(&["a"]), Message::system("s"), result("a")]),
            Err(HistoryError::Interrupted { message: 2 })
        );
        assert_eq!(
            check_retained_history(&[Message::assistant("x")]),
            Err(HistoryError::Anchor { message: 0 })
        );
        assert_eq!(
            check_retained_history(&[user(), call(&["a", "a"])]),
            Err(HistoryError::ToolCall { message: 1 })
        );
        assert_eq!(
            check_retained_history(&[user(), result("a")]),
            Err(HistoryError::ToolResult { message: 1 })
        );
        assert_eq!(
            check_retained_history(&[user(), call(&["a"]), result("a"), call(&["a"]), user()]),
            Err(HistoryError::OrphanToolCall { message: 3 })
        );
    }
}
