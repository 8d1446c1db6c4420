//! The port to a model: one request, one answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::{Block, Message, RawJson, Sampling, SharedText, TokenCount, Usage};

/// One request to a model, without tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// The provider's name of the model.
    pub model: SharedText,
    /// The system prompt, in front of everything.
    pub system: Option<SharedText>,
    /// The messages in order.
    pub messages: Arc<[Message]>,
    /// How many tokens the answer may take, reasoning included where the provider counts it so.
    pub max_output: Option<TokenCount>,
    /// How the model is sampled.
    pub sampling: Sampling,
    /// The form that the answer is held to, where the provider can do that; elsewhere it is not sent.
    pub answer_form: Option<AnswerForm>,
}

/// A form that an answer is held to by the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// A JSON schema, with a name for it.
    JsonSchema {
        /// The name: letters, digits, `_` and `-`.
        name: SharedText,
        /// The schema.
        schema: RawJson,
    },
    /// A grammar in GBNF, as llama.cpp takes it.
    Gbnf(SharedText),
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The answer's blocks: text, reasoning, refusals, tool calls.
    pub blocks: Arc<[Block]>,
    /// Why it ended.
    pub finish: FinishReason,
    /// What the provider says that it took.
    pub usage: Option<Usage>,
    /// The model that answered, by the provider's word.
    pub model: Option<SharedText>,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model had said what it had to say.
    Stop,
    /// The answer is cut: no further tokens were allowed, or the provider paused.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// The model, or a filter of the provider, refused.
    Refused,
    /// The provider gave a reason that is not known here, or none.
    Unknown,
}

/// A model did not answer. Nothing of a request or of an answer is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the model did not answer: {kind}")]
pub struct ModelCallError {
    /// What went wrong.
    pub kind: ModelCallErrorKind,
    /// How long the provider asks to wait before another try.
    pub retry_after: Option<Duration>,
}

/// What went wrong with a request to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ModelCallErrorKind {
    /// No connection, or one that broke.
    #[error("the connection failed")]
    Network,
    /// It took longer than allowed.
    #[error("it took too long")]
    Timeout,
    /// The provider answered with an error: its status, or one below 300 where the answer calls itself a success and says
    /// that it failed.
    #[error("{}", status_words(*.0))]
    Status(u16),
    /// The answer is larger than allowed.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The answer cannot be read.
    #[error("the answer cannot be read")]
    Malformed,
    /// Another model answered than the one that was asked.
    #[error("another model answered")]
    OtherModel,
    /// The request holds what cannot be sent to this provider.
    #[error("the request cannot be sent to this provider")]
    Unsupported,
    /// There is no key for this provider.
    #[error("there is no key for this provider")]
    NoKey,
}

fn status_words(status: u16) -> String {
    match status {
        ..300 => "the provider reported a failure".to_owned(),
        _ => format!("status {status}"),
    }
}

impl From<ModelCallErrorKind> for ModelCallError {
    fn from(kind: ModelCallErrorKind) -> Self {
        Self { kind, retry_after: None }
    }
}

/// Asks a model.
///
/// Implementations for providers stand in `epitome-models`; a host may bring its own.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot ask a model",
    note = "implement `ModelClient`, or take one from the crate `epitome-models`"
)]
pub trait ModelClient: Send + Sync {
    /// Sends one request and waits for the whole answer. Dropped, it gives the request up.
    ///
    /// # Errors
    /// [`ModelCallError`].
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError>;

    /// Messages as this client sends them: without what it keeps back.
    ///
    /// Whoever shortens messages for a model shortens these. A secret of which a part is cut off would not be recognized
    /// any more, and its rest would be sent.
    fn as_sent(&self, messages: &Arc<[Message]>) -> Arc<[Message]> {
        Arc::clone(messages)
    }
}

/// A function is a client: for tests.
#[async_trait]
impl<F: Fn(&ModelCall) -> Result<ModelAnswer, ModelCallError> + Send + Sync> ModelClient for F {
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
        self(&call)
    }
}

impl ModelAnswer {
    /// An answer that is one text and ended by itself.
    #[must_use]
    pub fn text(text: impl Into<SharedText>) -> Self {
        let blocks = [Block::Text { text: text.into() }];
        Self { blocks: blocks.into(), finish: FinishReason::Stop, usage: None, model: None }
    }
}

impl ModelCallErrorKind {
    /// Whether the provider answered, and what it sent could not be taken.
    #[must_use]
    pub fn was_answered(self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::Malformed | Self::OtherModel)
    }

    /// Whether a second request may do better: a connection that failed, 408, 429, and faults of the provider's
    /// servers.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Network | Self::Status(408 | 429 | 500..=599))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_told_from_what_will_not() {
        use ModelCallErrorKind::{Malformed, Network, NoKey, Status, Timeout};
        for kind in [Network, Status(408), Status(429), Status(500), Status(503), Status(599)] {
            assert!(kind.is_transient(), "{kind}");
        }
        for kind in [Timeout, Malformed, NoKey, Status(400), Status(401), Status(404), Status(600)] {
            assert!(!kind.is_transient(), "{kind}");
        }
    }
}
