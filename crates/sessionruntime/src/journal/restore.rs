//! A session out of its journal.

use std::collections::BTreeMap;
use std::task::Poll;

use epitome_loop::{Message, SessionId, SharedBytes, Trigger};
use thiserror::Error;

use super::codec::decode_without_media;
use super::{
    BlobDigest, Checksum, CodecError, CodecFault, Journal, JournalError, JournalRecord, LiveContext,
    MessageRange, PageLimit, RecordBody, ReplayError, Sequence, SessionState, StoredRecord, decode_record,
};

/// A session as its journal leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What its records add up to. When [`SessionState::unfinished`] says that the process crashed in an attempt, the
    /// first thing to write are [`SessionState::closing_records`].
    pub state: SessionState,
    /// Every message that was ever appended, by number.
    pub messages: Vec<Message>,
    /// The last record that was read, so that it is known whether the same session goes on.
    newest: Option<(Sequence, Checksum)>,
}

/// A session cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The journal failed.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// A record cannot be read.
    #[error("record {sequence}: {fault}")]
    Record {
        /// Its place.
        sequence: Sequence,
        /// Why.
        fault: CodecError,
    },
    /// A record does not follow from those before it.
    #[error("{0}")]
    Replay(#[from] ReplayError),
}

/// Pages that fit into the cache of a processor, so that what was read is added up while it is near.
const PAGE: PageLimit = PageLimit { records: 1 << 16, bytes: 1 << 20 };

/// Restores a session, under a policy with this trigger.
///
/// # Errors
/// [`RestoreError`]; nothing is guessed and nothing left out.
pub async fn restore(
    journal: &dyn Journal,
    session: SessionId,
    trigger: Trigger,
) -> Result<Restored, RestoreError> {
    restore_through(journal, session, trigger, Sequence::MAX).await
}

/// Restores a session as it was behind the record at this place.
///
/// # Errors
/// [`RestoreError`].
pub async fn restore_through(
    journal: &dyn Journal,
    session: SessionId,
    trigger: Trigger,
    last: Sequence,
) -> Result<Restored, RestoreError> {
    let mut restored = Restored::new(trigger);
    restored.add(journal, session, last).await?;
    Ok(restored)
}

/// Reads a record and the media that its messages refer to. The file of an import is not read: it is empty.
///
/// # Errors
/// [`RestoreError`] when it cannot be read.
pub async fn read_record(
    journal: &dyn Journal,
    session: SessionId,
    stored: &StoredRecord,
) -> Result<JournalRecord, RestoreError> {
    let unreadable = |fault| RestoreError::Record { sequence: stored.sequence, fault };
    let (record, digests) = decode_without_media(session, stored).map_err(unreadable)?;
    // The file of an import is as large as all that came from it, and a session goes on without it.
    if digests.is_empty() || matches!(record.body, RecordBody::Imported(_)) {
        return Ok(record);
    }
    let blobs = whole_blobs(journal, session, digests).await?;
    let missing = CodecError { fault: CodecFault::MissingBlob, at: 0 };
    decode_record(session, stored, &blobs.ok_or(unreadable(missing))?).map_err(unreadable)
}

/// Media by their digests; `None` when one is not what its digest says.
pub(super) async fn whole_blobs(
    journal: &dyn Journal,
    session: SessionId,
    digests: Vec<BlobDigest>,
) -> Result<Option<BTreeMap<BlobDigest, SharedBytes>>, JournalError> {
    let bytes = journal.blobs(session, digests.clone()).await?;
    let blobs: BTreeMap<_, _> = digests.into_iter().zip(bytes).collect();
    let are_whole = blobs.iter().all(|(digest, bytes)| BlobDigest::of(bytes) == *digest);
    Ok(are_whole.then_some(blobs))
}

impl Restored {
    /// A session without records, under a policy with this trigger: what [`Restored::catch_up`] begins with when there
    /// was no such session.
    #[must_use]
    pub fn new(trigger: Trigger) -> Self {
        Self { state: SessionState::new(trigger), messages: Vec::new(), newest: None }
    }

