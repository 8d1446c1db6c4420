//! What came of an attempt, in numbers.

use epitome_loop::{
    AttemptId, ContextBasis, ContextMeasurement, RejectionReason, SharedText, TokenCount, Usage,
};
use epitome_loopruntime::Landing;

use crate::journal::StableName;

/// A compaction that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionReport {
    /// The attempt.
    pub attempt: AttemptId,
    /// The context from then on.
    pub basis: ContextBasis,
    /// The whole request before.
    pub before: ContextMeasurement,
    /// The whole request after, in the context from then on.
    pub after: ContextMeasurement,
    /// Whether it landed low enough for another attempt to be worth it.
    pub landing: Landing,
    /// How many messages the summary took the place of.
    pub replaced: u64,
    /// How many messages stay as they are.
    pub kept: u64,
    /// What the summary takes.
    pub summary_tokens: TokenCount,
    /// How many items of each section did not fit, in the order of [`epitome_loop::Section::ALL`].
    pub left_out: [u64; 5],
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

/// An attempt that was refused. The context is what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectionReport {
    /// The attempt.
    pub attempt: AttemptId,
    /// Why.
    pub reason: RejectionReason,
    /// The finer cause, where one reason covers several.
    pub detail: Option<StableName>,
    /// What providers reported for answers that came to nothing: they are paid for all the same.
    pub usage: Option<Usage>,
}

/// What the newest attempt came to.
#[derive(Clone, Debug)]
pub(super) enum AttemptReport {
    Committed(Box<CompactionReport>),
    Rejected(RejectionReport),
}

impl AttemptReport {
    pub(super) fn attempt(&self) -> AttemptId {
        match self {
            Self::Committed(report) => report.attempt,
            Self::Rejected(report) => report.attempt,
        }
    }
}
