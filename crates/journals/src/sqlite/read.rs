//! Reading. Each question is answered from one view of the file.

use std::sync::mpsc::Receiver;

use epitome_loop::{EventId, SessionId, SharedBytes};
use epitome_sessionruntime::journal::{
    BlobDigest, Checksum, JournalError, Page, PageLimit, Sequence, SessionEntry, StoredRecord,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::fault::fault;

/// Something to be read.
pub(super) type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) fn answer(connection: &mut Connection, job: Job, _: &Receiver<Job>) {
    job(connection);
}

fn key(connection: &Connection, session: SessionId) -> Result<i64, JournalError> {
    connection
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([session.as_bytes()], |row| row.get(0)).optional())
        .map_err(fault)?
        .ok_or(JournalError::UnknownSession)
}

pub(super) fn page(
    connection: &Connection,
    session: SessionId,
    from: Sequence,
    limit: PageLimit,
) -> Result<Page, JournalError> {
    let limit = limit.within_bounds();
    let view = connection.unchecked_transaction().map_err(fault)?;
    let key = key(&view, session)?;
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let mut statement = view
        .prepare_cached(
            "SELECT sequence, id, checksum, body FROM records WHERE session = ?1 AND sequence >= ?2
             ORDER BY sequence",
        )
        .map_err(fault)?;
    let mut rows = statement.query(params![key, from]).map_err(fault)?;
    let mut page = Page { records: Vec::new(), next: None };
    let mut bytes = 0;
    while let Some(row) = rows.next().map_err(fault)? {
        let record = record(row).map_err(fault)?;
        bytes += record.body.len();
        let is_full = bytes > limit.bytes || page.records.len() >= limit.records as usize;
        if is_full && !page.records.is_empty() {
            page.next = Some(record.sequence);
            break;
        }
        page.records.push(record);
    }
    Ok(page)
}

fn record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        sequence: row.get::<_, i64>(0)?.unsigned_abs(),
        id: EventId::from_bytes(bytes(row, 1)?),
        checksum: Checksum::from_bytes(bytes(row, 2)?),
        body: row.get::<_, Vec<u8>>(3)?.into(),
    })
}

/// A column of so many bytes.
fn bytes<const N: usize>(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; N]> {
    let value = row.get_ref(column)?;
    let found = value.as_blob().ok().and_then(|bytes| <[u8; N]>::try_from(bytes).ok());
    found.ok_or_else(|| rusqlite::Error::InvalidColumnType(column, String::new(), value.data_type()))
}

pub(super) fn find(
    connection: &Connection,
    session: SessionId,
    id: EventId,
) -> Result<Option<Sequence>, JournalError> {
    let view = connection.unchecked_transaction().map_err(fault)?;
    let key = key(&view, session)?;
    view.prepare_cached("SELECT sequence FROM records WHERE session = ?1 AND id = ?2")
        .and_then(|mut statement| {
            statement.query_row(params![key, id.as_bytes()], |row| row.get::<_, i64>(0)).optional()
        })
        .map(|found| found.map(i64::unsigned_abs))
        .map_err(fault)
}

pub(super) fn blobs(
    connection: &Connection,
    session: SessionId,
    digests: &[BlobDigest],
) -> Result<Vec<SharedBytes>, JournalError> {
    let view = connection.unchecked_transaction().map_err(fault)?;
    let key = key(&view, session)?;
    let mut statement = view
        .prepare_cached(
            "SELECT bytes FROM blob_references JOIN blobs USING (digest)
             WHERE blob_references.session = ?1 AND blob_references.digest = ?2",
        )
        .map_err(fault)?;
    let mut read = |digest: &BlobDigest| {
        let found = statement.query_row(params![key, digest.as_bytes()], |row| row.get::<_, Vec<u8>>(0));
        found.optional().map_err(fault)?.map(SharedBytes::from).ok_or(JournalError::MissingBlob)
    };
    digests.iter().map(&mut read).collect()
}

pub(super) fn sessions(
    connection: &Connection,
    behind: Option<SessionId>,
    most: u32,
) -> Result<Vec<SessionEntry>, JournalError> {
    let mut statement = connection
        .prepare_cached(
            "SELECT id, (SELECT max(sequence) FROM records WHERE session = key) FROM sessions
             WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ?2",
        )
        .map_err(fault)?;
    let entry = |row: &Row<'_>| {
        Ok(SessionEntry {
            session: SessionId::from_bytes(bytes(row, 0)?),
            last: row.get::<_, Option<i64>>(1)?.unwrap_or(0).unsigned_abs(),
        })
    };
    let behind = behind.as_ref().map(|behind| behind.as_bytes().as_slice());
    let rows = statement.query_map(params![behind, most], entry).map_err(fault)?;
    rows.collect::<rusqlite::Result<_>>().map_err(fault)
}

/// How many faults SQLite finds; it says `ok` when there are none.
pub(super) fn count_faults(connection: &Connection) -> Result<u64, JournalError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(fault)?;
    let rows = statement.query_map([], |row| Ok(row.get_ref(0)?.as_str().is_ok_and(|said| said == "ok")));
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<bool>>>).map_err(fault)?;
    Ok(rows.into_iter().filter(|is_ok| !is_ok).count() as u64)
}
