//! The port through which every run leaves its record.

use async_trait::async_trait;
use epitome_loop::{
    AttemptId, Cause, HustleName, HustleReason, HustleRevision, HustleStage, RunFailure, Usage,
    reason_allowed,
};
use thiserror::Error;

use super::HustleFaultChange;

/// One record of a run. Nothing of its input or output is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleRecord {
    /// Which run.
    pub run: AttemptId,
    /// Which hustle.
    pub hustle: HustleName,
    /// The revision of the hustle's definition.
    pub revision: HustleRevision,
    /// What happened.
    pub event: HustleEvent,
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HustleEvent {
    /// The run left its lane and is about to be worked on. A run that never did has no such record.
    Started,
    /// The run has a valid outcome.
    Completed {
        /// How many tries it took: one or two.
        tries: u32,
        /// How many bytes the output has.
        output_bytes: u64,
        /// What providers reported for all tries, or else what the loop's estimator makes of the outcome.
        usage: Option<Usage>,
    },
    /// The run failed. With the stage `finalization` it follows the record that closed the run, and says that
    /// the outcome did not reach the host.
    Failed(FailedRun),
}

/// How a run failed, as its record says it: a pair that records may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedRun {
    stage: HustleStage,
    reason: HustleReason,
    tries: u32,
    diagnostic_bytes: u64,
    usage: Option<Usage>,
}

impl FailedRun {
    /// The record's form of a failure. A pair that no record may hold ([`reason_allowed`]) is a fault of our own.
    #[must_use]
    pub fn new(failure: &RunFailure, tries: u32, diagnostic_bytes: u64, usage: Option<Usage>) -> Self {
        let RunFailure { stage, reason, cause: _ } = *failure;
        let reason = if reason_allowed(stage, reason) { reason } else { HustleReason::Internal };
        Self { stage, reason, tries, diagnostic_bytes, usage }
    }

    /// Where it failed.
    #[must_use]
    pub fn stage(&self) -> HustleStage {
        self.stage
    }
    /// Why.
    #[must_use]
    pub fn reason(&self) -> HustleReason {
        self.reason
    }
    /// How many tries there were; zero when it was never worked on.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }
    /// How many bytes of diagnostics the worker left behind.
    #[must_use]
    pub fn diagnostic_bytes(&self) -> u64 {
        self.diagnostic_bytes
    }
    /// What providers reported for all tries: answers that come to nothing are paid for too.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }
}

/// A record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the record of a hustle was not written")]
pub struct AuditFailed;

/// Keeps the records of runs.
///
/// Each call has the time that the limits of the lanes give it (`audit_timeout`), and may panic: a run whose
/// start or whose outcome cannot be recorded fails, and is finalized all the same.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot keep the records of hustles",
    note = "implement `HustleAudit`"
)]
pub trait HustleAudit: Send + Sync {
    /// Writes one record; it is durable on return.
    ///
    /// # Errors
    /// [`AuditFailed`] when it is certain that it was not written.
    async fn record(&self, record: HustleRecord) -> Result<(), AuditFailed>;

    /// A worker is at work behind the end of its run and poisons the controller, or has come back: told once each, in
    /// this order. It is nothing that a run's records hold, because the run is over by then. Must not wait.
    fn fault_changed(&self, _change: HustleFaultChange) {}
}

/// A failure without more words for it.
pub(super) fn failure(stage: HustleStage, reason: HustleReason, cause: impl Into<Cause>) -> RunFailure {
    RunFailure { stage, reason, cause: Some(cause.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::CauseKind;

    #[test]
    fn a_pair_that_no_record_may_hold_is_a_fault_of_our_own() {
        for stage in HustleStage::ALL {
            for reason in HustleReason::ALL {
                let record = FailedRun::new(&failure(stage, reason, CauseKind::Other), 1, 7, None);
                assert!(reason_allowed(record.stage(), record.reason()));
                let kept = reason_allowed(stage, reason);
                assert_eq!(record.reason() == reason, kept || reason == HustleReason::Internal);
                assert_eq!((record.stage(), record.tries(), record.diagnostic_bytes()), (stage, 1, 7));
            }
        }
    }
}
