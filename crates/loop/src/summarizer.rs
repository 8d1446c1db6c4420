//! The port behind which a summary is made: what is asked, what comes back, and why nothing did.

use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::{
    Cause, CauseKind, InvalidSummaryReason, Message, ModelCallError, ModelCallErrorKind, OutputFault,
    SharedText, SummarySections, TextEstimator, TokenCount, TranscriptError, Usage, malformed_answer,
};

/// What a summarizer is asked to do.
#[derive(Clone)]
pub struct SummaryRequest {
    /// The messages to summarize, oldest first, unprojected.
    pub transcript: Arc<[Message]>,
    /// The previous summary of the same conversation, typed by the host that committed it. Text that merely
    /// looks like a summary is not one.
    pub previous: Option<SummarySections>,
    /// The host's instructions for this one summary, for example what to pay attention to.
    pub instructions: Option<SharedText>,
    /// The rendered summary may take this many tokens by `estimator`.
    pub max_tokens: TokenCount,
    /// The rendered summary may take this many bytes.
    pub max_bytes: Option<usize>,
    /// Sizes text by the loop's own counter.
    pub estimator: Arc<dyn TextEstimator>,
    /// In a second try after a malformed answer: a fixed sentence about what was wrong. Nothing of the first
    /// answer is in it. Only a summarizer that asks a model has a use for it.
    pub correction: Option<&'static str>,
    /// Whether the user's rules that the summary lacks are put into it, word for word. A summarizer that selects
    /// such rules by itself need not look at it.
    pub carry_constraints: bool,
}

/// A summary, before it is rendered, checked and counted by the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryDraft {
    /// What it says.
    pub sections: SummarySections,
    /// How many items of each section did not fit, in the order of [`crate::Section::ALL`].
    pub left_out: [u64; 5],
    /// What the provider reported, when a model was asked.
    pub usage: Option<Usage>,
    /// What was repaired in a model's answer, by stable names, each once.
    pub repairs: Vec<&'static str>,
    /// The user's rules that a model's answer lacked and that were put into `sections`, word for word.
    pub carried: Vec<SharedText>,
}

impl From<SummarySections> for SummaryDraft {
    /// A draft that says these sections and left nothing out.
    fn from(sections: SummarySections) -> Self {
        Self { sections, left_out: [0; 5], usage: None, repairs: Vec::new(), carried: Vec::new() }
    }
}

/// A summarizer gave no summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SummarizerError {
    /// The budget cannot hold even the frame and the two required sections.
    #[error(
        "a summary needs at least {needed_bytes} bytes and {needed_tokens} tokens; the budget is smaller"
    )]
    BudgetTooSmall {
        /// Least size in bytes.
        needed_bytes: usize,
        /// Least size in tokens.
        needed_tokens: TokenCount,
    },
    /// The transcript cannot be worked on.
    #[error("{0}")]
    Transcript(TranscriptError),
    /// The summarizing model's own window has no room for the question and its answer.
    #[error("the window of the summarizing model, {window} tokens, has no room for the prompt and an answer")]
    WindowTooSmall {
        /// The window in tokens.
        window: TokenCount,
    },
    /// The model was not reached, or gave no answer.
    #[error("{0}")]
    Model(ModelCallError),
    /// The model's answer is no summary.
    #[error("{fault}")]
    Answer {
        /// In which way.
        fault: AnswerFault,
        /// What the provider reported for it: it is paid for all the same.
        usage: Option<Usage>,
    },
    /// The side task did not answer.
    #[error("the summarizer did not answer")]
    Unavailable,
}

/// In which way a model's answer is no summary, whatever its text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// The model, or a filter of its provider, refused.
    #[error("the model refused")]
    Refused,
    /// The model called a tool. None was offered, and none is run.
    #[error("the model called a tool instead of answering")]
    ToolCall,
    /// The answer was cut at the limit of its length.
    #[error("the model's answer was cut at the limit of its length")]
    CutOff,
    /// There is no text in it: nothing at all, white space, or reasoning alone.
    #[error("the model's answer holds no text")]
    NoText,
    /// The text is not a summary in any form that is read.
    #[error("the model's answer is no summary: {0}")]
    Invalid(InvalidSummaryReason),
}

impl AnswerFault {
    /// The reason that a summary is refused for; `None` for a model's refusal, which is no summary at all and so no
    /// invalid one.
    #[must_use]
    pub fn invalid_summary(self) -> Option<InvalidSummaryReason> {
        match self {
            Self::Refused => None,
            Self::ToolCall | Self::NoText => Some(InvalidSummaryReason::OutputShape),
            Self::CutOff => Some(InvalidSummaryReason::TokenLimit),
            Self::Invalid(reason) => Some(reason),
        }
    }
}

impl From<AnswerFault> for SummarizerError {
    /// The fault of an answer of which it is not known what it cost.
    fn from(fault: AnswerFault) -> Self {
        Self::Answer { fault, usage: None }
    }
}

