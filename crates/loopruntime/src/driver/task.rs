//! The task of a loop.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use epitome_loop::{AttemptId, EventId, RejectionReason, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::adapter::LoopAdapter;
use super::handle::LoopHandle;
use super::inbox::{Ear, Message, Signal, inbox};
use super::trace::Trace;
use super::waiting::Waiting;
use crate::decision::{Boundary, DecisionCore, Effect, Input, Record};

/// How long a loop waits for what it does not do itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverSettings {
    /// For a record to become durable; then the loop halts.
    pub record_timeout: Duration,
    /// For an attempt, from its beginning to the counted request; then it is rejected.
    pub attempt_timeout: Duration,
    /// So many messages may wait to be looked at; who sends more waits.
    pub inbox: usize,
}

/// Starts the task of a loop on the runtime at hand. The task ends when the loop was shut down or has halted and
/// nothing waits any more.
pub fn drive(
    core: DecisionCore,
    adapter: Arc<dyn LoopAdapter>,
    settings: DriverSettings,
) -> (LoopHandle, JoinHandle<DecisionCore>) {
    let (inbox, ear) = inbox(settings.inbox);
    let mut task = Task {
        core: Some(core),
        waiting: Waiting::new(Arc::clone(&adapter)),
        adapter,
        settings,
        inputs: VecDeque::new(),
        job: None,
        attempt_until: None,
        trace: Trace::default(),
        latest: Timestamp::default(),
        is_ending: false,
    };
    // A loop mostly waits, and there are many of them: its future holds the task once, and what is rare in a box.
    let life = async move {
        task.live(&ear).await;
        task.core.take().unwrap_or_else(|| unreachable!("the core is there between inputs"))
    };
    (LoopHandle { inbox }, tokio::spawn(life))
}

/// Work that is done for an attempt beside the loop. It answers with an input for the core.
struct Job {
    attempt: AttemptId,
    work: JoinHandle<Input>,
    until: Pin<Box<Sleep>>,
    /// What the core hears when the adapter panics.
    if_it_panics: Input,
}

struct Task {
    /// Always there, but for the moment in which an input is handled.
    core: Option<DecisionCore>,
    adapter: Arc<dyn LoopAdapter>,
    settings: DriverSettings,
    /// What the loop has to say to itself, before anything else is heard.
    inputs: VecDeque<Box<Input>>,
    waiting: Waiting,
    job: Option<Box<Job>>,
    /// When the time for the attempt that runs is over.
    attempt_until: Option<Instant>,
    trace: Trace,
    latest: Timestamp,
    is_ending: bool,
}

/// What a loop hears next.
enum Heard {
    Message(Message),
    Signal(Signal),
    Done(Box<Input>),
    DeadlinePassed,
    NobodyLeft,
}

impl Task {
    async fn live(&mut self, ear: &Ear) {
        loop {
            self.catch_up().await;
            if self.is_ending && !self.is_busy() {
                break;
            }
            match self.hear(ear).await {
                Heard::Message(message) => self.take(message),
                Heard::Signal(signal) => self.heed(signal),
                Heard::Done(input) => {
                    self.job = None;
                    self.inputs.push_back(input);
                }
                Heard::DeadlinePassed => {
                    let attempt = self.job.as_ref().map(|job| job.attempt);
                    self.stop_job(None);
                    if let Some(attempt) = attempt {
                        self.hear_next(Input::DeadlinePassed { attempt });
                    }
                }
                Heard::NobodyLeft => self.end(),
            }
        }
        // Whoever is too late is told so by the closed inbox or here.
        let (signals, messages) = ear.close();
        signals.into_iter().for_each(|signal| self.heed(signal));
        messages.into_iter().for_each(|message| self.take(message));
        self.catch_up().await;
    }

    /// Lets the core hear everything that is there for it.
    async fn catch_up(&mut self) {
        while let Some(input) = self.inputs.pop_front() {
            let effects = self.decide(*input);
            if !effects.is_empty() {
                Box::pin(self.follow(effects)).await;
            }
        }
        self.inputs = VecDeque::new();
    }

