//! Listening to a session. Who is slow loses what may be lost, and is told how much.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use epitome_loop::SessionId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::event::{Published, SessionEvent};
use crate::journal::{Journal, JournalError, Page, PageLimit, RestoreError, Sequence, read_record};

/// Fewer events than these are not worth a place to keep them.
pub(super) const LEAST_KEPT: usize = 16;

/// A subscriber's view of a session, from the moment of the subscription on.
///
/// Records are never lost: one that falls behind reads them again from the journal. All other events may be lost, and
/// are counted. Dropping the future of [`next`](Self::next) loses nothing.
pub struct Subscription {
    receiver: broadcast::Receiver<Published>,
    journal: Arc<dyn Journal>,
    session: SessionId,
    /// The last record that was delivered or is known from before.
    seen: Sequence,
    /// How many events were skipped, records included, since the last one that was received.
    skipped: u64,
    /// Received, and not yet delivered, because records in front of it are read again.
    held: Option<Published>,
    /// Records that were read again.
    again: VecDeque<(Sequence, Arc<crate::journal::JournalRecord>)>,
}

/// What a subscriber gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delivered {
    /// An event.
    Event(SessionEvent),
    /// So many events were lost here, because they were not fetched in time. No record is among them.
    Lost(u64),
}

impl Subscription {
    pub(super) fn new(
        receiver: broadcast::Receiver<Published>,
        journal: Arc<dyn Journal>,
        session: SessionId,
        seen: Sequence,
    ) -> Self {
        Self { receiver, journal, session, seen, skipped: 0, held: None, again: VecDeque::new() }
    }

    /// Waits for what comes next; `None` when the session has ended and everything is delivered.
    ///
    /// # Errors
    /// [`RestoreError`] when records that were missed cannot be read again. The next call tries once more.
    pub async fn next(&mut self) -> Result<Option<Delivered>, RestoreError> {
        loop {
            if let Some((sequence, record)) = self.again.pop_front() {
                self.seen = sequence;
                return Ok(Some(Delivered::Event(SessionEvent::Recorded { sequence, record })));
            }
            if let Some(held) = &self.held {
                let missing = missing_until(held);
                if missing > self.seen {
                    self.read_again(missing).await?;
                    continue;
                }
                if let Some(event) = self.held.take().and_then(|held| self.deliver(held)) {
                    return Ok(Some(Delivered::Event(event)));
                }
                continue;
            }
            match self.receiver.recv().await {
                Ok(published) => {
                    // Of what was skipped, the records come after all.
                    let records = missing_until(&published).saturating_sub(self.seen);
                    let lost = std::mem::take(&mut self.skipped).saturating_sub(records);
                    self.held = Some(published);
                    if lost > 0 {
                        return Ok(Some(Delivered::Lost(lost)));
                    }
                }
                Err(RecvError::Lagged(skipped)) => self.skipped = self.skipped.saturating_add(skipped),
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    /// A record may have been read again already.
    fn deliver(&mut self, published: Published) -> Option<SessionEvent> {
        if let SessionEvent::Recorded { sequence, .. } = published.event {
            if sequence <= self.seen {
                return None;
            }
            self.seen = sequence;
        }
        Some(published.event)
    }

    async fn read_again(&mut self, until: Sequence) -> Result<(), RestoreError> {
        let from = self.seen.saturating_add(1);
        let page = match self.journal.read(self.session, from, PageLimit::default()).await {
            // It was purged: there is nothing to read again.
            Err(JournalError::UnknownSession) => Page { records: Vec::new(), next: None },
            page => page?,
        };
        let mut again = BTreeMap::new();
        for stored in page.records.iter().filter(|stored| stored.sequence <= until) {
            let record = read_record(&*self.journal, self.session, stored).await?;
            again.insert(stored.sequence, Arc::new(record));
        }
        if again.is_empty() {
            self.seen = until;
        }
        self.again.extend(again);
        Ok(())
    }
}

/// The last record that comes before an event.
fn missing_until(published: &Published) -> Sequence {
    match published.event {
        SessionEvent::Recorded { sequence, .. } => sequence.saturating_sub(1),
        _ => published.last,
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("session", &self.session)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
