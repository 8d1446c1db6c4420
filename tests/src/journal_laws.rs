//! What every journal must do. Each law gets a fresh journal and panics when it is broken.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a law is broken by a panic")]

use std::sync::Arc;

use epitome_loop::{Block, EventId, Image, Message, SessionId, SharedBytes, Timestamp};
use epitome_sessionruntime::journal::{
    Blob, EncodedRecord, Journal, JournalError, JournalRecord, LARGEST_INLINE_MEDIA, PageLimit, Purged,
    RecordBody, SessionEntry, checksum, decode_record, encode_record, referred_blobs,
};

/// A law, by its name.
pub type JournalLaw = (&'static str, fn(&dyn Journal));

/// Every law.
pub const JOURNAL_LAWS: &[JournalLaw] = &[
    ("a sequence has no gaps", sequence_has_no_gaps),
    ("an append is all or none", append_is_all_or_none),
    ("a record is written once", record_is_written_once),
    ("an id means one record", id_means_one_record),
    ("a stale token is refused", stale_token_is_refused),
    ("a token is never given twice", token_is_never_given_twice),
    ("pages are bounded and complete", pages_are_bounded_and_complete),
    ("sessions are listed in order", sessions_are_listed_in_order),
    ("media are stored once and belong to sessions", media_are_stored_once),
    ("a purge removes one session", purge_removes_one_session),
    ("what is not there is said so", what_is_not_there_is_said_so),
    ("many writers do not mix", many_writers_do_not_mix),
];

/// Runs something that awaits nothing but the journal.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number; 16])
}

fn id(number: u64) -> EventId {
    EventId::from_bytes(u128::from(number).to_be_bytes())
}

fn plain(number: u64, text: &str) -> EncodedRecord {
    EncodedRecord { id: id(number), body: text.as_bytes().to_vec().into(), blobs: Vec::new() }
}

fn all(journal: &dyn Journal, session: SessionId) -> Vec<(u64, Vec<u8>)> {
    let page = wait(journal.read(session, 1, PageLimit { records: u32::MAX, bytes: usize::MAX })).unwrap();
    assert_eq!(page.next, None);
    page.records.iter().map(|record| (record.sequence, record.body.to_vec())).collect()
}

fn sequence_has_no_gaps(journal: &dyn Journal) {
    let lease = wait(journal.open(session(1))).unwrap();
    for number in 0..20 {
        let records = (0..number % 3 + 1).map(|at| plain(100 * number + at + 1, "r")).collect();
        wait(journal.append(&lease, records)).unwrap();
    }
    let sequences: Vec<u64> = all(journal, session(1)).into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(sequences, (1..=39).collect::<Vec<_>>());
    for record in wait(journal.read(session(1), 1, PageLimit::default())).unwrap().records {
        assert_eq!(record.checksum, checksum(session(1), record.sequence, record.id, &record.body));
    }
}

fn append_is_all_or_none(journal: &dyn Journal) {
    let lease = wait(journal.open(session(1))).unwrap();
    wait(journal.append(&lease, vec![plain(1, "one")])).unwrap();
    for bad in [plain(1, "other"), EncodedRecord { id: EventId::default(), ..plain(1, "none") }] {
        let error = wait(journal.append(&lease, vec![plain(2, "two"), bad, plain(3, "three")])).unwrap_err();
        assert!(error.is_refusal(), "{error}");
        assert_eq!(all(journal, session(1)).len(), 1);
        assert_eq!(wait(journal.find(session(1), id(2))), Ok(None));
    }
    // A refusal leaves no gap behind.
    assert_eq!(wait(journal.append(&lease, vec![plain(2, "two")])).unwrap()[0].sequence, 2);
}

fn record_is_written_once(journal: &dyn Journal) {
    let lease = wait(journal.open(session(1))).unwrap();
    wait(journal.append(&lease, vec![plain(1, "one"), plain(2, "two")])).unwrap();
    let again = vec![plain(2, "two"), plain(3, "three"), plain(3, "three"), plain(1, "one")];
    let acknowledged = wait(journal.append(&lease, again)).unwrap();
    let told: Vec<_> = acknowledged.iter().map(|told| (told.sequence, told.was_there)).collect();
    assert_eq!(told, [(2, true), (3, false), (3, true), (1, true)]);
    assert_eq!(all(journal, session(1)).len(), 3);
    // Also by the next writer, who does not know what was acknowledged.
    let next = wait(journal.open(session(1))).unwrap();
    assert!(wait(journal.append(&next, vec![plain(3, "three")])).unwrap()[0].was_there);
    assert_eq!(wait(journal.find(session(1), id(3))), Ok(Some(3)));
}