    /// Waits for whatever comes first; signals go before commands.
    async fn hear(&mut self, ear: &Ear) -> Heard {
        let ends_alone = self.is_ending;
        let mut job = self.job.as_deref_mut();
        let worked = poll_fn(|context| job.as_mut().map_or(Poll::Pending, |job| job.poll(context)));
        tokio::select! {
            biased;
            signal = ear.signal(), if !ends_alone => Heard::Signal(signal),
            heard = worked => heard,
            message = ear.message(), if !ends_alone => message.map_or(Heard::NobodyLeft, Heard::Message),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Command(input, command, answer) => {
                self.waiting.command(command, answer);
                self.inputs.push_back(input);
            }
            Message::Change(change, answer) => {
                self.waiting.change(change, answer);
                self.hear_next(Input::Change(change));
            }
            Message::Boundary(boundary) => self.hear_next(Input::Boundary(boundary)),
            Message::AtBoundary(message) => {
                self.take(*message);
                self.hear_next(Input::Boundary(Boundary::Step));
            }
        }
    }

    fn heed(&mut self, signal: Signal) {
        match signal {
            Signal::Interrupt => self.hear_next(Input::Interrupt),
            Signal::ShutDown => self.end(),
            Signal::SettingsChanged(trigger) => self.hear_next(Input::SettingsChanged(trigger)),
            Signal::Trace(answer) => {
                // Who does not wait any more needs no answer.
                let _gone = answer.send(self.trace.decisions());
            }
        }
    }

    fn hear_next(&mut self, input: Input) {
        self.inputs.push_back(Box::new(input));
    }

    /// Before anything else that is there for the core.
    fn hear_first(&mut self, input: Input) {
        self.inputs.push_front(Box::new(input));
    }

    fn end(&mut self) {
        if !self.is_ending {
            self.is_ending = true;
            self.hear_next(Input::ShutDown);
        }
    }

    fn is_busy(&self) -> bool {
        self.core.as_ref().is_some_and(|core| core.blocks_input() && !core.is_halted())
    }

    fn decide(&mut self, input: Input) -> Vec<Effect> {
        let now = self.now();
        let Some(core) = self.core.take() else { return Vec::new() };
        let (core, effects) = core.handle(input, now);
        self.core = Some(core);
        effects
    }

    /// What time it is; that of before when the adapter does not say.
    fn now(&mut self) -> Timestamp {
        let adapter = &self.adapter;
        self.latest = catch_unwind(AssertUnwindSafe(|| adapter.now())).unwrap_or(self.latest);
        self.latest
    }

    /// Does what the core asks for. Records that stand in a row are written together.
    async fn follow(&mut self, effects: Vec<Effect>) {
        let mut records = Vec::new();
        for effect in effects {
            match effect {
                Effect::Record(record) => records.push(record),
                other => {
                    if !self.write(std::mem::take(&mut records)).await {
                        return;
                    }
                    self.follow_one(other);
                }
            }
        }
        self.write(records).await;
    }

    /// Writes records down; whether they are durable. If they are not, the rest of what was asked for is void.
    async fn write(&mut self, records: Vec<Record>) -> bool {
        if records.is_empty() {
            return true;
        }
        let rejected: Vec<AttemptId> = records.iter().filter_map(rejected_of).collect();
        let about: Vec<AttemptId> = records.iter().filter_map(attempt_of).collect();
        let changed: Vec<EventId> = records.iter().filter_map(change_of).collect();
        let adapter = self.adapter.clone();
        let writing = guarded(async move { adapter.record(records).await });
        let written = timeout(self.settings.record_timeout, writing).await;
        if written != Ok(Some(Ok(()))) {
            self.hear_first(Input::JournalFailed);
            return false;
        }
        rejected.into_iter().for_each(|attempt| self.forget(attempt));
        for event in changed {
            self.waiting.changed(event);
        }
        // The core hears of it before anything that came in meanwhile.
        for attempt in about.into_iter().rev() {
            self.hear_first(Input::Recorded { attempt });
        }
        true
    }

