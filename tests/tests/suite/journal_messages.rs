//! Messages by their numbers, and sessions that are caught up with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use epitome_journals::SqliteJournal;
use epitome_loop::{Block, ContextBasis, EventId, Image, Message, SessionId, SharedBytes, Timestamp};
use epitome_sessionruntime::journal::{
    Acknowledged, BlobDigest, EncodedRecord, Journal, JournalError, JournalRecord, MemoryJournal,
    MessageRange, Page, PageLimit, Purged, RecordBody, ReplayFault, RestoreError, Restored, Sequence,
    SessionEntry, SessionState, WriterLease, encode_record, read_messages, restore, restore_through,
};
use epitome_tests::wait;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::journal_records::{SESSION, TRIGGER, event, measurement, opened};

/// Counts the records that are read.
struct Counting<J> {
    inner: J,
    records: AtomicU64,
}

impl<J> Counting<J> {
    fn new(inner: J) -> Self {
        Self { inner, records: AtomicU64::new(0) }
    }

    fn taken(&self) -> u64 {
        self.records.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl<J: Journal> Journal for Counting<J> {
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError> {
        self.inner.open(session).await
    }

    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        self.inner.append(lease, records).await
    }

    async fn read(&self, session: SessionId, from: Sequence, limit: PageLimit) -> Result<Page, JournalError> {
        let page = self.inner.read(session, from, limit).await?;
        self.records.fetch_add(page.records.len() as u64, Ordering::Relaxed);
        Ok(page)
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

/// A session as it is written: how many messages each record has; 0 is a record of another kind.
struct Written {
    records: Vec<JournalRecord>,
    state: SessionState,
}

impl Written {
    fn new() -> Self {
        let mut written = Self { records: Vec::new(), state: SessionState::new(TRIGGER) };
        written.add(RecordBody::Opened(opened()));
        written
    }

    fn of(shape: &[u8]) -> Self {
        let mut written = Self::new();
        shape.iter().for_each(|messages| written.grow(*messages));
        written
    }

    fn add(&mut self, body: RecordBody) {
        let number = self.records.len() as u64 + 1;
        let record = JournalRecord { id: event(number), at: Timestamp(number), body };
        self.state = self.state.clone().apply(number, &record).unwrap();
        self.records.push(record);
    }

    fn grow(&mut self, messages: u8) {
        let first = self.state.messages();
        let message = |number: u64| match number % 7 {
            3 => {
                let data = Some(SharedBytes::from(vec![number as u8; 5_000]));
                let image = Block::Image(Image { media_type: "image/png".into(), url: "".into(), data });
                Message::User { blocks: Arc::from([image]) }
            }
            _ => Message::user(format!("message {number}")),
        };
        match messages {
            0 if self.state.basis() == ContextBasis::default() => self.add(RecordBody::Opened(opened())),
            0 => self.add(RecordBody::Measured(measurement(self.state.basis(), 5))),
            _ => {
                let messages = (first..first + u64::from(messages)).map(message).collect();
                self.add(RecordBody::Appended { first, messages });
            }
        }
    }

    /// Writes what is not there yet.
    fn put(&self, journal: &dyn Journal) {
        let lease = wait(journal.open(SESSION)).unwrap();
        let records = self.records.iter().map(|record| encode_record(record).unwrap()).collect();
        wait(journal.append(&lease, records)).unwrap();
    }
}

fn on_each(law: impl Fn(&dyn Journal)) {
    law(&MemoryJournal::new());
    let folder = TempDir::new().unwrap();
    law(&SqliteJournal::open(&folder.path().join("journal.db")).unwrap());
}

fn missing(last: Sequence) -> RestoreError {
    RestoreError::Replay(epitome_sessionruntime::journal::ReplayError {
        sequence: last,
        fault: ReplayFault::Retained,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn messages_read_by_number_are_those_of_the_whole_session(
        shape in prop::collection::vec(prop_oneof![Just(0_u8), Just(0), 1_u8..5], 0..60),
        wanted in prop::collection::vec((0_u64..100, 0_u64..12), 0..8),
        through in 1_u64..80,
    ) {
        let written = Written::of(&shape);
        on_each(|journal| {
            written.put(journal);
            for last in [through, Sequence::MAX] {
                let whole = wait(restore_through(journal, SESSION, TRIGGER, last)).unwrap();
                let there = whole.messages.len() as u64;
                let ranges: Vec<_> = wanted
                    .iter()
                    .map(|(first, count)| {
                        let first = (*first).min(there);
                        MessageRange { first, end: (first + count).min(there) }
                    })
                    .collect();
                let expected: Vec<_> = whole.messages_in(&ranges).cloned().collect();
                assert_eq!(wait(read_messages(journal, SESSION, last, &ranges)).unwrap(), expected);
                // One that is not there is said so, and nothing is left out.
                let beyond = [MessageRange { first: there.saturating_sub(1), end: there + 1 }];
                assert_eq!(wait(read_messages(journal, SESSION, last, &beyond)), Err(missing(last)));
            }
        });
    }

    #[test]
    fn a_session_that_is_caught_up_with_is_as_if_restored(
        shape in prop::collection::vec(0_u8..4, 0..20),
        more in prop::collection::vec(0_u8..4, 0..20),
        own in prop::collection::vec(0_u8..4, 0..3),
    ) {
        on_each(|journal| {
            let mut written = Written::of(&shape);
            written.put(journal);
            let mut restored = wait(restore(journal, SESSION, TRIGGER)).unwrap();
            more.iter().for_each(|messages| written.grow(*messages));
            written.put(journal);
            wait(restored.catch_up(journal, SESSION)).unwrap();
            assert_eq!(restored, wait(restore(journal, SESSION, TRIGGER)).unwrap());
            assert_eq!(restored.state, written.state);
            // What its holder wrote and took in himself is not taken in twice.
            own.iter().for_each(|messages| written.grow(*messages));
            written.put(journal);
            restored.state = written.state.clone();
            wait(restored.catch_up(journal, SESSION)).unwrap();
            assert_eq!(restored, wait(restore(journal, SESSION, TRIGGER)).unwrap());
            // From nothing it is a restore.
            let mut fresh = Restored::new(TRIGGER);
            wait(fresh.catch_up(journal, SESSION)).unwrap();
            assert_eq!(fresh, restored);
        });
    }
}

#[test]
fn only_what_is_needed_is_read() {
    let shape: Vec<u8> = (0..20_000).map(|at| u8::from(at % 3 == 0)).collect();
    let written = Written::of(&shape);
    let journal = Counting::new(MemoryJournal::new());
    written.put(&journal);
    let last = written.state.last();
    let range = |first, end| MessageRange { first, end };
    for (ranges, most) in [
        (vec![range(5_000, 5_001)], 64),
        (vec![range(0, 1)], 64),
        (vec![range(6_666, 6_667)], 64),
        // Each of these stands in one record of three.
        (vec![range(3_000, 3_100)], 64 + 400),
        (vec![range(10, 11), range(3_000, 3_001), range(6_000, 6_050)], 3 * 64 + 200),
        (Vec::new(), 0),
    ] {
        let wanted: u64 = ranges.iter().map(MessageRange::count).sum();
        let read = wait(read_messages(&journal, SESSION, last, &ranges)).unwrap();
        let taken = journal.taken();
        assert_eq!(read.len() as u64, wanted);
        assert!(taken <= most, "{taken} records for {wanted} messages");
        println!("{wanted} messages of {}: {taken} of {last} records read", written.state.messages());
    }
    // Behind the last message nothing but other records: they are passed over in pages, and each at most once or so.
    let tail = Written::of(&[[1_u8].as_slice(), &[0; 5_000]].concat());
    let journal = Counting::new(MemoryJournal::new());
    tail.put(&journal);
    wait(read_messages(&journal, SESSION, tail.state.last(), &[range(0, 1)])).unwrap();
    assert!(journal.taken() <= 2 * tail.state.last());
}

#[test]
fn catching_up_reads_what_is_new_and_notices_another_session() {
    let mut written = Written::of(&[1; 3_000]);
    let journal = Counting::new(MemoryJournal::new());
    written.put(&journal);
    let mut restored = wait(restore(&journal, SESSION, TRIGGER)).unwrap();
    (0..5).for_each(|_| written.grow(2));
    written.put(&journal);
    journal.taken();
    wait(restored.catch_up(&journal, SESSION)).unwrap();
    assert_eq!((journal.taken(), restored.messages.len()), (6, 3_010));

    // A record that does not follow leaves everything as it was.
    let before = restored.clone();
    let lease = wait(journal.open(SESSION)).unwrap();
    written.grow(1);
    let wrong = RecordBody::Undone { in_force: 7 };
    let wrong = JournalRecord { id: event(99_999), at: Timestamp(1), body: wrong };
    let records = [written.records.last().unwrap(), &wrong].map(|record| encode_record(record).unwrap());
    wait(journal.append(&lease, records.into())).unwrap();
    let error = wait(restored.catch_up(&journal, SESSION)).unwrap_err();
    assert!(matches!(error, RestoreError::Replay(error) if error.fault == ReplayFault::Rewind), "{error}");
    assert_eq!(restored, before);

    // Purged and begun anew, shorter or longer: it is another one.
    for length in [2, 4_000] {
        wait(journal.purge(SESSION)).unwrap();
        let unknown = Err(RestoreError::Journal(JournalError::UnknownSession));
        assert_eq!(wait(restored.catch_up(&journal, SESSION)), unknown);
        Written::of(&vec![2; length]).put(&journal);
        assert_eq!(wait(restored.catch_up(&journal, SESSION)), unknown);
        assert_eq!(restored, before);
    }
}
