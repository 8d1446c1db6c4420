//! A session out of its journal.

use std::collections::BTreeMap;
use std::task::Poll;

use epitome_loop::{Message, SessionId, SharedBytes, Trigger};
use thiserror::Error;

use super::codec::decode_without_media;
use super::{
    BlobDigest, CodecError, CodecFault, Journal, JournalError, JournalRecord, LiveContext, MessageRange,
    PageLimit, RecordBody, ReplayError, Sequence, SessionState, StoredRecord, decode_record,
};

/// A session as its journal leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// What its records add up to. When [`SessionState::unfinished`] says that the process crashed in an attempt, the
    /// first thing to write are [`SessionState::closing_records`].
    pub state: SessionState,
    /// Every message that was ever appended, by number.
    pub messages: Vec<Message>,
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
    let mut restored = Restored { state: SessionState::new(trigger), messages: Vec::new() };
    let mut page = journal.read(session, 1, PAGE).await?;
    loop {
        let next = page.next.filter(|from| *from <= last);
        let mut ahead = next.map(|from| journal.read(session, from, PAGE));
        // The journal reads the next page while this one is added up.
        let mut early = None;
        if let Some(ahead) = &mut ahead {
            early = match std::future::poll_fn(|context| Poll::Ready(ahead.as_mut().poll(context))).await {
                Poll::Ready(read) => Some(read),
                Poll::Pending => None,
            };
        }
        for stored in page.records.iter().filter(|stored| stored.sequence <= last) {
            let record = read_record(journal, session, stored).await?;
            restored.state = restored.state.apply(stored.sequence, &record)?;
            if let RecordBody::Appended { messages, .. } = record.body {
                restored.messages.extend(messages.iter().cloned());
            }
        }
        page = match (early, ahead) {
            (Some(read), _) => read?,
            (None, Some(ahead)) => ahead.await?,
            (None, None) => return Ok(restored),
        };
    }
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
