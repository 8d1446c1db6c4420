//! Media: once for all sessions that refer to them.

use epitome_sessionruntime::journal::{Blob, BlobDigest, JournalError};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::fault::fault;
use super::read::bytes;

/// Keeps a medium for a session. One that is there must be what it is called; damaged bytes are replaced by the good
/// ones.
pub(super) fn keep(inside: &Connection, key: i64, blob: &Blob) -> Result<(), JournalError> {
    let digest = blob.digest();
    match is_there(inside, blob)? {
        Some((_, true)) => {}
        Some((row, false)) => {
            let changed = inside
                .prepare_cached("UPDATE blobs SET bytes = ?2 WHERE rowid = ?1")
                .and_then(|mut statement| statement.execute(params![row, blob.bytes().as_slice()]))
                .map_err(fault)?;
            if changed != 1 {
                return Err(JournalError::NotAJournal);
            }
        }
        None => {
            inside
                .prepare_cached("INSERT INTO blobs (digest, bytes) VALUES (?1, ?2)")
                .and_then(|mut statement| {
                    statement.execute(params![digest.as_bytes(), blob.bytes().as_slice()])
                })
                .map_err(fault)?;
        }
    }
    inside
        .prepare_cached(
            "INSERT INTO blob_references (session, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )
        .and_then(|mut statement| statement.execute(params![key, digest.as_bytes()]))
        .map(drop)
        .map_err(fault)
}

/// The row of a medium, and whether it has the right bytes.
fn is_there(inside: &Connection, blob: &Blob) -> Result<Option<(i64, bool)>, JournalError> {
    let digest = blob.digest();
    let row: Option<i64> = inside
        .prepare_cached("SELECT rowid FROM blobs WHERE digest = ?1")
        .and_then(|mut statement| statement.query_row([digest.as_bytes()], |row| row.get(0)).optional())
        .map_err(fault)?;
    let Some(row) = row else { return Ok(None) };
    // The index led here. What stands here must say so itself: otherwise another medium would be written over.
    let found = inside
        .prepare_cached("SELECT digest, bytes FROM blobs WHERE rowid = ?1")
        .and_then(|mut statement| {
            let look = |found: &rusqlite::Row<'_>| {
                let is_same = found.get_ref(1)?.as_blob().is_ok_and(|there| there == blob.bytes().as_slice());
                Ok((bytes(found, 0)?, is_same))
            };
            statement.query_row([row], look).optional()
        })
        .map_err(fault)?;
    match found {
        Some((named, is_same)) if BlobDigest::from_bytes(named) == digest => Ok(Some((row, is_same))),
        _ => Err(JournalError::MissingBlob),
    }
}

/// Lets go of the media of a session, and removes those that no other session refers to; how many these are.
pub(super) fn let_go(inside: &Connection, key: i64) -> Result<u64, JournalError> {
    // Marked first: a medium that only this session refers to goes, once its references are gone.
    inside
        .execute_batch("CREATE TEMP TABLE IF NOT EXISTS purged (digest BLOB PRIMARY KEY); DELETE FROM purged")
        .map_err(fault)?;
    let marked = inside
        .execute("INSERT INTO purged SELECT digest FROM blob_references WHERE session = ?1", [key])
        .map_err(fault)?;
    if marked == 0 {
        return Ok(0);
    }
    inside.execute("DELETE FROM blob_references WHERE session = ?1", [key]).map_err(fault)?;
    // A reference that one of the two trees has lost still holds its medium by the other one.
    inside
        .execute(
            "DELETE FROM blobs WHERE digest IN (SELECT digest FROM purged)
             AND digest NOT IN (SELECT digest FROM blob_references INDEXED BY sqlite_autoindex_blob_references_1)
             AND NOT EXISTS (SELECT 1 FROM blob_references INDEXED BY blob_references_by_digest
                             WHERE digest = blobs.digest)",
            [],
        )
        .map(|count| count as u64)
        .map_err(fault)
}
