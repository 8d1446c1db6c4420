//! Thousands of live sessions in one process, with a slow summarizer, and users who interrupt, undo, ask in between and
//! go away before they are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{AttemptId, Block, Message, SessionId, SummarySections, Trigger};
use epitome_rig::BoundLoop;
use epitome_sessionruntime::journal::{
    Journal, MemoryJournal, PageLimit, RecordBody, Restored, read_record, restore,
};
use epitome_sessionruntime::{
    AdmitError, FreshIds, HustleWorker, InputForm, RequestFrame, Session, SessionError, SessionPorts,
    SessionSettings, StopStyle, SystemClock, WorkAnswer, WorkFailure, WorkOrder, WorkerTraits,
};

use super::many_loops::Dice;
use crate::session_scene::{COMPACT_AT, REARM_BELOW, SessionScene};

const COMPACTIONS: usize = 20;

/// A session that has not got so far after so many turns has hung.
const MOST_TURNS: usize = 2_000;

/// Whoever is not answered by then never is.
const PATIENCE: Duration = Duration::from_secs(120);

/// A summarizer that takes its time, and says little.
pub(super) struct SlowWorker(pub(super) Duration);

#[async_trait]
impl HustleWorker for SlowWorker {
    fn traits(&self) -> WorkerTraits {
        WorkerTraits { input: InputForm::Request, stop: StopStyle::Dropped }
    }

    async fn work(&self, _: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        if !self.0.is_zero() {
            tokio::time::sleep(self.0).await;
        }
        let sections = SummarySections {
            goal: vec!["See the steps through.".into()],
            state: vec!["Some messages are summarized. The tests of the second module still fail.".into()],
            constraints: vec!["Never touch the production database.".into()],
            ..SummarySections::default()
        };
        let output = sections.render().xml.as_bytes().to_vec();
        Ok(WorkAnswer::bare(output))
    }
}

/// What all sessions have in common.
#[derive(Clone)]
pub(super) struct House {
    pub(super) bound: BoundLoop,
    pub(super) ports: SessionPorts,
}

impl House {
    /// Sessions with small windows on this journal.
    pub(super) fn on(journal: Arc<dyn Journal>, worker: SlowWorker) -> Self {
        let scene = SessionScene { window: 1_000, kept: 100, ..SessionScene::on(Arc::clone(&journal)) };
        let mut ports = scene.ports();
        ports.agent_loop.worker = Some(Arc::new(worker));
        ports.clock = Arc::new(SystemClock);
        ports.ids = Arc::new(FreshIds);
        Self { bound: scene.bound(), ports }
    }

    pub(super) async fn open(&self, number: u64) -> Option<Session> {
        let settings = SessionSettings::of(SessionId::from_bytes(u128::from(number + 1).to_be_bytes()));
        Session::open(&self.bound, settings, self.ports.clone()).await.ok()
    }
}

/// What became of one session.
#[derive(Debug, Default)]
pub(super) struct SessionLife {
    pub(super) commits: u64,
    pub(super) attempts: u64,
    pub(super) answered: u64,
    pub(super) calls: u64,
    pub(super) returns: u64,
    pub(super) dropped: u64,
    pub(super) messages: u64,
    pub(super) rewinds: u64,
    pub(super) faults: Vec<&'static str>,
    /// What was appended by each caller: the numbers that are durable for certain.
    certain: BTreeSet<(u64, u64)>,
    /// Those of which nobody knows, because nobody waited.
    perhaps: BTreeSet<(u64, u64)>,
    compacted: BTreeSet<AttemptId>,
}

/// One session, until it was compacted often enough.
pub(super) async fn live(number: u64) -> SessionLife {
    let mut dice = Dice::new(number + 7);
    let mut life = SessionLife::default();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let worker = SlowWorker(Duration::from_millis(1 + number % 7));
    let house = House::on(Arc::clone(&journal), worker);
    let Some(session) = house.open(number).await else {
        life.faults.push("a session could not be opened");
        return life;
    };
    let mut turn = 0;
    while life.compacted.len() < COMPACTIONS && turn < MOST_TURNS {
        life.turn(&session, &mut dice, turn as u64).await;
        turn += 1;
    }
    if life.compacted.len() < COMPACTIONS {
        life.faults.push("a session was not compacted often enough");
    }
    // Whoever still waits in its inbox comes in before the end.
    if session.decision_trace().await.is_err() {
        life.faults.push("a session ended by itself");
    }
    if tokio::time::timeout(PATIENCE, session.shut_down()).await.is_err() {
        life.faults.push("a session did not end");
        return life;
    }
    life.audit(&session, &*journal).await;
    life
}

impl SessionLife {
    /// One whose task did not come to its end.
    pub(super) fn panicked() -> Self {
        Self { faults: vec!["a task panicked"], ..Self::default() }
    }