fn id_means_one_record(journal: &dyn Journal) {
    let lease = wait(journal.open(session(1))).unwrap();
    wait(journal.append(&lease, vec![plain(1, "one"), plain(2, "two")])).unwrap();
    let refused = wait(journal.append(&lease, vec![plain(2, "twa")]));
    assert_eq!(refused, Err(JournalError::IdReused { sequence: 2 }));
    let refused = wait(journal.append(&lease, vec![plain(3, "a"), plain(3, "b")]));
    assert_eq!(refused, Err(JournalError::IdReused { sequence: 3 }));
    // Another session is another matter.
    let other = wait(journal.open(session(2))).unwrap();
    assert_eq!(wait(journal.append(&other, vec![plain(2, "other")])).unwrap()[0].sequence, 1);
}

fn stale_token_is_refused(journal: &dyn Journal) {
    let old = wait(journal.open(session(1))).unwrap();
    wait(journal.append(&old, vec![plain(1, "one")])).unwrap();
    let new = wait(journal.open(session(1))).unwrap();
    assert!(new.token > old.token);
    let stale = Err(JournalError::StaleLease { held: old.token });
    assert_eq!(wait(journal.append(&old, vec![plain(2, "two")])), stale);
    // Not even what is there already is acknowledged to it.
    assert_eq!(wait(journal.append(&old, vec![plain(1, "one")])), stale);
    wait(journal.append(&new, vec![plain(2, "two")])).unwrap();
    assert_eq!(all(journal, session(1)).len(), 2);
}

fn token_is_never_given_twice(journal: &dyn Journal) {
    let old = wait(journal.open(session(1))).unwrap();
    wait(journal.append(&old, vec![plain(1, "one")])).unwrap();
    wait(journal.purge(session(1))).unwrap();
    let stale = Err(JournalError::StaleLease { held: old.token });
    assert_eq!(wait(journal.append(&old, vec![plain(2, "two")])), stale);
    let new = wait(journal.open(session(1))).unwrap();
    assert!(new.token > old.token);
    assert_eq!(wait(journal.append(&old, vec![plain(2, "two")])), stale);
    assert_eq!(all(journal, session(1)), []);
}

fn pages_are_bounded_and_complete(journal: &dyn Journal) {
    let lease = wait(journal.open(session(1))).unwrap();
    let bodies: Vec<String> = (0..30).map(|number| "x".repeat(number * 10)).collect();
    let records = bodies.iter().zip(1..).map(|(body, number)| plain(number, body)).collect();
    wait(journal.append(&lease, records)).unwrap();
    for limit in [
        PageLimit { records: 7, bytes: usize::MAX },
        PageLimit { records: 100, bytes: 500 },
        PageLimit { records: 0, bytes: 0 },
    ] {
        let (mut next, mut read) = (Some(1), Vec::new());
        while let Some(from) = next {
            let page = wait(journal.read(session(1), from, limit)).unwrap();
            let bytes: usize = page.records.iter().map(|record| record.body.len()).sum();
            assert!(page.records.len() == 1 || bytes <= limit.bytes, "{bytes} bytes");
            assert!(page.records.len() <= limit.records.max(1) as usize);
            next = page.next;
            read.extend(page.records);
        }
        assert!(read.iter().map(|record| record.body.as_slice()).eq(bodies.iter().map(String::as_bytes)));
    }
    let behind = wait(journal.read(session(1), 31, PageLimit::default())).unwrap();
    assert_eq!((behind.records.len(), behind.next), (0, None));
    assert_eq!(wait(journal.read(session(1), u64::MAX, PageLimit::default())).unwrap().records.len(), 0);
    assert_eq!(wait(journal.read(session(1), 0, PageLimit::default())).unwrap().records.len(), 30);
}

fn sessions_are_listed_in_order(journal: &dyn Journal) {
    assert_eq!(wait(journal.sessions(None, 10)), Ok(Vec::new()));
    for number in [5, 1, 200] {
        let lease = wait(journal.open(session(number))).unwrap();
        let records = (1..u64::from(number % 3) + 1).map(|at| plain(at, "r")).collect();
        wait(journal.append(&lease, records)).unwrap();
    }
    let listed = |behind, most| wait(journal.sessions(behind, most)).unwrap();
    let entry = |number, last| SessionEntry { session: session(number), last };
    assert_eq!(listed(None, 10), [entry(1, 1), entry(5, 2), entry(200, 2)]);
    assert_eq!(listed(None, 2), [entry(1, 1), entry(5, 2)]);
    assert_eq!(listed(Some(session(5)), 10), [entry(200, 2)]);
}

