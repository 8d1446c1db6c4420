//! What a driver needs from the layer that owns bytes.

use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{AttemptId, CommandId, ContextBasis, RejectionReason, Timestamp};
use thiserror::Error;

use crate::decision::{Change, Decision, Record, Refused, Replacement, Reply};

/// A record could not be made durable, or it is not known whether it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record could not be made durable")]
pub struct RecordFailed;

/// Does what a loop has decided.
///
/// Each call may be dropped before it is done, when it took too long or its attempt was canceled; whatever it has done
/// by then must be harmless. A panic in it counts as a failure.
#[async_trait]
pub trait LoopAdapter: Send + Sync + 'static {
    /// What time it is. Should it go back, waits that were measured by it begin anew.
    fn now(&self) -> Timestamp;

    /// How long the attempt that begins now may take; `None` for what the driver's settings say.
    fn attempt_timeout(&self) -> Option<Duration> {
        None
    }

    /// Writes records down, in this order. They are durable when it returns.
    ///
    /// # Errors
    /// [`RecordFailed`] when they are not, or when that is not known: the loop halts.
    async fn record(&self, records: Vec<Record>) -> Result<(), RecordFailed>;

    /// Summarizes what an attempt replaces, and proves the summary.
    ///
    /// # Errors
    /// The reason for which there is none.
    async fn summarize(&self, attempt: AttemptId, basis: ContextBasis) -> Result<(), RejectionReason>;

    /// Counts the complete request before and after the attempt.
    ///
    /// # Errors
    /// The reason for which it cannot be counted.
    async fn count(&self, attempt: AttemptId) -> Result<Replacement, RejectionReason>;

    /// Puts the outcome of an attempt in the place of the context. Its commit is durable.
    fn apply(&self, attempt: AttemptId, basis: ContextBasis);

    /// An attempt is over: what was kept for it may go.
    fn forget(&self, attempt: AttemptId);

    /// Says how a request was decided about. Nothing waits for it.
    fn decided(&self, decision: Decision) {
        let _nobody_listens = decision;
    }

    /// A command is about to be answered. Called once for each that the loop has heard, also when nobody waits for the
    /// answer any more; a command that was given again while it waited is answered as often as it was given.
    fn answered(&self, command: CommandId, reply: &Reply) {
        let _nobody_listens = (command, reply);
    }

    /// A change is about to be refused. Of each change that the loop has heard, this is called once or its record
    /// became durable. After [`Refused::Halted`] that is not known.
    fn refused(&self, change: &Change, why: Refused) {
        let _nobody_listens = (change, why);
    }
}