    /// Two callers say something, a request is asked for; now and then a user interferes or somebody goes away.
    async fn turn(&mut self, session: &Session, dice: &mut Dice, turn: u64) {
        if dice.below(25) == 0 {
            self.rewind(session, dice).await;
        }
        let goes_away =
            |dice: &mut Dice| (dice.below(12) == 0).then(|| Duration::from_micros(dice.below(4_000)));
        let first = said(session, 0, turn, 30 + dice.below(90), goes_away(dice));
        let second = said(session, 1, turn, dice.below(40), goes_away(dice));
        let later = dice.below(8);
        let third = async {
            // While a compaction runs, perhaps.
            tokio::time::sleep(Duration::from_millis(later)).await;
            said(session, 2, turn, 10, None).await
        };
        let admitted = patient(session.admit(RequestFrame::default()), goes_away(dice));
        let act = dice.below(10);
        let (pause, away) = (dice.below(6), goes_away(dice));
        let user = async {
            match act {
                0 => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    Some(match session.interrupt() {
                        Ok(()) => Called::Returned(None),
                        Err(_) => Called::Broken,
                    })
                }
                1 | 2 => {
                    let instructions = (act == 1).then(|| format!("Mind turn {turn}.").into());
                    Some(match patient(session.compact(instructions), away).await {
                        Waited::Returned(Ok(report)) => Called::Returned(Some(report.attempt)),
                        Waited::Returned(Err(_)) => Called::Returned(None),
                        Waited::WentAway => Called::WentAway,
                        Waited::InVain => Called::Broken,
                    })
                }
                _ => None,
            }
        };
        let (first, second) = tokio::join!(first, second);
        let (third, admitted, user) = tokio::join!(third, admitted, user);
        for (caller, said) in [(0, first), (1, second), (2, third)] {
            self.calls += 1;
            match said {
                Waited::Returned(Ok(())) => {
                    self.returns += 1;
                    self.certain.insert((caller, turn));
                }
                Waited::Returned(Err(_)) => self.faults.push("an append failed"),
                Waited::WentAway => {
                    self.dropped += 1;
                    self.perhaps.insert((caller, turn));
                }
                Waited::InVain => self.faults.push("an append was never answered"),
            }
        }
        self.calls += 1;
        match admitted {
            Waited::Returned(answer) => {
                self.returns += 1;
                self.admitted(session, answer).await;
            }
            Waited::WentAway => self.dropped += 1,
            Waited::InVain => self.faults.push("a request was never answered"),
        }
        if let Some(called) = user {
            self.called(called);
        }
    }

    async fn admitted(
        &mut self,
        session: &Session,
        answer: Result<epitome_sessionruntime::Admitted, AdmitError>,
    ) {
        match answer {
            Ok(admitted) => self.compacted.extend(admitted.compacted.map(|report| report.attempt)),
            Err(AdmitError::ContextLimit { .. }) => {
                // What a user would do.
                let compacted = patient(session.compact(None), None).await;
                self.called(match compacted {
                    Waited::Returned(report) => Called::Returned(report.ok().map(|report| report.attempt)),
                    Waited::WentAway | Waited::InVain => Called::Broken,
                });
            }
            Err(AdmitError::Empty | AdmitError::NotAdmitted(_)) => {}
            Err(_) => self.faults.push("a request was refused for no reason"),
        }
    }

    fn called(&mut self, called: Called) {
        self.calls += 1;
        match called {
            Called::Returned(compacted) => {
                self.returns += 1;
                self.compacted.extend(compacted);
            }
            Called::WentAway => self.dropped += 1,
            Called::Broken => self.faults.push("a user was never answered"),
        }
    }

    /// The user takes a compaction back, or puts one in force again.
    async fn rewind(&mut self, session: &Session, dice: &mut Dice) {
        let rewind = async {
            match dice.below(3) {
                0 => session.redo().await,
                1 => session.undo().await,
                _ => session.rewind_to(dice.below(4)).await,
            }
        };
        self.calls += 1;
        match tokio::time::timeout(PATIENCE, rewind).await {
            Ok(Ok(_)) => {
                self.returns += 1;
                self.rewinds += 1;
            }
            Ok(Err(SessionError::NoSuchCompaction)) => self.returns += 1,
            Ok(Err(_)) => self.faults.push("a rewind failed"),
            Err(_) => self.faults.push("a rewind was never answered"),
        }
    }

    /// Holds what the journal says against what is live, and against what was said.
    async fn audit(&mut self, session: &Session, journal: &dyn Journal) {
        let trigger = Trigger::Automatic { compact_at: COMPACT_AT, rearm_below: REARM_BELOW };
        let Ok(Restored { state, messages, .. }) = restore(journal, session.id(), trigger).await else {
            return self.faults.push("a session cannot be restored");
        };
        if state != session.state() {
            self.faults.push("what is live is not what the journal adds up to");
        }
        if !messages_are(session, journal, trigger).await {
            self.faults.push("the context is not the one that the journal gives");
        }
        self.messages = messages.len() as u64;
        self.audit_messages(&messages);
        self.audit_attempts(session.id(), journal).await;
    }

    /// Everything that was said is there, once, each caller's in order.
    fn audit_messages(&mut self, messages: &[Message]) {
        let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for message in messages {
            let Some((caller, turn)) = said_by(message) else {
                return self.faults.push("a message stands there that nobody said");
            };
            found.entry(caller).or_default().push(turn);
        }
        let is_in_order = found.values().all(|turns| turns.windows(2).all(|pair| pair.first() < pair.last()));
        if !is_in_order {
            self.faults.push("messages of one caller are out of order, or there twice");
        }
        let found: BTreeSet<(u64, u64)> = found
            .into_iter()
            .flat_map(|(caller, turns)| turns.into_iter().map(move |turn| (caller, turn)))
            .collect();
        if !self.certain.is_subset(&found) {
            self.faults.push("a message was lost");
        }
        if !found.iter().all(|said| self.certain.contains(said) || self.perhaps.contains(said)) {
            self.faults.push("a message stands there that was refused");
        }
    }

    /// Each attempt that began has one end, and whoever waited for it one answer.
    async fn audit_attempts(&mut self, session: SessionId, journal: &dyn Journal) {
        let (mut open, mut owed) = (None, BTreeSet::new());
        let mut answered = BTreeSet::new();
        let mut from = Some(1);
        while let Some(start) = from {
            let Ok(page) = journal.read(session, start, PageLimit::default()).await else {
                return self.faults.push("a journal cannot be read");
            };
            for stored in &page.records {
                let Ok(record) = read_record(journal, session, stored).await else {
                    return self.faults.push("a record cannot be read");
                };
                match record.body {
                    RecordBody::Started(started) => {
                        self.attempts += 1;
                        if open.replace(started.attempt).is_some() {
                            self.faults.push("an attempt began before the one before it had ended");
                        }
                        owed.extend(started.waiters.iter().map(|waiter| waiter.command));
                    }
                    RecordBody::Committed(committed) => {
                        self.commits += 1;
                        if open.take() != Some(committed.attempt) {
                            self.faults.push("an attempt was committed that did not run");
                        }
                    }
                    // One may be rejected before it has begun.
                    RecordBody::Rejected { attempt, .. }
                        if open.take().is_some_and(|running| running != attempt) =>
                    {
                        self.faults.push("another attempt was rejected than the one that ran");
                    }
                    RecordBody::Answered(outcome) => {
                        self.answered += 1;
                        owed.remove(&outcome.command);
                        if !answered.insert(outcome.command) {
                            self.faults.push("a command was answered twice");
                        }
                    }
                    _ => {}
                }
            }
            from = page.next;
        }
        if open.is_some() {
            self.faults.push("an attempt has no end");
        }
        if !owed.is_empty() {
            self.faults.push("a command that waited was not answered");
        }
    }
}

