//! Thousands of sessions in one process, and of loops without them, with a slow summarizer, and users who interrupt, undo
//! and ask in between.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use epitome_loopruntime::decision::{Record, Refused, Reply, Rewind};
use tokio::runtime::{Builder, Runtime};

use super::idle_memory::{self, IdleMemory};
use super::many_sessions::{self, SessionLife};
use super::session_cost::{IdleBytes, IdleSessions, append_and_admit};
use super::{EvidenceError, Places, Verdict};
use crate::driven::{Act, Driven, Script};

const LOOPS: u64 = 2_000;
const COMPACTIONS: usize = 20;

/// A loop that has not got so far after so many turns has hung.
const MOST_TURNS: usize = 2_000;

/// What the task of an idle loop may take in bytes, all that it keeps included. The session around it has its own
/// share.
const MOST_IDLE: u64 = 3_584;

/// What an idle session may take in bytes, its loop included, beyond the messages of its context.
const MOST_IDLE_SESSION: u64 = 8 << 10;

/// What became of one loop.
#[derive(Debug, Default)]
struct Life {
    compactions: usize,
    commands: u64,
    answers: u64,
    changes: u64,
    rewinds: u64,
    faults: Vec<&'static str>,
}

pub(super) fn run(_: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let started = |source| EvidenceError::Program { program: "the runtime".to_owned(), source };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().map_err(started)?;
    // Measured before anything else has left its traces in the memory, and both at once: what one gives back, the other
    // would take.
    let idle_sessions = runtime.block_on(IdleSessions::measure(LOOPS, COMPACTIONS));
    let idle_loops = runtime.block_on(idle_memory::measure(LOOPS));
    let idle = idle_sessions.map(|idle| runtime.block_on(idle.end()));
    for bytes in [100_000, 1_000_000, 10_000_000] {
        if let Some(taken) = runtime.block_on(append_and_admit(bytes, 1_000)) {
            writeln!(out, "    append and admit, {} messages of 1 kB: {taken:.1?}", bytes / 1_000)?;
        }
    }
    let sessions = sessions(&runtime, idle, out)?;
    let loops = loops(&runtime, idle_loops, out)?;
    let word = if loops.holds { "hold" } else { "DO NOT HOLD" };
    writeln!(out, "    loops without a session {word}: {}", loops.line)?;
    Ok(Verdict { holds: sessions.holds && loops.holds, line: sessions.line })
}