    fn follow_one(&mut self, effect: Effect) {
        match effect {
            Effect::Record(_) => {}
            Effect::Summarize { attempt, basis } => {
                let adapter = &self.adapter;
                let told = catch_unwind(AssertUnwindSafe(|| adapter.attempt_timeout())).unwrap_or_default();
                let limit = told.unwrap_or(self.settings.attempt_timeout);
                self.attempt_until = Some(after(limit));
                let adapter = self.adapter.clone();
                let work = async move {
                    Input::Summarized { attempt, outcome: adapter.summarize(attempt, basis).await }
                };
                let if_it_panics = Input::Summarized { attempt, outcome: Err(RejectionReason::Internal) };
                self.start_job(attempt, work, if_it_panics);
            }
            Effect::Count { attempt } => {
                // The time for an attempt is one, and what the summary took of it is gone.
                let adapter = self.adapter.clone();
                let work = async move {
                    let outcome = adapter.count(attempt).await.map(Box::new);
                    Input::Counted { attempt, outcome }
                };
                let if_it_panics = Input::Counted { attempt, outcome: Err(RejectionReason::Internal) };
                self.start_job(attempt, work, if_it_panics);
            }
            Effect::Cancel { attempt } => self.stop_job(Some(attempt)),
            Effect::Apply { attempt, basis } => {
                let adapter = &self.adapter;
                if catch_unwind(AssertUnwindSafe(|| adapter.apply(attempt, basis))).is_err() {
                    // The commit is durable and the context in memory is not it: only opening again mends that.
                    self.hear_first(Input::JournalFailed);
                }
                self.forget(attempt);
            }
            Effect::Reply { command, reply } => self.waiting.answer(command, reply),
            Effect::Refuse { change, why } => self.waiting.refuse(change, why),
            Effect::Decided(decision) => {
                self.trace.push(decision);
                let adapter = &self.adapter;
                let _heard = catch_unwind(AssertUnwindSafe(|| adapter.decided(decision)));
            }
            Effect::Halt => {
                self.stop_job(None);
                // Answers that the core gave behind the record that failed were never sent.
                self.waiting.halt();
                self.is_ending = true;
            }
        }
    }

    fn start_job(
        &mut self,
        attempt: AttemptId,
        work: impl Future<Output = Input> + Send + 'static,
        if_it_panics: Input,
    ) {
        self.stop_job(None);
        let until = Box::pin(sleep_until(self.attempt_until.unwrap_or_else(Instant::now)));
        self.job = Some(Box::new(Job { attempt, work: tokio::spawn(work), until, if_it_panics }));
    }

    fn forget(&self, attempt: AttemptId) {
        let adapter = &self.adapter;
        let _forgotten = catch_unwind(AssertUnwindSafe(|| adapter.forget(attempt)));
    }

    /// Drops the work that is under way, or only that of one attempt.
    fn stop_job(&mut self, attempt: Option<AttemptId>) {
        if let Some(job) = self.job.take_if(|job| attempt.is_none_or(|attempt| attempt == job.attempt)) {
            job.work.abort();
        }
    }
}

impl Job {
    /// An answer that is there counts, also when the time is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Heard> {
        if let Poll::Ready(done) = Pin::new(&mut self.work).poll(context) {
            return Poll::Ready(Heard::Done(Box::new(done.unwrap_or_else(|_| self.if_it_panics.clone()))));
        }
        self.until.as_mut().poll(context).map(|()| Heard::DeadlinePassed)
    }
}

/// So far from now on, or as far as instants go.
fn after(limit: Duration) -> Instant {
    /// Thirty years.
    const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(limit).or_else(|| now.checked_add(LONG)).unwrap_or(now)
}

/// The outcome of a future on a task of its own; `None` when it panicked.
async fn guarded<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    tokio::spawn(work).await.ok()
}

fn attempt_of(record: &Record) -> Option<AttemptId> {
    match record {
        Record::Started(attempt) => Some(attempt.id),
        Record::Committed { attempt, .. } | Record::Rejected { attempt, .. } => Some(*attempt),
        Record::Measured(_)
        | Record::Changed(_)
        | Record::Rewound { .. }
        | Record::SettingsChanged
        | Record::Latched(_)
        | Record::Answered { .. } => None,
    }
}

fn rejected_of(record: &Record) -> Option<AttemptId> {
    match record {
        Record::Rejected { attempt, .. } => Some(*attempt),
        _ => None,
    }
}

fn change_of(record: &Record) -> Option<EventId> {
    match record {
        Record::Changed(change) => Some(change.event),
        Record::Rewound { event, .. } => Some(*event),
        _ => None,
    }
}
