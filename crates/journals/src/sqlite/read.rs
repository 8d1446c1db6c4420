//! Reading. Each question is answered from one view of the file.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use epitome_loop::{EventId, SessionId, SharedBytes};
use epitome_sessionruntime::journal::{
    BlobDigest, Checksum, JournalError, Page, PageLimit, Sequence, SessionEntry, StoredRecord,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::fault::fault;
use super::known;

/// Something to be read.
pub(super) type Job = Box<dyn FnOnce(&Connection) + Send>;

pub(super) fn answer(connection: &mut Connection, job: Job, _: &Receiver<Job>) {
    job(connection);
}

pub(super) fn page(
    connection: &Connection,
    session: SessionId,
    from: Sequence,
    limit: PageLimit,
) -> Result<Page, JournalError> {
    let limit = limit.within_bounds();
    let view = connection.unchecked_transaction().map_err(fault)?;
    let known = known::require(&view, session)?;
    let place = i64::try_from(from).unwrap_or(i64::MAX);
    let mut statement = view
        .prepare_cached(
            "SELECT sequence, id, checksum, body FROM records NOT INDEXED WHERE session = ?1 AND sequence >= ?2
             ORDER BY sequence",
        )
        .map_err(fault)?;
    let mut rows = statement.query(params![known.key, place]).map_err(fault)?;
    let mut page = Page { records: Vec::new(), next: None };
    let (mut bytes, mut before) = (0, 0);
    while let Some(row) = rows.next().map_err(fault)? {
        let record = record(row).map_err(fault)?;
        // A page of the file that is its own neighbour would be read for ever.
        if record.sequence <= before {
            return Err(JournalError::NotAJournal);
        }
        before = record.sequence;
        bytes += record.body.len();
        let is_full = bytes > limit.bytes || page.records.len() >= limit.records as usize;
        let is_beyond = record.sequence > known.last;
        match page.records.last() {
            None if is_beyond => return Err(known.incomplete(&view)),
            // What should not be there is met again where the session should go on or have ended.
            Some(end) if is_beyond => {
                page.next = Some(end.sequence + 1);
                return Ok(page);
            }
            Some(_) if is_full => {
                page.next = Some(record.sequence);
                return Ok(page);
            }
            _ => page.records.push(record),
        }
    }
    // Nothing more is there. What should be there is asked for next, and missed then: all that can be had is given first.
    match page.records.last() {
        Some(end) if end.sequence < known.last => page.next = Some(end.sequence + 1),
        None if from <= known.last && known.last > 0 => return Err(known.incomplete(&view)),
        _ => {}
    }
    Ok(page)
}

fn record(row: &Row<'_>) -> rusqlite::Result<StoredRecord> {
    Ok(StoredRecord {
        sequence: number(row, 0)?,
        id: EventId::from_bytes(bytes(row, 1)?),
        checksum: Checksum::from_bytes(bytes(row, 2)?),
        body: row.get::<_, Vec<u8>>(3)?.into(),
    })
}

/// A column that counts.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let found = row.get::<_, i64>(column)?;
    u64::try_from(found).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, found))
}

/// A column of so many bytes.
pub(super) fn bytes<const N: usize>(row: &Row<'_>, column: usize) -> rusqlite::Result<[u8; N]> {
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
    let found = known::require(&view, session)?.record(&view, id, |_| ())?;
    Ok(found.map(|(sequence, ())| sequence))
}

pub(super) fn blobs(
    connection: &Connection,
    session: SessionId,
    digests: &[BlobDigest],
) -> Result<Vec<SharedBytes>, JournalError> {
    let view = connection.unchecked_transaction().map_err(fault)?;
    let key = known::require(&view, session)?.key;
    let mut statement = view
        .prepare_cached(
            "SELECT bytes FROM blob_references JOIN blobs USING (digest)
             WHERE blob_references.session = ?1 AND blob_references.digest = ?2",
        )
        .map_err(fault)?;
    let mut read = |digest: &BlobDigest| {
        let found = statement.query_row(params![key, digest.as_bytes()], |row| row.get::<_, Vec<u8>>(0));
        match found.optional().map_err(fault) {
            Ok(found) => found.map(SharedBytes::from).ok_or(JournalError::MissingBlob),
            // A damaged page of media is a medium that is not there; records are read without it.
            Err(JournalError::NotAJournal) => Err(JournalError::MissingBlob),
            Err(error) => Err(error),
        }
    };
    digests.iter().map(&mut read).collect()
}

/// A session that one of the two trees has lost is listed: whoever reads it is told.
pub(super) fn sessions(
    connection: &Connection,
    behind: Option<SessionId>,
    most: u32,
) -> Result<Vec<SessionEntry>, JournalError> {
    let view = connection.unchecked_transaction().map_err(fault)?;
    let before = behind.as_ref().map(SessionId::as_bytes);
    let mut found = BTreeMap::new();
    for query in [
        "SELECT id, 0 FROM writers WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ?2",
        "SELECT id, last FROM lengths WHERE ?1 IS NULL OR id > ?1 ORDER BY id LIMIT ?2",
    ] {
        let mut statement = view.prepare_cached(query).map_err(fault)?;
        let behind = before.map(|behind| behind.as_slice());
        let entry = |row: &Row<'_>| Ok((bytes(row, 0)?, number(row, 1)?));
        let rows = statement.query_map(params![behind, most], entry).map_err(fault)?;
        for row in rows {
            let (session, last) = row.map_err(fault)?;
            // Whoever lists goes on behind the last one, so a tree that is out of order must not lead back.
            if before.is_none_or(|before| session > *before) {
                found.insert(session, last);
            }
        }
    }
    let entry = |(session, last)| SessionEntry { session: SessionId::from_bytes(session), last };
    Ok(found.into_iter().map(entry).take(most as usize).collect())
}

/// How many faults SQLite finds; it says `ok` when there are none.
pub(super) fn count_faults(connection: &Connection) -> Result<u64, JournalError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(fault)?;
    let rows = statement.query_map([], |row| Ok(row.get_ref(0)?.as_str().is_ok_and(|said| said == "ok")));
    let rows = rows.and_then(Iterator::collect::<rusqlite::Result<Vec<bool>>>).map_err(fault)?;
    Ok(rows.into_iter().filter(|is_ok| !is_ok).count() as u64)
}
