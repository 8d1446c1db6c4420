//! Writing: what waits goes into one transaction, and is acknowledged when that is durable.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use epitome_loop::SessionId;
use epitome_sessionruntime::journal::{Acknowledged, Blob, EncodedRecord, JournalError, Purged, WriterLease};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::change::{append, open, purge};
use super::checkpoint::LogKeeper;
use super::fault::{fault, in_doubt, spoils_the_group};
use super::file::PATIENCE;
use super::schema::require_current;
use super::worker::Reply;

/// A transaction takes at most so many jobs, and no further one behind so many bytes: whoever comes later is not kept
/// waiting by a crowd.
const MOST_JOBS: usize = 512;
const MOST_BYTES: usize = 8 << 20;

pub(super) enum Job {
    Open { session: SessionId, reply: Reply<WriterLease> },
    Append { lease: WriterLease, records: Vec<EncodedRecord>, reply: Reply<Vec<Acknowledged>> },
    Purge { session: SessionId, reply: Reply<Purged> },
}

/// A job, and since when it waits.
pub(super) struct Asked {
    job: Job,
    since: Instant,
}

impl Asked {
    pub(super) fn now(job: Job) -> Self {
        Self { job, since: Instant::now() }
    }
}

/// SQLite itself waits for so long for another process; then the writer looks who else waits, and for how long.
const SLICE: Duration = Duration::from_secs(1);

/// A log that somebody else works in is looked at again after so long.
const BREATH: Duration = Duration::from_millis(2);

/// A job that was done inside a transaction.
enum Done {
    Open(Reply<WriterLease>, Result<WriterLease, JournalError>),
    Append(Reply<Vec<Acknowledged>>, Result<Vec<Acknowledged>, JournalError>),
    Purge(Reply<Purged>, Result<Purged, JournalError>),
}

pub(super) struct Writer {
    connection: Connection,
    log: LogKeeper,
    /// A job waits for so long for another process to let go of the file.
    patience: Duration,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        log: LogKeeper,
        patience: Duration,
    ) -> Result<Self, JournalError> {
        connection.busy_timeout(SLICE.min(patience)).map_err(fault)?;
        Ok(Self { connection, log, patience })
    }

    /// The log may still hold what is gone from the file. Whoever works it in at this moment, or still reads from it, is
    /// waited for a while.
    fn empty_the_log(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let emptied = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0));
            match emptied {
                Ok(false) if Instant::now() < until => std::thread::sleep(BREATH),
                _ => return,
            }
        }
    }
}

/// Jobs that go into one transaction.
struct Group {
    jobs: Vec<Asked>,
    bytes: usize,
}

impl Group {
    fn take(&mut self, waiting: &Receiver<Asked>) {
        while self.jobs.len() < MOST_JOBS
            && self.bytes < MOST_BYTES
            && let Ok(asked) = waiting.try_recv()
        {
            self.bytes += asked.job.bytes();
            self.jobs.push(asked);
        }
    }

    /// Refuses those that have waited long enough; whether somebody still waits.
    fn lose_patience(&mut self, patience: Duration) -> bool {
        let (gone, still) = self.jobs.drain(..).partition(|asked| asked.since.elapsed() >= patience);
        self.jobs = still;
        self.bytes = self.jobs.iter().map(|asked| asked.job.bytes()).sum();
        refuse(gone, JournalError::Busy);
        !self.jobs.is_empty()
    }
}

fn refuse(jobs: Vec<Asked>, error: JournalError) {
    jobs.into_iter().for_each(|asked| asked.job.fail(error).answer(Ok(())));
}

