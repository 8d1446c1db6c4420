//! The tables, and how older ones become these.

use std::time::{Duration, Instant};

use epitome_sessionruntime::journal::JournalError;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::fault::fault;
use super::file::PATIENCE;

/// Says that a file is a journal of ours: `EPJL`.
const APPLICATION: i64 = 0x4550_4a4c;

/// Each step makes the next version out of the one before; the first one starts with an empty file.
pub(super) const STEPS: &[&str] = &[
    // 1: sessions and their records. The last token outlives the sessions, so that no token is given twice.
    "CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT;
     INSERT INTO schema_version (version) VALUES (0);
     CREATE TABLE last_token (token INTEGER NOT NULL) STRICT;
     INSERT INTO last_token (token) VALUES (0);
     CREATE TABLE sessions (
         key INTEGER PRIMARY KEY,
         id BLOB NOT NULL UNIQUE,
         token INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE records (
         session INTEGER NOT NULL REFERENCES sessions (key),
         sequence INTEGER NOT NULL,
         id BLOB NOT NULL,
         checksum BLOB NOT NULL,
         body BLOB NOT NULL,
         PRIMARY KEY (session, sequence),
         UNIQUE (session, id)
     ) STRICT, WITHOUT ROWID;",
    // 2: media, once for all sessions that refer to them.
    "CREATE TABLE blobs (
         digest BLOB NOT NULL PRIMARY KEY,
         bytes BLOB NOT NULL
     ) STRICT;
     CREATE TABLE blob_references (
         session INTEGER NOT NULL REFERENCES sessions (key),
         digest BLOB NOT NULL REFERENCES blobs (digest),
         PRIMARY KEY (session, digest)
     ) STRICT, WITHOUT ROWID;
     CREATE INDEX blob_references_by_digest ON blob_references (digest);",
    // 3: how far each session goes, in a tree of its own, so that neither a session nor its end is lost unnoticed. The
    // other table gets another name: a process that knows version 2 alone would write on and not count.
    "ALTER TABLE sessions RENAME TO writers;
     CREATE TABLE lengths (
         id BLOB NOT NULL PRIMARY KEY,
         key INTEGER NOT NULL,
         last INTEGER NOT NULL
     ) STRICT, WITHOUT ROWID;
     INSERT INTO lengths
         SELECT id, key, coalesce((SELECT max(sequence) FROM records WHERE session = writers.key), 0) FROM writers;",
];

/// The version of the tables.
pub const SCHEMA_VERSION: u64 = STEPS.len() as u64;

/// Brings a file up to date. One that is not for this software stays as it is.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), JournalError> {
    if version_of(connection)? == SCHEMA_VERSION {
        return Ok(());
    }
    write_ahead(connection)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(fault)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    // Somebody else may have been faster.
    let found = version(&transaction)?;
    for (step, to) in STEPS.iter().zip(1_u64..) {
        if to > found {
            transaction.execute_batch(step).map_err(fault)?;
            let to = i64::try_from(to).unwrap_or(i64::MAX);
            transaction.execute("UPDATE schema_version SET version = ?1", [to]).map_err(fault)?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(fault)?;
    transaction.commit().map_err(fault)
}

/// Turns the log on that writers and readers share. While somebody else does, SQLite says that the file is busy without
/// waiting for it.
fn write_ahead(connection: &Connection) -> Result<(), JournalError> {
    const PAUSE: Duration = Duration::from_millis(5);
    let patience = Instant::now() + PATIENCE;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL").map_err(fault) {
            Err(JournalError::Busy) if Instant::now() < patience => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Whether a file that was brought up to date still has this version: another process may have gone further since.
pub(super) fn require_current(inside: &Connection) -> Result<(), JournalError> {
    let version: i64 = inside
        .prepare_cached("SELECT version FROM schema_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(fault)?;
    match u64::try_from(version) {
        Ok(SCHEMA_VERSION) => Ok(()),
        Ok(found) if found > SCHEMA_VERSION => {
            Err(JournalError::NewerSchema { found, known: SCHEMA_VERSION })
        }
        _ => Err(JournalError::NotAJournal),
    }
}

/// The version of a file; 0 of an empty one. All of it is seen at one moment: another process may be making the tables.
pub(super) fn version_of(connection: &Connection) -> Result<u64, JournalError> {
    let moment = connection.unchecked_transaction().map_err(fault)?;
    version(&moment)
}

fn version(connection: &Connection) -> Result<u64, JournalError> {
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id").map_err(fault)?;
    let tables = number("SELECT count(*) FROM sqlite_schema").map_err(fault)?;
    match (application, tables) {
        (0, 0) => return Ok(0),
        (APPLICATION, _) => {}
        _ => return Err(JournalError::NotAJournal),
    }
    let version =
        number("SELECT version FROM schema_version").optional().map_err(|_| JournalError::NotAJournal)?;
    let found = version.and_then(|version| u64::try_from(version).ok()).ok_or(JournalError::NotAJournal)?;
    if found > SCHEMA_VERSION {
        return Err(JournalError::NewerSchema { found, known: SCHEMA_VERSION });
    }
    Ok(found)
}
