//! A loop that is driven with everything around it scripted: what is written down, summarized and counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextMeasurement, ContextRevision, CountQuality,
    EventId, ModelKey, RejectionReason, RequestFingerprint, Timestamp, TokenCount, Trigger,
};
use epitome_loopruntime::decision::{
    Change, ChangeKind, CommitStack, CoreSettings, DecisionCore, Record, Refused, Replacement, Reply, Rewind,
    Waiter,
};
use epitome_loopruntime::driver::{
    DriverClosed, DriverSettings, LoopAdapter, LoopHandle, RecordFailed, drive,
};
use tokio::task::JoinHandle;

/// The room of the scripted model, in tokens.
pub const LIMIT: u64 = 10_000;

/// When the scripted policy compacts.
pub const TRIGGER: Trigger =
    Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };

/// What a part of the script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// What it should, after so long.
    Well(Duration),
    /// It fails.
    Fails,
    /// It never ends.
    Hangs,
    /// It panics.
    Panics,
}

/// What everything does.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The summarizer.
    pub summarize: Act,
    /// The counter.
    pub count: Act,
    /// The journal, from this record on.
    pub record: (usize, Act),
    /// Putting the outcome in place.
    pub apply: Act,
    /// Listening to what is answered and refused.
    pub listen: Act,
    /// Telling the time to the loop.
    pub clock: Act,
}

impl Default for Script {
    fn default() -> Self {
        let well = Act::Well(Duration::ZERO);
        Self { summarize: well, count: well, record: (0, well), apply: well, listen: well, clock: well }
    }
}

/// What has happened to the context, as a host sees it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The context that is live.
    pub basis: ContextBasis,
    /// What it takes.
    pub tokens: u64,
    /// Everything that was written down.
    pub records: Vec<Record>,
    /// Attempts whose outcome was put in place.
    pub applied: Vec<AttemptId>,
    /// Attempts that were forgotten.
    pub forgotten: Vec<AttemptId>,
    /// The commits, as the records have them.
    pub commits: CommitStack,
    /// What was answered, as the loop said beforehand.
    pub answers: Vec<(CommandId, Reply)>,
    /// What was refused, as the loop said beforehand.
    pub refusals: Vec<(EventId, Refused)>,
    /// How many of the answers tell the outcome of an attempt and were not on record as such, or another one was.
    pub not_durable: usize,
}

/// The scripted surroundings.
pub struct Surroundings {
    script: Mutex<Script>,
    seen: Mutex<Seen>,
    sizes: Mutex<HashMap<EventId, u64>>,
    clock: AtomicU64,
}

/// A loop that runs, and its surroundings.
pub struct Driven {
    /// The way to it.
    pub handle: LoopHandle,
    /// Its task.
    pub task: JoinHandle<DecisionCore>,
    /// What is around it.
    pub around: Arc<Surroundings>,
    next: AtomicU64,
}

impl Driven {
    /// Starts a loop.
    #[must_use]
    pub fn start(script: Script) -> Self {
        let around = Arc::new(Surroundings {
            script: Mutex::new(script),
            seen: Mutex::default(),
            sizes: Mutex::default(),
            clock: AtomicU64::new(1),
        });
        let core = DecisionCore::new(CoreSettings { trigger: TRIGGER, most_held: 64, most_waiters: 0 });
        let settings = DriverSettings {
            record_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(60),
            inbox: 16,
        };
        let (handle, task) = drive(core, around.clone(), settings);
        Self { handle, task, around, next: AtomicU64::new(1) }
    }

    /// Adds messages of so many tokens.
    ///
    /// # Errors
    /// [`DriverClosed`] as the handle gives it.
    pub async fn append(&self, tokens: u64) -> Result<Result<(), Refused>, DriverClosed> {
        self.handle.change(self.planned(ChangeKind::Append, tokens)).await
    }

    /// Takes commits back or puts them in force; here, that is a context of so many tokens.
    ///
    /// # Errors
    /// [`DriverClosed`] as the handle gives it.
    pub async fn rewind(&self, rewind: Rewind, tokens: u64) -> Result<Result<(), Refused>, DriverClosed> {
        self.handle.change(self.planned(ChangeKind::Rewind(rewind), tokens)).await
    }

    /// A change that is not handed in yet.
    #[must_use]
    pub fn planned(&self, kind: ChangeKind, tokens: u64) -> Change {
        let event = EventId::from_bytes(self.id());
        locked(&self.around.sizes).insert(event, tokens);
        Change { event, kind }
    }

    /// Asks for leave to send the context as it is.
    ///
    /// # Errors
    /// [`DriverClosed`] as the handle gives it.
    pub async fn admit(&self) -> Result<Reply, DriverClosed> {
        let measurement = self.around.measured();
        self.handle.admit(self.waiter(), AttemptId::from_bytes(self.id()), measurement, BasisPoints(0)).await
    }

    /// Asks for a compaction, at once.
    ///
    /// # Errors
    /// [`DriverClosed`] as the handle gives it.
    pub async fn compact(&self) -> Result<Reply, DriverClosed> {
        let asked = self.handle.compact(self.waiter(), AttemptId::from_bytes(self.id()));
        let (reply, boundary) =
            tokio::join!(asked, self.handle.boundary(epitome_loopruntime::decision::Boundary::Turn));
        boundary.and(reply)
    }

