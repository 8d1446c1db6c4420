//! Writing: what waits goes into one transaction, and is acknowledged when that is durable.

use std::sync::mpsc::Receiver;

use epitome_loop::{EventId, SessionId};
use epitome_sessionruntime::journal::{
    Acknowledged, Blob, EncodedRecord, JournalError, Purged, Sequence, WriterLease, checksum,
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::checkpoint::LogKeeper;
use super::fault::{fault, spoils_the_group};
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

/// A job that was done inside a transaction.
enum Done {
    Open(Reply<WriterLease>, Result<WriterLease, JournalError>),
    Append(Reply<Vec<Acknowledged>>, Result<Vec<Acknowledged>, JournalError>),
    Purge(Reply<Purged>, Result<Purged, JournalError>),
}

pub(super) struct Writer {
    connection: Connection,
    log: LogKeeper,
}

impl Writer {
    pub(super) fn new(connection: Connection, log: LogKeeper) -> Self {
        Self { connection, log }
    }
}

/// Does a job and all that wait behind it, in order, and answers when they are durable.
pub(super) fn write_group(writer: &mut Writer, first: Job, waiting: &Receiver<Job>) {
    let mut jobs = vec![first];
    let mut bytes = jobs.iter().map(Job::bytes).sum::<usize>();
    while jobs.len() < MOST_JOBS
        && bytes < MOST_BYTES
        && let Ok(job) = waiting.try_recv()
    {
        bytes += job.bytes();
        jobs.push(job);
    }
    let purges = jobs.iter().any(|job| matches!(job, Job::Purge { .. }));
    let mut done = Vec::with_capacity(jobs.len());
    let durable = commit(&mut writer.connection, jobs, &mut done);
    if purges && durable.is_ok() {
        // The log may still hold what is gone from the file.
        let _ = writer.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    for done in done {
        done.answer(durable);
    }
    writer.log.has_grown(bytes, &writer.connection);
}

/// Does the jobs in one transaction. Each alone may be refused; a fault of the store is one for all of them.
fn commit(connection: &mut Connection, jobs: Vec<Job>, done: &mut Vec<Done>) -> Result<(), JournalError> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let mut spoiled = transaction.as_ref().err().map(|_| JournalError::Busy);
    if let Err(error) = &mut transaction {
        let error = std::mem::replace(error, rusqlite::Error::InvalidQuery);
        spoiled = Some(fault(error));
    }
    // One that is alone needs no savepoint: its refusal takes back the whole transaction, which is it.
    let is_alone = jobs.len() == 1;
    for job in jobs {
        let finished = match (&mut transaction, spoiled) {
            (Ok(transaction), None) => job.run(transaction, is_alone),
            (_, error) => job.fail(error.unwrap_or(JournalError::Closed)),
        };
        spoiled = spoiled.or(finished.error().filter(|error| is_alone || spoils_the_group(*error)));
        done.push(finished);
    }
    match (transaction, spoiled) {
        (Ok(transaction), None) => transaction.commit().map_err(fault),
        // Dropping the transaction takes everything back.
        (_, spoiled) => Err(spoiled.unwrap_or(JournalError::Closed)),
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

fn open(inside: &Connection, session: SessionId) -> Result<WriterLease, JournalError> {
    let token: i64 = inside
        .prepare_cached("UPDATE last_token SET token = token + 1 RETURNING token")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(fault)?;
    inside
        .prepare_cached(
            "INSERT INTO sessions (id, token) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET token = ?2",
        )
        .and_then(|mut statement| statement.execute(params![session.as_bytes(), token]))
        .map_err(fault)?;
    Ok(WriterLease { session, token: u64::try_from(token).map_err(|_| JournalError::NotAJournal)? })
}

fn append(
    inside: &Connection,
    lease: WriterLease,
    records: &[EncodedRecord],
) -> Result<Vec<Acknowledged>, JournalError> {
    let found = inside
        .prepare_cached("SELECT key, token FROM sessions WHERE id = ?1")
        .and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
            statement.query_row([lease.session.as_bytes()], row).optional()
        })
        .map_err(fault)?;
    let is_held = |(_, token): &(i64, i64)| u64::try_from(*token) == Ok(lease.token);
    let Some((key, _)) = found.filter(is_held) else {
        return Err(JournalError::StaleLease { held: lease.token });
    };
    let mut last: i64 = inside
        .prepare_cached("SELECT sequence FROM records WHERE session = ?1 ORDER BY sequence DESC LIMIT 1")
        .and_then(|mut statement| statement.query_row([key], |row| row.get(0)).optional())
        .map_err(fault)?
        .unwrap_or(0);
    let mut acknowledged = Vec::with_capacity(records.len());
    for record in records {
        if record.id.is_zero() {
            return Err(JournalError::NoId);
        }
        if let Some((sequence, is_same)) = there(inside, key, record).map_err(fault)? {
            if !is_same {
                return Err(JournalError::IdReused { sequence });
            }
            acknowledged.push(Acknowledged { sequence, was_there: true });
            continue;
        }
        last = last.checked_add(1).ok_or(JournalError::SequenceOverflow)?;
        let sequence = u64::try_from(last).map_err(|_| JournalError::NotAJournal)?;
        insert(inside, lease.session, key, last, sequence, record).map_err(fault)?;
        acknowledged.push(Acknowledged { sequence, was_there: false });
    }
    Ok(acknowledged)
}

/// Where a record with this id stands already, and whether it has the same bytes.
fn there(
    inside: &Connection,
    key: i64,
    record: &EncodedRecord,
) -> rusqlite::Result<Option<(Sequence, bool)>> {
    let mut statement =
        inside.prepare_cached("SELECT sequence, body FROM records WHERE session = ?1 AND id = ?2")?;
    statement
        .query_row(params![key, record.id.as_bytes()], |row| {
            let is_same = row.get_ref(1)?.as_blob().is_ok_and(|body| body == record.body.as_slice());
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), is_same))
        })
        .optional()
}