/// What became of a user's command.
enum Called {
    Returned(Option<AttemptId>),
    WentAway,
    Broken,
}

/// What became of waiting.
enum Waited<T> {
    Returned(T),
    WentAway,
    InVain,
}

/// Waits for an answer, or goes away before.
async fn patient<T>(answer: impl Future<Output = T>, goes_away: Option<Duration>) -> Waited<T> {
    match tokio::time::timeout(goes_away.unwrap_or(PATIENCE), answer).await {
        Ok(answer) => Waited::Returned(answer),
        Err(_) if goes_away.is_some() => Waited::WentAway,
        Err(_) => Waited::InVain,
    }
}

/// A caller says something.
async fn said(
    session: &Session,
    caller: u64,
    turn: u64,
    tokens: u64,
    goes_away: Option<Duration>,
) -> Waited<Result<(), SessionError>> {
    let text = format!("{caller} {turn} {}", "x".repeat(usize::try_from(tokens * 4).unwrap_or(0)));
    let message = if caller == 1 { Message::assistant(text) } else { Message::user(text) };
    let append = async { session.append([message]).await.map(|_| ()) };
    patient(append, goes_away).await
}

/// Who said it, and in which turn.
fn said_by(message: &Message) -> Option<(u64, u64)> {
    let [Block::Text { text }] = &**message.blocks() else { return None };
    let mut words = text.split(' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

async fn messages_are(session: &Session, journal: &dyn Journal, trigger: Trigger) -> bool {
    let Ok(restored) = restore(journal, session.id(), trigger).await else { return false };
    restored.context_messages(&restored.state.context()) == *session.messages()
}
