//! The laws of journals, on each of them; and what SQLite adds.

use std::fs;
use std::time::{Duration, Instant};

use epitome_journals::{SCHEMA_VERSION, SqliteJournal};
use epitome_loop::{EventId, SessionId, Trigger};
use epitome_sessionruntime::journal::{
    Blob, EncodedRecord, FindingKind, Journal, JournalError, MemoryJournal, PageLimit, WriterLease, restore,
    verify_session,
};
use epitome_tests::{AppendFault, FaultyJournal, INJECTED, JOURNAL_LAWS, wait};
use rusqlite::Connection;
use tempfile::TempDir;

#[test]
fn the_journal_in_memory_keeps_the_laws() {
    for (_, law) in JOURNAL_LAWS {
        law(&MemoryJournal::new());
    }
}

#[test]
fn the_journal_in_sqlite_keeps_the_laws() {
    for (name, law) in JOURNAL_LAWS {
        let folder = TempDir::new().unwrap();
        let journal = SqliteJournal::open(&folder.path().join("journal.db")).unwrap();
        law(&journal);
        assert_eq!(wait(journal.check_file()), Ok(0), "{name}");
    }
}

#[test]
fn a_journal_that_fails_by_script_keeps_the_laws_behind_it() {
    for (_, law) in JOURNAL_LAWS {
        law(&FaultyJournal::new([]));
    }
}

#[test]
fn after_a_failure_writing_again_finds_out_what_was_durable() {
    for (fault, was_there) in
        [(AppendFault::None, true), (AppendFault::Before, false), (AppendFault::After, true)]
    {
        let journal = FaultyJournal::new([AppendFault::None, fault]);
        let lease = wait(journal.open(SESSION)).unwrap();
        wait(journal.append(&lease, vec![record(1, "one")])).unwrap();
        let told = wait(journal.append(&lease, vec![record(2, "two")]));
        if fault != AppendFault::None {
            assert_eq!(told, Err(JournalError::Store { code: INJECTED }));
            assert!(!JournalError::Store { code: INJECTED }.is_refusal());
        }
        let found = wait(journal.find(SESSION, record(2, "two").id)).unwrap();
        assert_eq!(found, was_there.then_some(2));
        let told = wait(journal.append(&lease, vec![record(2, "two")])).unwrap();
        assert_eq!((told[0].sequence, told[0].was_there), (2, was_there));
    }
}

fn record(number: u8, text: &str) -> EncodedRecord {
    EncodedRecord {
        id: EventId::from_bytes([number; 16]),
        body: text.as_bytes().to_vec().into(),
        blobs: Vec::new(),
    }
}

const SESSION: SessionId = SessionId::from_bytes([3; 16]);

#[test]
fn records_outlive_the_journal_and_writers_are_fenced_across_connections() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let first = SqliteJournal::open(&path).unwrap();
    let old = wait(first.open(SESSION)).unwrap();
    wait(first.append(&old, vec![record(1, "one")])).unwrap();
    let second = SqliteJournal::open(&path).unwrap();
    let new = wait(second.open(SESSION)).unwrap();
    assert_eq!(
        wait(first.append(&old, vec![record(2, "two")])),
        Err(JournalError::StaleLease { held: old.token })
    );
    wait(second.append(&new, vec![record(2, "two")])).unwrap();
    drop((first, second));
    let third = SqliteJournal::open(&path).unwrap();
    let page = wait(third.read(SESSION, 1, PageLimit::default())).unwrap();
    assert_eq!(page.records.iter().map(|record| record.body.to_vec()).collect::<Vec<_>>(), [b"one", b"two"]);
}

#[test]
fn a_journal_that_is_looked_at_is_not_written_and_not_waited_for() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let refused = |path: &std::path::Path| SqliteJournal::open_for_reading(path).unwrap_err();
    assert_eq!(refused(&path), JournalError::File { kind: std::io::ErrorKind::NotFound });
    assert_eq!(refused(folder.path()), JournalError::File { kind: std::io::ErrorKind::IsADirectory });
    assert_eq!(SqliteJournal::open(folder.path()).unwrap_err(), refused(folder.path()));
    assert!(!path.exists());
    fs::write(&path, "").unwrap();
    assert_eq!(refused(&path), JournalError::NotAJournal);
    assert_eq!(fs::read(&path).unwrap(), b"");

    let writer = SqliteJournal::open(&path).unwrap();
    let lease = wait(writer.open(SESSION)).unwrap();
    wait(writer.append(&lease, vec![record(1, "one")])).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE last_token SET token = token").unwrap();
    let looking = SqliteJournal::open_for_reading(&path).unwrap();
    let read =
        |looking: &SqliteJournal| wait(looking.read(SESSION, 1, PageLimit::default())).unwrap().records.len();
    assert_eq!((read(&looking), wait(looking.check_file())), (1, Ok(0)));
    assert_eq!(wait(looking.open(SESSION)), Err(JournalError::ReadOnly));
    assert_eq!(wait(looking.append(&lease, vec![record(2, "two")])), Err(JournalError::ReadOnly));
    assert_eq!(wait(looking.purge(SESSION)), Err(JournalError::ReadOnly));
    other.execute_batch("ROLLBACK").unwrap();
    // The writer's lease is what it was, and what it writes is seen.
    wait(writer.append(&lease, vec![record(2, "two")])).unwrap();
    assert_eq!(read(&looking), 2);
}