impl SummarizerError {
    /// What a provider reported for the answer that was no summary.
    #[must_use]
    pub fn usage(self) -> Option<Usage> {
        match self {
            Self::Answer { usage, .. } => usage,
            _ => None,
        }
    }

    /// The failure as a hustle records it and as [`crate::decide_retry`] judges it.
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            // No summary can be small enough, so none was made.
            Self::BudgetTooSmall { .. } => malformed_answer(InvalidSummaryReason::TokenLimit),
            Self::Transcript(_) | Self::WindowTooSmall { .. } => CauseKind::InvalidInput.into(),
            Self::Model(error) => call_cause(error),
            Self::Answer { fault, .. } => match fault.invalid_summary() {
                Some(reason) => malformed_answer(reason),
                None => CauseKind::Output(Some(OutputFault::Refused)).into(),
            },
            Self::Unavailable => CauseKind::Other.into(),
        }
    }
}

fn call_cause(error: ModelCallError) -> Cause {
    use ModelCallErrorKind as Kind;
    let ModelCallError { kind, retry_after } = error;
    Cause::new(match kind {
        Kind::Network => CauseKind::Network,
        Kind::Timeout => CauseKind::Deadline,
        Kind::Status(status) => CauseKind::Api { status, retry_after },
        Kind::TooLarge { .. } => CauseKind::Output(Some(OutputFault::TooLarge)),
        Kind::Malformed => CauseKind::Output(Some(OutputFault::InvalidShape)),
        _ => CauseKind::Other,
    })
}

/// Turns the old part of a conversation into a summary.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot summarize",
    note = "implement `Summarizer`, or take one from the crate `epitome-summarizers`"
)]
pub trait Summarizer: Send + Sync {
    /// Summarizes.
    ///
    /// # Errors
    /// [`SummarizerError`] when there is no summary; nothing is lost then.
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError>;

    /// A stable name for reports.
    fn name(&self) -> &'static str;
}

/// A function is a summarizer: for tests, and for hosts that summarize by rules of their own.
#[async_trait]
impl<F> Summarizer for F
where
    F: Fn(&SummaryRequest) -> Result<SummaryDraft, SummarizerError> + Send + Sync,
{
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        self(&request)
    }

    fn name(&self) -> &'static str {
        "function"
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        HustleReason, HustleStage, RetryClass, RetryDecision, RetryPolicy, RetryQuestion, RunFailure,
        decide_retry, retry_class,
    };

    #[test]
    fn what_may_pass_and_what_can_be_put_right_is_asked_again() {
        let model = |kind| SummarizerError::Model(ModelCallErrorKind::into(kind));
        let invalid = |reason| SummarizerError::from(AnswerFault::Invalid(reason));
        for (error, class) in [
            (model(ModelCallErrorKind::Network), RetryClass::TransientInference),
            (model(ModelCallErrorKind::Status(503)), RetryClass::TransientInference),
            (model(ModelCallErrorKind::Status(401)), RetryClass::None),
            (model(ModelCallErrorKind::Timeout), RetryClass::None),
            (model(ModelCallErrorKind::Malformed), RetryClass::None),
            (model(ModelCallErrorKind::TooLarge { limit: 1 }), RetryClass::None),
            (model(ModelCallErrorKind::NoKey), RetryClass::None),
            (SummarizerError::from(AnswerFault::Refused), RetryClass::None),
            (SummarizerError::from(AnswerFault::CutOff), RetryClass::None),
            (SummarizerError::from(AnswerFault::ToolCall), RetryClass::RecoverableAnswer),
            (SummarizerError::from(AnswerFault::NoText), RetryClass::RecoverableAnswer),
            (invalid(InvalidSummaryReason::XmlRoot), RetryClass::RecoverableAnswer),
            (invalid(InvalidSummaryReason::ByteLimit), RetryClass::None),
            (SummarizerError::Unavailable, RetryClass::None),
        ] {
            assert_eq!(retry_class(Some(&error.cause())), class, "{error}");
        }
    }

    #[test]
    fn a_providers_wish_for_a_pause_is_kept() {
        let wait = Duration::from_secs(3);
        let error = ModelCallError { kind: ModelCallErrorKind::Status(429), retry_after: Some(wait) };
        let failure = RunFailure {
            stage: HustleStage::Inference,
            reason: HustleReason::Inference,
            cause: Some(SummarizerError::Model(error).cause()),
        };
        let decision = decide_retry(&RetryQuestion {
            policy: RetryPolicy::ClassifiedOnce,
            attempt: 0,
            ended: false,
            poisoned: false,
            failure: Some(&failure),
            time_left: Duration::from_secs(10),
        });
        assert_eq!(decision, RetryDecision::Again { class: RetryClass::TransientInference, after: wait });
    }
}
