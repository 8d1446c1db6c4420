//! What can go wrong with a journal at the command line.

use std::io::ErrorKind;
use std::path::PathBuf;

use epitome_loop::{LoopDefinitionError, SessionId};
use epitome_sessionruntime::journal::{CodecError, JournalError, RestoreError, Sequence};
use epitome_sessionruntime::{AdmitError, CompactError, OpenError, SessionError};
use thiserror::Error;

use crate::failure::shown;

/// A failure that has to do with a journal. Paths and ids are the user's own words; nothing of a session's content is
/// in a message.
#[derive(Debug, Error)]
pub(crate) enum JournalFailure {
    #[error(
        "{}: there is no such journal; `epitome session import FILE --journal {}` makes one",
        shown(path),
        shown(path)
    )]
    NoJournal { path: PathBuf },
    #[error("a journal is a file; it cannot be standard input or output")]
    Stdio,
    #[error("{}: {}", shown(path), advice(*error))]
    Store { path: PathBuf, error: JournalError },
    #[error("{}: the journal holds no session; `epitome session import FILE` puts one in", shown(path))]
    Empty { path: PathBuf },
    #[error("no session of the journal has an id that begins so; `epitome session list` shows them")]
    NoSuchSession,
    #[error("{count} sessions have ids that begin so; give more of the id, or all of it")]
    Ambiguous { count: usize },
    #[error(
        "this is no beginning of an id: ids are made of the digits 0 to 9, the letters a to f, and hyphens"
    )]
    NoId,
    #[error("session {session} has no record yet")]
    NoRecords { session: SessionId },
    #[error("session {session} has been compacted {} and not {wanted}", times(*compactions))]
    NoSuchCompaction { session: SessionId, compactions: u64, wanted: u64 },
    #[error("session {session} has {records} records, and no record {wanted}")]
    NoSuchRecord { session: SessionId, records: Sequence, wanted: Sequence },
    #[error(
        "session {session} is damaged: record {sequence}: {fault}\n`epitome session verify` lists all that is wrong{}",
        before(*sequence)
    )]
    Record { session: SessionId, sequence: Sequence, fault: CodecError },
    #[error("session {session} is damaged: {fault}\n`epitome session verify` lists all that is wrong")]
    Replay { session: SessionId, fault: RestoreError },
    #[error("the session holds no messages, so there is nothing to keep")]
    NoMessages,
    #[error("the policy does not fit the model: {0}")]
    Definition(LoopDefinitionError),
    #[error("{}: the rig has {count} loops; name one of them with --loop NAME", shown(path))]
    WhichLoop { path: PathBuf, count: usize },
    #[error("{}: the rig has no loop of this name", shown(path))]
    NoSuchLoop { path: PathBuf },
    #[error(
        "{}: the loop counts exactly or elsewhere, and this command can only estimate its requests here",
        shown(path)
    )]
    CounterElsewhere { path: PathBuf },
    #[error("the session cannot be opened: {0}")]
    Open(OpenError),
    #[error("{error}{}", rerun(*error))]
    Session { error: SessionError },
    /// A report of its own was made.
    #[error("the request may not be sent: {error}{summarizer}")]
    NotAdmitted { error: AdmitError, summarizer: String },
    /// A report of its own was made.
    #[error("{error}{summarizer}\nThe context is unchanged.")]
    NotCompacted { error: CompactError, summarizer: String },
    #[error("compactions in force: {in_force}, and --to {wanted} is not {}", if *back { "fewer" } else { "more" })]
    WrongWay { in_force: u64, wanted: u64, back: bool },
    /// A report of its own was made.
    #[error("the journal is damaged")]
    Damaged,
    /// A report of its own was made.
    #[error("nothing was removed; --yes removes the session for good")]
    NotConfirmed,
    #[error("a record cannot be written: {0}")]
    NotWritable(CodecError),
}

