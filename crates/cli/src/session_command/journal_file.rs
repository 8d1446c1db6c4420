//! The journal of a command, and which of its sessions is meant.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome_journals::SqliteJournal;
use epitome_loop::SessionId;
use epitome_sessionruntime::journal::{
    Journal as _, JournalError, JournalRecord, PageLimit, RecordBody, Sequence, SessionEntry, StoredRecord,
    decode_without_media,
};
use tokio::runtime::Runtime;

use super::failure::JournalFailure;
use crate::failure::Failure;
use crate::input::is_stdio;

/// A journal that is open, with the runtime that its answers are awaited in.
pub(crate) struct JournalFile {
    path: PathBuf,
    journal: Arc<SqliteJournal>,
    runtime: Runtime,
}

/// Where the records of a compaction stand.
#[derive(Clone, Copy)]
pub(crate) struct CompactionPlace {
    pub(crate) started: Sequence,
    pub(crate) committed: Sequence,
}

/// So many sessions are listed at a time.
const LISTED: u32 = 1_000;

impl JournalFile {
    /// Opens a journal that is there, to look at it.
    pub(crate) fn look(path: &Path) -> Result<Self, Failure> {
        Self::opened(path, SqliteJournal::open_for_reading)
    }

    /// Opens a journal that is there, to change it.
    pub(crate) fn change(path: &Path) -> Result<Self, Failure> {
        Self::opened(path, |path| {
            // Otherwise it would be made.
            SqliteJournal::open_for_reading(path).and_then(|_| SqliteJournal::open(path))
        })
    }

    /// Opens a journal to change it, and makes it if it is not there.
    pub(crate) fn make(path: &Path) -> Result<Self, Failure> {
        Self::opened(path, SqliteJournal::open)
    }

    fn opened(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<SqliteJournal, JournalError>,
    ) -> Result<Self, Failure> {
        if is_stdio(path) {
            return Err(JournalFailure::Stdio.into());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::io("the async runtime"))?;
        let failed = |error| match error {
            JournalError::File { kind: std::io::ErrorKind::NotFound } => {
                JournalFailure::NoJournal { path: path.to_owned() }
            }
            JournalError::NotAJournal if is_empty(path) => JournalFailure::Empty { path: path.to_owned() },
            error => JournalFailure::Store { path: path.to_owned(), error },
        };
        Ok(Self { path: path.to_owned(), journal: Arc::new(open(path).map_err(failed)?), runtime })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn journal(&self) -> &Arc<SqliteJournal> {
        &self.journal
    }

    /// Awaits something of the journal.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Awaits an answer of the journal.
    pub(crate) fn ask<T>(&self, answer: impl Future<Output = Result<T, JournalError>>) -> Result<T, Failure> {
        self.wait(answer).map_err(|error| self.failed(error))
    }

    pub(crate) fn failed(&self, error: JournalError) -> Failure {
        JournalFailure::Store { path: self.path.clone(), error }.into()
    }

    /// Every session, in the order of their ids, which is that of their beginnings.
    pub(crate) fn sessions(&self) -> Result<Vec<SessionEntry>, Failure> {
        let mut all: Vec<SessionEntry> = Vec::new();
        loop {
            let behind = all.last().map(|entry| entry.session);
            let page = self.ask(self.journal.sessions(behind, LISTED))?;
            let is_last = page.len() < LISTED as usize;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The session with this beginning of an id; without one the newest that has a record.
    pub(crate) fn choose(&self, wanted: Option<&str>) -> Result<SessionEntry, Failure> {
        let all = self.sessions()?;
        let found = match wanted {
            None => {
                let newest = all.into_iter().rev().find(|entry| entry.last > 0);
                newest.ok_or(JournalFailure::Empty { path: self.path.clone() })
            }
            Some(wanted) => only_one(all, wanted),
        }?;
        Ok(found)
    }

    /// Reads the records of a session one by one, without media. `each` says whether to go on.
    pub(crate) fn records(
        &self,
        session: SessionId,
        mut each: impl FnMut(&StoredRecord, JournalRecord) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut next = Some(1);
        while let Some(from) = next {
            let page = self.ask(self.journal.read(session, from, PageLimit::default()))?;
            for stored in &page.records {
                let unreadable = |fault| JournalFailure::Record { session, sequence: stored.sequence, fault };
                let (record, _) = decode_without_media(session, stored).map_err(unreadable)?;
                if !each(stored, record)? {
                    return Ok(());
                }
            }
            next = page.next;
        }
        Ok(())
    }

    /// The compactions of a session, those that were taken back included.
    pub(crate) fn compactions(&self, session: SessionId) -> Result<Vec<CompactionPlace>, Failure> {
        let (mut compactions, mut started) = (Vec::new(), 0);
        self.records(session, |stored, record| {
            match record.body {
                RecordBody::Started(_) => started = stored.sequence,
                RecordBody::Committed(_) => {
                    compactions.push(CompactionPlace { started, committed: stored.sequence });
                }
                _ => {}
            }
            Ok(true)
        })?;
        Ok(compactions)
    }
}

/// The one session whose id begins so. Hyphens may be left out.
fn only_one(all: Vec<SessionEntry>, wanted: &str) -> Result<SessionEntry, JournalFailure> {
    let digits = |text: &str| text.replace('-', "").to_ascii_lowercase();
    let wanted = digits(wanted.trim());
    if wanted.is_empty() || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(JournalFailure::NoId);
    }
    let mut found = all.into_iter().filter(|entry| digits(&entry.session.to_string()).starts_with(&wanted));
    let first = found.next().ok_or(JournalFailure::NoSuchSession)?;
    match found.count() {
        0 => Ok(first),
        more => Err(JournalFailure::Ambiguous { count: more + 1 }),
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_of_an_id_must_be_of_one_session() {
        let entry = |first: u8, second: u8| {
            let mut bytes = [0; 16];
            (bytes[0], bytes[4]) = (first, second);
            SessionEntry { session: SessionId::from_bytes(bytes), last: 1 }
        };
        let all = vec![entry(0x01, 0xaa), entry(0x01, 0xab), entry(0x02, 0xaa)];
        let found = |wanted: &str| only_one(all.clone(), wanted).map(|entry| entry.session.to_string());
        let second = "01000000-ab00-0000-0000-000000000000";
        for wanted in [second, "01000000-ab", "01000000ab", " 01000000-AB"] {
            assert_eq!(found(wanted).unwrap(), second);
        }
        assert!(matches!(found("01"), Err(JournalFailure::Ambiguous { count: 2 })));
        assert!(matches!(found("03"), Err(JournalFailure::NoSuchSession)));
        for wanted in ["", "-", "x", "01*", "é"] {
            assert!(matches!(found(wanted), Err(JournalFailure::NoId)), "{wanted}");
        }
    }
}
