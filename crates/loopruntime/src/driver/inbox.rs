//! The inbox of a loop: signals, which are heard before anything else, and messages, for which there are so many places.
//! It takes no space while it is empty.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use epitome_loop::{CommandId, Trigger};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::task::coop::cooperative;

use super::handle::DriverClosed;
use crate::decision::{Boundary, Change, Decision, Input, Refused, Reply};

/// Something that does not wait behind the commands.
pub(super) enum Signal {
    Interrupt,
    ShutDown,
    SettingsChanged(Trigger),
    /// Somebody asks how the newest requests were decided about.
    Trace(oneshot::Sender<Vec<Decision>>),
}

/// What is heard in the order in which it was sent.
pub(super) enum Message {
    /// A command, and who waits for its answer.
    Command(Box<Input>, CommandId, oneshot::Sender<Reply>),
    /// A change, and who waits until it is durable.
    Change(Change, oneshot::Sender<Result<(), Refused>>),
    /// The agent is between two steps or turns. Nobody waits.
    Boundary(Boundary),
    /// This, and a boundary right behind it.
    AtBoundary(Box<Message>),
}

/// The end at which things go in. When the last one is gone, the loop learns of it.
pub(super) struct Inbox(Arc<Shared>);

/// The end at which they come out. When it is gone, nothing goes in any more.
pub(super) struct Ear(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// Those places of the inbox that are free.
    places: Semaphore,
}

struct Queue {
    signals: VecDeque<Signal>,
    messages: VecDeque<Message>,
    listener: Option<Waker>,
    inboxes: usize,
    is_closed: bool,
}

/// Both ends of a new inbox, with room for so many messages.
pub(super) fn inbox(places: usize) -> (Inbox, Ear) {
    let queue = Queue {
        signals: VecDeque::new(),
        messages: VecDeque::new(),
        listener: None,
        inboxes: 1,
        is_closed: false,
    };
    let places = Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS));
    let shared = Arc::new(Shared { queue: Mutex::new(queue), places });
    (Inbox(Arc::clone(&shared)), Ear(shared))
}

impl Inbox {
    /// Puts a signal in. There is always room for one.
    ///
    /// # Errors
    /// [`DriverClosed`] when nobody will hear it.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), DriverClosed> {
        self.put(|queue| queue.signals.push_back(signal))
    }

    /// Waits for a place for a message.
    ///
    /// # Errors
    /// [`DriverClosed`] when nobody would hear it.
    pub(super) async fn place(&self) -> Result<SemaphorePermit<'_>, DriverClosed> {
        self.0.places.acquire().await.map_err(|_| DriverClosed)
    }

    /// Puts a message in its place. The place is free again when the message is heard.
    ///
    /// # Errors
    /// [`DriverClosed`] when nobody will hear it.
    pub(super) fn send(&self, place: SemaphorePermit<'_>, message: Message) -> Result<(), DriverClosed> {
        self.put(|queue| queue.messages.push_back(message))?;
        place.forget();
        Ok(())
    }

    fn put(&self, put: impl FnOnce(&mut Queue)) -> Result<(), DriverClosed> {
        let mut queue = self.0.queue();
        // What is refused is dropped behind the lock, since that may wake somebody.
        if queue.is_closed {
            return Err(DriverClosed);
        }
        put(&mut queue);
        let listener = queue.listener.take();
        drop(queue);
        listener.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl Clone for Inbox {
    fn clone(&self) -> Self {
        let mut queue = self.0.queue();
        queue.inboxes = queue.inboxes.saturating_add(1);
        drop(queue);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.inboxes = queue.inboxes.saturating_sub(1);
        let listener = if queue.inboxes == 0 { queue.listener.take() } else { None };
        drop(queue);
        listener.into_iter().for_each(Waker::wake);
    }
}

impl Ear {
    /// Waits for the next signal. None is lost when this is dropped while it waits.
    pub(super) async fn signal(&self) -> Signal {
        let next = poll_fn(|context| self.poll(context, |queue| taken(&mut queue.signals)));
        cooperative(next).await
    }

    /// Waits for the next message; `None` when nobody can send one any more. None is lost when this is dropped while
    /// it waits.
    pub(super) async fn message(&self) -> Option<Message> {
        let next = poll_fn(|context| {
            self.poll(context, |queue| match taken(&mut queue.messages) {
                Some(message) => Some(Some(message)),
                None => (queue.inboxes == 0).then_some(None),
            })
        });
        let message = cooperative(next).await;
        self.0.places.add_permits(usize::from(message.is_some()));
        message
    }

    fn poll<T>(&self, context: &Context<'_>, take: impl FnOnce(&mut Queue) -> Option<T>) -> Poll<T> {
        let mut queue = self.0.queue();
        match take(&mut queue) {
            Some(taken) => Poll::Ready(taken),
            None => {
                queue.listener = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// From now on nothing goes in, also from places that were taken before. What did and was not heard.
    pub(super) fn close(&self) -> (VecDeque<Signal>, VecDeque<Message>) {
        let mut queue = self.0.queue();
        queue.is_closed = true;
        queue.listener = None;
        let rest = (std::mem::take(&mut queue.signals), std::mem::take(&mut queue.messages));
        drop(queue);
        self.0.places.close();
        rest
    }
}

impl Drop for Ear {
    /// Whoever waits for an answer learns that there will be none.
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Nothing panics while it holds the lock.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first one. A queue that is empty keeps no room.
fn taken<T>(queue: &mut VecDeque<T>) -> Option<T> {
    let first = queue.pop_front();
    if queue.is_empty() && queue.capacity() > 0 {
        *queue = VecDeque::new();
    }
    first
}
