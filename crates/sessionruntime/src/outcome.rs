//! What one compaction came to.

use epitome_loop::{
    CompactionInputError, ContextLimitUnknown, ContextMeasurement, CountError, InvalidSummary,
    InvalidSummaryReason, PressureLevel, RejectionReason, SharedText, SummarizerError, SummaryTooLarge,
    TokenCount, Usage,
};
use epitome_loopruntime::{ConversationSummary, HistoryError, Landing, TailCut, Unavailable};
use thiserror::Error;

use crate::journal::StableName;
use crate::summarizing::HustleRefusal;

/// What [`crate::compact_once`] came to. In every case but [`Outcome::Compacted`] the session is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The session was measured and needs no compaction.
    LeftAlone {
        /// The whole request.
        measurement: ContextMeasurement,
        /// How pressing it is.
        level: PressureLevel,
    },
    /// A summary was made and proven; the caller may put it in place of what it stands for.
    Compacted(Box<Compaction>),
    /// There is no acceptable summary.
    Refused(Box<Refusal>),
}

/// A proven compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The whole request before.
    pub before: ContextMeasurement,
    /// The whole request after.
    pub after: ContextMeasurement,
    /// Whether it landed below the level at which a further compaction may start.
    pub landing: Landing,
    /// Where the conversation was cut, in terms of its messages after the leading system ones.
    pub cut: TailCut,
    /// Indices into the session's messages of those that stay, ascending; system messages that still stand included.
    pub kept: Vec<usize>,
    /// Indices of those that stay because they are pinned, ascending; what pins need to be legal included.
    pub pinned: Vec<usize>,
    /// Indices into the session's messages of those that the summary replaces, ascending.
    pub replaced: Vec<usize>,
    /// The summary, as the strict parser accepted it.
    pub summary: ConversationSummary,
    /// Indices into the session's messages of system messages that a later one supersedes, ascending. They are
    /// among the replaced ones, and the summary says nothing of them.
    pub superseded: Vec<usize>,
    /// What the summary takes.
    pub summary_tokens: TokenCount,
    /// How many items of each section did not fit, in the order of [`epitome_loop::Section::ALL`].
    pub left_out: [u64; 5],
    /// How many characters were dropped because XML forbids them.
    pub dropped_characters: u64,
    /// What providers reported, when models were asked: for the summary, and for every answer before it that came to
    /// nothing.
    pub usage: Option<Usage>,
    /// What was repaired in a model's answer before the strict parser saw it, by name.
    pub repairs: Vec<StableName>,
    /// The user's rules that a model's answer lacked and that were put into the summary, word for word.
    pub carried: Vec<SharedText>,
    /// Why the fallback of the policy made the summary instead of its first choice: what that one was refused for.
    pub degraded: Option<StableName>,
}

/// A compaction that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("compaction refused: {reason}")]
pub struct Refusal {
    /// The whole request, when it could be counted.
    pub before: Option<ContextMeasurement>,
    /// Why.
    pub reason: RefusalReason,
    /// What providers reported for answers that came to nothing: they are paid for all the same.
    pub usage: Option<Usage>,
}

/// Why a compaction was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The room for input cannot be worked out.
    #[error("{0}")]
    ContextLimitUnknown(ContextLimitUnknown),
    /// The request could not be counted.
    #[error("the request could not be counted: {0}")]
    ContextCountFailed(CountFailure),
    /// There is nothing that could be summarized, or the transcript does not allow it.
    #[error("{0}")]
    Unavailable(Unavailable),
    /// The part to summarize is not a valid compaction input.
    #[error("{0}")]
    Input(CompactionInputError),
    /// The kept tail would not be legal for a provider.
    #[error("the kept tail is not a legal history: {0}")]
    TailInvalid(HistoryError),
    /// The tail and a summary of the largest size do not fit together.
    #[error(
        "the kept part takes {tail_tokens} tokens, which with a summary of up to {max_summary_tokens} does \
         not stay below {input_limit}"
    )]
    RetainedTailTooLarge {
        /// What the kept part of the request takes, system messages and tools included.
        tail_tokens: TokenCount,
        /// The summary's budget.
        max_summary_tokens: TokenCount,
        /// The room for input.
        input_limit: TokenCount,
    },
    /// The tail leaves no room for a summary in the bytes that a request may have.
    #[error(
        "the kept part takes {tail_bytes} bytes, which leaves no room for a summary in the {max_request_bytes} that \
         a request may have"
    )]
    RetainedTailOverBytes {
        /// What the kept part of the request takes, system messages and tools included.
        tail_bytes: u64,
        /// The policy's limit.
        max_request_bytes: u64,
    },
    /// A pinned message is not there, or stems from an earlier summary, whose place the new one takes.
    #[error("message {message} cannot be pinned: it is not there, or is an earlier summary")]
    PinInvalid {
        /// Its index.
        message: usize,
    },
    /// The pinned messages and a summary of the largest size do not fit together with the rest that must stay.
    #[error(
        "what is pinned takes {pinned_tokens} tokens, {over} too many: with a summary of up to \
         {max_summary_tokens} it does not stay below {input_limit}"
    )]
    PinnedTooLarge {
        /// What the pins take, what they need to be legal included.
        pinned_tokens: TokenCount,
        /// By how much it is too much.
        over: TokenCount,
        /// The summary's budget.
        max_summary_tokens: TokenCount,
        /// The room for input.
        input_limit: TokenCount,
    },
    /// The summarizer gave no summary.
    #[error("{0}")]
    ExecutionFailed(SummarizerError),
    /// The hustle that the policy names gave no summary, and neither did its fallback.
    #[error("{0}")]
    Hustle(HustleRefusal),
    /// The summary is not valid.
    #[error("{0}")]
    InvalidSummary(InvalidSummary),
    /// The compacted request does not fit or did not shrink.
    #[error("{0}")]
    SummaryTooLarge(SummaryTooLarge),
}

