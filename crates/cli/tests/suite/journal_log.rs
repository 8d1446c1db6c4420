//! What the log says of every kind of record.

use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextMeasurement, ContextRevision, CountQuality,
    Message, ModelKey, RejectionReason, RequestFingerprint, SessionId, Timestamp, TokenCount,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Disarmed, Latch, LatchState, Waiter};
use epitome_sessionruntime::journal::{
    AttemptStart, Committed, MessageRange, RecordBody, StableName, WaiterOutcome,
};
use serde_json::Value;

use crate::journal_folder::{Elsewhere, Folder};
use crate::terminal::{code, stderr, stdout};

const SUMMARY: &str = "<conversation_summary><goal>g</goal><constraints></constraints><decisions></decisions>\
                       <state>s</state><open_items></open_items></conversation_summary>";

fn measurement(basis: ContextBasis, tokens: u64) -> ContextMeasurement {
    ContextMeasurement {
        basis,
        model: ModelKey::new("openai", "gpt-4o"),
        request_fingerprint: RequestFingerprint::from_bytes([4; 32]),
        input_tokens: TokenCount(tokens),
        input_limit: TokenCount(10_000),
        quality: CountQuality::ExactLocal,
    }
}

fn basis(revision: u64, through: u64) -> ContextBasis {
    ContextBasis { revision: ContextRevision(revision), through_event_id: Elsewhere::event(through) }
}

/// A session with a record of every kind: compacted, taken back, refused, put back.
fn folder_with_a_life() -> Folder {
    let folder = Folder::with_chat(0);
    let mut session = folder.elsewhere(SessionId::from_bytes([1; 16]));
    let (attempt, command) = (AttemptId::from_bytes([1; 16]), CommandId::from_bytes([2; 16]));
    let second = AttemptId::from_bytes([3; 16]);
    session.open();
    session.append(0, vec![Message::user("question"), Message::assistant("answer"), Message::user("more")]);
    session.write(RecordBody::Measured(measurement(basis(1, 2), 9_000)));
    session.write(RecordBody::Started(AttemptStart {
        attempt,
        reason: AttemptReason::Manual,
        basis: basis(1, 2),
        waiters: Arc::from([Waiter { created_at: Timestamp(1), command }]),
    }));
    session.write(RecordBody::Committed(Box::new(Committed {
        attempt,
        basis: basis(1, 2),
        post: basis(2, 5),
        summary: SUMMARY.into(),
        retained: Arc::from([MessageRange { first: 2, end: 3 }]),
        leading: 0,
        before: measurement(basis(1, 2), 9_000),
        after: measurement(basis(1, 2), 7_000),
        summary_tokens: TokenCount(50),
        landing: Landing::High,
        usage: None,
        cost_micro_usd: Some(12_300),
        repairs: Arc::from([StableName::new("code_fence").unwrap()]),
        degraded: Some(StableName::new("extractive").unwrap()),
    })));
    session.write(RecordBody::Answered(WaiterOutcome::new(attempt, command, true)));
    let state = LatchState::Disarmed { why: Disarmed::LandedHigh, landing: Some(BasisPoints(7_000)) };
    session.write(RecordBody::Latched(Latch { state, ..Latch::default() }));
    session.write(RecordBody::Undone { in_force: 0 });
    session.write(RecordBody::Started(AttemptStart {
        attempt: second,
        reason: AttemptReason::Automatic,
        basis: basis(3, 8),
        waiters: Arc::from([]),
    }));
    session.write(RecordBody::Rejected {
        attempt: second,
        reason: RejectionReason::InvalidSummary,
        detail: Some(StableName::new("xml_root").unwrap()),
        usage: None,
    });
    session.write(RecordBody::Redone { in_force: 1 });
    folder
}

