//! A session as it is or was: its context, its messages, and the file that they came from.

use epitome_loop::{Message, SessionId, SharedBytes, Trigger};
use epitome_sessionruntime::journal::{
    BlobDigest, Committed, Imported, Journal as _, JournalError, LiveContext, MessageRange, RecordBody,
    RestoreError, Restored, Sequence, SessionEntry, SessionState, referred_blobs, restore_through,
};
use epitome_transcripts::{Format, ReadOptions, Session, repair};

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::recording::format_named;
use crate::failure::Failure;
use crate::session_args::{KeptArgs, MomentArgs};

/// A session at one moment.
pub(crate) struct Past {
    pub(crate) session: SessionId,
    pub(crate) restored: Restored,
    /// The place of the last record that is looked at, and of the last one that there is.
    pub(crate) record: Sequence,
    pub(crate) records: Sequence,
}

/// A file that the first messages of a session came from.
pub(crate) struct Source {
    /// What is recorded of it.
    pub(crate) imported: Imported,
    /// Its bytes; `None` when the journal does not hold them whole any more.
    pub(crate) bytes: Option<SharedBytes>,
    /// So many messages did.
    pub(crate) messages: usize,
}

impl Past {
    /// The session and the moment that a command names.
    pub(crate) fn of(journal: &JournalFile, kept: &KeptArgs, moment: &MomentArgs) -> Result<Self, Failure> {
        let SessionEntry { session, last: records } = journal.choose(kept.id.as_deref())?;
        if records == 0 {
            return Err(JournalFailure::NoRecords { session }.into());
        }
        let record = match (moment.at, moment.record) {
            (Some(wanted), _) => behind_compaction(journal, session, wanted)?,
            (None, Some(wanted)) if wanted > records => {
                return Err(JournalFailure::NoSuchRecord { session, records, wanted }.into());
            }
            (None, wanted) => wanted,
        };
        // To the end means to the end that there is, and not to one that was only told of.
        let last = record.unwrap_or(Sequence::MAX);
        // Levels are not looked at, so any trigger will do.
        let restored = restore_through(&**journal.journal(), session, Trigger::Manual, last);
        let restored = journal.wait(restored).map_err(|fault| match fault {
            RestoreError::Journal(error) => journal.failed(error),
            RestoreError::Record { sequence, fault } => {
                JournalFailure::Record { session, sequence, fault }.into()
            }
            fault => JournalFailure::Replay { session, fault }.into(),
        })?;
        let record = restored.state.last();
        Ok(Self { session, restored, record, records: records.max(record) })
    }

    pub(crate) fn state(&self) -> &SessionState {
        &self.restored.state
    }

    /// The record of the compaction that is in force; `None` without one.
    pub(super) fn committed(&self, journal: &JournalFile) -> Result<Option<Box<Committed>>, Failure> {
        let state = self.state();
        let newest = usize::try_from(state.in_force()).ok().and_then(|count| count.checked_sub(1));
        let Some(wanted) = newest.and_then(|at| state.commits().get(at)) else { return Ok(None) };
        let mut found = None;
        journal.records(self.session, |_, record| {
            match record.body {
                RecordBody::Committed(committed) if record.id == wanted.event => found = Some(committed),
                _ => {}
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// The file that the first messages came from, if they came from one.
    pub(crate) fn source(&self, journal: &JournalFile) -> Result<Option<Source>, Failure> {
        let (mut import, mut found) = (None, None);
        journal.records(self.session, |stored, record| {
            match record.body {
                RecordBody::Imported(imported) => import = Some((stored.clone(), imported)),
                RecordBody::Appended { messages, .. } => {
                    found = import.take().map(|(stored, imported)| (stored, imported, messages.len()));
                    return Ok(false);
                }
                _ => {}
            }
            Ok(stored.sequence < self.record)
        })?;
        let Some((stored, imported, messages)) = found else { return Ok(None) };
        let unreadable =
            |fault| JournalFailure::Record { session: self.session, sequence: stored.sequence, fault };
        let digests = referred_blobs(self.session, &stored).map_err(unreadable)?;
        let bytes = match journal.wait(journal.journal().blobs(self.session, digests.clone())) {
            Ok(bytes) => bytes.into_iter().next(),
            Err(JournalError::MissingBlob) => None,
            Err(error) => return Err(journal.failed(error)),
        };
        // With other bytes than its digest says, it is not the file that was imported.
        let bytes = bytes.filter(|bytes| digests.first() == Some(&BlobDigest::of(bytes)));
        Ok(Some(Source { imported, bytes, messages }))
    }

    /// The messages that would be sent, with the summary in its place.
    pub(crate) fn sent(&self) -> Vec<Message> {
        let LiveContext { leading, summary, rest } = self.state().context();
        let summary = summary.map(|summary| Message::user(summary.clone()));
        let restored = &self.restored;
        restored
            .messages_in(&leading)
            .cloned()
            .chain(summary)
            .chain(restored.messages_in(&rest).cloned())
            .collect()
    }
}

/// The place of the record behind which this compaction had left the session; `None` is the last record.
fn behind_compaction(
    journal: &JournalFile,
    session: SessionId,
    wanted: u64,
) -> Result<Option<Sequence>, Failure> {
    let all = journal.compactions(session)?;
    let Some(index) = wanted.checked_sub(1) else {
        return Ok(all.first().map(|first| first.started.saturating_sub(1)));
    };
    let found = usize::try_from(index).ok().and_then(|index| all.get(index));
    let missing = JournalFailure::NoSuchCompaction { session, compactions: all.len() as u64, wanted };
    Ok(Some(found.ok_or(missing)?.committed))
}

/// The messages that a context names, by index.
pub(crate) fn numbers(ranges: &[MessageRange]) -> impl Iterator<Item = usize> + '_ {
    ranges.iter().flat_map(|range| range.first..range.end).filter_map(|number| usize::try_from(number).ok())
}

impl Source {
    pub(crate) fn format(&self) -> Option<Format> {
        format_named(&self.imported.format)
    }

    /// The session that the file gives, if it still gives the messages that were recorded: a later version may read
    /// it otherwise.
    pub(crate) fn session(&self, recorded: &[Message]) -> Option<Session> {
        let conversation = self.imported.conversation.and_then(|number| usize::try_from(number).ok());
        let options = ReadOptions { format: Some(self.format()?), conversation };
        let read = epitome_transcripts::read(self.bytes.as_ref()?, &options, &mut |_| {}).ok()?;
        let (session, _) = repair(&read);
        let is_same = session.messages().iter().zip(recorded).all(|(read, recorded)| read == recorded);
        (is_same && session.messages().len() == self.messages && recorded.len() >= self.messages)
            .then_some(session)
    }
}
