//! The way to a loop that runs.

use epitome_loop::{AttemptId, CommandId, ContextMeasurement, Trigger};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::decision::{Boundary, Change, Decision, Input, Refused, Reply, Waiter};

/// The loop has ended, and nothing reaches it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the loop has ended")]
pub struct DriverClosed;

/// What is sent to a loop. Small, since a channel keeps room for some of them.
pub(super) enum Message {
    /// A command, and who waits for its answer.
    Command(Box<Input>, CommandId, oneshot::Sender<Reply>),
    /// A change, and who waits until it is durable.
    Change(Change, oneshot::Sender<Result<(), Refused>>),
    /// Something that nobody waits for.
    Signal(Box<Input>),
    /// How the newest requests were decided about.
    Trace(oneshot::Sender<Vec<Decision>>),
}

/// Reaches a loop that runs. Cheap to clone; the loop shuts down when the last one is dropped.
///
/// Every method may be dropped while it waits: what was asked for happens all the same, or does not, and the loop goes
/// on.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) signals: mpsc::UnboundedSender<Message>,
}

impl LoopHandle {
    /// Asks for leave to send a request of this size.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn admit(
        &self,
        waiter: Waiter,
        attempt: AttemptId,
        measurement: ContextMeasurement,
        is_over_bytes: bool,
    ) -> Result<Reply, DriverClosed> {
        self.command(waiter.command, Input::Admit { waiter, attempt, measurement, is_over_bytes }).await
    }

    /// Asks for a compaction. It begins at the next boundary.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn compact(&self, waiter: Waiter, attempt: AttemptId) -> Result<Reply, DriverClosed> {
        self.command(waiter.command, Input::Compact { waiter, attempt }).await
    }

    /// Changes the conversation, and waits until that is durable. It may wait for an attempt to end.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended, before or while the change waited.
    pub async fn change(&self, change: Change) -> Result<Result<(), Refused>, DriverClosed> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(Message::Change(change, answer)).await.map_err(|_| DriverClosed)?;
        answered.await.map_err(|_| DriverClosed)
    }

    /// The agent is between two steps or turns. It is heard behind the commands that were given before.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn boundary(&self, boundary: Boundary) -> Result<(), DriverClosed> {
        self.inbox.send(Message::Signal(Box::new(Input::Boundary(boundary)))).await.map_err(|_| DriverClosed)
    }

    /// Interrupts the attempt that waits or runs, unless its commit is being written.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub fn interrupt(&self) -> Result<(), DriverClosed> {
        self.signal(Input::Interrupt)
    }

    /// The model, its limits or the policy are others from now on.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub fn settings_changed(&self, trigger: Trigger) -> Result<(), DriverClosed> {
        self.signal(Input::SettingsChanged(trigger))
    }

    /// Ends the loop, once what runs is written down as rejected or committed.
    ///
    /// # Errors
    /// [`DriverClosed`] when it has ended already.
    pub fn shut_down(&self) -> Result<(), DriverClosed> {
        self.signal(Input::ShutDown)
    }

    /// How the newest requests were decided about, oldest first.
    ///
    /// # Errors
    /// [`DriverClosed`] when the loop has ended.
    pub async fn decision_trace(&self) -> Result<Vec<Decision>, DriverClosed> {
        let (answer, answered) = oneshot::channel();
        self.signals.send(Message::Trace(answer)).map_err(|_| DriverClosed)?;
        answered.await.map_err(|_| DriverClosed)
    }

    async fn command(&self, command: CommandId, input: Input) -> Result<Reply, DriverClosed> {
        let (answer, answered) = oneshot::channel();
        self.inbox
            .send(Message::Command(Box::new(input), command, answer))
            .await
            .map_err(|_| DriverClosed)?;
        answered.await.map_err(|_| DriverClosed)
    }

    fn signal(&self, input: Input) -> Result<(), DriverClosed> {
        self.signals.send(Message::Signal(Box::new(input))).map_err(|_| DriverClosed)
    }
}