impl JournalFailure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Stdio
            | Self::NoSuchSession
            | Self::Ambiguous { .. }
            | Self::NoId
            | Self::NoSuchCompaction { .. }
            | Self::NoSuchRecord { .. }
            | Self::Definition(_)
            | Self::WhichLoop { .. }
            | Self::NoSuchLoop { .. }
            | Self::CounterElsewhere { .. }
            | Self::WrongWay { .. }
            | Self::Open(_)
            | Self::NotConfirmed => 2,
            Self::Session { error } => session_code(*error),
            Self::NotAdmitted { error, .. } => match error {
                AdmitError::Count(_) | AdmitError::Fingerprint(_) | AdmitError::Empty => 3,
                AdmitError::Session(error) => session_code(*error),
                _ => 4,
            },
            Self::NotCompacted { error, .. } => match error {
                CompactError::Session(error) => session_code(*error),
                _ => 4,
            },
            Self::Empty { .. }
            | Self::NoRecords { .. }
            | Self::Record { .. }
            | Self::Replay { .. }
            | Self::NoMessages
            | Self::Damaged
            | Self::NotWritable(_) => 3,
            Self::NoJournal { .. } => 5,
            Self::Store { error, .. } => match error {
                JournalError::NotAJournal
                | JournalError::NewerSchema { .. }
                | JournalError::MissingBlob
                | JournalError::Incomplete { .. }
                | JournalError::UnknownSession => 3,
                JournalError::StaleLease { .. } => 4,
                _ => 5,
            },
        }
    }

    /// The stable name; `None` where a report of its own was made.
    pub(crate) fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotConfirmed | Self::Damaged | Self::NotAdmitted { .. } | Self::NotCompacted { .. } => {
                return None;
            }
            Self::WhichLoop { .. } | Self::NoSuchLoop { .. } => "no_such_loop",
            Self::CounterElsewhere { .. } => "counter_elsewhere",
            Self::Open(_) => "not_opened",
            Self::Session { .. } => "session",
            Self::WrongWay { .. } => "wrong_way",
            Self::NoJournal { .. } => "no_journal",
            Self::Stdio => "journal_is_stdio",
            Self::Store { error, .. } => match error {
                JournalError::NotAJournal => "not_a_journal",
                JournalError::NewerSchema { .. } => "newer_journal",
                JournalError::Incomplete { .. } => "damaged",
                JournalError::StaleLease { .. } => "stale_lease",
                JournalError::Busy => "journal_busy",
                _ => "journal",
            },
            Self::Empty { .. } => "empty_journal",
            Self::NoSuchSession | Self::NoId => "no_such_session",
            Self::Ambiguous { .. } => "ambiguous_session",
            Self::NoRecords { .. } => "no_records",
            Self::NoSuchCompaction { .. } => "no_such_compaction",
            Self::NoSuchRecord { .. } => "no_such_record",
            Self::Record { .. } | Self::Replay { .. } => "damaged",
            Self::NoMessages => "no_messages",
            Self::Definition(_) => "definition",
            Self::NotWritable(_) => "not_recordable",
        })
    }
}

/// A journal's error with what to do about it.
fn advice(error: JournalError) -> String {
    let hint = match error {
        JournalError::NotAJournal => "; it was left as it is",
        JournalError::NewerSchema { .. } => "; it was left as it is, and a newer epitome reads it",
        JournalError::Incomplete { .. } => "; `epitome session verify` lists all that is wrong",
        JournalError::StaleLease { .. } => {
            "; another process has opened the session for writing since, and nothing was written"
        }
        JournalError::Busy => "; try again when the other process is done",
        JournalError::Full => "; nothing was lost, and there is no room for more",
        JournalError::ReadOnly => {
            "; its file or its folder cannot be written to: looking needs that too, for the log beside the file. Copy the \
             journal with its -wal and -shm to where you may write"
        }
        // SQLite's word for a file that it cannot open: that of the log, where a folder or a medium is read-only.
        JournalError::Store { code: 14 } => {
            "; a journal on a medium or in a folder that cannot be written to is copied first, with its -wal and -shm"
        }
        JournalError::File { kind: ErrorKind::IsADirectory } => {
            return "it is a folder, and no journal".to_owned();
        }
        JournalError::File { kind } => return kind.to_string(),
        _ => "",
    };
    format!("{error}{hint}")
}

/// The exit code of what a session did not do. One that halts may or may not have done it.
fn session_code(error: SessionError) -> u8 {
    match error {
        SessionError::NoSuchCompaction => 2,
        SessionError::Messages(_) | SessionError::TooLarge { .. } => 3,
        SessionError::Halted | SessionError::TakenOver | SessionError::HeldFull => 4,
        _ => 5,
    }
}

/// What to do about a session that halts.
fn rerun(error: SessionError) -> &'static str {
    match error {
        SessionError::Halted => "\n`epitome session log` shows what is durable",
        SessionError::TakenOver => "\nnothing of this was written; give the command again",
        _ => "",
    }
}

fn times(count: u64) -> String {
    match count {
        0 => "not at all,".to_owned(),
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}

/// What can be had of a session that is damaged from some record on.
fn before(sequence: Sequence) -> String {
    match sequence.checked_sub(1) {
        Some(last @ 1..) => format!("; `--record {last}` shows and exports what stands before the damage"),
        _ => String::new(),
    }
}

impl From<SessionError> for JournalFailure {
    fn from(error: SessionError) -> Self {
        Self::Session { error }
    }
}
