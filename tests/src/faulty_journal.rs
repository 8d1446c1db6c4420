//! A journal that fails when it is told to, for tests of what stands on journals.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use epitome_loop::{EventId, SessionId, SharedBytes};
use epitome_sessionruntime::journal::{
    Acknowledged, BlobDigest, EncodedRecord, Journal, JournalError, MemoryJournal, Page, PageLimit, Purged,
    Sequence, SessionEntry, WriterLease,
};

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendFault {
    /// It is done.
    None,
    /// It fails, and nothing is written.
    Before,
    /// It is durable, and whoever waited is told that it failed.
    After,
}

/// The code that a failure of this journal has.
pub const INJECTED: i32 = 10;

/// A journal in memory whose appends fail by script. Behind the script they are done.
#[derive(Debug, Default)]
pub struct FaultyJournal {
    inner: MemoryJournal,
    script: Mutex<VecDeque<AppendFault>>,
}

impl FaultyJournal {
    /// An empty journal with a script, one entry for each append.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = AppendFault>) -> Self {
        Self { inner: MemoryJournal::new(), script: Mutex::new(script.into_iter().collect()) }
    }

    fn next_fault(&self) -> AppendFault {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.pop_front().unwrap_or(AppendFault::None)
    }
}

#[async_trait]
impl Journal for FaultyJournal {
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError> {
        self.inner.open(session).await
    }

    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        let failed = Err(JournalError::Store { code: INJECTED });
        match self.next_fault() {
            AppendFault::None => self.inner.append(lease, records).await,
            AppendFault::Before => failed,
            AppendFault::After => self.inner.append(lease, records).await.and(failed),
        }
    }

    async fn read(&self, session: SessionId, from: Sequence, limit: PageLimit) -> Result<Page, JournalError> {
        self.inner.read(session, from, limit).await
    }

    async fn find(&self, session: SessionId, id: EventId) -> Result<Option<Sequence>, JournalError> {
        self.inner.find(session, id).await
    }

    async fn blobs(
        &self,
        session: SessionId,
        digests: Vec<BlobDigest>,
    ) -> Result<Vec<SharedBytes>, JournalError> {
        self.inner.blobs(session, digests).await
    }

    async fn sessions(
        &self,
        behind: Option<SessionId>,
        most: u32,
    ) -> Result<Vec<SessionEntry>, JournalError> {
        self.inner.sessions(behind, most).await
    }

    async fn purge(&self, session: SessionId) -> Result<Purged, JournalError> {
        self.inner.purge(session).await
    }
}
