//! How a pass ends.

use std::sync::Arc;

use epitome_loop::{Message, ModelCallErrorKind, SharedText, TokenCount};
use thiserror::Error;

use super::section::StructuredSummary;

/// How a pass ends. In every case but the first, the history is to stay as it is.
#[derive(Clone, Debug, PartialEq)]
pub enum StructuredOutcome {
    /// There is a smaller history.
    Compacted {
        /// The new history.
        messages: Arc<[Message]>,
        /// What was summarized and is not in it, in order.
        evicted: Vec<Message>,
        /// The history's count before: the caller's, where one was given.
        tokens_before: TokenCount,
        /// Its count now, by the host's scale.
        tokens_after: TokenCount,
        /// The text of the message with the summary.
        summary: SharedText,
        /// What it says by section; `None` when answers are not parsed.
        sections: Option<StructuredSummary>,
        /// Whether it took a second call.
        retried: bool,
        /// In which way it is less than was asked for.
        degraded: Option<Degradation>,
    },
    /// There is nothing to do. No model was asked.
    NoChange {
        /// Why.
        why: NoChange,
    },
    /// There is no new history.
    Failed {
        /// Why.
        reason: StructuredFailure,
    },
}

/// Why there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoChange {
    /// The history has no more messages than are always left alone.
    FewMessages,
    /// No message may be summarized: they are system messages, kept, or all of the tail.
    NothingToSummarize,
}

/// In which way a summary is less than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Degradation {
    /// The answer could not be read; its text is an entry of the first section.
    RawText,
    /// The answer was over the budget and lost its end.
    Trimmed {
        /// Whether it could be read; if not, its text is an entry of the first section.
        is_raw: bool,
    },
}

/// Why there is no new history. Nothing of history or answer is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum StructuredFailure {
    /// The model gave no text, twice.
    #[error("the model's answers hold no text")]
    Blank,
    /// The last answer is over the budget, and what is left of it within the budget is no summary.
    #[error("the answer is over its budget of {budget} tokens and cannot be trimmed to it")]
    OverBudget {
        /// The budget.
        budget: TokenCount,
    },
    /// The provider cut the answer, twice or at last.
    #[error("the answer was cut off")]
    Cut,
    /// The model refused at last.
    #[error("the model refused")]
    Refused,
    /// The text is a refusal or an error, and says so.
    #[error("the answer is an error text or a refusal")]
    ErrorText,
    /// The model called a tool at last, instead of answering.
    #[error("the model called a tool instead of answering")]
    ToolCall,
    /// The model did not answer.
    #[error("the model did not answer: {kind}")]
    Client {
        /// Why.
        kind: ModelCallErrorKind,
    },
    /// The new history would not be smaller.
    #[error("the new history counts {after} tokens, the old one {before}")]
    NotSmaller {
        /// The old history by the host's scale.
        before: TokenCount,
        /// The new one by the same scale.
        after: TokenCount,
    },
    /// No answer could be within the budget, so no model was asked.
    #[error("no answer fits a budget of {budget} tokens")]
    TooSmallBudget {
        /// The budget.
        budget: TokenCount,
    },
}
