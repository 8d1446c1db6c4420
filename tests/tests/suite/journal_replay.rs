//! What records add up to, held against the decision core as it lived.

use std::collections::VecDeque;
use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextMeasurement, ContextRevision, EventId, Message,
    RejectionReason, RequestFingerprint, Timestamp, TokenCount,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{
    AttemptReason, Boundary, Change, ChangeKind, CoreSettings, DecisionCore, Effect, Input, Latch, Record,
    Replacement, Rewind, Waiter,
};
use epitome_sessionruntime::journal::{
    AttemptStart, Committed, Finding, FindingKind, Journal, JournalRecord, MemoryJournal, MessageRange,
    RecordBody, ReplayFault, SessionState, StableName, WaiterOutcome, encode_record, replay, restore,
    restore_through, verify_session,
};
use epitome_tests::wait;
use proptest::prelude::*;

use crate::journal_records::{SESSION, TRIGGER, event, imported, measurement, opened};

/// A loop as it lives: the decision core, and what it wants written.
struct Live {
    core: DecisionCore,
    journal: Vec<JournalRecord>,
    /// What became durable when nothing was under way, with the core as it was then.
    quiet: Vec<(usize, DecisionCore)>,
    /// How many commits are in force.
    in_force: u64,
    /// How often somebody joined an attempt that ran.
    joined: u64,
    /// Whether nobody does anything while an attempt runs.
    is_calm: bool,
    messages: u64,
    next: u64,
    commit: Option<(AttemptStart, Replacement)>,
}

impl Live {
    fn new() -> Self {
        let settings = CoreSettings { trigger: TRIGGER, most_held: 8, most_waiters: 4 };
        let mut live = Self {
            core: DecisionCore::new(settings),
            journal: Vec::new(),
            quiet: Vec::new(),
            in_force: 0,
            joined: 0,
            is_calm: false,
            messages: 0,
            next: 1,
            commit: None,
        };
        let id = live.event();
        live.write(id, RecordBody::Opened(opened()));
        live
    }

    fn event(&mut self) -> EventId {
        self.next += 1;
        event(self.next)
    }

    fn write(&mut self, id: EventId, body: RecordBody) {
        self.journal.push(JournalRecord { id, at: Timestamp(self.next), body });
    }

    fn state(&self) -> SessionState {
        replay(TRIGGER, (1..).zip(&self.journal)).unwrap()
    }