fn picture(number: u64, bytes: &[u8]) -> EncodedRecord {
    let data = Some(SharedBytes::from(bytes.to_vec()));
    let image = Block::Image(Image { media_type: "image/png".into(), url: "".into(), data });
    let message = Message::User { blocks: Arc::from([image.clone(), image]) };
    let body = RecordBody::Appended { first: 0, messages: Arc::from([message]) };
    encode_record(&JournalRecord { id: id(number), at: Timestamp(1), body }).unwrap()
}

fn media_are_stored_once(journal: &dyn Journal) {
    let bytes = vec![7; LARGEST_INLINE_MEDIA + 1];
    let digest = Blob::new(bytes.clone().into()).digest();
    for number in [1, 2] {
        let lease = wait(journal.open(session(number))).unwrap();
        let records = vec![picture(1, &bytes), picture(2, &bytes)];
        assert!(records.iter().all(|record| record.blobs.len() == 1 && record.body.len() < 1_000));
        wait(journal.append(&lease, records)).unwrap();
        for stored in wait(journal.read(session(number), 1, PageLimit::default())).unwrap().records {
            assert_eq!(referred_blobs(session(number), &stored), Ok(vec![digest]));
            let read = wait(journal.blobs(session(number), vec![digest, digest])).unwrap();
            assert_eq!(read, [SharedBytes::from(bytes.clone()), SharedBytes::from(bytes.clone())]);
            let blobs = [(digest, read[0].clone())].into();
            let record = decode_record(session(number), &stored, &blobs).unwrap();
            assert_eq!(encode_record(&record).unwrap(), picture(stored.sequence, &bytes));
        }
    }
    wait(journal.open(session(3))).unwrap();
    assert_eq!(wait(journal.blobs(session(3), vec![digest])), Err(JournalError::MissingBlob));
}

fn purge_removes_one_session(journal: &dyn Journal) {
    let shared = vec![1; LARGEST_INLINE_MEDIA + 1];
    let own = vec![2; LARGEST_INLINE_MEDIA + 1];
    for number in [1, 2] {
        let lease = wait(journal.open(session(number))).unwrap();
        wait(journal.append(&lease, vec![picture(1, &shared)])).unwrap();
        if number == 1 {
            wait(journal.append(&lease, vec![picture(2, &own), plain(3, "text")])).unwrap();
        }
    }
    assert_eq!(wait(journal.purge(session(1))), Ok(Purged { records: 3, blobs: 1 }));
    assert_eq!(wait(journal.purge(session(1))), Ok(Purged::default()));
    let gone = wait(journal.read(session(1), 1, PageLimit::default()));
    assert_eq!(gone, Err(JournalError::UnknownSession));
    let digest = Blob::new(shared.clone().into()).digest();
    assert_eq!(wait(journal.blobs(session(2), vec![digest])), Ok(vec![shared.into()]));
    assert_eq!(wait(journal.purge(session(2))), Ok(Purged { records: 1, blobs: 1 }));
    assert_eq!(wait(journal.sessions(None, 10)), Ok(Vec::new()));
}

fn what_is_not_there_is_said_so(journal: &dyn Journal) {
    let unknown = JournalError::UnknownSession;
    assert_eq!(wait(journal.read(session(9), 1, PageLimit::default())), Err(unknown));
    assert_eq!(wait(journal.find(session(9), id(1))), Err(unknown));
    assert_eq!(wait(journal.blobs(session(9), Vec::new())), Err(unknown));
    let lease = wait(journal.open(session(9))).unwrap();
    assert_eq!(all(journal, session(9)), []);
    assert_eq!(wait(journal.find(session(9), id(1))), Ok(None));
    assert_eq!(wait(journal.append(&lease, Vec::new())), Ok(Vec::new()));
}

fn many_writers_do_not_mix(journal: &dyn Journal) {
    std::thread::scope(|scope| {
        for number in 1..=16 {
            scope.spawn(move || {
                let lease = wait(journal.open(session(number))).unwrap();
                for at in 1..=20 {
                    let body = format!("{number} {at}");
                    let told = wait(journal.append(&lease, vec![plain(at, &body)])).unwrap();
                    assert_eq!((told[0].sequence, told[0].was_there), (at, false));
                }
            });
        }
    });
    for number in 1..=16 {
        let expected: Vec<_> = (1..=20).map(|at| (at, format!("{number} {at}").into_bytes())).collect();
        assert_eq!(all(journal, session(number)), expected);
    }
}