#[test]
fn a_file_that_another_process_works_in_is_waited_for() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE last_token SET token = token + 1").unwrap();
    let (done, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let told = wait(journal.append(&lease, vec![record(1, "one")]));
            done.send(told.map(|told| told[0].sequence)).unwrap();
        });
        assert!(told.recv_timeout(std::time::Duration::from_millis(200)).is_err());
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(told.recv(), Ok(Ok(1)));
    });
}

#[test]
fn a_file_that_stays_locked_refuses_and_nothing_is_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open_with_patience(&path, Duration::from_millis(600)).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let since = Instant::now();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(400));
            (wait(journal.append(&lease, vec![record(2, "late")])), since.elapsed())
        });
        let first = wait(journal.append(&lease, vec![record(1, "first")]));
        let after = since.elapsed();
        assert_eq!(first, Err(JournalError::Busy));
        assert!(JournalError::Busy.is_refusal());
        assert!(after >= Duration::from_millis(600) && after < Duration::from_millis(2_500), "{after:?}");
        // Who came later waits for as long as he may, and not for as long as those before him.
        let (told, after) = late.join().unwrap();
        assert_eq!(told, Err(JournalError::Busy));
        assert!(after >= Duration::from_millis(1_000) && after < Duration::from_millis(3_500), "{after:?}");
    });
    // Reading goes on, and a purge and the end of the journal wait no longer than an append.
    assert_eq!(wait(journal.read(SESSION, 1, PageLimit::default())).unwrap().records.len(), 0);
    assert_eq!(wait(journal.purge(SESSION)), Err(JournalError::Busy));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(wait(journal.append(&lease, vec![record(1, "first")])).unwrap()[0].sequence, 1);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let since = Instant::now();
    drop(journal);
    assert!(since.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_lock_of_some_seconds_is_waited_for_and_a_crowd_goes_on_behind_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let appends: Vec<_> = (1..=8)
            .map(|number| {
                let (journal, lease) = (&journal, &lease);
                scope.spawn(move || wait(journal.append(lease, vec![record(number, "r")])))
            })
            .collect();
        std::thread::sleep(Duration::from_secs(6));
        other.execute_batch("COMMIT").unwrap();
        let mut places: Vec<_> =
            appends.into_iter().map(|append| append.join().unwrap().unwrap()[0].sequence).collect();
        places.sort_unstable();
        assert_eq!(places, [1, 2, 3, 4, 5, 6, 7, 8]);
    });
}