    fn put_in(&mut self, input: Input, tokens_after: u64) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let (core, effects) = self.core.clone().handle(input, Timestamp(self.next));
            self.core = core;
            for effect in effects {
                match effect {
                    Effect::Record(record) => inputs.extend(self.record(record)),
                    Effect::Summarize { attempt, .. } => {
                        inputs.extend(self.meanwhile());
                        inputs.push_back(Input::Summarized { attempt, outcome: Ok(()) });
                    }
                    Effect::Count { attempt } => {
                        let before = self.core.tracker().measurement().cloned();
                        let before = before.filter(|before| before.basis == self.core.basis());
                        let event = self.event();
                        let outcome = before.ok_or(RejectionReason::ContextCountFailed).map(|before| {
                            let after = ContextMeasurement {
                                input_tokens: TokenCount(tokens_after),
                                ..before.clone()
                            };
                            let post_fingerprint = after.request_fingerprint;
                            Box::new(Replacement {
                                before,
                                after,
                                event,
                                post_fingerprint,
                                byte_occupancy: BasisPoints(0),
                            })
                        });
                        if let (Ok(replacement), Some((_, kept))) = (&outcome, &mut self.commit) {
                            *kept = (**replacement).clone();
                        }
                        inputs.push_back(Input::Counted { attempt, outcome });
                    }
                    Effect::Halt => panic!("nothing halts here"),
                    _ => {}
                }
            }
        }
        if !self.core.blocks_input() {
            self.quiet.push((self.journal.len(), self.core.clone()));
        }
    }

    fn record(&mut self, record: Record) -> Option<Input> {
        match record {
            Record::Measured(measurement) => {
                let id = self.event();
                self.write(id, RecordBody::Measured(measurement));
            }
            Record::Changed(Change { event, kind: ChangeKind::Append }) => {
                let messages = Arc::from([Message::user("m")]);
                self.write(event, RecordBody::Appended { first: self.messages, messages });
                self.messages += 1;
            }
            Record::Changed(Change { kind: ChangeKind::Rewind(_), .. }) => {
                panic!("a rewind is a record of its own")
            }
            Record::Rewound { event, in_force } => {
                let body = match in_force < self.in_force {
                    true => RecordBody::Undone { in_force },
                    false => RecordBody::Redone { in_force },
                };
                self.in_force = in_force;
                self.write(event, body);
            }
            Record::Answered { attempt, command, resolved } => {
                let id = self.event();
                self.write(id, RecordBody::Answered(WaiterOutcome::new(attempt, command, resolved)));
            }
            Record::Started(attempt) => {
                let start = AttemptStart {
                    attempt: attempt.id,
                    reason: attempt.reason,
                    basis: attempt.basis.unwrap(),
                    waiters: attempt.waiters.into(),
                };
                let any = measurement(start.basis, 0);
                let none = Replacement {
                    before: any.clone(),
                    after: any,
                    event: EventId::default(),
                    post_fingerprint: RequestFingerprint::default(),
                    byte_occupancy: BasisPoints(0),
                };
                self.commit = Some((start.clone(), none));
                let id = self.event();
                self.write(id, RecordBody::Started(start));
                return Some(Input::Recorded { attempt: attempt.id });
            }
            Record::Committed { attempt, basis, landing } => {
                let (start, Replacement { before, after, event, post_fingerprint: _, byte_occupancy: _ }) =
                    self.commit.take().unwrap();
                let kept = self.messages.saturating_sub(1);
                let committed = Committed {
                    attempt,
                    basis: start.basis,
                    post: basis,
                    summary: format!("summary {}", self.next).into(),
                    retained: Arc::from([MessageRange { first: kept, end: self.messages }]),
                    leading: 0,
                    before,
                    after,
                    summary_tokens: TokenCount(3),
                    landing,
                    usage: None,
                    cost_micro_usd: None,
                    repairs: Arc::from([]),
                    degraded: None,
                };
                self.write(event, RecordBody::Committed(Box::new(committed)));
                self.in_force += 1;
                return Some(Input::Recorded { attempt });
            }
            Record::Rejected { attempt, reason } => {
                let id = self.event();
                self.write(id, RecordBody::Rejected { attempt, reason, detail: None, usage: None });
                return Some(Input::Recorded { attempt });
            }
            Record::SettingsChanged => {
                let id = self.event();
                self.write(id, RecordBody::Opened(opened()));
            }
            Record::Latched(latch) => {
                let id = self.event();
                self.write(id, RecordBody::Latched(latch));
            }
        }
        None
    }

    fn asks(&mut self) -> (Waiter, AttemptId) {
        self.next += 1;
        let id = u128::from(self.next).to_be_bytes();
        let waiter = Waiter { created_at: Timestamp(self.next), command: CommandId::from_bytes(id) };
        (waiter, AttemptId::from_bytes(id))
    }

    /// What others do while an attempt runs.
    fn meanwhile(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        if self.is_calm {
            return inputs;
        }
        if self.next.is_multiple_of(3) {
            let (waiter, attempt) = self.asks();
            inputs.push(Input::Compact { waiter, attempt });
            self.joined += 1;
        }
        if self.next.is_multiple_of(5) {
            let change = Change { event: self.event(), kind: ChangeKind::Rewind(Rewind::Back(1)) };
            inputs.push(Input::Change(change));
        }
        inputs
    }

    fn step(&mut self, what: u8, size: u16) {
        let event = self.event();
        let (waiter, attempt) = self.asks();
        let tokens = u64::from(size) % 11_000;
        match what % 8 {
            7 => self.put_in(Input::SettingsChanged(TRIGGER), 0),
            0 | 1 => self.put_in(Input::Change(Change { event, kind: ChangeKind::Append }), 0),
            2 | 3 if self.messages > 0 => {
                let measurement = measurement(self.core.basis(), tokens.max(1));
                self.put_in(
                    Input::Admit { waiter, attempt, measurement, byte_occupancy: BasisPoints(0) },
                    tokens * 3 / 5 + 1,
                );
            }
            4 => {
                self.put_in(Input::Compact { waiter, attempt }, tokens / 3 + 1);
                self.put_in(Input::Boundary(Boundary::Turn), tokens / 3 + 1);
            }
            5 | 6 => {
                // Some of them cannot be done, and leave no trace.
                let by = 1 + u64::from(size) % 3;
                let rewind = match (what % 8, size % 2) {
                    (5, 0) => Rewind::To(by),
                    (5, _) => Rewind::Back(by),
                    _ => Rewind::Forward(by),
                };
                self.put_in(Input::Change(Change { event, kind: ChangeKind::Rewind(rewind) }), 0);
            }
            _ => {}
        }
    }
}

