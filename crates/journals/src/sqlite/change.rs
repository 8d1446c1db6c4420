//! What is done to the tables, inside a transaction of somebody else.

use epitome_loop::{EventId, SessionId};
use epitome_sessionruntime::journal::{
    Acknowledged, EncodedRecord, JournalError, Purged, WriterLease, checksum,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::fault::fault;
use super::known::{Known, look_up};
use super::media;

pub(super) fn open(inside: &Connection, session: SessionId) -> Result<WriterLease, JournalError> {
    let known = look_up(inside, session)?;
    let token: i64 = inside
        .prepare_cached("UPDATE last_token SET token = token + 1 RETURNING token")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(fault)?;
    let lease = WriterLease { session, token: u64::try_from(token).map_err(|_| JournalError::NotAJournal)? };
    match known {
        Some(known) => {
            known.require_end(inside)?;
            // A token that is not the highest is no fence.
            if lease.token <= known.token {
                return Err(JournalError::NotAJournal);
            }
            let change = params![known.key, token];
            change_one(inside, "UPDATE writers SET token = ?2 WHERE key = ?1", change)?;
        }
        None => {
            // The token is the key as well: it was never given before, so what a purge could not reach in a damaged
            // file never becomes part of another session.
            inside
                .prepare_cached("INSERT INTO writers (key, id, token) VALUES (?1, ?2, ?1)")
                .and_then(|mut statement| statement.execute(params![token, session.as_bytes()]))
                .map_err(fault)?;
            inside
                .prepare_cached("INSERT INTO lengths (id, key, last) VALUES (?2, ?1, 0)")
                .and_then(|mut statement| statement.execute(params![token, session.as_bytes()]))
                .map_err(fault)?;
        }
    }
    Ok(lease)
}

/// Changes the one row that is there for certain.
fn change_one(inside: &Connection, query: &str, change: impl rusqlite::Params) -> Result<(), JournalError> {
    let changed =
        inside.prepare_cached(query).and_then(|mut statement| statement.execute(change)).map_err(fault)?;
    if changed == 1 { Ok(()) } else { Err(JournalError::NotAJournal) }
}

pub(super) fn append(
    inside: &Connection,
    lease: WriterLease,
    records: &[EncodedRecord],
) -> Result<Vec<Acknowledged>, JournalError> {
    let known = look_up(inside, lease.session)?.filter(|known| known.token == lease.token);
    let Some(known) = known else { return Err(JournalError::StaleLease { held: lease.token }) };
    known.require_end(inside)?;
    let mut last = known.last;
    let mut acknowledged = Vec::with_capacity(records.len());
    for record in records {
        if record.id.is_zero() {
            return Err(JournalError::NoId);
        }
        let is_same = |body: &[u8]| body == record.body.as_slice();
        if let Some((sequence, is_same)) = known.record(inside, record.id, is_same)? {
            if !is_same {
                return Err(JournalError::IdReused { sequence });
            }
            acknowledged.push(Acknowledged { sequence, was_there: true });
            continue;
        }
        last = last.checked_add(1).ok_or(JournalError::SequenceOverflow)?;
        insert(inside, lease.session, &known, last, record)?;
        acknowledged.push(Acknowledged { sequence: last, was_there: false });
    }
    // What is written into a damaged page may take the place of something else in it. So everything is looked for before
    // it is acknowledged.
    for (record, told) in records.iter().zip(&acknowledged).filter(|(_, told)| !told.was_there) {
        let found = known.record(inside, record.id, |body| body == record.body.as_slice())?;
        if found != Some((told.sequence, true)) {
            return Err(JournalError::NotAJournal);
        }
    }
    if last > known.last {
        // In the same transaction as the records: what is missing later is known to be missing.
        let last = i64::try_from(last).map_err(|_| JournalError::SequenceOverflow)?;
        let change = params![lease.session.as_bytes(), last];
        change_one(inside, "UPDATE lengths SET last = ?2 WHERE id = ?1", change)?;
    }
    Ok(acknowledged)
}

fn insert(
    inside: &Connection,
    session: SessionId,
    known: &Known,
    sequence: u64,
    record: &EncodedRecord,
) -> Result<(), JournalError> {
    let EncodedRecord { id, body, blobs } = record;
    let place = i64::try_from(sequence).map_err(|_| JournalError::SequenceOverflow)?;
    blobs.iter().try_for_each(|blob| media::keep(inside, known.key, blob))?;
    let sum = checksum(session, sequence, *id, body);
    inside
        .prepare_cached(
            "INSERT INTO records (session, sequence, id, checksum, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut statement| {
            let id = EventId::as_bytes(id);
            statement.execute(params![known.key, place, id, sum.as_bytes(), body.as_slice()])
        })
        .map(drop)
        .map_err(fault)
}

/// Removes a session, also one that is damaged, as far as it can be told what is its own.
pub(super) fn purge(inside: &Connection, session: SessionId) -> Result<Purged, JournalError> {
    let key = |query: &str| {
        inside.query_row(query, [session.as_bytes()], |row| row.get::<_, i64>(0)).optional().map_err(fault)
    };
    let writer = key("SELECT key FROM writers WHERE id = ?1")?;
    let length = key("SELECT key FROM lengths WHERE id = ?1")?;
    let key = match (writer, length) {
        (None, None) => return Ok(Purged::default()),
        // Whose key is whose cannot be told, and nothing of another session may go.
        (Some(one), Some(other)) if one != other => {
            return look_up(inside, session).map(|_| Purged::default());
        }
        (Some(key), _) | (None, Some(key)) => key,
    };
    let delete = |text: &str| inside.execute(text, [key]).map(|count| count as u64).map_err(fault);
    let records = delete("DELETE FROM records WHERE session = ?1")?;
    let blobs = media::let_go(inside, key)?;
    delete("DELETE FROM writers WHERE key = ?1")?;
    inside.execute("DELETE FROM lengths WHERE id = ?1", [session.as_bytes()]).map_err(fault)?;
    Ok(Purged { records, blobs })
}
