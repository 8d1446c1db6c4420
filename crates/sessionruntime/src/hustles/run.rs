//! One run, from admission to finalization.

use std::sync::Arc;

use epitome_loop::{
    AttemptId, CauseKind, HustleDefinition, HustleName, HustleReason, HustleStage, Participation, RunFailure,
    Usage,
};
use tokio::sync::{oneshot, watch};

use super::admission::PreparedInput;
use super::contained::{Uncontained, contained};
use super::controller::{Place, RunEnd, want_end};
use super::execution::Execution;
use super::judging::{output_bytes, usage_of};
use super::record::failure;
use super::{
    FailedRun, HustleEvent, HustleFinalizer, HustleOutcome, HustleRecord, HustleValidator, HustleValue,
    HustleWorker, StopStyle,
};

/// A run that was admitted, as seen by whoever asked for it.
///
/// Dropping it cancels a blocking run, for which nobody waits then; a background run goes on.
#[derive(Debug)]
pub struct HustleRun {
    run: AttemptId,
    hustle: HustleName,
    participation: Participation,
    outcome: oneshot::Receiver<HustleOutcome>,
    end: watch::Sender<RunEnd>,
}

impl HustleRun {
    pub(super) fn new(
        run: AttemptId,
        hustle: HustleName,
        participation: Participation,
        outcome: oneshot::Receiver<HustleOutcome>,
        end: watch::Sender<RunEnd>,
    ) -> Self {
        Self { run, hustle, participation, outcome, end }
    }

    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> AttemptId {
        self.run
    }

    /// Cancels the run. It still ends as every run does: with a record, its finalizer, and an outcome.
    pub fn cancel(&self) {
        want_end(&self.end, RunEnd::Canceled);
    }

    /// Waits for the outcome. It is there after the finalizer has had it. Dropping this future is dropping the
    /// run.
    pub async fn outcome(mut self) -> HustleOutcome {
        match (&mut self.outcome).await {
            Ok(outcome) => outcome,
            // Only the end of the runtime takes a run away from its task.
            Err(_) => HustleOutcome {
                run: self.run,
                hustle: self.hustle.clone(),
                tries: 0,
                spent: None,
                result: Err(failure(HustleStage::Finalization, HustleReason::Internal, CauseKind::Other)),
            },
        }
    }
}

impl Drop for HustleRun {
    fn drop(&mut self) {
        if self.participation == Participation::Blocking {
            self.cancel();
        }
    }
}

/// Everything that belongs to an admitted run.
pub(super) struct OwnedRun {
    pub(super) place: Place,
    pub(super) run: AttemptId,
    pub(super) definition: Arc<HustleDefinition>,
    pub(super) worker: Arc<dyn HustleWorker>,
    pub(super) stop: StopStyle,
    pub(super) input: PreparedInput,
    pub(super) validator: Option<Arc<dyn HustleValidator>>,
    pub(super) wanted_end: watch::Receiver<RunEnd>,
}

/// How working on a run ended, before the outcome is recorded and handed over.
pub(super) struct Worked {
    pub(super) result: Result<HustleValue, RunFailure>,
    pub(super) tries: u32,
    pub(super) diagnostic_bytes: u64,
    /// What all tries are known to have cost.
    pub(super) spent: Option<Usage>,
}

impl Worked {
    fn never(failure: RunFailure) -> Self {
        Self { result: Err(failure), tries: 0, diagnostic_bytes: 0, spent: None }
    }

    /// A failure of the run, as its record says it.
    fn failed(&self, failure: &RunFailure) -> FailedRun {
        FailedRun::new(failure, self.tries, self.diagnostic_bytes, self.spent)
    }
}

/// Takes a run through all its stations. Each of them is bounded in time, and nothing that the host brought can
/// make this task panic.
pub(super) async fn supervise(
    mut run: OwnedRun,
    turn: oneshot::Receiver<()>,
    finalizer: Box<dyn HustleFinalizer>,
    report: oneshot::Sender<HustleOutcome>,
) {
    let worked = match run.wait_for_turn(turn).await {
        Err(failure) => Worked::never(failure),
        Ok(()) => match run.record(HustleEvent::Started, HustleStage::Queue).await {
            Err(unwritten) => Worked::never(unwritten.failure),
            Ok(()) => run.work().await,
        },
    };
    let result = run.record_end(&worked).await;
    let mut outcome = HustleOutcome {
        run: run.run,
        hustle: run.definition.name().clone(),
        tries: worked.tries,
        spent: worked.spent,
        result,
    };
    if let Err(failure) = run.hand_over(finalizer, outcome.clone()).await {
        let failed = HustleEvent::Failed(worked.failed(&failure));
        // Nothing more can be done if this record is not written either.
        let _ = run.record(failed, HustleStage::Finalization).await;
        // An earlier failure says more than that nobody could be told of it.
        outcome.result = outcome.result.and(Err(failure));
    }
    // The place is free before anybody hears of the outcome, so that who hears of it can ask for the next run.
    drop(run);
    // Nobody may be listening.
    let _ = report.send(outcome);
}