fn is_latched(body: &RecordBody) -> bool {
    matches!(body, RecordBody::Latched(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn replaying_a_prefix_gives_what_was_live_then(steps in prop::collection::vec(any::<(u8, u16)>(), 1..80)) {
        let mut live = Live::new();
        for (what, size) in steps {
            live.step(what, size);
        }
        for (len, core) in &live.quiet {
            let state = replay(TRIGGER, (1..).zip(&live.journal[..*len])).unwrap();
            prop_assert_eq!(state.core_state(), core.state());
            prop_assert_eq!(state.unfinished(), None);
            prop_assert_eq!(state.owed().count(), 0);
            let settings = CoreSettings { trigger: TRIGGER, most_held: 8, most_waiters: 4 };
            prop_assert_eq!(&DecisionCore::restore(settings, state.core_state()), core);
        }
        // Wherever the process dies, what it leaves is finished as a refusal, and the context stays.
        let mut state = SessionState::new(TRIGGER);
        for (sequence, record) in (1..).zip(&live.journal) {
            state = state.apply(sequence, record).unwrap();
            let mut ids = 1_000_000;
            let closing = state.closing_records(Timestamp(9), || { ids += 1; event(ids) });
            let mut closed = state.clone();
            for (sequence, record) in (sequence + 1..).zip(&closing) {
                closed = closed.apply(sequence, record).unwrap();
            }
            prop_assert_eq!(closed.unfinished(), None);
            prop_assert_eq!(closed.owed().count(), 0);
            prop_assert_eq!(closed.context(), state.context());
            prop_assert_eq!(closed.basis(), state.basis());
            prop_assert_eq!(closed.closing_records(Timestamp(9), EventId::default).len(), 0);
            // Between the end of an attempt and its answers: the latch has learned what it would have.
            if state.unfinished().is_none() && state.owed().count() > 0 && !is_latched(&record.body) {
                let live = (1..).zip(&live.journal).take_while(|(at, record)| {
                    *at <= sequence || is_latched(&record.body)
                });
                let without_time = |latch: Latch| Latch { failed_at: Timestamp(0), ..latch };
                let live = without_time(replay(TRIGGER, live).unwrap().latch());
                prop_assert_eq!(without_time(closed.latch()), live);
            }
            if let Some(unfinished) = state.unfinished() {
                let rejected = RecordBody::Rejected {
                    attempt: unfinished.attempt,
                    reason: RejectionReason::Internal,
                    detail: Some(StableName::CRASHED),
                    usage: None,
                };
                prop_assert_eq!(&closing[0].body, &rejected);
            }
        }
    }

    #[test]
    fn undo_and_redo_are_the_identity(
        steps in prop::collection::vec(any::<(u8, u16)>(), 20..80),
        depth in any::<u64>(),
    ) {
        let mut live = Live::new();
        for (what, size) in steps {
            live.step(what, size);
        }
        let state = live.state();
        prop_assume!(state.in_force() > 0);
        let next = state.last() + 1;
        let write = |state: SessionState, sequence, body| {
            let record = JournalRecord { id: event(5_000 + sequence), at: Timestamp(1), body };
            state.apply(sequence, &record).unwrap()
        };
        let undone = write(state.clone(), next, RecordBody::Undone { in_force: depth % state.in_force() });
        prop_assert_ne!(undone.context(), state.context());
        let redone = write(undone, next + 1, RecordBody::Redone { in_force: state.in_force() });
        prop_assert_eq!(redone.context(), state.context());
        prop_assert_eq!(redone.commits(), state.commits());
        prop_assert_eq!(redone.latch(), state.latch());
        prop_assert_eq!(redone.messages(), state.messages());
        // Lean, it is the same session, and goes on but for what it does not hold.
        let lean = state.clone().lean();
        prop_assert_eq!(&lean, &state);
        prop_assert_eq!(lean.context(), state.context());
        prop_assert_eq!(lean.commits().iter().filter(|commit| commit.context.is_some()).count(), 1);
        let appended = |state| {
            let messages = [epitome_loop::Message::user("on")].into();
            write(state, next, RecordBody::Appended { first: lean.messages(), messages })
        };
        prop_assert_eq!(appended(lean.clone()).context(), appended(state.clone()).context());
        let in_force = depth % state.in_force();
        let body = RecordBody::Undone { in_force };
        let back = lean.clone().apply(next, &JournalRecord { id: event(9_000), at: Timestamp(1), body });
        let fault = if in_force == 0 { None } else { Some(ReplayFault::NotAtHand) };
        prop_assert_eq!(back.err().map(|error| error.fault), fault);
        // It is another context all the same: whoever holds the old basis is late.
        prop_assert_eq!(redone.basis().revision.0, state.basis().revision.0 + 2);
    }
}

fn durable(live: &Live) -> MemoryJournal {
    let journal = MemoryJournal::new();
    let lease = wait(journal.open(SESSION)).unwrap();
    let records = live.journal.iter().map(|record| encode_record(record).unwrap()).collect();
    wait(journal.append(&lease, records)).unwrap();
    journal
}

#[test]
fn a_session_is_restored_from_its_journal_at_any_place() {
    let mut live = Live::new();
    for step in 0..200_u16 {
        live.step((step % 7) as u8, step.wrapping_mul(7_919));
    }
    assert!(live.state().commits().len() > 1, "{}", live.state().commits().len());
    assert!(live.joined > 1, "{}", live.joined);
    let journal = durable(&live);
    let whole = wait(restore(&journal, SESSION, TRIGGER)).unwrap();
    assert_eq!(whole.state, live.state());
    assert_eq!(whole.messages.len() as u64, whole.state.messages());
    for last in [1, 2, 17, live.journal.len() as u64] {
        let then = wait(restore_through(&journal, SESSION, TRIGGER, last)).unwrap();
        let expected = replay(TRIGGER, (1..).zip(&live.journal[..last as usize])).unwrap();
        assert_eq!(then.state, expected);
    }
    let context = whole.state.context();
    let shown = whole.messages_in(&context.leading).chain(whole.messages_in(&context.rest)).count() as u64;
    let counted = context.leading.iter().chain(&context.rest).map(MessageRange::count).sum::<u64>();
    assert_eq!(shown, counted);
    let report = wait(verify_session(&journal, SESSION)).unwrap();
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!(report.records, live.journal.len() as u64);
}

#[test]
fn what_does_not_follow_is_refused() {
    let fault = |bodies: Vec<RecordBody>| {
        let records: Vec<_> = (1..)
            .zip(bodies)
            .map(|(number, body)| JournalRecord { id: event(number), at: Timestamp(1), body })
            .collect();
        replay(TRIGGER, (1..).zip(&records)).map_err(|error| (error.sequence, error.fault))
    };
    let open = || RecordBody::Opened(opened());
    let message = |first| RecordBody::Appended { first, messages: Arc::from([Message::user("m")]) };
    let basis = |revision: u64, through| ContextBasis {
        revision: ContextRevision(revision),
        through_event_id: event(through),
    };
    let attempt = AttemptId::from_bytes([1; 16]);
    let start = || {
        RecordBody::Started(AttemptStart {
            attempt,
            reason: AttemptReason::Manual,
            basis: basis(1, 2),
            waiters: Arc::from([]),
        })
    };
    let commit = |retained: &[(u64, u64)], leading, post| {
        let retained = retained.iter().map(|&(first, end)| MessageRange { first, end }).collect();
        RecordBody::Committed(Box::new(Committed {
            attempt,
            basis: basis(1, 2),
            post,
            summary: "s".into(),
            retained,
            leading,
            before: measurement(basis(1, 2), 9),
            after: measurement(basis(1, 2), 8),
            summary_tokens: TokenCount(1),
            landing: Landing::Low,
            usage: None,
            cost_micro_usd: None,
            repairs: Arc::from([]),
            degraded: None,
        }))
    };
    let good = basis(2, 4);
    assert!(fault(vec![open(), message(0), start(), commit(&[(0, 1)], 1, good)]).is_ok());
    for (bodies, expected) in [
        (vec![message(0)], (1, ReplayFault::NotOpened)),
        (vec![RecordBody::Imported(imported(Vec::new()))], (1, ReplayFault::NotOpened)),
        (vec![open(), message(1)], (2, ReplayFault::MessageNumber)),
        (vec![open(), message(0), start(), start()], (4, ReplayFault::Attempt)),
        (vec![open(), message(0), message(1), start()], (4, ReplayFault::Basis)),
        (vec![open(), message(0), commit(&[], 0, good)], (3, ReplayFault::Attempt)),
        (vec![open(), message(0), start(), commit(&[(0, 2)], 0, good)], (4, ReplayFault::Retained)),
        (vec![open(), message(0), start(), commit(&[(0, 1), (0, 1)], 0, good)], (4, ReplayFault::Retained)),
        (vec![open(), message(0), start(), commit(&[(1, 1)], 0, good)], (4, ReplayFault::Retained)),
        (vec![open(), message(0), start(), commit(&[(0, 1)], 2, good)], (4, ReplayFault::Retained)),
        (vec![open(), message(0), start(), commit(&[], 0, basis(3, 4))], (4, ReplayFault::Basis)),
        (vec![open(), message(0), RecordBody::Undone { in_force: 0 }], (3, ReplayFault::Rewind)),
        (vec![open(), message(0), RecordBody::Redone { in_force: 1 }], (3, ReplayFault::Rewind)),
        (vec![open(), RecordBody::Measured(measurement(basis(1, 2), 1))], (2, ReplayFault::Basis)),
    ] {
        assert_eq!(fault(bodies), Err(expected));
    }
    let record = JournalRecord { id: event(1), at: Timestamp(1), body: open() };
    let gap = replay(TRIGGER, [(2, &record)]).map_err(|error| error.fault);
    assert_eq!(gap, Err(ReplayFault::Gap));
}

#[test]
fn an_import_moves_no_context_and_its_file_is_verified() {
    let mut live = Live::new();
    let source = b"what the messages came from".to_vec();
    let id = live.event();
    live.write(id, RecordBody::Imported(imported(source.clone())));
    let before = live.state();
    for step in 0..60_u16 {
        live.step((step % 7) as u8, step.wrapping_mul(7_919));
    }
    let (with, at) = (live.state(), live.journal.len() as u64);
    let late = RecordBody::Imported(imported(source.clone()));
    let later = with.clone().apply(at + 1, &JournalRecord { id: event(9_999), at: Timestamp(1), body: late });
    let later = later.unwrap();
    assert_eq!((later.basis(), later.context(), later.latch()), (with.basis(), with.context(), with.latch()));
    assert_eq!(before.basis(), ContextBasis::default());

    let journal = durable(&live);
    let report = wait(verify_session(&journal, SESSION)).unwrap();
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!((report.blobs, wait(restore(&journal, SESSION, TRIGGER)).unwrap().state), (1, with.clone()));

    // Another file under the digest: the session goes on without it, and verifying finds it.
    let journal = MemoryJournal::new();
    let lease = wait(journal.open(SESSION)).unwrap();
    let damaged = live.journal.iter().map(|record| {
        let mut encoded = encode_record(record).unwrap();
        encoded.blobs.clear();
        encoded
    });
    wait(journal.append(&lease, damaged.collect())).unwrap();
    assert_eq!(wait(restore(&journal, SESSION, TRIGGER)).unwrap().state, with);
    let findings = wait(verify_session(&journal, SESSION)).unwrap().findings;
    let expected = Finding { sequence: 2, kind: FindingKind::Media };
    assert_eq!(findings, [expected]);
}

#[test]
fn space_is_linear_in_what_was_appended() {
    // A thousand compactions of a growing session with a picture in it: what a commit takes does not grow.
    let mut live = Live { is_calm: true, ..Live::new() };
    let mut largest = 0;
    for round in 0..1_000 {
        live.step(0, 0);
        live.step(2, 9_000);
        let committed = live.journal.iter().rev().find(|record| record.body.kind() == "committed");
        let bytes = encode_record(committed.unwrap()).unwrap().body.len();
        if round > 10 {
            largest = largest.max(bytes);
        }
    }
    assert_eq!(live.state().commits().len(), 1_000);
    assert!(largest < 1_200, "{largest}");
}