/// Does a job and all that wait behind it, in order, and answers when they are durable. While another process holds the
/// file, each waits for as long as it may, and whoever comes meanwhile joins them.
pub(super) fn write_group(writer: &mut Writer, first: Asked, waiting: &Receiver<Asked>) {
    let mut group = Group { bytes: first.job.bytes(), jobs: vec![first] };
    let transaction = loop {
        group.take(waiting);
        let begun = Transaction::new_unchecked(&writer.connection, TransactionBehavior::Immediate);
        match begun.map_err(fault) {
            Ok(transaction) => break transaction,
            // It has not begun, so nothing was written.
            Err(JournalError::Busy) if group.lose_patience(writer.patience) => {}
            Err(JournalError::Busy) => return,
            Err(error) => return refuse(group.jobs, error),
        }
    };
    let Group { jobs, bytes } = group;
    let purges = jobs.iter().any(|asked| matches!(asked.job, Job::Purge { .. }));
    let mut done = Vec::with_capacity(jobs.len());
    let durable = commit(transaction, jobs, &mut done);
    if purges && durable.is_ok() {
        writer.empty_the_log();
    }
    for done in done {
        done.answer(durable);
    }
    writer.log.has_grown(bytes, &writer.connection);
}

/// Does the jobs in one transaction. Each alone may be refused; a fault of the store is one for all of them.
fn commit(
    mut transaction: Transaction<'_>,
    jobs: Vec<Asked>,
    done: &mut Vec<Done>,
) -> Result<(), JournalError> {
    let mut spoiled = require_current(&transaction).err();
    // One that is alone needs no savepoint: its refusal takes back the whole transaction, which is it.
    let is_alone = jobs.len() == 1;
    for Asked { job, .. } in jobs {
        let finished = match spoiled {
            None => job.run(&mut transaction, is_alone),
            Some(error) => job.fail(error),
        };
        spoiled = spoiled.or(finished.error().filter(|error| is_alone || spoils_the_group(*error)));
        done.push(finished);
    }
    match spoiled {
        None => transaction.commit().map_err(in_doubt),
        // Dropping the transaction takes everything back.
        Some(error) => Err(error),
    }
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Self::Open { .. } | Self::Purge { .. } => 64,
            Self::Append { records, .. } => records.iter().map(size).sum(),
        }
    }

    fn run(self, transaction: &mut Transaction<'_>, is_alone: bool) -> Done {
        match self {
            Self::Open { session, reply } => {
                Done::Open(reply, apart(transaction, is_alone, |inside| open(inside, session)))
            }
            Self::Append { lease, records, reply } => {
                Done::Append(reply, apart(transaction, is_alone, |inside| append(inside, lease, &records)))
            }
            Self::Purge { session, reply } => {
                Done::Purge(reply, apart(transaction, is_alone, |inside| purge(inside, session)))
            }
        }
    }

    fn fail(self, error: JournalError) -> Done {
        match self {
            Self::Open { reply, .. } => Done::Open(reply, Err(error)),
            Self::Append { reply, .. } => Done::Append(reply, Err(error)),
            Self::Purge { reply, .. } => Done::Purge(reply, Err(error)),
        }
    }
}

fn size(record: &EncodedRecord) -> usize {
    let media = |blob: &Blob| blob.bytes().len();
    64 + record.body.len() + record.blobs.iter().map(media).sum::<usize>()
}

impl Done {
    fn error(&self) -> Option<JournalError> {
        match self {
            Self::Open(_, result) => result.as_ref().err(),
            Self::Append(_, result) => result.as_ref().err(),
            Self::Purge(_, result) => result.as_ref().err(),
        }
        .copied()
    }

    /// Answers, now that it is known whether the transaction is durable. Whoever asked may have gone away.
    fn answer(self, durable: Result<(), JournalError>) {
        match self {
            Self::Open(reply, result) => drop(reply.send(durable.and(result))),
            Self::Append(reply, result) => drop(reply.send(durable.and(result))),
            Self::Purge(reply, result) => drop(reply.send(durable.and(result))),
        }
    }
}

/// Does one job so that a refusal takes back what it did, and nothing else.
fn apart<T>(
    transaction: &mut Transaction<'_>,
    is_alone: bool,
    work: impl FnOnce(&Connection) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    if is_alone {
        return work(transaction);
    }
    let savepoint = transaction.savepoint().map_err(fault)?;
    let result = work(&savepoint)?;
    savepoint.commit().map_err(fault)?;
    Ok(result)
}