#[test]
fn a_damaged_medium_is_replaced_when_it_comes_again() {
    let (_folder, journal, by_hand, _) = three_records();
    let good = |byte| Blob::new(vec![byte; 9_000].into());
    let with = |number, blob: &Blob| EncodedRecord { blobs: vec![blob.clone()], ..record(number, "m") };
    let (one, two) = (good(1), good(2));
    let lease = wait(journal.open(SESSION)).unwrap();
    wait(journal.append(&lease, vec![with(11, &one), with(12, &two)])).unwrap();
    let read = |session, blob: &Blob| wait(journal.blobs(session, vec![blob.digest()]));
    for damage in ["zeroblob(9000)", "zeroblob(2)", "x''"] {
        by_hand
            .execute(
                &format!("UPDATE blobs SET bytes = {damage} WHERE digest = ?1"),
                [one.digest().as_bytes().as_slice()],
            )
            .unwrap();
        assert_ne!(read(SESSION, &one), Ok(vec![one.bytes().clone()]));
        let number = damage.len() as u8;
        let lease = wait(journal.open(OTHER)).unwrap();
        wait(journal.append(&lease, vec![with(number, &one)])).unwrap();
        for session in [SESSION, OTHER] {
            assert_eq!(read(session, &one), Ok(vec![one.bytes().clone()]), "{damage}");
        }
        assert_eq!(read(SESSION, &two), Ok(vec![two.bytes().clone()]));
    }
    assert_eq!(wait(journal.check_file()), Ok(0));
    // Where the name leads to another medium, neither is written over.
    by_hand
        .execute(
            "UPDATE blobs SET digest = zeroblob(32) WHERE digest = ?1",
            [two.digest().as_bytes().as_slice()],
        )
        .unwrap();
    assert_eq!(read(SESSION, &two), Err(JournalError::MissingBlob));
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("made/deep/journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    wait(journal.append(&lease, vec![record(1, "one")])).unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("made"), mode("made/deep")), (0o700, 0o700));
    for name in ["made/deep/journal.db", "made/deep/journal.db-wal", "made/deep/journal.db-shm"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[test]
fn files_of_others_stay_as_they_are() {
    let folder = TempDir::new().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "this is no database, and it is long enough to look like one".repeat(20)).unwrap();
    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let short = ["x", "SQLite format 3\0", " "].map(|content| {
        let path = folder.path().join(format!("short-{}", content.len()));
        fs::write(&path, content).unwrap();
        path
    });
    for path in [text, foreign].into_iter().chain(short) {
        let before = fs::read(&path).unwrap();
        assert_eq!(SqliteJournal::open(&path).err(), Some(JournalError::NotAJournal));
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    let nowhere = SqliteJournal::open(folder.path()).err();
    assert!(matches!(nowhere, Some(JournalError::Store { .. } | JournalError::File { .. })), "{nowhere:?}");
}

#[test]
fn a_newer_file_is_refused_and_an_older_one_brought_up_to_date() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    wait(journal.append(&lease, vec![record(1, "one")])).unwrap();
    drop(journal);
    // As version 1 left it: without media, and without the lengths of sessions.
    let by_hand = Connection::open(&path).unwrap();
    by_hand
        .execute_batch(
            "DROP TABLE blob_references; DROP TABLE blobs; DROP TABLE lengths;
             ALTER TABLE writers RENAME TO sessions; UPDATE schema_version SET version = 1",
        )
        .unwrap();
    drop(by_hand);
    // It may be looked at first.
    drop(SqliteJournal::open_for_reading(&path).unwrap());
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(wait(journal.read(SESSION, 1, PageLimit::default())).unwrap().records.len(), 1);
    let lease = wait(journal.open(SESSION)).unwrap();
    assert_eq!(wait(journal.append(&lease, vec![record(2, "two")])).unwrap()[0].sequence, 2);
    assert_eq!(wait(journal.sessions(None, 9)).unwrap()[0].last, 2);
    // How far it goes was known from then on.
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute("DELETE FROM records WHERE sequence = 2", []).unwrap();
    let lost = JournalError::Incomplete { recorded: 2, found: 1 };
    assert_eq!(wait(journal.open(SESSION)), Err(lost));
    assert_eq!(wait(journal.purge(SESSION)).unwrap().records, 1);
    drop((journal, by_hand));
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute("UPDATE schema_version SET version = ?1", [SCHEMA_VERSION as i64 + 1]).unwrap();
    drop(by_hand);
    let newer = JournalError::NewerSchema { found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION };
    assert_eq!(SqliteJournal::open(&path).err(), Some(newer));
}

#[test]
fn a_file_that_became_newer_meanwhile_is_not_written() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute("UPDATE schema_version SET version = version + 1", []).unwrap();
    let newer = JournalError::NewerSchema { found: SCHEMA_VERSION + 1, known: SCHEMA_VERSION };
    assert_eq!(wait(journal.append(&lease, vec![record(1, "one")])), Err(newer));
    assert_eq!(wait(journal.open(SESSION)), Err(newer));
    assert_eq!(wait(journal.purge(SESSION)), Err(newer));
    // What only version 2 knew of fails there.
    let old = by_hand.prepare("SELECT key, token FROM sessions WHERE id = ?1");
    assert!(old.is_err());
}

/// A journal with three records of a session, and another session beside it.
fn three_records() -> (TempDir, SqliteJournal, Connection, WriterLease) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    wait(journal.append(&lease, (1..=3).map(|number| record(number, "r")).collect())).unwrap();
    let other = wait(journal.open(SessionId::from_bytes([4; 16]))).unwrap();
    wait(journal.append(&other, vec![record(1, "r")])).unwrap();
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    (folder, journal, by_hand, lease)
}

