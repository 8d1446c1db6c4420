//! Kills a writer at random instants, cuts its log at every byte, and flips bits of its file.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use epitome_journals::SqliteJournal;
use epitome_loop::{EventId, Timestamp};
use epitome_sessionruntime::journal::{
    Journal, JournalError, RestoreError, SessionState, restore, verify_session,
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::program::{cargo, must_run};
use super::{EvidenceError, Places, Verdict};
use crate::crash_workload::{SESSIONS, TRIGGER, append_around, append_of, record, session};
use crate::damage::{AfterDamage, DamagedJournal};

const KILLS: usize = 300;
/// So many kills happen to one journal, which is longer each time.
const KILLS_OF_ONE: usize = 10;
/// A writer lives for at most so long after it was started.
const LONGEST_LIFE: u64 = 60_000;
const BYTES: usize = 6_000;
/// The size of messages and summaries in the log that is cut, and how many records it has.
const CUT_BYTES: usize = 200;
const CUT_RECORDS: u64 = 13;
/// A page of the file, and where its tree has its shape: there every bit is flipped.
const PAGE: usize = 4_096;
const HEAD: usize = 32;
/// Of the other bytes each of so many has one bit flipped.
const STRIDE: usize = 11;

/// What was found after the kills.
#[derive(Default)]
struct Found {
    kills: usize,
    acknowledged: u64,
    lost: u64,
    half_applied: u64,
    gaps: u64,
    not_acknowledged: u64,
    written_twice: u64,
    unfinished: u64,
    not_finished: u64,
}

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let mut build = vec!["build", "--quiet", "-p", "epitome-tests", "--bin", "crash_writer"];
    if !cfg!(debug_assertions) {
        build.push("--release");
    }
    must_run(&mut cargo(places, &build))?;
    let writer = std::env::current_exe().map_err(data)?.with_file_name("crash_writer");
    let found = kill(&writer, out)?;
    let cuts = cut_everywhere(out)?;
    let flips = flip_bits(out)?;
    let Found { kills, acknowledged, lost, half_applied, gaps, not_acknowledged, written_twice, .. } = found;
    let holds = lost == 0
        && half_applied == 0
        && gaps == 0
        && written_twice == 0
        && found.not_finished == 0
        && kills == KILLS
        && acknowledged > 0
        && not_acknowledged > 0
        && cuts.wrong == 0
        && cuts.prefixes > 1
        && flips.wrong == 0
        && flips.refused > 0;
    let line = format!(
        "{kills} kills, {acknowledged} records acknowledged, {lost} lost, {half_applied} compactions half applied, \
         {gaps} gaps, {not_acknowledged} durable without an answer of which {written_twice} were written twice; log \
         cut at {} places, {} wrong; {} bits of the file flipped, {} refused, {} restored as something else",
        cuts.places, cuts.wrong, flips.flips, flips.refused, flips.wrong
    );
    Ok(Verdict { holds, line })
}

fn data(error: impl std::fmt::Display) -> EvidenceError {
    EvidenceError::Data { what: error.to_string() }
}

fn runtime() -> Result<Runtime, EvidenceError> {
    Builder::new_current_thread().build().map_err(data)
}

fn kill(writer: &Path, out: &mut dyn Write) -> Result<Found, EvidenceError> {
    let mut found = Found::default();
    let mut chance: u64 = 0x9e37_79b9_7f4a_7c15;
    while found.kills < KILLS {
        let folder = TempDir::new().map_err(data)?;
        let journal = folder.path().join("journal.db");
        let mut acknowledged = BTreeMap::new();
        for _ in 0..KILLS_OF_ONE {
            // Steps of a linear congruence; the high bits are the random ones.
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let life = Duration::from_micros((chance >> 33) % LONGEST_LIFE);
            live_and_die(writer, &journal, life, &mut acknowledged)?;
            found.kills += 1;
            look(&journal, &mut acknowledged, &mut found)?;
        }
        found.acknowledged += acknowledged.values().sum::<u64>();
    }
    writeln!(
        out,
        "{} kills of a writer to {SESSIONS} sessions: {} records acknowledged; {} attempts were under way and were \
         finished as rejected, {} could not be",
        found.kills, found.acknowledged, found.unfinished, found.not_finished
    )?;
    Ok(found)
}

