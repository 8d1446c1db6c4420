//! What the file knows of a session, and whether its records are all there.
//!
//! A page of the file that is lost takes rows with it, and nothing would miss them: a search finds less. So whatever
//! counts stands in two trees of the file, which lie in different pages. A session is in `writers` and in `lengths`; its
//! records are in their own tree and, by their ids, in an index; how many they are is in `lengths`.

use epitome_loop::{EventId, SessionId};
use epitome_sessionruntime::journal::{JournalError, Sequence};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::fault::fault;
use super::read::{bytes, number};

/// A session of the file.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// What its rows are called in other tables.
    pub(super) key: i64,
    /// The token of its writer.
    pub(super) token: u64,
    /// The place of its last record; 0 when it has none.
    pub(super) last: Sequence,
}

/// What is known of a session; `None` only when nothing is.
pub(super) fn look_up(connection: &Connection, session: SessionId) -> Result<Option<Known>, JournalError> {
    let pair = |query: &str| {
        connection
            .prepare_cached(query)
            .and_then(|mut statement| {
                let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
                statement.query_row([session.as_bytes()], row).optional()
            })
            .map_err(fault)
    };
    let writer = pair("SELECT key, token FROM writers WHERE id = ?1")?;
    let length = pair("SELECT key, last FROM lengths WHERE id = ?1")?;
    let whole = |number: i64| u64::try_from(number).map_err(|_| JournalError::NotAJournal);
    match (writer, length) {
        (None, None) => Ok(None),
        (Some((key, token)), Some((same, last))) if key == same => {
            Ok(Some(Known { key, token: whole(token)?, last: whole(last)? }))
        }
        // One of the trees has lost it, or holds somebody else's key.
        (_, Some((_, last))) => Err(JournalError::Incomplete { recorded: whole(last)?, found: 0 }),
        (Some((key, _)), None) => {
            Err(JournalError::Incomplete { recorded: 0, found: count(connection, key)? })
        }
    }
}

/// What is known of a session that must be there.
pub(super) fn require(connection: &Connection, session: SessionId) -> Result<Known, JournalError> {
    look_up(connection, session)?.ok_or(JournalError::UnknownSession)
}

/// How many records there are; their index is not asked.
fn count(connection: &Connection, key: i64) -> Result<u64, JournalError> {
    connection
        .prepare_cached(
            "SELECT count(*) FROM records INDEXED BY sqlite_autoindex_records_1 WHERE session = ?1",
        )
        .and_then(|mut statement| statement.query_row([key], |row| row.get::<_, i64>(0)))
        .map(i64::unsigned_abs)
        .map_err(fault)
}

/// Ids in any order as one number: one that is missing, there twice or another one changes it.
#[derive(Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    sum: u128,
}

impl Sum {
    fn add(&mut self, id: [u8; 16], sequence: Sequence) {
        const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        let mixed = u128::from_be_bytes(id) ^ u128::from(sequence).wrapping_mul(SPREAD);
        self.count += 1;
        self.sum = self.sum.wrapping_add(mixed.wrapping_mul(SPREAD));
    }
}

impl Known {
    /// Less or more is there than there should be.
    pub(super) fn incomplete(&self, connection: &Connection) -> JournalError {
        match count(connection, self.key) {
            Ok(found) => JournalError::Incomplete { recorded: self.last, found },
            Err(error) => error,
        }
    }

    /// Whether the records end where they should.
    pub(super) fn require_end(&self, connection: &Connection) -> Result<(), JournalError> {
        let last = connection
            .prepare_cached(
                "SELECT sequence FROM records NOT INDEXED WHERE session = ?1 ORDER BY sequence DESC LIMIT 1",
            )
            .and_then(|mut statement| statement.query_row([self.key], |row| number(row, 0)).optional())
            .map_err(fault)?;
        match last.unwrap_or(0) == self.last {
            true => Ok(()),
            false => Err(self.incomplete(connection)),
        }
    }

    /// Whether every record is there, and is found by its id: a record that is not found would be written twice. This
    /// looks at every place of the session, and at none of the bodies.
    pub(super) fn require_whole(&self, connection: &Connection) -> Result<(), JournalError> {
        let (mut ids, mut places, mut next) = (Sum::default(), Sum::default(), 1);
        let mut is_in_order = true;
        self.each(
            connection,
            "SELECT id, sequence FROM records INDEXED BY sqlite_autoindex_records_1 WHERE session = ?1
             ORDER BY sequence",
            |id, sequence| {
                is_in_order &= sequence == next;
                next = sequence.saturating_add(1);
                ids.add(id, 0);
                places.add(id, sequence);
            },
        )?;
        if !is_in_order || next.saturating_sub(1) != self.last {
            return Err(self.incomplete(connection));
        }
        // The first is answered by the index alone, the second by the rows that it leads to.
        let (mut indexed, mut reached) = (Sum::default(), Sum::default());
        let by_id = "SELECT id, 0 FROM records INDEXED BY sqlite_autoindex_records_2 WHERE session = ?1";
        self.each(connection, by_id, |id, _| indexed.add(id, 0))?;
        let by_id =
            "SELECT id, sequence FROM records INDEXED BY sqlite_autoindex_records_2 WHERE session = ?1";
        self.each(connection, by_id, |id, sequence| reached.add(id, sequence))?;
        if indexed == ids && reached == places { Ok(()) } else { Err(JournalError::NotAJournal) }
    }

    fn each(
        &self,
        connection: &Connection,
        query: &str,
        mut each: impl FnMut([u8; 16], Sequence),
    ) -> Result<(), JournalError> {
        let mut statement = connection.prepare_cached(query).map_err(fault)?;
        let mut rows = statement.query([self.key]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let id = bytes(row, 0).map_err(fault)?;
            each(id, number(row, 1).map_err(fault)?);
        }
        Ok(())
    }

    /// Where the record with this id stands, and what `see` makes of its body. The index and the row must agree.
    pub(super) fn record<T>(
        &self,
        connection: &Connection,
        id: EventId,
        see: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<(Sequence, T)>, JournalError> {
        // The index alone answers this.
        let is_indexed = connection
            .prepare_cached(
                "SELECT 1 FROM records INDEXED BY sqlite_autoindex_records_2 WHERE session = ?1 AND id = ?2",
            )
            .and_then(|mut statement| statement.exists(params![self.key, id.as_bytes()]))
            .map_err(fault)?;
        if !is_indexed {
            return Ok(None);
        }
        let mut statement = connection
            .prepare_cached(
                "SELECT sequence, id, body FROM records INDEXED BY sqlite_autoindex_records_2
                 WHERE session = ?1 AND id = ?2",
            )
            .map_err(fault)?;
        let mut rows = statement.query(params![self.key, id.as_bytes()]).map_err(fault)?;
        let Some(row) = rows.next().map_err(fault)? else { return Err(self.incomplete(connection)) };
        let body = row.get_ref(2).map_err(fault)?.as_blob().map_err(|_| JournalError::NotAJournal)?;
        if bytes(row, 1).map_err(fault)? != *id.as_bytes() {
            return Err(JournalError::NotAJournal);
        }
        Ok(Some((number(row, 0).map_err(fault)?, see(body))))
    }
}

/// Whether every record of a session is there; one that is not known has none.
pub(super) fn check(connection: &Connection, session: SessionId) -> Result<(), JournalError> {
    let view = connection.unchecked_transaction().map_err(fault)?;
    match look_up(&view, session)? {
        Some(known) => known.require_whole(&view),
        None => Ok(()),
    }
}