    /// Takes in what was written to the journal since. So a session can be restored while somebody else still writes to
    /// it, then be opened for writing, and be caught up with what came in between; of what was read before, only the
    /// last record is looked at again.
    ///
    /// # Errors
    /// [`RestoreError`], and then this is what it was; [`JournalError::UnknownSession`] also when the session was purged
    /// since and has begun anew.
    pub async fn catch_up(&mut self, journal: &dyn Journal, session: SessionId) -> Result<(), RestoreError> {
        let (state, known, newest) = (self.state.clone(), self.messages.len(), self.newest);
        let caught_up = self.add(journal, session, Sequence::MAX).await;
        if caught_up.is_err() {
            (self.state, self.newest) = (state, newest);
            self.messages.truncate(known);
        }
        caught_up
    }

    /// Adds up the records behind those that are known, up to this place.
    async fn add(
        &mut self,
        journal: &dyn Journal,
        session: SessionId,
        last: Sequence,
    ) -> Result<(), RestoreError> {
        let from = self.newest.map_or(1, |(sequence, _)| sequence);
        let mut page = journal.read(session, from, PAGE).await?;
        if let Some(newest) = self.newest {
            let there = page.records.first().map(|stored| (stored.sequence, stored.checksum));
            if there != Some(newest) {
                return Err(JournalError::UnknownSession.into());
            }
        }
        loop {
            let next = page.next.filter(|from| *from <= last);
            let mut ahead = next.map(|from| journal.read(session, from, PAGE));
            // The journal reads the next page while this one is added up.
            let mut early = None;
            if let Some(ahead) = &mut ahead {
                early = match std::future::poll_fn(|context| Poll::Ready(ahead.as_mut().poll(context))).await
                {
                    Poll::Ready(read) => Some(read),
                    Poll::Pending => None,
                };
            }
            for stored in page.records.iter().filter(|stored| stored.sequence <= last) {
                if self.newest.is_none_or(|(newest, _)| newest < stored.sequence) {
                    let record = read_record(journal, session, stored).await?;
                    self.take_in(stored.sequence, record)?;
                    self.newest = Some((stored.sequence, stored.checksum));
                }
            }
            page = match (early, ahead) {
                (Some(read), _) => read?,
                (None, Some(ahead)) => ahead.await?,
                (None, None) => return Ok(()),
            };
        }
    }

    /// What whoever holds this wrote and took in himself is in the state already, and maybe not among the messages.
    fn take_in(&mut self, sequence: Sequence, record: JournalRecord) -> Result<(), ReplayError> {
        if sequence > self.state.last() {
            let state = std::mem::replace(&mut self.state, SessionState::new(Trigger::Manual));
            self.state = state.apply(sequence, &record)?;
        }
        match record.body {
            RecordBody::Appended { first, messages } if first == self.messages.len() as u64 => {
                self.messages.extend(messages.iter().cloned());
            }
            _ => {}
        }
        Ok(())
    }

    /// The messages of these numbers, in order.
    pub fn messages_in<'a>(&'a self, ranges: &'a [MessageRange]) -> impl Iterator<Item = &'a Message> {
        ranges.iter().flat_map(|range| {
            let bound = |number| usize::try_from(number).unwrap_or(usize::MAX);
            self.messages.get(bound(range.first)..bound(range.end)).unwrap_or_default()
        })
    }

    /// The messages of a context of this session, the summary among them as the user's.
    #[must_use]
    pub fn context_messages(&self, context: &LiveContext) -> Vec<Message> {
        let LiveContext { leading, summary, rest } = context;
        let summary = summary.iter().map(|summary| Message::user(summary.clone()));
        let leading = self.messages_in(leading).cloned();
        leading.chain(summary).chain(self.messages_in(rest).cloned()).collect()
    }
}
