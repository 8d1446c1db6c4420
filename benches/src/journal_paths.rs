//! Durable commits and reopening, on the disk that holds the folder for temporary files.
//!
//! All of this waits for the disk, so time is the time on the wall, in turns with the rival.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use epitome_journals::SqliteJournal;
use epitome_loop::{
    CompactionInput, ContextLimits, EventId, Message, ModelKey, RequestFingerprint, SessionId, Timestamp,
    TokenCount, Trigger, core_json_len,
};
use epitome_sessionruntime::journal::{
    EncodedRecord, Journal, JournalRecord, PageLimit, RecordBody, SessionOpened, encode_record, restore,
};
use epitome_sessionruntime::{decode_input, encode_input};
use rusqlite::{Connection, TransactionBehavior, params};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::agent_text::reading_session;
use crate::path::{HotPath, Measured, Target, Unit};
use crate::wire::basis;

/// What a commit writes.
const RECORD: usize = 20_000;
const COMMITS: usize = 400;
/// So many commits come first: then the log has been worked in once, as it is again and again from then on.
const WARM_UP: usize = 250;
const SESSIONS: u8 = 100;
/// How long sessions commit at once, for each contender and round.
const CROWDED: Duration = Duration::from_millis(1_500);
/// The 60 ms that a crowd may wait are time of the disk: 288 probes of 208 us, which a probe took where the target was
/// set. A slower disk gets more, a faster one not less.
const P99_PROBES: f64 = 288.0;
const PROBE: f64 = 208e-6;
/// Turns of three messages: 10 MB.
const TURNS: usize = 1_480;

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "journal",
        name: "durable commit of 20 KB, p50",
        target: Target::AtMost(1.8, "an fdatasync probe"),
        reason: None,
        measure: || durable_commit().unwrap_or(FAILED),
    },
    HotPath {
        group: "journal",
        name: "100 sessions at once, time of a commit",
        target: Target::TimesFaster(1.5, "one shared connection"),
        reason: None,
        measure: || crowd().map_or(FAILED, |crowd| crowd.throughput()),
    },
    HotPath {
        group: "journal",
        name: "100 sessions at once, p99",
        target: Target::AtMost(P99_PROBES, "an fdatasync probe"),
        reason: None,
        measure: || crowd().map_or(FAILED, |crowd| crowd.latency()),
    },
    HotPath {
        group: "journal",
        name: "reopening a session of 10 MB",
        target: Target::AtMost(3.0, "decoding it"),
        reason: None,
        measure: || reopening().unwrap_or(FAILED),
    },
];

/// What could not be measured is wrong.
const FAILED: Measured = Measured { ours: 0.0, rival: 0.0, unit: Unit::Seconds, bytes: 0, agreed: false };

fn runtime() -> Option<Runtime> {
    Builder::new_current_thread().build().ok()
}

fn record(number: u128, byte: u8) -> EncodedRecord {
    let body = vec![byte; RECORD].into();
    EncodedRecord { id: EventId::from_bytes(spread(number)), body, blobs: Vec::new() }
}

/// Ids as they come: in no order.
fn spread(number: u128) -> [u8; 16] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_add(1).to_be_bytes()
}

/// The middle of some times.
fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    let at = (times.len() as f64 * part) as usize;
    times.get(at.min(times.len().saturating_sub(1))).map_or(f64::MAX, Duration::as_secs_f64)
}

/// What a durable write costs at least: the same bytes at the end of a file, and a sync of its data.
struct Probe(File);

impl Probe {
    fn new(path: &Path) -> Option<Self> {
        File::create(path).ok().map(Self)
    }

    fn write(&mut self, bytes: &[u8]) -> Option<()> {
        self.0.write_all(bytes).ok()?;
        self.0.sync_data().ok()
    }
}

fn probes() -> Option<Vec<Duration>> {
    let folder = TempDir::new().ok()?;
    let mut probe = Probe::new(&folder.path().join("probe"))?;
    let bytes = vec![2; RECORD];
    let time = || {
        let start = Instant::now();
        probe.write(&bytes)?;
        Some(start.elapsed())
    };
    std::iter::repeat_with(time).take(50).collect()
}

