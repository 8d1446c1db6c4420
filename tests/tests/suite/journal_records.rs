//! Records as bytes, and what they add up to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, Block, CommandId, ContextBasis, ContextLimits, ContextMeasurement,
    ContextRevision, CountQuality, EventId, Image, Message, ModelKey, Opaque, RawJson, RejectionReason,
    RequestFingerprint, SessionId, SharedBytes, Timestamp, TokenCount, Trigger, Usage,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{
    AttemptReason, Boundary, Change, ChangeKind, CoreSettings, DecisionCore, Disarmed, Effect, Input, Latch,
    LatchState, Record, Replacement, Waiter,
};
use epitome_sessionruntime::journal::{
    AttemptStart, BlobDigest, CodecFault, Committed, EncodedRecord, Journal, JournalRecord, MemoryJournal,
    MessageRange, RECORD_VERSION, RecordBody, ReplayFault, SessionOpened, SessionState, StableName,
    StoredRecord, WaiterOutcome, checksum, decode_record, encode_record, replay, restore, restore_through,
    verify_session,
};
use epitome_tests::{WireCases, wait};
use proptest::prelude::*;

const SESSION: SessionId = SessionId::from_bytes([9; 16]);
const TRIGGER: Trigger =
    Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };

fn event(number: u64) -> EventId {
    EventId::from_bytes(u128::from(number).to_be_bytes())
}

fn stored(encoded: &EncodedRecord) -> StoredRecord {
    let EncodedRecord { id, body, .. } = encoded.clone();
    StoredRecord { sequence: 7, id, checksum: checksum(SESSION, 7, id, &body), body }
}

fn blobs(encoded: &EncodedRecord) -> BTreeMap<BlobDigest, SharedBytes> {
    encoded.blobs.iter().map(|blob| (blob.digest(), blob.bytes().clone())).collect()
}

fn comes_back(body: RecordBody) -> EncodedRecord {
    let record = JournalRecord { id: event(5), at: Timestamp(u64::MAX), body };
    let encoded = encode_record(&record).unwrap();
    let read = decode_record(SESSION, &stored(&encoded), &blobs(&encoded));
    assert_eq!(read.as_ref(), Ok(&record), "{}", record.body.kind());
    encoded
}

fn appended(messages: Vec<Message>) -> RecordBody {
    RecordBody::Appended { first: 3, messages: messages.into() }
}

#[test]
fn every_message_comes_back_equal() {
    let mut cases = WireCases::new(11);
    for _ in 0..3_000 {
        comes_back(appended(cases.next_input().transcript().to_vec()));
    }
    assert!(cases.covered.len() >= WireCases::KINDS - 2, "{}", cases.covered.len());
}

#[test]
fn opaque_items_deep_json_and_large_media_come_back_equal() {
    let deep = "[".repeat(150_000) + &"]".repeat(150_000);
    let raws = [deep.as_str(), " {\"a\" : 1e5, \"a\":\"\\ud800\"} ", "\n[1 ]\t"];
    let opaque = |raw: &&str| {
        Block::Opaque(Opaque { kind: "server_tool_use".into(), raw: RawJson::parse(*raw).unwrap() })
    };
    let image = |len: usize| {
        let data = Some(SharedBytes::from(vec![len as u8; len]));
        Block::Image(Image { media_type: "image/png".into(), url: "u".into(), data })
    };
    let blocks: Vec<Block> = raws
        .iter()
        .map(opaque)
        .chain([image(0), image(4_096), image(4_097), image(50_000), image(4_097)])
        .collect();
    let encoded = comes_back(appended(vec![Message::User { blocks: blocks.into() }]));
    assert_eq!(encoded.blobs.iter().map(|blob| blob.bytes().len()).collect::<Vec<_>>(), [4_097, 50_000]);
}

#[test]
fn blocks_deeper_than_the_bound_are_refused_when_they_are_written() {
    let mut block = Block::text("x");
    for _ in 0..=epitome_loop::MAX_BLOCK_DEPTH {
        let content = Arc::from([block]);
        block =
            Block::ToolResult(epitome_loop::ToolResult { tool_use_id: "n".into(), content, is_error: false });
    }
    let body = appended(vec![Message::User { blocks: Arc::from([block]) }]);
    assert!(encode_record(&JournalRecord { id: event(1), at: Timestamp(1), body }).is_err());
}

