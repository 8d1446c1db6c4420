//! A journal in one SQLite file.
//!
//! One thread writes: it takes what waits, of whatever sessions, into one transaction and so into one sync of the disk.
//! Another thread reads, and a third one works the log into the file. None knows a runtime; whoever asks awaits an
//! answer.

mod change;
mod checkpoint;
mod fault;
mod file;
mod group;
mod known;
mod media;
mod read;
mod schema;
mod worker;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{EventId, SessionId, SharedBytes};
use epitome_sessionruntime::journal::{
    Acknowledged, BlobDigest, EncodedRecord, Journal, JournalError, Page, PageLimit, Purged, Sequence,
    SessionEntry, WriterLease,
};

use self::checkpoint::LogKeeper;
use self::fault::fault;
use self::group::{Asked, Job, Writer, write_group};
use self::worker::Worker;

pub use self::schema::SCHEMA_VERSION;

/// A journal in an SQLite file. Records are durable when [`Journal::append`] returns: the log was synced to the disk
/// (WAL, `synchronous=FULL`). Several processes may hold the file; a session has one writer among all of them.
///
/// Another process may hold the file for a while: whoever wants to write waits for up to [`SqliteJournal::PATIENCE`],
/// and is refused then ([`JournalError::Busy`]).
///
/// The file, and its folder if that is made, can be read by its owner alone. Dropping the journal waits until what was
/// asked for is written.
#[derive(Debug)]
pub struct SqliteJournal {
    /// `None` when the file was opened for reading.
    writer: Option<Worker<Asked>>,
    reader: Worker<read::Job>,
}

impl SqliteJournal {
    /// For so long a journal waits to write unless said otherwise: 25 seconds, less than a session gives its journal.
    pub const PATIENCE: Duration = Duration::from_secs(25);

    /// Opens the journal in this file, and makes it if there is none. This blocks for as long as the disk takes.
    ///
    /// # Errors
    /// [`JournalError::NewerSchema`] and [`JournalError::NotAJournal`] for a file that is not for this software, which
    /// stays as it is; other errors when the file cannot be made, opened or brought up to date.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        Self::open_with_patience(path, Self::PATIENCE)
    }

    /// As [`SqliteJournal::open`]. What is to be written waits for so long, and at most a second more, for another
    /// process to let go of the file; dropping the journal may wait as long.
    ///
    /// # Errors
    /// As [`SqliteJournal::open`].
    pub fn open_with_patience(path: &Path, patience: Duration) -> Result<Self, JournalError> {
        file::make_private(path)?;
        let mut write = file::connect(path).map_err(fault)?;
        schema::bring_up_to_date(&mut write)?;
        file::for_writing(&write).map_err(fault)?;
        let reader = start_reader(path)?;
        let help = file::connect(path).map_err(fault)?;
        file::for_writing(&help).map_err(fault)?;
        let writer = Writer::new(write, LogKeeper::start(help)?, patience)?;
        Ok(Self { writer: Some(Worker::start("epitome-journal-writer", writer, write_group)?), reader })
    }

    /// Opens the journal in a file that is there, to look at it: whatever would write is refused
    /// ([`JournalError::ReadOnly`]). Writers in this process and others go on meanwhile. Only the tables of an older
    /// version are brought up to date.
    ///
    /// # Errors
    /// As [`SqliteJournal::open`]; [`JournalError::File`] when there is no such file, and
    /// [`JournalError::NotAJournal`] when it is empty.
    pub fn open_for_reading(path: &Path) -> Result<Self, JournalError> {
        file::require(path)?;
        let mut look = file::connect(path).map_err(fault)?;
        match schema::version_of(&look)? {
            0 => return Err(JournalError::NotAJournal),
            schema::SCHEMA_VERSION => {}
            _ => schema::bring_up_to_date(&mut look)?,
        }
        Ok(Self { writer: None, reader: start_reader(path)? })
    }

    fn writer(&self) -> Result<&Worker<Asked>, JournalError> {
        self.writer.as_ref().ok_or(JournalError::ReadOnly)
    }

    /// What SQLite itself finds wrong with the file, as a number of faults; 0 when it is whole. Whether the records in
    /// it are, [`epitome_sessionruntime::journal::verify_session`] tells.
    ///
    /// # Errors
    /// [`JournalError`] when the file cannot be read.
    pub async fn check_file(&self) -> Result<u64, JournalError> {
        self.reader.read(read::count_faults).await
    }
}

fn start_reader(path: &Path) -> Result<Worker<read::Job>, JournalError> {
    let connection = file::connect(path).map_err(fault)?;
    file::for_reading(&connection).map_err(fault)?;
    Worker::start("epitome-journal-reader", connection, read::answer)
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError> {
        let writer = self.writer()?;
        // Every record is looked for, beside the writer, so that nobody else is kept waiting.
        self.reader.read(move |connection| known::check(connection, session)).await?;
        writer.ask(|reply| Asked::now(Job::Open { session, reply })).await
    }

    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        let lease = *lease;
        self.writer()?.ask(|reply| Asked::now(Job::Append { lease, records, reply })).await
    }

    async fn read(&self, session: SessionId, from: Sequence, limit: PageLimit) -> Result<Page, JournalError> {
        self.reader.read(move |connection| read::page(connection, session, from, limit)).await
    }

    async fn find(&self, session: SessionId, id: EventId) -> Result<Option<Sequence>, JournalError> {
        self.reader.read(move |connection| read::find(connection, session, id)).await
    }

    async fn blobs(
        &self,
        session: SessionId,
        digests: Vec<BlobDigest>,
    ) -> Result<Vec<SharedBytes>, JournalError> {
        self.reader.read(move |connection| read::blobs(connection, session, &digests)).await
    }

    async fn sessions(
        &self,
        behind: Option<SessionId>,
        most: u32,
    ) -> Result<Vec<SessionEntry>, JournalError> {
        self.reader.read(move |connection| read::sessions(connection, behind, most)).await
    }

    async fn purge(&self, session: SessionId) -> Result<Purged, JournalError> {
        self.writer()?.ask(|reply| Asked::now(Job::Purge { session, reply })).await
    }
}