fn insert(
    inside: &Connection,
    session: SessionId,
    key: i64,
    place: i64,
    sequence: Sequence,
    record: &EncodedRecord,
) -> rusqlite::Result<()> {
    let EncodedRecord { id, body, blobs } = record;
    for blob in blobs {
        let digest = blob.digest();
        inside
            .prepare_cached(
                "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING",
            )?
            .execute(params![digest.as_bytes(), blob.bytes().as_slice()])?;
        inside
            .prepare_cached(
                "INSERT INTO blob_references (session, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(params![key, digest.as_bytes()])?;
    }
    let sum = checksum(session, sequence, *id, body);
    inside
        .prepare_cached(
            "INSERT INTO records (session, sequence, id, checksum, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key, place, EventId::as_bytes(id), sum.as_bytes(), body.as_slice()])?;
    Ok(())
}

fn purge(inside: &Connection, session: SessionId) -> Result<Purged, JournalError> {
    let key: Option<i64> = inside
        .query_row("SELECT key FROM sessions WHERE id = ?1", [session.as_bytes()], |row| row.get(0))
        .optional()
        .map_err(fault)?;
    let Some(key) = key else { return Ok(Purged::default()) };
    let delete = |text: &str| inside.execute(text, [key]).map(|count| count as u64).map_err(fault);
    let records = delete("DELETE FROM records WHERE session = ?1")?;
    // Marked first: a medium that only this session refers to goes, once its references are gone.
    inside
        .execute_batch("CREATE TEMP TABLE IF NOT EXISTS purged (digest BLOB PRIMARY KEY); DELETE FROM purged")
        .map_err(fault)?;
    delete("INSERT INTO purged SELECT digest FROM blob_references WHERE session = ?1")?;
    delete("DELETE FROM blob_references WHERE session = ?1")?;
    let blobs = inside
        .execute(
            "DELETE FROM blobs WHERE digest IN (SELECT digest FROM purged)
             AND digest NOT IN (SELECT digest FROM blob_references)",
            [],
        )
        .map_err(fault)? as u64;
    delete("DELETE FROM sessions WHERE key = ?1")?;
    Ok(Purged { records, blobs })
}