/// Live sessions, each on a journal of its own.
fn sessions(
    runtime: &Runtime,
    idle: Option<IdleBytes>,
    out: &mut dyn Write,
) -> Result<Verdict, EvidenceError> {
    let begin = Instant::now();
    let lives = runtime.block_on(async {
        let lives: Vec<_> = (0..LOOPS).map(|number| tokio::spawn(many_sessions::live(number))).collect();
        let mut ended = Vec::new();
        for life in lives {
            ended.push(life.await.unwrap_or_else(|_| SessionLife::panicked()));
        }
        ended
    });
    let taken = begin.elapsed();
    let leaked = tasks_left(runtime);
    let faults: Vec<&str> = lives.iter().flat_map(|life| life.faults.iter().copied()).collect();
    for fault in faults.iter().take(5) {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let sum = |of: fn(&SessionLife) -> u64| lives.iter().map(of).sum::<u64>();
    let (calls, returns, dropped) =
        (sum(|life| life.calls), sum(|life| life.returns), sum(|life| life.dropped));
    let memory = idle.as_ref().map_or("not known here".to_owned(), |idle| {
        format!("{} bytes when opened, {} after {COMPACTIONS} compactions", idle.opened, idle.compacted)
    });
    let line = format!(
        "{LOOPS} sessions, {} attempts with {} commits, {} answers on record, each once; {calls} calls: {returns} \
         answered, {dropped} dropped; {} rewinds, {} messages in the journals, {} faults, {leaked} tasks left, in \
         {taken:.0?}; an idle session takes {memory}",
        sum(|life| life.attempts),
        sum(|life| life.commits),
        sum(|life| life.answered),
        sum(|life| life.rewinds),
        sum(|life| life.messages),
        faults.len(),
    );
    let is_small = idle.is_none_or(|idle| idle.opened.max(idle.compacted) <= MOST_IDLE_SESSION);
    let holds = faults.is_empty() && leaked == 0 && calls == returns + dropped && is_small;
    Ok(Verdict { holds, line })
}

/// How many tasks are left; one that is over takes a moment to go.
fn tasks_left(runtime: &Runtime) -> usize {
    let patience = (0..100).take_while(|_| runtime.metrics().num_alive_tasks() > 0);
    patience.for_each(|_| std::thread::sleep(Duration::from_millis(10)));
    runtime.metrics().num_alive_tasks()
}

/// Loops whose surroundings are scripted altogether.
fn loops(runtime: &Runtime, idle: Option<IdleMemory>, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let lives = runtime.block_on(async {
        let lives: Vec<_> = (0..LOOPS).map(|seed| tokio::spawn(live(seed))).collect();
        let mut ended = Vec::new();
        for life in lives {
            ended.push(
                life.await.unwrap_or_else(|_| Life { faults: vec!["a task panicked"], ..Life::default() }),
            );
        }
        ended
    });
    let leaked = tasks_left(runtime);
    let faults: Vec<&str> = lives.iter().flat_map(|life| life.faults.iter().copied()).collect();
    for fault in faults.iter().take(5) {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let sum = |of: fn(&Life) -> u64| lives.iter().map(of).sum::<u64>();
    let (commands, answers) = (sum(|life| life.commands), sum(|life| life.answers));
    let memory = match idle {
        Some(IdleMemory { fresh, lived }) => format!("{fresh} bytes, {lived} with its trace full"),
        None => "not known here".to_owned(),
    };
    let line = format!(
        "{LOOPS} loops, {} compactions, {commands} commands with {answers} answers, {} changes, {} of them rewinds, {} faults, {leaked} \
         tasks left; an idle loop takes {memory}",
        sum(|life| life.compactions as u64),
        sum(|life| life.changes),
        sum(|life| life.rewinds),
        faults.len(),
    );
    let holds = faults.is_empty()
        && leaked == 0
        && commands == answers
        && idle.is_none_or(|idle| idle.lived <= MOST_IDLE);
    Ok(Verdict { holds, line })
}

/// One loop, until it was compacted often enough.
async fn live(seed: u64) -> Life {
    let mut dice = Dice(seed + 1);
    let pace = Act::Well(Duration::from_millis(1 + seed % 7));
    let driven = Arc::new(Driven::start(Script { summarize: pace, ..Script::default() }));
    let mut life = Life::default();
    for _ in 0..MOST_TURNS {
        if driven.around.seen().applied.len() >= COMPACTIONS {
            break;
        }
        life.turn(&driven, &mut dice).await;
    }
    let seen = driven.around.seen();
    life.compactions = seen.applied.len();
    if life.compactions < COMPACTIONS {
        life.faults.push("a loop was not compacted often enough");
    }
    let changed = seen.records.iter().filter_map(|record| match record {
        Record::Changed(change) => Some(change.event),
        Record::Rewound { event, .. } => Some(*event),
        _ => None,
    });
    let changed: Vec<_> = changed.collect();
    if changed.len() as u64 != life.changes || !changed.is_sorted() {
        life.faults.push("changes were lost or reordered");
    }
    let outcomes = seen.answers.iter().filter(|(_, reply)| is_outcome(*reply)).count();
    let on_record = seen.records.iter().filter(|record| matches!(record, Record::Answered { .. })).count();
    if seen.answers.len() as u64 != life.commands || outcomes != on_record || seen.not_durable > 0 {
        life.faults.push("an answer was not durable before it was given, or not given");
    }
    let begun = seen.records.iter().filter(|record| matches!(record, Record::Started(_))).count();
    let is_end = |record: &&Record| matches!(record, Record::Committed { .. } | Record::Rejected { .. });
    if seen.records.iter().filter(is_end).count() < begun {
        life.faults.push("an attempt has no end");
    }
    let Some(Driven { handle, task, .. }) = Arc::into_inner(driven) else {
        life.faults.push("somebody still waits");
        return life;
    };
    drop(handle);
    if task.await.is_err() {
        life.faults.push("the task of a loop panicked");
    }
    life
}

/// Whether it tells the outcome of an attempt.
fn is_outcome(reply: Reply) -> bool {
    matches!(reply, Reply::Committed(_) | Reply::Rejected(..))
}

impl Life {
    /// A few messages, and a request; now and then a user who interferes.
    async fn turn(&mut self, driven: &Driven, dice: &mut Dice) {
        let (first, second) =
            tokio::join!(driven.append(700 + dice.below(900)), driven.append(dice.below(50)));
        self.changes += u64::from(first == Ok(Ok(()))) + u64::from(second == Ok(Ok(())));
        if dice.below(40) == 0 {
            self.rewind(driven, dice).await;
        }
        let user = async {
            match dice.below(12) {
                0 => {
                    tokio::time::sleep(Duration::from_millis(dice.below(6))).await;
                    driven.handle.interrupt().map(|()| None)
                }
                1 => driven.compact().await.map(Some),
                _ => Ok(None),
            }
        };
        self.commands += 1;
        let (admitted, asked) = tokio::join!(driven.admit(), user);
        self.answers += u64::from(admitted.is_ok());
        if let Ok(Some(_)) = asked {
            self.commands += 1;
            self.answers += 1;
        }
        if matches!(admitted, Ok(Reply::ContextLimit { .. })) {
            // What a user would do.
            self.commands += 1;
            self.answers += u64::from(driven.compact().await.is_ok());
        }
        if matches!(admitted, Ok(Reply::Halted)) || admitted.is_err() {
            self.faults.push("a loop halted");
        }
    }

    /// The user takes a compaction back, or puts one in force again. Nothing else is under way.
    async fn rewind(&mut self, driven: &Driven, dice: &mut Dice) {
        let commits = driven.around.seen().commits;
        let rewind = if dice.below(3) == 0 { Rewind::Forward(1) } else { Rewind::Back(1 + dice.below(3)) };
        let expected = if commits.rewound(rewind).is_some() { Ok(()) } else { Err(Refused::NoSuchCommit) };
        let done = driven.rewind(rewind, 5_000 + dice.below(6_000)).await;
        self.changes += u64::from(done == Ok(Ok(())));
        self.rewinds += u64::from(done == Ok(Ok(())));
        if done != Ok(expected) {
            self.faults.push("a rewind that can be done was refused, or the other way round");
        }
    }
}

/// Numbers that look random, the same in each run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}
