//! What a session itself costs: its memory while it does nothing, and the time of its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use epitome_loop::{EventId, Message, Request, SessionId, SharedBytes, TokenCount, core_json_len};
use epitome_sessionruntime::journal::{
    Acknowledged, BlobDigest, EncodedRecord, Journal, JournalError, Page, PageLimit, Purged, Sequence,
    SessionEntry, WriterLease,
};
use epitome_sessionruntime::{RequestFrame, Session, SessionSettings};

use super::idle_memory::resident;
use super::many_sessions::{House, SlowWorker};

/// A journal that keeps nothing, so that the memory that is measured is the session's.
#[derive(Default)]
struct Nowhere {
    next: AtomicU64,
}

#[async_trait]
impl Journal for Nowhere {
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError> {
        Ok(WriterLease { session, token: 1 })
    }

    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        // One counter for all: only one session writes at a time, and starts where it was left.
        let _ = lease;
        Ok(records
            .iter()
            .map(|_| Acknowledged {
                sequence: self.next.fetch_add(1, Ordering::Relaxed) + 1,
                was_there: false,
            })
            .collect())
    }

    async fn read(&self, _: SessionId, _: Sequence, _: PageLimit) -> Result<Page, JournalError> {
        Ok(Page { records: Vec::new(), next: None })
    }

    async fn find(&self, _: SessionId, _: EventId) -> Result<Option<Sequence>, JournalError> {
        Ok(None)
    }

    async fn blobs(&self, _: SessionId, _: Vec<BlobDigest>) -> Result<Vec<SharedBytes>, JournalError> {
        Ok(Vec::new())
    }

    async fn sessions(&self, _: Option<SessionId>, _: u32) -> Result<Vec<SessionEntry>, JournalError> {
        Ok(Vec::new())
    }

    async fn purge(&self, _: SessionId) -> Result<Purged, JournalError> {
        Ok(Purged::default())
    }
}

/// What the resident memory grows by for each session that does nothing, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleBytes {
    /// After it was opened.
    pub(super) opened: u64,
    /// After so many compactions, beyond the messages of its context.
    pub(super) compacted: u64,
}

/// Sessions that do nothing any more, and what they take.
pub(super) struct IdleSessions {
    bytes: IdleBytes,
    sessions: Vec<Session>,
}

impl IdleSessions {
    /// Measures so many sessions at once; `None` where the memory of a process cannot be told, or when a session did not
    /// do as it should.
    pub(super) async fn measure(sessions: u64, compactions: usize) -> Option<Self> {
        let house = House::on(Arc::new(Nowhere::default()), SlowWorker(Duration::ZERO));
        // The first one makes what all share.
        let first = house.open(0).await?;
        compact(&first, compactions).await?;
        let mut open = Vec::with_capacity(usize::try_from(sessions).ok()?);
        let before = resident()?;
        for number in 1..=sessions {
            let mut house = house.clone();
            house.ports.journal = Arc::new(Nowhere::default());
            open.push(house.open(number).await?);
        }
        let opened = resident()?.saturating_sub(before) / sessions;
        let mut messages = 0;
        for session in &open {
            compact(session, compactions).await?;
            messages += session.messages().iter().map(core_json_len).sum::<u64>();
        }
        let compacted = resident()?.saturating_sub(before).saturating_sub(messages) / sessions;
        open.push(first);
        Some(Self { bytes: IdleBytes { opened, compacted }, sessions: open })
    }

    /// Ends the sessions, and says what they took.
    pub(super) async fn end(self) -> IdleBytes {
        for session in self.sessions {
            session.shut_down().await;
        }
        self.bytes
    }
}

/// Compacts a session so often.
async fn compact(session: &Session, times: usize) -> Option<()> {
    let mut done = 0;
    for turn in 0..times * 100 {
        if done == times {
            break;
        }
        let text = "x".repeat(400);
        session.append([Message::user(format!("{turn}")), Message::assistant(text)]).await.ok()?;
        let admitted = session.admit(RequestFrame::default()).await.ok()?;
        done += usize::from(admitted.compacted.is_some());
    }
    (done == times).then_some(())
}

/// How long one append and one request take on average, in a conversation of so many bytes, by a counter that costs
/// nothing.
pub(super) async fn append_and_admit(bytes: usize, message: usize) -> Option<Duration> {
    const TIMES: u32 = 200;
    let mut house = House::on(Arc::new(Nowhere::default()), SlowWorker(Duration::ZERO));
    house.ports.agent_loop.counter = Arc::new(|_: &Request| TokenCount(100));
    let settings = SessionSettings {
        frame: RequestFrame { system: Some("Be brief.".into()), ..RequestFrame::default() },
        ..SessionSettings::of(SessionId::from_bytes([9; 16]))
    };
    let frame = settings.frame.clone();
    let session = Session::open(&house.bound, settings, house.ports.clone()).await.ok()?;
    let said = |at: usize| Message::user(format!("{at} {}", "y".repeat(message)));
    session.append((0..bytes / message).map(said).collect::<Vec<_>>()).await.ok()?;
    session.admit(frame.clone()).await.ok()?;
    let begin = Instant::now();
    for at in 0..TIMES {
        session.append([said(at as usize)]).await.ok()?;
        session.admit(frame.clone()).await.ok()?;
    }
    let taken = begin.elapsed() / TIMES;
    session.shut_down().await;
    Some(taken)
}