/// Lets a writer live for so long, and notes what it said was acknowledged.
fn live_and_die(
    writer: &Path,
    journal: &Path,
    life: Duration,
    acknowledged: &mut BTreeMap<u8, u64>,
) -> Result<(), EvidenceError> {
    let failed = |source| EvidenceError::Program { program: writer.display().to_string(), source };
    let mut child = Command::new(writer)
        .arg(journal)
        .args([u64::MAX.to_string(), BYTES.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let said = child.stdout.take();
    let listener = thread::spawn(move || {
        // A line that was cut by the kill says nothing.
        let lines = said.into_iter().flat_map(|said| BufReader::new(said).lines().map_while(Result::ok));
        lines
            .filter_map(|line| {
                let (session, sequence) = line.split_once(' ')?;
                Some((session.parse::<u8>().ok()?, sequence.parse::<u64>().ok()?))
            })
            .collect::<Vec<_>>()
    });
    thread::sleep(life);
    child.kill().map_err(failed)?;
    child.wait().map_err(failed)?;
    for (session, sequence) in listener.join().unwrap_or_default() {
        let last = acknowledged.entry(session).or_default();
        *last = sequence.max(*last);
    }
    Ok(())
}

/// Looks at what a dead writer left behind.
fn look(
    path: &Path,
    all_acknowledged: &mut BTreeMap<u8, u64>,
    found: &mut Found,
) -> Result<(), EvidenceError> {
    let journal = SqliteJournal::open(path).map_err(data)?;
    let runtime = runtime()?;
    for number in 0..SESSIONS {
        let acknowledged = all_acknowledged.get(&number).copied().unwrap_or(0);
        let restored = runtime.block_on(restore(&journal, session(number), TRIGGER));
        let state = match restored {
            Ok(restored) => restored.state,
            // Killed before the session was there.
            Err(RestoreError::Journal(JournalError::UnknownSession)) => SessionState::new(TRIGGER),
            Err(_) => {
                found.gaps += 1;
                continue;
            }
        };
        let last = state.last();
        found.lost += acknowledged.saturating_sub(last);
        if last == 0 {
            continue;
        }
        let report = runtime.block_on(verify_session(&journal, session(number))).map_err(data)?;
        found.gaps += report.found;
        found.half_applied += u64::from(append_around(last).1 != last);
        if state.unfinished().is_some() {
            found.unfinished += 1;
            found.not_finished += u64::from(!can_be_finished(&state));
        }
        if last > acknowledged {
            found.not_acknowledged += 1;
            found.written_twice += written_twice(&runtime, &journal, number, last)?;
            // It has its answer now.
            all_acknowledged.insert(number, last);
        }
    }
    Ok(())
}

fn can_be_finished(state: &SessionState) -> bool {
    let mut number = 0_u8;
    let closing = state.closing_records(Timestamp(1), || {
        number += 1;
        EventId::from_bytes([number; 16])
    });
    let closed = (state.last() + 1..)
        .zip(&closing)
        .try_fold(state.clone(), |state, (sequence, record)| state.apply(sequence, record));
    closed.is_ok_and(|closed| closed.unfinished().is_none() && closed.context() == state.context())
}

/// Whether what was durable without an answer is found by its id, and is not written again: 0 if so.
fn written_twice(
    runtime: &Runtime,
    journal: &SqliteJournal,
    number: u8,
    last: u64,
) -> Result<u64, EvidenceError> {
    let (first, _) = append_around(last);
    let is_there = runtime.block_on(journal.find(session(number), record(last, BYTES).id)).map_err(data)?;
    let lease = runtime.block_on(journal.open(session(number))).map_err(data)?;
    let again = append_of(last, BYTES).map_err(data)?;
    let told = runtime.block_on(journal.append(&lease, again)).map_err(data)?;
    let told = told.iter().map(|told| (told.sequence, told.was_there));
    let is_once = is_there == Some(last) && told.eq((first..=last).map(|sequence| (sequence, true)));
    Ok(u64::from(!is_once))
}

/// What cuts showed.
#[derive(Default)]
struct Cuts {
    places: usize,
    wrong: usize,
    /// How many different prefixes came out.
    prefixes: usize,
}

/// Cuts the write-ahead log of a journal, whose file was up to date before, at every byte; the file beside it stays.
fn cut_everywhere(out: &mut dyn Write) -> Result<Cuts, EvidenceError> {
    // In memory where that can be had: what is looked at here is not the disk.
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.map_err(data)?;
    let path = folder.path().join("journal.db");
    let runtime = runtime()?;
    // Closing works the log in, so the next one holds the records alone.
    drop(SqliteJournal::open(&path).map_err(data)?);
    let journal = SqliteJournal::open(&path).map_err(data)?;
    let lease = runtime.block_on(journal.open(session(0))).map_err(data)?;
    let mut next = 1;
    while next <= CUT_RECORDS {
        let records = append_of(next, CUT_BYTES).map_err(data)?;
        runtime.block_on(journal.append(&lease, records)).map_err(data)?;
        next = append_around(next).1 + 1;
    }
    let file = fs::read(&path).map_err(data)?;
    let log = fs::read(folder.path().join("journal.db-wal")).map_err(data)?;
    drop(journal);
    let mut cuts = Cuts::default();
    let mut before = 0;
    for cut in 0..=log.len() {
        let place = folder.path().join("cut");
        fs::create_dir(&place).map_err(data)?;
        fs::write(place.join("journal.db"), &file).map_err(data)?;
        fs::write(place.join("journal.db-wal"), log.get(..cut).unwrap_or_default()).map_err(data)?;
        let last = opens_to(&runtime, &place.join("journal.db"));
        cuts.places += 1;
        // The log grows to the right: a longer one never holds less, and the whole one holds all.
        let is_right = last.is_some_and(|last| {
            last >= before && append_around(last).1 == last && (cut < log.len() || last == next - 1)
        });
        cuts.wrong += usize::from(!is_right);
        if let Some(last) = last.filter(|last| *last > before) {
            cuts.prefixes += 1;
            before = last;
        }
        fs::remove_dir_all(&place).map_err(data)?;
    }
    writeln!(
        out,
        "the write-ahead log of {} bytes, cut at every one of them (the file beside it is whole): {} longer and longer \
         prefixes of {} records, {} wrong",
        log.len(),
        cuts.prefixes,
        next - 1,
        cuts.wrong
    )?;
    Ok(cuts)
}

/// How many records a journal holds, if all of them are whole and follow from one another.
fn opens_to(runtime: &Runtime, path: &Path) -> Option<u64> {
    let journal = SqliteJournal::open(path).ok()?;
    match runtime.block_on(restore(&journal, session(0), TRIGGER)) {
        Ok(restored) => Some(restored.state.last()),
        Err(RestoreError::Journal(JournalError::UnknownSession)) => Some(0),
        Err(_) => None,
    }
}

/// What flipped bits showed.
#[derive(Default)]
struct Flips {
    flips: usize,
    refused: usize,
    wrong: usize,
}

/// Flips bits of a journal's file, one at a time: every bit at the head of each page, and some of all others.
fn flip_bits(out: &mut dyn Write) -> Result<Flips, EvidenceError> {
    let journal = DamagedJournal::new().map_err(data)?;
    let mut flips = Flips::default();
    for at in 0..journal.file().len() {
        let bits = match at {
            _ if at % PAGE < HEAD => 0..8,
            // Each time another bit.
            _ if at.is_multiple_of(STRIDE) => (at / STRIDE % 8) as u32..(at / STRIDE % 8) as u32 + 1,
            _ => 0..0,
        };
        for bit in bits {
            flips.flips += 1;
            match journal.flip(at, bit).map_err(data)? {
                AfterDamage::Whole => {}
                AfterDamage::Refused => flips.refused += 1,
                AfterDamage::Wrong(what) => {
                    flips.wrong += 1;
                    writeln!(out, "byte {at} bit {bit}: {what}")?;
                }
            }
        }
    }
    writeln!(
        out,
        "{} bits of a file of {} bytes, flipped one at a time: {} times an error said so, {} times something else was \
         restored or acknowledged; the other times nothing was lost",
        flips.flips,
        journal.file().len(),
        flips.refused,
        flips.wrong
    )?;
    Ok(flips)
}
