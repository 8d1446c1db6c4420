//! How a run ends: its outcome, and the port that hands it over exactly once.

use async_trait::async_trait;
use epitome_loop::{AttemptId, HustleName, RunFailure, SharedBytes, SharedText, Usage};
use thiserror::Error;

use crate::ProvenSummary;

/// What a run came to. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleOutcome {
    /// Which run.
    pub run: AttemptId,
    /// Which hustle.
    pub hustle: HustleName,
    /// How many times the worker was asked: zero, one or two.
    pub tries: u32,
    /// What providers reported for all tries, those that came to nothing included.
    pub spent: Option<Usage>,
    /// The outcome.
    pub result: Result<HustleValue, RunFailure>,
}

/// What a run produced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HustleValue {
    /// A summary that keeps its terms, bound to the input it was made for.
    Summary(Box<HustleSummary>),
    /// The output of a host's own hustle.
    Bytes(SharedBytes),
}

/// A proven summary, with what its making is known to have cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleSummary {
    /// The summary.
    pub proven: ProvenSummary,
    /// What the provider reported, or what the loop's estimator makes of the summary when it reported nothing.
    pub usage: Usage,
    /// Whether the usage is the estimator's.
    pub is_estimated: bool,
    /// How many items of each section did not fit, when the worker knew.
    pub left_out: [u64; 5],
    /// What was repaired in a model's answer, by stable names.
    pub repairs: Vec<&'static str>,
    /// The user's rules that a model's answer lacked and that were put into the summary, word for word.
    pub carried: Vec<SharedText>,
}

/// An outcome could not be handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the outcome of a hustle could not be handed over")]
pub struct FinalizationFailed;

/// Takes the outcome of one run.
///
/// It is used up by the call, so there can be no second one, and every run that was admitted makes the first:
/// on success, failure, cancellation, timeout, close and panic alike. It has the time that the limits of the
/// lanes give it (`finalization_timeout`), and may panic.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take the outcome of a hustle",
    note = "implement `HustleFinalizer`"
)]
pub trait HustleFinalizer: Send {
    /// Takes the outcome.
    ///
    /// # Errors
    /// [`FinalizationFailed`]; the run then counts as failed.
    async fn finalize(self: Box<Self>, outcome: HustleOutcome) -> Result<(), FinalizationFailed>;
}

/// A function takes an outcome: for hosts that only send it on.
#[async_trait]
impl<F: FnOnce(HustleOutcome) -> Result<(), FinalizationFailed> + Send> HustleFinalizer for F {
    async fn finalize(self: Box<Self>, outcome: HustleOutcome) -> Result<(), FinalizationFailed> {
        self(outcome)
    }
}
