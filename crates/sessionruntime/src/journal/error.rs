//! Why a journal did not do what it was asked to.

use thiserror::Error;

use super::Sequence;

/// A journal did not do what it was asked to. After an error of [`super::Journal::append`], other than a refusal,
/// it is not known whether the records are durable: appending them again, by the same ids, finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Somebody else has opened the session for writing since, or it was purged. Nothing was written.
    #[error("the writer's token {held} is stale")]
    StaleLease {
        /// The token that was shown.
        held: u64,
    },
    /// There is a record of this id that says something else. Nothing was written.
    #[error("record {sequence} has this id and other bytes")]
    IdReused {
        /// Where it stands.
        sequence: Sequence,
    },
    /// A record has an id of zeros, which means none. Nothing was written.
    #[error("a record without an id")]
    NoId,
    /// The session has used up its sequence. Nothing was written.
    #[error("no further record fits into the sequence")]
    SequenceOverflow,
    /// There is no such session.
    #[error("no such session")]
    UnknownSession,
    /// A record refers to media that are not there.
    #[error("media that a record refers to are not there")]
    MissingBlob,
    /// Not all records of the session are there, or more than it had: part of the store is lost. What can still be read
    /// can be read from the start on; nothing is written to such a session.
    #[error(
        "the session should have {recorded} records, and {found} are found: part of the store is damaged"
    )]
    Incomplete {
        /// So many were written, as the store knows it.
        recorded: u64,
        /// So many are found.
        found: u64,
    },
    /// The store was written by a newer version of this software.
    #[error("the store has version {found}, and this software knows up to {known}")]
    NewerSchema {
        /// The store's version.
        found: u64,
        /// The newest version that is known here.
        known: u64,
    },
    /// The store belongs to another application, or is damaged.
    #[error("not a journal, or a damaged one")]
    NotAJournal,
    /// The store was opened for reading. Nothing was written.
    #[error("the store was opened for reading")]
    ReadOnly,
    /// Another process kept the store locked for too long. Nothing was written.
    #[error("the store is locked by somebody else")]
    Busy,
    /// The store is full.
    #[error("no room is left")]
    Full,
    /// The store could not be read or written; the number is the store's own code.
    #[error("the store failed with code {code}")]
    Store {
        /// The code.
        code: i32,
    },
    /// The store's file could not be made or opened.
    #[error("the store's file: {kind}")]
    File {
        /// The system's kind of error.
        kind: std::io::ErrorKind,
    },
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
}

impl JournalError {
    /// Whether nothing was written for certain.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        match self {
            Self::StaleLease { .. }
            | Self::IdReused { .. }
            | Self::NoId
            | Self::SequenceOverflow
            | Self::UnknownSession
            | Self::MissingBlob
            | Self::Incomplete { .. }
            | Self::Busy
            | Self::NewerSchema { .. }
            | Self::NotAJournal
            | Self::ReadOnly
            | Self::File { .. } => true,
            Self::Full | Self::Store { .. } | Self::Closed => false,
        }
    }
}