fn measurement(basis: ContextBasis, tokens: u64) -> ContextMeasurement {
    ContextMeasurement {
        basis,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([4; 32]),
        input_tokens: TokenCount(tokens),
        input_limit: TokenCount(10_000),
        quality: CountQuality::ExactLocal,
    }
}

fn opened() -> SessionOpened {
    SessionOpened {
        model: ModelKey::new("p", "m\""),
        limits: ContextLimits {
            window: TokenCount(200_000),
            max_input: TokenCount(0),
            max_output: TokenCount(u64::MAX),
        },
        policy_revision: "r".into(),
        tools: Arc::from([RawJson::parse("{ \"name\":\"t\"}").unwrap()]),
    }
}

fn one_of_each() -> Vec<RecordBody> {
    let basis = ContextBasis { revision: ContextRevision(u64::MAX), through_event_id: event(3) };
    let attempt = AttemptId::from_bytes([1; 16]);
    let command = CommandId::from_bytes([2; 16]);
    let committed = Committed {
        attempt,
        basis,
        post: basis,
        summary: "<a>&\u{2028}\"".into(),
        retained: Arc::from([MessageRange { first: 0, end: 1 }, MessageRange { first: 4, end: u64::MAX }]),
        leading: 1,
        before: measurement(basis, 9),
        after: measurement(basis, 8),
        summary_tokens: TokenCount(5),
        landing: Landing::High,
        usage: Some(Usage { input: TokenCount(1), reasoning: TokenCount(u64::MAX), ..Usage::default() }),
        cost_micro_usd: Some(17),
        repairs: Arc::from([StableName::new("code_fence").unwrap()]),
        degraded: Some(StableName::new("extractive").unwrap()),
    };
    let plainer = Committed {
        landing: Landing::Low,
        usage: None,
        cost_micro_usd: None,
        repairs: Arc::from([]),
        degraded: None,
        retained: Arc::from([]),
        ..committed.clone()
    };
    let latch = |state| Latch { state, attempted: Some(basis), failures: u32::MAX, failed_at: Timestamp(3) };
    let waiters =
        [Waiter { created_at: Timestamp(1), command }, Waiter { created_at: Timestamp(2), command }];
    let mut bodies = vec![
        RecordBody::Opened(opened()),
        RecordBody::Measured(measurement(basis, u64::MAX)),
        RecordBody::Started(AttemptStart {
            attempt,
            reason: AttemptReason::Manual,
            basis,
            waiters: Arc::from(waiters),
        }),
        RecordBody::Started(AttemptStart {
            attempt,
            reason: AttemptReason::Automatic,
            basis,
            waiters: Arc::from([]),
        }),
        RecordBody::Committed(Box::new(committed)),
        RecordBody::Committed(Box::new(plainer)),
        RecordBody::Answered(WaiterOutcome::new(attempt, command, true)),
        RecordBody::Answered(WaiterOutcome::new(attempt, command, false)),
        RecordBody::Undone { in_force: 0 },
        RecordBody::Redone { in_force: u64::MAX },
        RecordBody::Latched(Latch::default()),
    ];
    for why in [Disarmed::LandedHigh, Disarmed::Failed, Disarmed::Cannot, Disarmed::Undone] {
        for landing in [None, Some(BasisPoints(10_000))] {
            bodies.push(RecordBody::Latched(latch(LatchState::Disarmed { why, landing })));
        }
    }
    for reason in RejectionReason::ALL {
        let details = [None, Some(StableName::CRASHED)];
        bodies.extend(details.map(|detail| RecordBody::Rejected { attempt, reason, detail }));
    }
    for quality in [CountQuality::ExactProvider, CountQuality::HeuristicEstimate] {
        bodies.push(RecordBody::Measured(ContextMeasurement { quality, ..measurement(basis, 0) }));
    }
    bodies
}

#[test]
fn every_kind_of_record_comes_back_equal() {
    for body in one_of_each() {
        comes_back(body);
    }
}

fn of_text(text: String) -> StoredRecord {
    stored(&EncodedRecord { id: event(5), body: text.into_bytes().into(), blobs: Vec::new() })
}