impl RefusalReason {
    /// The stable name of the reason.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.rejection().as_str()
    }

    /// The reason as records have it.
    #[must_use]
    pub fn rejection(&self) -> RejectionReason {
        match self {
            Self::ContextLimitUnknown(_) => RejectionReason::ContextLimitUnknown,
            Self::ContextCountFailed(_) => RejectionReason::ContextCountFailed,
            Self::Unavailable(_) | Self::Input(_) | Self::TailInvalid(_) | Self::PinInvalid { .. } => {
                RejectionReason::Unavailable
            }
            Self::RetainedTailTooLarge { .. }
            | Self::RetainedTailOverBytes { .. }
            | Self::PinnedTooLarge { .. } => RejectionReason::RetainedTailTooLarge,
            Self::ExecutionFailed(SummarizerError::Answer { fault, .. })
                if fault.invalid_summary().is_some() =>
            {
                RejectionReason::InvalidSummary
            }
            Self::ExecutionFailed(_) => RejectionReason::ExecutionFailed,
            Self::Hustle(refusal) => refusal.rejection(),
            Self::InvalidSummary(_) => RejectionReason::InvalidSummary,
            Self::SummaryTooLarge(_) => RejectionReason::SummaryTooLarge,
        }
    }

    /// The finer cause where one reason covers several.
    #[must_use]
    pub fn detail(&self) -> Option<&'static str> {
        match self {
            Self::Unavailable(Unavailable::NothingToCompact) => Some("nothing_to_compact"),
            Self::Unavailable(Unavailable::Tail(fault)) => Some(fault.as_str()),
            Self::Unavailable(Unavailable::Projection(_)) => Some("projection_invalid"),
            Self::ContextCountFailed(CountFailure::TimedOut) => Some(TIMED_OUT),
            Self::Input(_) => Some("input_invalid"),
            Self::TailInvalid(_) => Some("tail_invalid"),
            Self::PinInvalid { .. } => Some("pin_invalid"),
            Self::PinnedTooLarge { .. } => Some("pinned"),
            Self::RetainedTailOverBytes { .. } => Some("bytes"),
            Self::ExecutionFailed(SummarizerError::Answer { fault, .. }) => {
                fault.invalid_summary().map(InvalidSummaryReason::as_str)
            }
            Self::Hustle(refusal) => Some(refusal.detail()),
            Self::InvalidSummary(fault) => Some(fault.reason.as_str()),
            Self::SummaryTooLarge(fault) => Some(fault.detail.as_str()),
            _ => None,
        }
    }
}

/// The finer cause of what ran out of time.
pub(crate) const TIMED_OUT: &str = "timed_out";

/// A count that cannot be trusted or was not had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CountFailure {
    /// The counter failed.
    #[error("{0}")]
    Counter(CountError),
    /// The count took longer than the policy allows.
    #[error("the count took longer than the policy allows")]
    TimedOut,
    /// The counter panicked.
    #[error("the counter panicked")]
    Panicked,
    /// The count is for another model.
    #[error("the count is for another model")]
    OtherModel,
    /// The count has another quality than the counter declares.
    #[error("the count has another quality than the counter declares")]
    OtherQuality,
}