fn durable_commit() -> Option<Measured> {
    let folder = TempDir::new().ok()?;
    let journal = SqliteJournal::open(&folder.path().join("journal.db")).ok()?;
    let mut probe = Probe::new(&folder.path().join("probe"))?;
    let runtime = runtime()?;
    let lease = runtime.block_on(journal.open(SessionId::from_bytes([1; 16]))).ok()?;
    let (mut ours, mut rival) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + COMMITS {
        let record = record(number as u128, 1);
        let bytes = record.body.clone();
        let start = Instant::now();
        runtime.block_on(journal.append(&lease, vec![record])).ok()?;
        ours.push(start.elapsed());
        let start = Instant::now();
        probe.write(&bytes)?;
        rival.push(start.elapsed());
    }
    let listed = runtime.block_on(journal.sessions(None, 2)).ok()?;
    let agreed = listed.iter().map(|entry| entry.last).eq([(WARM_UP + COMMITS) as u64]);
    ours.drain(..WARM_UP);
    rival.drain(..WARM_UP);
    let (ours, rival) = (quantile(&mut ours, 0.5), quantile(&mut rival, 0.5));
    Some(Measured { ours, rival, unit: Unit::Seconds, bytes: 0, agreed })
}

/// What a crowd of sessions showed.
struct Crowd {
    ours: Commits,
    rival: Commits,
    /// What a probe took before, between and behind them.
    probes: Vec<Duration>,
}

/// How commits went.
struct Commits {
    /// How long each took.
    times: Vec<Duration>,
    /// How many the least served session made, as a part of what the average one made.
    least: f64,
    took: Duration,
    are_durable: bool,
}

impl Commits {
    fn seconds_each(&self) -> f64 {
        self.took.as_secs_f64() / self.times.len().max(1) as f64
    }
}

impl Crowd {
    /// Whether everything was durable, and nobody starved.
    fn is_right(&self) -> bool {
        self.ours.are_durable && self.rival.are_durable && self.ours.least >= 0.5
    }

    fn throughput(&self) -> Measured {
        let (ours, rival) = (self.ours.seconds_each(), self.rival.seconds_each());
        Measured { ours, rival, unit: Unit::Seconds, bytes: 0, agreed: self.is_right() }
    }

    fn latency(mut self) -> Measured {
        let agreed = self.is_right();
        let (ours, rival) =
            (quantile(&mut self.ours.times, 0.99), quantile(&mut self.probes, 0.5).max(PROBE));
        Measured { ours, rival, unit: Unit::Seconds, bytes: 0, agreed }
    }
}

fn crowd() -> Option<Crowd> {
    let mut probes = probes()?;
    let mut ours = grouped()?;
    let mut rival = ungrouped()?;
    probes.extend(self::probes()?);
    let (again, rival_again) = (grouped()?, ungrouped()?);
    probes.extend(self::probes()?);
    for (first, second) in [(&mut ours, again), (&mut rival, rival_again)] {
        first.times.extend(second.times);
        first.took += second.took;
        first.least = first.least.min(second.least);
        first.are_durable &= second.are_durable;
    }
    Some(Crowd { ours, rival, probes })
}

/// Sessions that commit at once, each as soon as its last commit is durable, as threads that share what commits.
fn at_once(
    commit: impl Fn(&Runtime, u8, u128) -> Option<()> + Sync,
) -> Option<(Vec<Vec<Duration>>, Duration)> {
    let start = Instant::now();
    let times: Option<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
        let commit = &commit;
        let each = |session| {
            move || {
                let runtime = runtime()?;
                let mut times = Vec::new();
                while start.elapsed() < CROWDED {
                    let begun = Instant::now();
                    commit(&runtime, session, (u128::from(session) << 64) + times.len() as u128)?;
                    times.push(begun.elapsed());
                }
                Some(times)
            }
        };
        let threads: Vec<_> = (0..SESSIONS).map(|session| scope.spawn(each(session))).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    });
    Some((times?, start.elapsed()))
}

fn commits(times: Vec<Vec<Duration>>, took: Duration, durable: u64) -> Commits {
    let least = times.iter().map(Vec::len).min().unwrap_or(0) as f64;
    let times: Vec<Duration> = times.into_iter().flatten().collect();
    let average = times.len() as f64 / f64::from(SESSIONS);
    let are_durable = durable == times.len() as u64;
    Commits { least: least / average.max(1e-9), took, are_durable, times }
}