#[test]
fn versions_are_told_apart() {
    let none = BTreeMap::new();
    let read = |text: &str| decode_record(SESSION, &of_text(text.to_owned()), &none);
    // Version 1 of an opening knew the window alone.
    let first = "{\"version\":1,\"kind\":\"opened\",\"at\":7,\"body\":{\"model\":{\"provider\":\"p\",\"model\":\"m\"},\
                 \"window\":1000,\"policy_revision\":\"r\",\"tools\":[]}}";
    let expected = SessionOpened {
        model: ModelKey::new("p", "m"),
        limits: ContextLimits { window: TokenCount(1_000), ..ContextLimits::default() },
        policy_revision: "r".into(),
        tools: Arc::from([]),
    };
    let record = read(first).unwrap();
    assert_eq!(record.body, RecordBody::Opened(expected));
    // Written again it is a record of today, which says the same.
    let again = encode_record(&record).unwrap();
    assert_eq!(decode_record(SESSION, &stored(&again), &none), Ok(record));
    let fault = |text: &str| read(text).unwrap_err().fault;
    // Today's form under the old version, and the old form under today's.
    assert!(matches!(fault(&first.replace(":1,\"kind\"", ":2,\"kind\"")), CodecFault::Json(_)));
    // A newer version is not guessed at, whatever it holds.
    let found = RECORD_VERSION + 1;
    for text in [
        format!("{{\"version\":{found},\"kind\":\"opened\",\"at\":1,\"body\":{{}}}}"),
        format!("{{\"version\":{found},\"what\":[1,{{}}],\"body\":7}}"),
        format!("{{\"version\":{found},\"nonsense\":"),
    ] {
        assert_eq!(fault(&text), CodecFault::NewerVersion { found }, "{text}");
    }
    assert_eq!(fault("{\"version\":0,\"kind\":\"undone\",\"at\":1,\"body\":{}}"), CodecFault::NoVersion);
    assert_eq!(fault("{}"), CodecFault::NoVersion);
    assert_eq!(
        fault("{\"version\":2,\"kind\":\"new\",\"at\":1,\"body\":{\"a\":1}}"),
        CodecFault::UnknownKind
    );
}

#[test]
fn a_record_in_the_wrong_place_or_with_other_bytes_is_found() {
    let encoded = comes_back(RecordBody::Undone { in_force: 4 });
    let good = stored(&encoded);
    let none = BTreeMap::new();
    let fault = |stored: &StoredRecord| decode_record(SESSION, stored, &none).map_err(|error| error.fault);
    let elsewhere = [
        StoredRecord { sequence: 8, ..good.clone() },
        StoredRecord { id: event(6), ..good.clone() },
        StoredRecord { body: b"{}".to_vec().into(), ..good.clone() },
    ];
    for stored in elsewhere {
        assert_eq!(fault(&stored), Err(CodecFault::Checksum));
    }
    let other = SessionId::from_bytes([1; 16]);
    assert_eq!(decode_record(other, &good, &none).map_err(|error| error.fault), Err(CodecFault::Checksum));
}

#[test]
fn no_damage_makes_a_panic_or_tells_what_was_written() {
    let canary = "canary-of-the-record";
    let message = Message::Assistant {
        blocks: Arc::from([
            Block::text(canary),
            Block::Opaque(Opaque { kind: canary.into(), raw: RawJson::parse("[\"canary\"]").unwrap() }),
        ]),
        usage: None,
    };
    let encoded = comes_back(appended(vec![message, Message::tool_result(canary, canary, true)]));
    let shown = format!("{encoded:?}");
    assert!(!shown.contains("canary"), "{shown}");
    let body = encoded.body.to_vec();
    let none = BTreeMap::new();
    let mut refused = 0;
    for at in 0..body.len() {
        for change in [0, b'"', b'{', b'9', 0xff] {
            let mut damaged = body.clone();
            damaged[at] = change;
            let damaged = stored(&EncodedRecord { body: damaged.into(), ..encoded.clone() });
            // Text may be other text, and is still a record.
            if let Err(error) = decode_record(SESSION, &damaged, &none) {
                refused += 1;
                let shown = format!("{error} {error:?} {error:#?}");
                assert!(!shown.contains("canary"), "{shown}");
            }
        }
        let cut = stored(&EncodedRecord { body: body[..at].to_vec().into(), ..encoded.clone() });
        assert!(decode_record(SESSION, &cut, &none).is_err());
    }
    assert!(refused > body.len(), "{refused}");
}