#[test]
fn a_session_that_is_not_all_there_is_never_shorter() {
    let lost = |recorded, found| JournalError::Incomplete { recorded, found };
    for (damage, error, readable) in [
        (
            "DELETE FROM records WHERE sequence = 3 AND id = x'03030303030303030303030303030303'",
            lost(3, 2),
            2,
        ),
        (
            "DELETE FROM records WHERE session = (SELECT key FROM writers WHERE id = x'03030303030303030303030303030303')",
            lost(3, 0),
            0,
        ),
        ("UPDATE lengths SET last = 2 WHERE last = 3", lost(2, 3), 2),
        ("UPDATE records SET sequence = 400 WHERE sequence = 2", lost(3, 3), 2),
        ("UPDATE lengths SET last = 9 WHERE last = 3", lost(9, 3), 3),
        ("DELETE FROM lengths WHERE last = 3", lost(0, 3), 0),
        ("DELETE FROM writers WHERE id = x'03030303030303030303030303030303'", lost(3, 0), 0),
        ("UPDATE lengths SET key = key + 100 WHERE last = 3", lost(3, 0), 0),
    ] {
        let (_folder, journal, by_hand, lease) = three_records();
        assert_eq!(by_hand.execute(damage, []).unwrap().min(1), 1);
        // Whatever can be read is read, and then the error comes: never an end.
        let (mut next, mut read) = (Some(1), 0);
        let told = loop {
            match wait(journal.read(SESSION, next.expect(damage), PageLimit { records: 2, bytes: 1 << 20 })) {
                Ok(page) => (next, read) = (page.next, read + page.records.len()),
                Err(error) => break error,
            }
        };
        assert_eq!((told, read), (error, readable), "{damage}");
        assert!(error.is_refusal());
        assert_eq!(wait(journal.open(SESSION)), Err(error), "{damage}");
        assert_eq!(wait(journal.append(&lease, vec![record(4, "r")])), Err(error), "{damage}");
        let report = wait(verify_session(&journal, SESSION)).unwrap();
        let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
        let JournalError::Incomplete { recorded, found } = error else { panic!("{error}") };
        assert!(kinds.contains(&FindingKind::Incomplete { recorded, found }), "{damage}: {kinds:?}");
        assert!(wait(restore(&journal, SESSION, Trigger::Manual)).is_err());
        // It is listed, and the other session is what it was.
        let listed = wait(journal.sessions(None, 9)).unwrap();
        assert_eq!(
            listed.iter().map(|entry| entry.session).collect::<Vec<_>>(),
            [SESSION, OTHER],
            "{damage}"
        );
        let lease = wait(journal.open(OTHER)).unwrap();
        assert_eq!(wait(journal.append(&lease, vec![record(2, "r")])).unwrap()[0].sequence, 2);
    }
}

const OTHER: SessionId = SessionId::from_bytes([4; 16]);

#[test]
fn what_a_damaged_session_leaves_is_no_part_of_another() {
    let (_folder, journal, by_hand, _) = three_records();
    wait(journal.purge(OTHER)).unwrap();
    // Records that nobody finds are not removed by a purge; the next session does not get them.
    by_hand.execute("DELETE FROM writers", []).unwrap();
    by_hand.execute("DELETE FROM lengths", []).unwrap();
    let lease = wait(journal.open(OTHER)).unwrap();
    assert_eq!(wait(journal.append(&lease, vec![record(1, "new")])).unwrap()[0].sequence, 1);
    assert_eq!(wait(journal.read(OTHER, 1, PageLimit::default())).unwrap().records.len(), 1);
}

#[test]
fn damage_is_found() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    wait(journal.append(&lease, (1..=5).map(|number| record(number, "not a record")).collect())).unwrap();
    let by_hand = Connection::open(&path).unwrap();
    by_hand.execute("DELETE FROM records WHERE sequence IN (2, 3)", []).unwrap();
    by_hand.execute("UPDATE records SET body = x'00' WHERE sequence = 5", []).unwrap();
    let report = wait(verify_session(&journal, SESSION)).unwrap();
    let kinds: Vec<_> = report.findings.iter().map(|finding| (finding.sequence, finding.kind)).collect();
    assert!(
        matches!(
            kinds.as_slice(),
            [
                (1, FindingKind::Unreadable(_)),
                (4, FindingKind::Gap(2)),
                (4, FindingKind::Unreadable(_)),
                (5, FindingKind::Unreadable(epitome_sessionruntime::journal::CodecFault::Checksum)),
            ]
        ),
        "{kinds:?}"
    );
    assert!(!report.is_whole());
}

#[test]
fn what_is_purged_is_gone_from_the_disk() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let lease = wait(journal.open(SESSION)).unwrap();
    let canary = "canary".repeat(2_000);
    wait(journal.append(&lease, vec![record(1, &canary)])).unwrap();
    let holds = || {
        fs::read_dir(folder.path()).unwrap().any(|entry| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(12).any(|window| window == b"canarycanary")
        })
    };
    assert!(holds());
    wait(journal.purge(SESSION)).unwrap();
    assert!(!holds());
}