fn grouped() -> Option<Commits> {
    let folder = TempDir::new().ok()?;
    let path = folder.path().join("journal.db");
    let journal = SqliteJournal::open(&path).ok()?;
    let runtime = runtime()?;
    let open = |session| runtime.block_on(journal.open(SessionId::from_bytes([session + 1; 16]))).ok();
    let leases: Vec<_> = (0..SESSIONS).map(open).collect::<Option<_>>()?;
    let (times, took) = at_once(|runtime, session, number| {
        let lease = leases.get(usize::from(session))?;
        runtime.block_on(journal.append(lease, vec![record(number, session)])).ok()?;
        Some(())
    })?;
    drop(journal);
    let journal = SqliteJournal::open(&path).ok()?;
    let listed = runtime.block_on(journal.sessions(None, 1_000)).ok()?;
    Some(commits(times, took, listed.iter().map(|entry| entry.last).sum()))
}

/// The same tables and the same care, one connection behind a lock, and a transaction for each commit.
fn ungrouped() -> Option<Commits> {
    let folder = TempDir::new().ok()?;
    let connection = Connection::open(folder.path().join("rival.db")).ok()?;
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE records (session INTEGER, sequence INTEGER, id BLOB, checksum BLOB, body BLOB,
                 PRIMARY KEY (session, sequence), UNIQUE (session, id)) STRICT, WITHOUT ROWID;",
        )
        .ok()?;
    let shared = Arc::new(Mutex::new(connection));
    let (times, took) = at_once(|_, session, number| {
        let record = record(number, session);
        let mut connection = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).ok()?;
        transaction
            .prepare_cached(
                "INSERT INTO records SELECT ?1, 1 + coalesce(max(sequence), 0), ?2, ?2, ?3 FROM records
                 WHERE session = ?1",
            )
            .and_then(|mut insert| {
                insert.execute(params![session, record.id.as_bytes(), record.body.as_slice()])
            })
            .ok()?;
        transaction.commit().ok()
    })?;
    let connection = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let durable: i64 = connection.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).ok()?;
    Some(commits(times, took, durable.unsigned_abs()))
}

fn reopening() -> Option<Measured> {
    let folder = TempDir::new().ok()?;
    let path = folder.path().join("journal.db");
    let session = SessionId::from_bytes([1; 16]);
    let messages = reading_session(TURNS);
    let runtime = runtime()?;
    write_session(&runtime, &path, session, &messages)?;
    let input = CompactionInput::new(
        basis(),
        ModelKey::new("p", "m"),
        RequestFingerprint::from_bytes([2; 32]),
        messages.clone(),
        TokenCount(1),
    );
    let wire = encode_input(&input.ok()?);
    let (mut ours, mut rival) = (Duration::MAX, Duration::MAX);
    let mut agreed = true;
    for _ in 0..7 {
        let start = Instant::now();
        let journal = SqliteJournal::open(&path).ok()?;
        let restored = runtime.block_on(restore(&journal, session, Trigger::Manual)).ok()?;
        ours = ours.min(start.elapsed());
        agreed &= restored.messages.as_slice() == &messages[..];
        drop((restored, journal));
        let start = Instant::now();
        let decoded = decode_input(&wire).ok()?;
        rival = rival.min(start.elapsed());
        agreed &= decoded.transcript() == &messages;
    }
    let bytes = messages.iter().map(core_json_len).sum::<u64>();
    let (ours, rival) = (ours.as_secs_f64(), rival.as_secs_f64());
    Some(Measured { ours, rival, unit: Unit::Seconds, bytes: usize::try_from(bytes).ok()?, agreed })
}

/// Writes a session as it grows: each turn is a record of its own.
fn write_session(runtime: &Runtime, path: &Path, session: SessionId, messages: &[Message]) -> Option<()> {
    let journal = SqliteJournal::open(path).ok()?;
    let lease = runtime.block_on(journal.open(session)).ok()?;
    let opened = RecordBody::Opened(SessionOpened {
        model: ModelKey::new("p", "m"),
        limits: ContextLimits::default(),
        policy_revision: "r".into(),
        tools: Arc::from([]),
    });
    let turns = messages
        .chunks(3)
        .zip(0..)
        .map(|(turn, at)| RecordBody::Appended { first: 3 * at, messages: turn.into() });
    let mut records = Vec::new();
    for (body, number) in std::iter::once(opened).chain(turns).zip(1_u128..) {
        let id = EventId::from_bytes(spread(number));
        records.push(encode_record(&JournalRecord { id, at: Timestamp(1), body }).ok()?);
    }
    runtime.block_on(journal.append(&lease, records)).ok()?;
    let read = runtime.block_on(journal.read(session, 1, PageLimit::default())).ok()?;
    (!read.records.is_empty()).then_some(())
}