/// A loop as it lives: the decision core, and what it wants written.
struct Live {
    core: DecisionCore,
    journal: Vec<JournalRecord>,
    /// What became durable when nothing was under way, with the core as it was then.
    quiet: Vec<(usize, DecisionCore)>,
    rewinds: VecDeque<RecordBody>,
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
            rewinds: VecDeque::new(),
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
                            Box::new(Replacement { before, after, event })
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
            Record::Changed(Change { event, kind: ChangeKind::Rewind }) => {
                let body = self.rewinds.pop_front().unwrap();
                self.write(event, body);
            }
            Record::Started(attempt) => {
                let start = AttemptStart {
                    attempt: attempt.id,
                    reason: attempt.reason,
                    basis: attempt.basis.unwrap(),
                    waiters: attempt.waiters.into(),
                };
                let any = measurement(start.basis, 0);
                let none = Replacement { before: any.clone(), after: any, event: EventId::default() };
                self.commit = Some((start.clone(), none));
                let id = self.event();
                self.write(id, RecordBody::Started(start));
                return Some(Input::Recorded { attempt: attempt.id });
            }
            Record::Committed { attempt, basis, landing } => {
                let (start, Replacement { before, after, event }) = self.commit.take().unwrap();
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
                return Some(Input::Recorded { attempt });
            }
            Record::Rejected { attempt, reason } => {
                let id = self.event();
                self.write(id, RecordBody::Rejected { attempt, reason, detail: None });
                return Some(Input::Recorded { attempt });
            }
            Record::Latched(latch) => {
                let id = self.event();
                self.write(id, RecordBody::Latched(latch));
            }
        }
        None
    }

    fn step(&mut self, what: u8, size: u16) {
        let event = self.event();
        let waiter = Waiter {
            created_at: Timestamp(self.next),
            command: CommandId::from_bytes(u128::from(self.next).to_be_bytes()),
        };
        let attempt = AttemptId::from_bytes(u128::from(self.next).to_be_bytes());
        let tokens = u64::from(size) % 11_000;
        match what % 7 {
            0 | 1 => self.put_in(Input::Change(Change { event, kind: ChangeKind::Append }), 0),
            2 | 3 if self.messages > 0 => {
                let measurement = measurement(self.core.basis(), tokens.max(1));
                self.put_in(
                    Input::Admit { waiter, attempt, measurement, is_over_bytes: false },
                    tokens * 3 / 5 + 1,
                );
            }
            4 => {
                self.put_in(Input::Compact { waiter, attempt }, tokens / 3 + 1);
                self.put_in(Input::Boundary(Boundary::Turn), tokens / 3 + 1);
            }
            5 | 6 => {
                let state = self.state();
                let all = state.commits().len() as u64;
                let body = match (what % 7, state.in_force()) {
                    (5, now @ 1..) => RecordBody::Undone { in_force: u64::from(size) % now },
                    (6, now) if now < all => {
                        RecordBody::Redone { in_force: now + 1 + u64::from(size) % (all - now) }
                    }
                    _ => return,
                };
                self.rewinds.push_back(body);
                self.put_in(Input::Change(Change { event, kind: ChangeKind::Rewind }), 0);
            }
            _ => {}
        }
    }
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
            prop_assert_eq!(state.basis(), core.basis());
            prop_assert_eq!(state.latch(), core.latch());
            prop_assert_eq!(state.tracker(), core.tracker());
            prop_assert_eq!(state.unfinished(), None);
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
            if let Some(unfinished) = state.unfinished() {
                let rejected = RecordBody::Rejected {
                    attempt: unfinished.attempt,
                    reason: RejectionReason::Internal,
                    detail: Some(StableName::CRASHED),
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
fn space_is_linear_in_what_was_appended() {
    // A thousand compactions of a growing session with a picture in it: what a commit takes does not grow.
    let mut live = Live::new();
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
