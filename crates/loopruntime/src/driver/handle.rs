//! The way to a loop that runs.

use std::fmt;

use epitome_loop::{AttemptId, BasisPoints, ContextMeasurement, Trigger};
use thiserror::Error;
use tokio::sync::oneshot;

use super::inbox::{Inbox, Signal};
use super::place::{Answer, Place};
use crate::decision::{Boundary, Change, Decision, Refused, Reply, Waiter};

/// The loop has ended, and nothing reaches it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the loop has ended")]
pub struct DriverClosed;

/// Reaches a loop that runs. Cheap to clone; the loop shuts down when the last one is dropped.
///
/// Every method may be dropped while it waits: what was asked for happens all the same, or does not, and the loop goes
/// on.
#[derive(Clone)]
pub struct LoopHandle {
    pub(super) inbox: Inbox,
}

impl fmt::Debug for LoopHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoopHandle").finish_non_exhaustive()
    }
}

impl LoopHandle {
    /// Waits for a place in the inbox, from which one can send without waiting. May be dropped while it waits: then
    /// nothing was asked for.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn place(&self) -> Result<Place<'_>, DriverClosed> {
        Place::reserve(&self.inbox).await
    }

    /// Asks for leave to send a request of this size.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn admit(
        &self,
        waiter: Waiter,
        attempt: AttemptId,
        measurement: ContextMeasurement,
        byte_occupancy: BasisPoints,
    ) -> Result<Reply, DriverClosed> {
        self.place().await?.admit(waiter, attempt, measurement, byte_occupancy).await
    }

    /// Asks for a compaction. It begins at the next boundary.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn compact(&self, waiter: Waiter, attempt: AttemptId) -> Result<Reply, DriverClosed> {
        self.place().await?.compact(waiter, attempt).await
    }

    /// Changes the conversation, and waits until that is durable. It may wait for an attempt to end.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended, before or while the change waited.
    pub async fn change(&self, change: Change) -> Result<Result<(), Refused>, DriverClosed> {
        self.place().await?.change(change).await
    }

    /// The agent is between two steps or turns. It is heard behind the commands that were given before.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn boundary(&self, boundary: Boundary) -> Result<(), DriverClosed> {
        self.place().await?.boundary(boundary)
    }

    /// Interrupts the attempt that waits or runs, unless its commit is being written.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub fn interrupt(&self) -> Result<(), DriverClosed> {
        self.inbox.signal(Signal::Interrupt)
    }

    /// The model, its limits or the policy are others from now on.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub fn settings_changed(&self, trigger: Trigger) -> Result<(), DriverClosed> {
        self.inbox.signal(Signal::SettingsChanged(trigger))
    }

    /// Ends the loop, once what runs is written down as rejected or committed.
    ///
    /// # Errors
    /// [`DriverClosed`] when it has ended already.
    pub fn shut_down(&self) -> Result<(), DriverClosed> {
        self.inbox.signal(Signal::ShutDown)
    }

    /// How the newest requests were decided about, oldest first.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn decision_trace(&self) -> Result<Vec<Decision>, DriverClosed> {
        let (answer, answered) = oneshot::channel();
        self.inbox.signal(Signal::Trace(answer))?;
        Answer::to(answered).await
    }
}