    /// A new command, given now.
    #[must_use]
    pub fn waiter(&self) -> Waiter {
        Waiter {
            created_at: Timestamp(self.next.fetch_add(1, Ordering::Relaxed)),
            command: CommandId::from_bytes(self.id()),
        }
    }

    /// The bytes of a new id.
    pub fn id(&self) -> [u8; 16] {
        u128::from(self.next.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
    }
}

impl Surroundings {
    /// What has happened so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }

    /// Changes the script from now on.
    pub fn play(&self, script: Script) {
        *locked(&self.script) = script;
    }

    fn script(&self) -> Script {
        *locked(&self.script)
    }

    fn listen(&self) {
        if self.script().listen == Act::Panics {
            std::panic::resume_unwind(Box::new("as the script has it"));
        }
    }

    fn measured(&self) -> ContextMeasurement {
        let seen = locked(&self.seen);
        measured(seen.basis, seen.tokens)
    }
}

fn measured(basis: ContextBasis, tokens: u64) -> ContextMeasurement {
    ContextMeasurement {
        basis,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
        input_tokens: TokenCount(tokens),
        input_limit: TokenCount(LIMIT),
        quality: CountQuality::ExactLocal,
    }
}

async fn act(act: Act) -> Result<(), RejectionReason> {
    match act {
        Act::Well(after) => {
            tokio::time::sleep(after).await;
            Ok(())
        }
        Act::Fails => Err(RejectionReason::ExecutionFailed),
        Act::Hangs => std::future::pending().await,
        Act::Panics => std::panic::resume_unwind(Box::new("as the script has it")),
    }
}

#[async_trait]
impl LoopAdapter for Surroundings {
    fn now(&self) -> Timestamp {
        if self.script().clock == Act::Panics {
            std::panic::resume_unwind(Box::new("as the script has it"));
        }
        Timestamp(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    async fn record(&self, records: Vec<Record>) -> Result<(), RecordFailed> {
        let (from, how) = self.script().record;
        if locked(&self.seen).records.len() + records.len() > from {
            act(how).await.map_err(|_| RecordFailed)?;
        }
        let mut seen = locked(&self.seen);
        for record in records {
            let (event, grown) = match &record {
                Record::Changed(change) => (Some(change.event), seen.tokens),
                Record::Rewound { event, in_force } => {
                    seen.commits.in_force = *in_force;
                    (Some(*event), 0)
                }
                Record::Committed { .. } => {
                    seen.commits = seen.commits.committed();
                    (None, 0)
                }
                _ => (None, 0),
            };
            if let Some(event) = event {
                let revision = ContextRevision(seen.basis.revision.0 + 1);
                seen.basis = ContextBasis { revision, through_event_id: event };
                seen.tokens = grown + locked(&self.sizes).get(&event).copied().unwrap_or(0);
            }
            seen.records.push(record);
        }
        Ok(())
    }

    async fn summarize(&self, _: AttemptId, _: ContextBasis) -> Result<(), RejectionReason> {
        act(self.script().summarize).await
    }

    async fn count(&self, attempt: AttemptId) -> Result<Replacement, RejectionReason> {
        act(self.script().count).await?;
        let before = self.measured();
        let after = measured(before.basis, before.input_tokens.get() / 4);
        // The event of the commit is as new as the attempt is.
        let mut event = *attempt.as_bytes();
        event[0] = 1;
        let post_fingerprint = after.request_fingerprint;
        Ok(Replacement {
            before,
            after,
            event: EventId::from_bytes(event),
            post_fingerprint,
            byte_occupancy: BasisPoints(0),
        })
    }

    fn apply(&self, attempt: AttemptId, basis: ContextBasis) {
        if self.script().apply == Act::Panics {
            std::panic::resume_unwind(Box::new("as the script has it"));
        }
        let mut seen = locked(&self.seen);
        seen.basis = basis;
        seen.tokens /= 4;
        seen.applied.push(attempt);
    }

    fn forget(&self, attempt: AttemptId) {
        locked(&self.seen).forgotten.push(attempt);
    }

    fn answered(&self, command: CommandId, reply: &Reply) {
        let mut seen = locked(&self.seen);
        let outcome = match *reply {
            Reply::Committed(attempt) => Some((attempt, true)),
            Reply::Rejected(attempt, _) => Some((attempt, false)),
            Reply::Send | Reply::NotAdmitted(_) | Reply::ContextLimit { .. } | Reply::Halted => None,
        };
        if let Some((attempt, resolved)) = outcome {
            let answered = Record::Answered { attempt, command, resolved };
            seen.not_durable += usize::from(!seen.records.contains(&answered));
        }
        seen.answers.push((command, *reply));
        drop(seen);
        self.listen();
    }

    fn refused(&self, change: &Change, why: Refused) {
        locked(&self.seen).refusals.push((change.event, why));
        self.listen();
    }
}

/// A panic of the script must not poison what is looked at afterwards.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
