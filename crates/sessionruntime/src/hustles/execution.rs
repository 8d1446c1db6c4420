//! Working on a run: one try or two under the hustle's timeout, and what the answers are worth.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{
    AttemptId, Cause, CauseKind, HustleDefinition, HustleReason, HustleStage, RetryDecision, RetryQuestion,
    RunFailure, Usage, decide_retry, retry_correction,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::admission::PreparedInput;
use super::contained::{AbortOnDrop, contained_call, forget_panic};
use super::controller::{HustleFault, RunEnd, Shared};
use super::judging::judge;
use super::record::failure;
use super::run::Worked;
use super::{
    EndSignal, HustleValidator, HustleValue, HustleWorker, StopStyle, WorkAnswer, WorkFailure, WorkOrder,
};

/// A run that is being worked on.
pub(super) struct Execution<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) run: AttemptId,
    pub(super) definition: &'a HustleDefinition,
    pub(super) worker: &'a Arc<dyn HustleWorker>,
    pub(super) stop: StopStyle,
    pub(super) input: &'a PreparedInput,
    pub(super) validator: Option<&'a dyn HustleValidator>,
    pub(super) wanted_end: &'a mut watch::Receiver<RunEnd>,
}

/// How a try ended.
enum TryEnd {
    Answered(WorkAnswer),
    Failed(WorkFailure),
    Panicked,
    /// Somebody canceled, or the time is over.
    Ended(RunFailure),
}

impl Execution<'_> {
    pub(super) async fn work(mut self) -> Worked {
        let begin = Instant::now();
        // A timeout beyond the end of the clock's range is none.
        let deadline = begin.checked_add(self.definition.timeout());
        let mut correction = None;
        let mut diagnostic_bytes = 0_u64;
        let mut spent = None;
        let mut tries = 0;
        loop {
            let end = self.one_try(deadline, correction).await;
            let attempt = tries;
            tries += 1;
            let ended = matches!(end, TryEnd::Ended(_));
            let result = match end {
                TryEnd::Answered(answer) => {
                    spent = together(spent, answer.spent.or(answer.usage));
                    self.judge(answer)
                }
                TryEnd::Failed(failed) => {
                    spent = together(spent, failed.spent);
                    diagnostic_bytes = diagnostic_bytes.saturating_add(failed.diagnostic_bytes);
                    Err(failed_run(failed))
                }
                TryEnd::Panicked => {
                    Err(failure(HustleStage::Inference, HustleReason::Internal, CauseKind::Other))
                }
                TryEnd::Ended(failure) => Err(failure),
            };
            let time_left =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            let decision = decide_retry(&RetryQuestion {
                policy: self.definition.retry(),
                attempt,
                ended: ended || self.is_canceled(),
                poisoned: self.shared.is_poisoned(),
                failure: result.as_ref().err(),
                time_left,
            });
            let RetryDecision::Again { after, .. } = decision else {
                return Worked { result, tries, diagnostic_bytes, spent };
            };
            let refused =
                result.err().and_then(|failure| failure.cause).and_then(|cause| cause.invalid_summary());
            correction = refused.and_then(retry_correction);
            if let Err(failure) = self.wait(after).await {
                return Worked { result: Err(failure), tries, diagnostic_bytes, spent };
            }
        }
    }

    /// One try, in a task of its own.
    async fn one_try(&mut self, deadline: Option<Instant>, correction: Option<&'static str>) -> TryEnd {
        let (end, signal) = EndSignal::new();
        let order = WorkOrder {
            input: self.input.work.clone(),
            instructions: self.input.instructions.clone(),
            correction,
            output_bytes: self.definition.limits().output,
            end: signal,
        };
        let worker = self.worker.clone();
        let mut task = AbortOnDrop(tokio::spawn(async move { worker.work(order).await }));
        let out_of_time = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let (reason, cause) = tokio::select! {
            biased;
            joined = &mut task.0 => return match joined {
                Ok(Ok(answer)) => TryEnd::Answered(answer),
                Ok(Err(failed)) => TryEnd::Failed(failed),
                Err(error) => {
                    forget_panic(error);
                    TryEnd::Panicked
                }
            },
            () = canceled(self.wanted_end) => (HustleReason::Canceled, CauseKind::Canceled),
            () = out_of_time => (HustleReason::Timeout, CauseKind::Deadline),
        };
        // A receiver that is gone needs no signal.
        let _ = end.send(true);
        if self.stop == StopStyle::Dropped {
            task.0.abort();
        }
        match timeout(self.shared.limits.worker_drain_timeout(), &mut task.0).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => forget_panic(error),
            Err(_) => self.shared.poison(self.run, HustleFault::WorkerIgnoredTheEnd, task),
        }
        TryEnd::Ended(failure(HustleStage::Inference, reason, cause))
    }

    /// What an answer is worth. Up to here a run can be canceled; what is judged good after that stays good.
    fn judge(&self, answer: WorkAnswer) -> Result<HustleValue, RunFailure> {
        let refused = |cause: Cause| RunFailure {
            stage: HustleStage::Output,
            reason: HustleReason::InvalidOutput,
            cause: Some(cause),
        };
        let judged = contained_call(|| {
            let value = judge(self.definition, self.input.task.as_deref(), answer)?;
            match self.validator {
                Some(validator) => validator.validate(&value).map(|()| value),
                None => Ok(value),
            }
        });
        let value = match judged {
            Some(judged) => judged.map_err(refused)?,
            None => return Err(failure(HustleStage::Output, HustleReason::Internal, CauseKind::Other)),
        };
        if self.is_canceled() {
            return Err(failure(HustleStage::Output, HustleReason::Canceled, CauseKind::Canceled));
        }
        Ok(value)
    }

    /// Waits before a second try. The wait was checked against the time left, so only a cancellation ends it.
    async fn wait(&mut self, after: Duration) -> Result<(), RunFailure> {
        tokio::select! {
            biased;
            () = canceled(self.wanted_end) => {
                Err(failure(HustleStage::Inference, HustleReason::Canceled, CauseKind::Canceled))
            }
            () = sleep(after) => Ok(()),
        }
    }

    fn is_canceled(&self) -> bool {
        *self.wanted_end.borrow() == RunEnd::Canceled
    }
}

/// Returns when the run is canceled. A controller that is poisoned lets go on what runs.
async fn canceled(wanted_end: &mut watch::Receiver<RunEnd>) {
    // The sender is with the controller for as long as the run is owned; without it the run is over.
    let _ = wanted_end.wait_for(|end| *end == RunEnd::Canceled).await;
}

/// What two things cost together, as far as it is known.
pub(crate) fn together(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    if one.is_none() { other } else { Some(one.into_iter().chain(other).sum()) }
}

fn failed_run(failed: WorkFailure) -> RunFailure {
    let WorkFailure { stage, cause, diagnostic_bytes: _, spent: _ } = failed;
    RunFailure { stage: stage.stage(), reason: stage.reason(), cause: Some(cause) }
}