/// A record that was not written.
struct Unwritten {
    failure: RunFailure,
    /// Whether it is certain that it was not.
    is_certain: bool,
}

impl OwnedRun {
    async fn wait_for_turn(&mut self, turn: oneshot::Receiver<()>) -> Result<(), RunFailure> {
        tokio::select! {
            biased;
            end = self.wanted_end.wait_for(|end| *end != RunEnd::None) => Err(match end.as_deref() {
                Ok(RunEnd::NotStarted) => failure(HustleStage::Queue, HustleReason::Rejected, CauseKind::Other),
                _ => failure(HustleStage::Queue, HustleReason::Canceled, CauseKind::Canceled),
            }),
            // The signal stays in the lane for as long as this run has its place there.
            _ = turn => Ok(()),
        }
    }

    async fn work(&mut self) -> Worked {
        let execution = Execution {
            shared: &self.place.shared,
            run: self.run,
            definition: &self.definition,
            worker: &self.worker,
            stop: self.stop,
            input: &self.input,
            validator: self.validator.as_deref(),
            wanted_end: &mut self.wanted_end,
        };
        execution.work().await
    }

    /// Closes the run with a record. A completed run whose record cannot be written has failed; if it is certain
    /// that it was not written, the failure is recorded instead, so that there are never two closing records.
    async fn record_end(&self, worked: &Worked) -> Result<HustleValue, RunFailure> {
        let Worked { result, tries, spent, .. } = worked;
        let failed = |failure: &RunFailure| HustleEvent::Failed(worked.failed(failure));
        match result {
            Ok(value) => {
                let completed = HustleEvent::Completed {
                    tries: *tries,
                    output_bytes: output_bytes(value),
                    usage: spent.or_else(|| usage_of(value)),
                };
                let Err(unwritten) = self.record(completed, HustleStage::Terminal).await else {
                    return Ok(value.clone());
                };
                if unwritten.is_certain {
                    // If that fails as well, the outcome says so anyway.
                    let _ = self.record(failed(&unwritten.failure), HustleStage::Terminal).await;
                }
                Err(unwritten.failure)
            }
            Err(failure) => {
                // A run that failed stays failed for its first reason, whether that is recorded or not.
                let _ = self.record(failed(failure), HustleStage::Terminal).await;
                Err(failure.clone())
            }
        }
    }

    /// Writes a record, within its time.
    async fn record(&self, event: HustleEvent, stage: HustleStage) -> Result<(), Unwritten> {
        let record = HustleRecord {
            run: self.run,
            hustle: self.definition.name().clone(),
            revision: self.definition.policy_revision(),
            event,
        };
        let shared = &self.place.shared;
        let audit = shared.audit.clone();
        let written =
            contained(shared.limits.audit_timeout(), async move { audit.record(record).await }).await;
        let (reason, cause, is_certain) = match written {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) if stage == HustleStage::Terminal => (HustleReason::Terminal, CauseKind::Other, true),
            Ok(Err(_)) => (HustleReason::Internal, CauseKind::Other, true),
            Err(Uncontained::Panicked) => (HustleReason::Internal, CauseKind::Other, false),
            Err(Uncontained::TimedOut) => (HustleReason::Timeout, CauseKind::Deadline, false),
        };
        Err(Unwritten { failure: failure(stage, reason, cause), is_certain })
    }

    /// Calls the finalizer: the only place that does.
    async fn hand_over(
        &self,
        finalizer: Box<dyn HustleFinalizer>,
        outcome: HustleOutcome,
    ) -> Result<(), RunFailure> {
        let limit = self.place.shared.limits.finalization_timeout();
        let (reason, cause) = match contained(limit, async move { finalizer.finalize(outcome).await }).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => (HustleReason::Finalization, CauseKind::Other),
            Err(Uncontained::Panicked) => (HustleReason::Internal, CauseKind::Other),
            Err(Uncontained::TimedOut) => (HustleReason::Timeout, CauseKind::Deadline),
        };
        Err(failure(HustleStage::Finalization, reason, cause))
    }
}
