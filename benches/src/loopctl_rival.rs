//! The same compaction by `loopctl`, as its documentation shows it: its manager decides and counts, its splitter
//! cuts at a turn, and a compactor of the host's own puts a summary in front of what is kept.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use epitome_loop::{Block, Message, Role};
use loopctl::compact::{
    CompactionContext, CompactionOutcome, ContextCompactor, ContextManager, EnsureContextResult,
    TokenSplitter,
};
use loopctl::message;
use tokio::runtime::Runtime;

/// A manager with a scripted model.
pub(crate) struct Loopctl {
    manager: ContextManager,
}

impl Loopctl {
    /// For a window of so many tokens, with this summary.
    pub(crate) fn new(window: u64, summary: &str) -> Self {
        let compactor = Scripted { summary: summary.to_owned() };
        Self { manager: ContextManager::new(Arc::new(compactor)).with_context_window(window) }
    }

    /// Whether a history was compacted. As its loop does, it gives the manager a copy, so that the history stands
    /// until there is an outcome; then the history is dropped.
    pub(crate) fn compact(&self, runtime: &Runtime, history: Vec<message::Message>) -> bool {
        let used = self.manager.estimate_tokens(&history);
        if !self.manager.should_compact(used) {
            return false;
        }
        let reason = self.manager.compact_reason(used);
        let done = runtime.block_on(self.manager.compact_with_reason(history.clone(), 1, reason));
        drop(history);
        matches!(done, Ok(EnsureContextResult::Compacted(_)))
    }
}

struct Scripted {
    summary: String,
}

impl ContextCompactor for Scripted {
    fn compact(
        &self,
        messages: Vec<message::Message>,
        _: u64,
        context: CompactionContext,
    ) -> Pin<Box<dyn Future<Output = CompactionOutcome> + Send + '_>> {
        Box::pin(async move {
            let split = TokenSplitter::new().split(&messages);
            let mut compacted = vec![message::Message::user(self.summary.as_str())];
            compacted.extend(split.preserved);
            let after = context.counter.count(&compacted);
            CompactionOutcome::compacted(compacted, context.tokens_before, after)
        })
    }
}

/// Messages in its form.
pub(crate) fn messages(session: &[Message]) -> Vec<message::Message> {
    session.iter().map(message_of).collect()
}

fn message_of(ours: &Message) -> message::Message {
    let parts = match ours {
        Message::ToolResult { tool_use_id, is_error, blocks } => {
            let text: String = blocks.iter().filter_map(text_of).collect();
            let output = message::ToolContent::from_string(text);
            vec![message::MessagePart::tool_result(tool_use_id.as_str(), "read_file", output, *is_error)]
        }
        _ => ours.blocks().iter().filter_map(part_of).collect(),
    };
    let role = if ours.role() == Role::Assistant { message::Role::Assistant } else { message::Role::User };
    message::Message::new(role, parts)
}

fn part_of(block: &Block) -> Option<message::MessagePart> {
    match block {
        Block::ToolUse(call) => {
            let input = call.input.as_ref().and_then(|input| serde_json::from_str(input.as_str()).ok());
            Some(message::MessagePart::tool_call(
                call.id.as_str(),
                call.name.as_str(),
                input.unwrap_or_default(),
            ))
        }
        block => text_of(block).map(message::MessagePart::text),
    }
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}
