//! Counting tokens: what a count is worth, and the ports that counters implement.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::{CounterCapability, Message, ModelKey, RawJson, TokenCount};

/// How a count was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountQuality {
    /// The provider counted the request.
    ExactProvider,
    /// A local tokenizer counted it, with published vocabulary and framing.
    ExactLocal,
    /// An estimate.
    HeuristicEstimate,
}

impl CountQuality {
    /// The stable name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExactProvider => "exact_provider",
            Self::ExactLocal => "exact_local",
            Self::HeuristicEstimate => "heuristic_estimate",
        }
    }
}

/// A whole request as it would be sent: everything that takes room in the window.
///
/// System instructions are messages of their own. Cloning shares all content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which model it is for.
    pub model: ModelKey,
    /// Tool definitions, as the provider's JSON.
    pub tools: Arc<[RawJson]>,
    /// The messages in order.
    pub messages: Arc<[Message]>,
    /// Tokens of parts that are sent but not known here, as stated by the user (log formats leave out the
    /// system prompt and the tools).
    pub unseen_tokens: TokenCount,
}

/// One count of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextCount {
    /// Which model it was counted for.
    pub model: ModelKey,
    /// How many tokens the whole request takes.
    pub input_tokens: TokenCount,
    /// How the count was made.
    pub quality: CountQuality,
}

/// A request could not be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CountError {
    /// The counter has no tokenizer for this model.
    #[error("no tokenizer is known for this model")]
    UnknownModel,
    /// The request holds content that an exact counter can only estimate.
    #[error("{kind} at message {message} can only be estimated, and this counter is exact")]
    NotExact {
        /// Index of the message in the request.
        message: usize,
        /// Kind of the block.
        kind: &'static str,
    },
    /// The request defines tools, whose form inside a prompt is not published.
    #[error("tool definitions can only be estimated, and this counter is exact")]
    ToolsNotExact,
    /// The counting service did not answer.
    #[error("the counting service did not answer")]
    Unavailable,
}

/// Counts whole requests for one model.
///
/// Implementations live in the outer crates; this port stands with the layer that calls it.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot count requests",
    note = "implement `ContextCounter`, or take one from the crate `epitome-counters`"
)]
pub trait ContextCounter: Send + Sync {
    /// Counts the whole request.
    ///
    /// # Errors
    /// [`CountError`] when the request cannot be counted with the declared quality.
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError>;

    /// What this counter is.
    fn capability(&self) -> CounterCapability;
}

/// A function is a counter of estimates: for tests, and for hosts that bring their own arithmetic.
#[async_trait]
impl<F: Fn(&Request) -> TokenCount + Send + Sync> ContextCounter for F {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        Ok(ContextCount {
            model: request.model.clone(),
            input_tokens: self(request),
            quality: CountQuality::HeuristicEstimate,
        })
    }

    fn capability(&self) -> CounterCapability {
        CounterCapability::local("function", CountQuality::HeuristicEstimate)
    }
}

/// A fast size for text while it is being worked on. The [`ContextCounter`] has the last word.
pub trait TextEstimator: Send + Sync {
    /// How many tokens the text takes.
    fn estimate(&self, text: &str) -> TokenCount;
}

impl<F: Fn(&str) -> TokenCount + Send + Sync> TextEstimator for F {
    fn estimate(&self, text: &str) -> TokenCount {
        self(text)
    }
}
