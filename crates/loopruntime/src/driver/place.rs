//! A place in the inbox of a loop, and the answer to what was put there.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use epitome_loop::{AttemptId, BasisPoints, CommandId, ContextMeasurement};
use tokio::sync::{SemaphorePermit, oneshot};

use super::handle::DriverClosed;
use super::inbox::{Inbox, Message};
use crate::decision::{Boundary, Change, Input, Refused, Reply, Waiter};

/// A place in the inbox of a loop. Whoever has one sends without waiting, so that what goes with a command can be put
/// beside the loop in the same step. Dropped, it is free again; others wait for it meanwhile.
///
/// When the loop ends in between, what is sent is not heard, and its answer is [`DriverClosed`].
pub struct Place<'a> {
    inbox: &'a Inbox,
    permit: SemaphorePermit<'a>,
    is_boundary: bool,
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Place").finish_non_exhaustive()
    }
}

/// The answer to something that was sent. It may be dropped: what was sent happens all the same.
///
/// It is [`DriverClosed`] when the loop had ended before it heard of it.
#[derive(Debug)]
#[must_use = "the answer says whether it happened"]
pub struct Answer<T>(oneshot::Receiver<T>);

impl<'a> Place<'a> {
    /// Waits for a place.
    pub(super) async fn reserve(inbox: &'a Inbox) -> Result<Self, DriverClosed> {
        Ok(Self { inbox, permit: inbox.place().await?, is_boundary: false })
    }

    /// What is sent from here is heard at a boundary: an attempt that waits for one begins right behind it.
    #[must_use]
    pub fn at_boundary(self) -> Self {
        Self { is_boundary: true, ..self }
    }

    pub(super) fn boundary(self, boundary: Boundary) -> Result<(), DriverClosed> {
        self.inbox.send(self.permit, Message::Boundary(boundary))
    }

    /// Changes the conversation; answered when that is durable. It may wait for an attempt to end.
    pub fn change(self, change: Change) -> Answer<Result<(), Refused>> {
        self.send(|answer| Message::Change(change, answer))
    }

    /// Asks for a compaction. It begins at the next boundary.
    pub fn compact(self, waiter: Waiter, attempt: AttemptId) -> Answer<Reply> {
        self.command(waiter.command, Input::Compact { waiter, attempt })
    }

    /// Asks for leave to send a request of this size.
    pub fn admit(
        self,
        waiter: Waiter,
        attempt: AttemptId,
        measurement: ContextMeasurement,
        byte_occupancy: BasisPoints,
    ) -> Answer<Reply> {
        self.command(waiter.command, Input::Admit { waiter, attempt, measurement, byte_occupancy })
    }

    fn command(self, command: CommandId, input: Input) -> Answer<Reply> {
        self.send(|answer| Message::Command(Box::new(input), command, answer))
    }

    fn send<T>(self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Answer<T> {
        let (answer, answered) = oneshot::channel();
        let message = message(answer);
        let message = if self.is_boundary { Message::AtBoundary(Box::new(message)) } else { message };
        // What is not heard is dropped, and whoever waits is told so by that.
        let _closed = self.inbox.send(self.permit, message);
        Answer(answered)
    }
}

impl<T> Answer<T> {
    pub(super) fn to(answered: oneshot::Receiver<T>) -> Self {
        Self(answered)
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, DriverClosed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map_err(|_| DriverClosed)
    }
}