#[test]
fn every_decision_has_its_numbers_and_its_reason() {
    let folder = folder_with_a_life();
    let output = folder.session(&["log"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for (number, said) in [
        (1, "for gpt-4o (openai), window 128,000, 0 tools"),
        (2, "3 messages: #0-#2"),
        (3, "9,000 of 10,000 tokens, 90.0 %"),
        (4, "by somebody who asked for it; 1 command waiting"),
        (5, "compaction 1: from 9,000 to 7,000 tokens (90.0 to 70.0 %), landed high"),
        (
            5,
            "1 message kept, a summary of 50 tokens; cost 0.0123 USD; repaired in the answer: code_fence; a weaker \
             summary was taken (extractive)",
        ),
        (7, "disarmed: the last one landed too high to be worth another, with the context 70.0 % full"),
        (8, "taken back; 0 compactions in force"),
        (9, "by occupancy"),
        (10, "the summary was not valid (invalid_summary: xml_root)"),
        (11, "put back; 1 compaction in force"),
    ] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{number}  2026-01-05T10:04:05Z")));
        assert!(line.is_some_and(|line| line.contains(said)), "{number} {said}: {text}");
    }
    assert!(!text.contains("answered"));
    let all = folder.session(&["log", "--all"]);
    assert!(stdout(&all).contains("told that it is done"), "{}", stdout(&all));
}

#[test]
fn a_machine_gets_one_object_for_each_record() {
    let folder = folder_with_a_life();
    let lines = folder.log(&["--all"]);
    let numbers: Vec<u64> = lines.iter().map(|line| line["record"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=11).collect::<Vec<_>>());
    assert_eq!(folder.log(&[]).len(), 10);
    for line in &lines {
        for key in ["record", "id", "time", "at", "kind", "words"] {
            assert!(line.get(key).is_some(), "{line}");
        }
    }
    let of = |number: usize, kind: &str| lines[number - 1][kind].clone();
    assert_eq!(of(3, "measured")["occupancy_basis_points"], 9_000);
    assert_eq!((&of(4, "started")["reason"], &of(4, "started")["waiters"]), (&"manual".into(), &1.into()));
    let committed = of(5, "committed");
    assert_eq!((&committed["landing"], &committed["kept"]), (&"high".into(), &serde_json::json!([[2, 3]])));
    assert_eq!(of(6, "answered")["resolved"], true);
    assert_eq!(of(7, "latched")["why"], "landed_high");
    assert_eq!((of(8, "in_force"), of(11, "in_force")), (Value::from(0), Value::from(1)));
    assert_eq!(of(10, "rejected")["detail"], "xml_root");
}

#[test]
fn every_key_stands_on_the_page() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/session-command.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in folder_with_a_life().log(&["--all"]) {
        let kind = line["kind"].as_str().unwrap();
        let row = page.lines().find(|row| row.starts_with("| ") && row.contains(&format!("`{kind}`")));
        let row = row.unwrap_or_else(|| panic!("no row for {kind}"));
        for (key, value) in line.as_object().unwrap() {
            assert!(key == kind || page.contains(&format!("`{key}`")), "{key}");
            for key in
                value.as_object().filter(|_| key == kind).into_iter().flat_map(|of_kind| of_kind.keys())
            {
                assert!(kind == "measured" || row.contains(&format!("`{key}`")), "{kind}: {key}");
            }
        }
    }
}

#[test]
fn moments_are_told_apart() {
    let folder = folder_with_a_life();
    let kept = |args: &[&str]| {
        let shown = folder.report(&[&["show"], args].concat());
        (shown["compactions_in_force"].as_u64().unwrap(), shown["kept_messages"].as_u64().unwrap())
    };
    assert_eq!(kept(&[]), (1, 1));
    assert_eq!(kept(&["--at", "0"]), (0, 3));
    assert_eq!(kept(&["--at", "1"]), (1, 1));
    assert_eq!(kept(&["--record", "8"]), (0, 3));
    assert_eq!(folder.report(&["show", "--record", "8"])["compactions_taken_back"], 1);
    let listed = &folder.report(&["list"])["sessions"][0];
    assert_eq!(
        (&listed["compactions_in_force"], &listed["time"]),
        (&1.into(), &"2026-01-05T10:04:05Z".into())
    );
    // Both at once are no moment.
    assert_eq!(code(&folder.session(&["show", "--at", "0", "--record", "1"])), 2);
    let exported: Value = serde_json::from_slice(&folder.export(&["--at", "1"])).unwrap();
    assert_eq!(exported["messages"][0]["summary"], true);
    assert_eq!(exported["messages"].as_array().unwrap().len(), 2);
}
