//! Records as bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, Block, CommandId, ContextBasis, ContextLimits, ContextMeasurement,
    ContextRevision, CountQuality, EventId, Image, Message, ModelKey, Opaque, RawJson, RejectionReason,
    RequestFingerprint, SessionId, SharedBytes, SharedText, Timestamp, TokenCount, Trigger, Usage,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Disarmed, Latch, LatchState, Waiter};
use epitome_sessionruntime::journal::{
    AttemptStart, BlobDigest, CodecFault, Committed, EncodedRecord, Imported, JournalRecord, MessageRange,
    RECORD_VERSION, RecordBody, SessionOpened, StableName, StoredRecord, WaiterOutcome, checksum,
    decode_record, decode_without_media, encode_record,
};
use epitome_tests::WireCases;

pub(crate) const SESSION: SessionId = SessionId::from_bytes([9; 16]);
pub(crate) const TRIGGER: Trigger =
    Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };

pub(crate) fn event(number: u64) -> EventId {
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

pub(crate) fn measurement(basis: ContextBasis, tokens: u64) -> ContextMeasurement {
    ContextMeasurement {
        basis,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([4; 32]),
        input_tokens: TokenCount(tokens),
        input_limit: TokenCount(10_000),
        quality: CountQuality::ExactLocal,
    }
}

pub(crate) fn opened() -> SessionOpened {
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
        RecordBody::Imported(imported(b"source".to_vec())),
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
        let usage = Usage { input: TokenCount(u64::MAX), output: TokenCount(1), ..Usage::default() };
        let told = [(None, None), (Some(StableName::CRASHED), None), (None, Some(usage))];
        bodies.extend(told.map(|(detail, usage)| RecordBody::Rejected { attempt, reason, detail, usage }));
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

pub(crate) fn imported(source: Vec<u8>) -> Imported {
    Imported {
        format: StableName::new("openai_chat").unwrap(),
        conversation: None,
        name: None,
        source: source.into(),
        repairs: 0,
    }
}

#[test]
fn the_file_of_an_import_stands_outside_its_record_whatever_its_size() {
    let hostile = Some(SharedText::from("a \"name\"\u{2028}\n"));
    for size in [0, 1, 4_096, 4_097, 3_000_000] {
        let named =
            Imported { conversation: Some(u64::MAX), name: hostile.clone(), ..imported(vec![7; size]) };
        let encoded = comes_back(RecordBody::Imported(Imported { repairs: u64::MAX, ..named.clone() }));
        assert_eq!(encoded.blobs.iter().map(|blob| blob.bytes().len()).collect::<Vec<_>>(), [size]);
        assert!(encoded.body.len() < 300, "{}", encoded.body.len());
        comes_back(RecordBody::Imported(imported(vec![7; size])));
        // Without the file, everything else of it can be read.
        let (light, missing) = decode_without_media(SESSION, &stored(&encoded)).unwrap();
        assert_eq!(missing, [encoded.blobs[0].digest()]);
        let RecordBody::Imported(light) = light.body else { panic!("{}", light.body.kind()) };
        assert_eq!(light, Imported { repairs: u64::MAX, source: SharedBytes::default(), ..named.clone() });
    }
}

#[test]
fn an_import_is_of_the_third_version() {
    let encoded = comes_back(RecordBody::Imported(imported(b"x".to_vec())));
    let text = String::from_utf8(encoded.body.to_vec()).unwrap();
    let fault = |text: String| decode_record(SESSION, &of_text(text), &blobs(&encoded)).unwrap_err().fault;
    for version in [1, 2] {
        let today = format!("\"version\":{RECORD_VERSION}");
        let older = text.replace(&today, &format!("\"version\":{version}"));
        assert_eq!(fault(older), CodecFault::UnknownKind);
    }
    for (with, without) in
        [("\"repairs\":0", "\"repair\":0"), ("openai_chat", "openai-chat"), (",\"name\":null", "")]
    {
        assert!(matches!(fault(text.replace(with, without)), CodecFault::Json(_)), "{with}");
    }
    let other: BTreeMap<_, _> = [(BlobDigest::of(b"y"), SharedBytes::from(b"y".to_vec()))].into();
    let missing = decode_record(SESSION, &stored(&encoded), &other).map_err(|error| error.fault);
    assert_eq!(missing, Err(CodecFault::MissingBlob));
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
    // Up to version 3 a rejection did not know what it had cost.
    let attempt = AttemptId::from_bytes([7; 16]);
    let (reason, detail) = (RejectionReason::InvalidSummary, None);
    let rejected = |version: u64, more: &str| {
        format!(
            "{{\"version\":{version},\"kind\":\"rejected\",\"at\":7,\"body\":{{\"attempt\":\"{attempt}\",\"reason\":{},\
             \"detail\":null{more}}}}}",
            reason.number()
        )
    };
    let body = RecordBody::Rejected { attempt, reason, detail, usage: None };
    for text in [rejected(1, ""), rejected(3, ""), rejected(4, ",\"usage\":null")] {
        assert_eq!(read(&text).unwrap().body, body);
    }
    for text in [rejected(3, ",\"usage\":null"), rejected(4, "")] {
        assert!(matches!(fault(&text), CodecFault::Json(_)), "{text}");
    }
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
