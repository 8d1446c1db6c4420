//! A live session, as its host sees it.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{Message, PressureLevel, RejectionReason, SharedText};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{Boundary, LatchRule, Verdict};
use epitome_sessionruntime::journal::{RecordBody, restore};
use epitome_sessionruntime::{
    AdmitError, CompactError, Delivered, RequestFrame, Session, SessionError, SessionEvent,
};
use epitome_tests::session_scene::{COMPACT_AT, REARM_BELOW, SessionScene, Treatment, WorkAct, turn};
use epitome_tests::{AppendFault, FaultyJournal};

/// Appends turns of about `tokens` each, with the numbers `turns`.
async fn talk(session: &Session, turns: std::ops::Range<u64>, tokens: u64) {
    for at in turns {
        session.append(turn(at, tokens)).await.unwrap();
    }
}

async fn admit(session: &Session) -> Result<epitome_sessionruntime::Admitted, AdmitError> {
    session.admit(RequestFrame::default()).await
}

/// What stands in the journal is what is live.
async fn is_as_written(scene: &SessionScene, session: &Session) {
    let trigger = scene.bound().compaction().map_or(epitome_loop::Trigger::Manual, |it| it.policy.trigger());
    let restored = restore(&*scene.journal, scene.id, trigger).await.unwrap();
    assert_eq!(restored.state, session.state());
    let written = restored.context_messages(&restored.state.context());
    assert_eq!(written, session.messages().to_vec());
    assert_eq!(restored.state.basis(), session.basis());
}

/// A summary stands at the head: how many messages it says it is for.
fn summarized(messages: &[Message]) -> Option<u64> {
    let [epitome_loop::Block::Text { text }] = &**messages.first()?.blocks() else { return None };
    let (_, state) = text.split_once("<state>")?;
    state.trim_start_matches("<item>").trim_start().split(' ').next()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn below_the_threshold_a_request_goes_out_as_it_is() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    assert_eq!(admit(&session).await.unwrap_err(), AdmitError::Empty);
    talk(&session, 0..4, 400).await;
    let frame = RequestFrame {
        system: Some("Be brief.".into()),
        runtime_tail: Some(Message::user("It is noon.")),
        ..RequestFrame::default()
    };
    let admitted = session.admit(frame.clone()).await.unwrap();
    assert_eq!(admitted.messages.len(), 18);
    assert_eq!(admitted.messages[0], Message::system("Be brief."));
    assert_eq!(admitted.messages[17], Message::user("It is noon."));
    assert_eq!(admitted.messages[1..17], session.messages()[..]);
    assert_eq!((admitted.level, admitted.compacted, admitted.refused), (PressureLevel::Normal, None, None));
    let measured = admitted.measurement.unwrap();
    assert_eq!(measured.basis, session.basis());
    // The frame is part of what is measured and identified.
    let bare = admit(&session).await.unwrap().measurement.unwrap();
    assert!(bare.input_tokens < measured.input_tokens);
    assert_ne!(bare.request_fingerprint, measured.request_fingerprint);
    // Asked for once more, nothing new is to be written down.
    let records = session.state().last();
    admit(&session).await.unwrap();
    assert_eq!(session.state().last(), records);
    is_as_written(&scene, &session).await;
    assert!(scene.worker.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_the_threshold_a_summary_takes_the_place_of_the_old_part() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    let before = session.messages();
    let admitted = admit(&session).await.unwrap();
    let report = admitted.compacted.unwrap();
    assert!(summarized(&admitted.messages) >= Some(report.replaced));
    assert_eq!(report.replaced + report.kept, before.len() as u64);
    assert_eq!(report.landing, Landing::Low);
    assert!(report.before.occupancy() >= COMPACT_AT && report.after.occupancy() < REARM_BELOW);
    // What stays is word for word what was there, in its order.
    let mut there = before.iter();
    assert!(admitted.messages[1..].iter().all(|kept| there.any(|message| message == kept)));
    assert_eq!(admitted.messages.last(), before.last());
    assert_eq!(admitted.messages, session.messages());
    // The measurement that the leave was given on is that of the commit, and says nothing new.
    assert_eq!(admitted.measurement.unwrap(), report.after);
    is_as_written(&scene, &session).await;

    let trace = session.decision_trace().await.unwrap();
    let rules: Vec<_> = trace.iter().map(|decision| (decision.rule, decision.verdict)).collect();
    assert_eq!(rules[0], (LatchRule::AtThreshold, Verdict::Attempt));
    assert_eq!(rules[1], (LatchRule::BelowRearm, Verdict::Proceed));

    assert_eq!(session.undo().await.unwrap(), 0);
    assert_eq!(session.messages(), before);
    is_as_written(&scene, &session).await;
    assert_eq!(session.undo().await.unwrap_err(), SessionError::NoSuchCompaction);
    assert_eq!(session.redo().await.unwrap(), 1);
    assert_eq!(session.messages(), admitted.messages);
    assert_eq!(session.redo().await.unwrap_err(), SessionError::NoSuchCompaction);
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_again_as_it_was_left() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    for round in 0..3 {
        talk(&session, round * 8..round * 8 + 8, 400).await;
        admit(&session).await.unwrap();
    }
    session.undo().await.unwrap();
    talk(&session, 30..31, 100).await;
    let (state, messages) = (session.state(), session.messages());
    session.shut_down().await;
    assert_eq!(session.append(turn(99, 100)).await.unwrap_err(), SessionError::Ended);
    let again = scene.open().await.unwrap();
    assert_eq!(again.messages(), messages);
    assert_eq!(again.state(), state, "nothing is written by opening what has not changed");
    assert_eq!((state.in_force(), state.commits().len()), (2, 3));
    again.rewind_to(3).await.unwrap();
    again.rewind_to(0).await.unwrap();
    assert_eq!(again.messages().len(), 25 * 4);
    is_as_written(&scene, &again).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_opens_a_session_takes_it_over() {
    let scene = SessionScene::default();
    let first = scene.open().await.unwrap();
    talk(&first, 0..1, 100).await;
    let second = scene.open().await.unwrap();
    assert_eq!(first.append(turn(1, 100)).await.unwrap_err(), SessionError::TakenOver);
    assert_eq!(first.undo().await.unwrap_err(), SessionError::TakenOver);
    talk(&second, 1..2, 100).await;
    assert_eq!(second.messages().len(), 8);
    is_as_written(&scene, &second).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_compaction_changes_nothing_and_says_why() {
    let invalid = "<conversation_summary/>".to_owned();
    let too_long = format!("<conversation_summary><goal>{}</goal>", "x".repeat(4_000));
    for (act, reason, detail) in [
        (WorkAct::Fails, RejectionReason::ExecutionFailed, "inference"),
        (WorkAct::Panics, RejectionReason::ExecutionFailed, "inference"),
        (WorkAct::Hangs, RejectionReason::Canceled, "timed_out"),
        (WorkAct::Says(invalid), RejectionReason::InvalidSummary, "xml_structure"),
        (WorkAct::Says(too_long), RejectionReason::InvalidSummary, "token_limit"),
        (WorkAct::Says(String::new()), RejectionReason::InvalidSummary, "output_shape"),
    ] {
        let scene = SessionScene::default();
        scene.worker.play([act.clone()]);
        let session = scene.open().await.unwrap();
        talk(&session, 0..8, 400).await;
        let before = session.messages();
        let admitted = admit(&session).await.unwrap();
        let refused = admitted.refused.unwrap();
        let found = refused.detail.as_ref().map_or("", |detail| detail.as_str());
        assert_eq!((refused.reason, found), (reason, detail), "{act:?}");
        assert_eq!(admitted.messages, before, "below the limit it goes out unchanged");
        assert_eq!(session.messages(), before);
        session.boundary(Boundary::Turn).await.unwrap();
        let CompactError::Rejected(again) = session.compact(None).await.unwrap_err() else {
            panic!("{act:?}")
        };
        assert_eq!(again.reason, reason);
        is_as_written(&scene, &session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_appended_meanwhile_waits_and_comes_in_order() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Waits]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    let compacting = tokio::spawn({
        let session = session.clone();
        async move { session.compact(Some("Mind the queue.".into())).await }
    });
    scene.worker.was_asked(1).await;
    assert_eq!(scene.worker.asked()[0].instructions, Some(SharedText::from("Mind the queue.")));
    let appending: Vec<_> = (0..5)
        .map(|at| {
            let session = session.clone();
            tokio::spawn(async move { session.append([Message::user(format!("late {at}"))]).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(session.messages().len(), 32, "nothing changes before the commit is durable");
    scene.worker.let_through();
    let report = compacting.await.unwrap().unwrap();
    for appended in appending {
        appended.await.unwrap().unwrap();
    }
    let messages = session.messages();
    assert!(summarized(&messages) >= Some(report.replaced));
    let late: Vec<_> = (0..5).map(|at| Message::user(format!("late {at}"))).collect();
    assert_eq!(messages[messages.len() - 5..], late);
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_begins_between_steps() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 300).await;
    admit(&session).await.unwrap();
    // The model is at work on the request.
    let compacting = tokio::spawn({
        let session = session.clone();
        async move { session.compact(None).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(scene.worker.asked().is_empty());
    // Its answer waits for the compaction that begins with it.
    session.append([Message::assistant("An answer.")]).await.unwrap();
    compacting.await.unwrap().unwrap();
    assert_eq!(session.messages().last(), Some(&Message::assistant("An answer.")));
    // An interrupt ends the request as well.
    admit(&session).await.unwrap();
    session.interrupt().unwrap();
    session.append(turn(9, 300)).await.unwrap();
    session.compact(None).await.unwrap();
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_answered_does_not_keep_a_compaction_waiting_for_good() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 300).await;
    admit(&session).await.unwrap();
    session.compact(None).await.unwrap();
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_rejects_and_a_commit_that_is_durable_stays() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Hangs, WorkAct::Answers]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 300).await;
    let before = session.messages();
    let compacting = tokio::spawn({
        let session = session.clone();
        async move { session.compact(None).await }
    });
    scene.worker.was_asked(1).await;
    session.interrupt().unwrap();
    let CompactError::Rejected(report) = compacting.await.unwrap().unwrap_err() else { panic!() };
    assert_eq!(report.reason, RejectionReason::Interrupted);
    assert_eq!(session.messages(), before);
    session.compact(None).await.unwrap();
    session.interrupt().unwrap();
    assert_eq!(session.state().in_force(), 1);
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_for_another_request_is_stale() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Waits]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 300).await;
    let before = session.messages();
    let start = |session: &Session| {
        let session = session.clone();
        tokio::spawn(async move { session.compact(None).await })
    };
    // The frame is another one.
    let compacting = start(&session);
    scene.worker.was_asked(1).await;
    let frame = RequestFrame { system: Some("Other rules hold now.".into()), ..RequestFrame::default() };
    let admitting = tokio::spawn({
        let session = session.clone();
        async move { session.admit(frame).await }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    scene.worker.let_through();
    let CompactError::Rejected(report) = compacting.await.unwrap().unwrap_err() else { panic!() };
    assert_eq!(report.reason, RejectionReason::StaleBasis);
    assert_eq!(admitting.await.unwrap().unwrap().messages[1..], before[..]);
    session.boundary(Boundary::Turn).await.unwrap();

    // The model is another one.
    let compacting = start(&session);
    scene.worker.was_asked(2).await;
    let larger = SessionScene { window: 8_000, ..SessionScene::default() };
    session.rebind(&larger.bound(), scene.loop_ports()).unwrap();
    scene.worker.let_through();
    let CompactError::Rejected(report) = compacting.await.unwrap().unwrap_err() else { panic!() };
    assert_eq!(report.reason, RejectionReason::StaleBasis);
    assert_eq!(session.messages(), before);
    assert_eq!(admit(&session).await.unwrap().measurement.unwrap().input_limit.get(), 8_000 - 110);
    let opened = session.state().opened().cloned().unwrap();
    assert_eq!(opened.limits.window.get(), 8_000);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_to_fit_ends_in_a_typed_answer() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Fails]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..12, 400).await;
    let mut asked = 0;
    for _ in 0..10 {
        let Err(AdmitError::ContextLimit { measurement, refused, .. }) = admit(&session).await else {
            panic!("it does not fit")
        };
        assert!(measurement.input_tokens >= measurement.input_limit);
        assert_eq!(refused, Some(RejectionReason::ExecutionFailed));
        asked = scene.worker.asked().len();
    }
    assert!(asked <= 2, "each try is paid for: {asked}");
    // The user may still act.
    scene.worker.play([WorkAct::Answers]);
    session.compact(None).await.unwrap();
    admit(&session).await.unwrap();
    is_as_written(&scene, &session).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_are_a_second_limit() {
    let scene = SessionScene { max_request_bytes: Some(6_000), window: 40_000, ..SessionScene::default() };
    let session = scene.open().await.unwrap();
    talk(&session, 0..3, 400).await;
    assert_eq!(admit(&session).await.unwrap().compacted, None);
    talk(&session, 3..5, 400).await;
    let report = admit(&session).await.unwrap().compacted.unwrap();
    assert!(report.before.occupancy() < COMPACT_AT, "it is the bytes that ask for it");
    // One message alone may be too large.
    session.append([Message::user("x".repeat(6_000))]).await.unwrap();
    let Err(AdmitError::ContextLimit { over_bytes: Some(over), .. }) = admit(&session).await else {
        panic!()
    };
    assert!(over.limit == 6_000 && over.bytes > 6_000);
}

#[tokio::test(start_paused = true)]
async fn loops_that_do_not_compact_are_served_too() {
    for treatment in [Treatment::Observed, Treatment::Alone, Treatment::Manual] {
        let scene = SessionScene { treatment, ..SessionScene::default() };
        let session = scene.open().await.unwrap();
        talk(&session, 0..9, 400).await;
        let admitted = admit(&session).await.unwrap();
        assert_eq!(admitted.measurement.is_some(), treatment != Treatment::Alone);
        assert_eq!(admitted.messages, session.messages());
        session.interrupt().unwrap();
        let compacted = session.compact(None).await;
        match treatment {
            Treatment::Manual => assert_eq!(compacted.unwrap().landing, Landing::Low),
            _ => {
                let CompactError::Rejected(report) = compacted.unwrap_err() else { panic!() };
                assert_eq!(report.reason, RejectionReason::Unavailable);
                assert_eq!(report.detail.unwrap().as_str(), "no_policy");
            }
        }
        talk(&session, 9..14, 800).await;
        match (treatment, admit(&session).await) {
            (Treatment::Manual, Err(AdmitError::ContextLimit { exhausted: false, .. })) => {}
            (Treatment::Observed, Ok(admitted)) => assert_eq!(admitted.level, PressureLevel::HardLimit),
            (Treatment::Alone, Ok(_)) => {}
            other => panic!("{other:?}"),
        }
        is_as_written(&scene, &session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_stops_the_session() {
    for fault in [AppendFault::Before, AppendFault::After] {
        // It is opened, appended to, and then the journal fails.
        let script = [AppendFault::None, AppendFault::None, fault];
        let scene = SessionScene::on(Arc::new(FaultyJournal::new(script)));
        let session = scene.open().await.unwrap();
        talk(&session, 0..1, 100).await;
        assert_eq!(session.append(turn(1, 100)).await.unwrap_err(), SessionError::Halted);
        assert_eq!(session.messages().len(), 4);
        assert_eq!(admit(&session).await.unwrap_err(), AdmitError::Session(SessionError::Halted));
        // Only the journal knows.
        let again = scene.open().await.unwrap();
        assert_eq!(again.messages().len(), if fault == AppendFault::After { 8 } else { 4 });
        is_as_written(&scene, &again).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_at_the_commit_leaves_no_half_of_it() {
    for after in 3..12 {
        for fault in [AppendFault::Before, AppendFault::After] {
            let script = std::iter::repeat_n(AppendFault::None, after).chain([fault]);
            let scene = SessionScene::on(Arc::new(FaultyJournal::new(script)));
            let session = scene.open().await.unwrap();
            let mut halted = false;
            for at in 0..3 {
                halted |= session.append(turn(at, 1_000)).await.is_err();
            }
            let before = session.messages();
            let admitted = admit(&session).await;
            assert!(halted || admitted.is_ok() || admitted == Err(AdmitError::Session(SessionError::Halted)));
            if !halted && admitted.is_err() {
                assert_eq!(session.messages(), before);
            }
            let again = scene.open().await.unwrap();
            assert!(again.state().unfinished().is_none());
            is_as_written(&scene, &again).await;
            if halted || admitted.is_err() {
                talk(&again, 8..9, 100).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_a_crash_cut_off_is_rejected() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Hangs, WorkAct::Answers]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    let before = session.messages();
    let admitting = tokio::spawn({
        let session = session.clone();
        async move { admit(&session).await }
    });
    scene.worker.was_asked(1).await;
    // As if the process had died: somebody else opens what the journal holds.
    let again = scene.open().await.unwrap();
    assert_eq!(again.messages(), before);
    let page = scene.journal.read(scene.id, 1, Default::default()).await.unwrap();
    let blobs = std::collections::BTreeMap::new();
    let bodies = page
        .records
        .iter()
        .map(|stored| epitome_sessionruntime::journal::decode_record(scene.id, stored, &blobs).unwrap().body);
    let crashed = |body: &RecordBody| {
        matches!(body, RecordBody::Rejected { reason: RejectionReason::Internal, detail: Some(detail), .. }
            if detail.as_str() == "crashed")
    };
    assert_eq!(bodies.filter(crashed).count(), 1);
    session.interrupt().unwrap();
    assert_eq!(admitting.await.unwrap().unwrap_err(), AdmitError::Session(SessionError::TakenOver));
    // For this context there was an attempt; the next one has its own.
    assert_eq!(admit(&again).await.unwrap().compacted, None);
    talk(&again, 8..9, 100).await;
    assert!(admit(&again).await.unwrap().compacted.is_some());
    is_as_written(&scene, &again).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_leaves_the_session_going() {
    for micros in 0..40 {
        let scene = SessionScene::default();
        scene.worker.play([WorkAct::AnswersAfter(Duration::from_micros(20))]);
        let session = scene.open().await.unwrap();
        talk(&session, 0..8, 400).await;
        let late = Duration::from_micros(micros);
        let _ = tokio::time::timeout(late, session.compact(Some("x".into()))).await;
        let _ = tokio::time::timeout(late, admit(&session)).await;
        let _ = tokio::time::timeout(late, session.append([Message::user("perhaps")])).await;
        let _ = tokio::time::timeout(late, session.undo()).await;
        session.append([Message::user("surely")]).await.unwrap();
        admit(&session).await.unwrap();
        assert_eq!(session.messages().last(), Some(&Message::user("surely")));
        is_as_written(&scene, &session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_loses_no_record_and_is_told_what_it_lost() {
    let mut scene = SessionScene::default();
    scene.limits.kept_events = 16;
    let session = scene.open().await.unwrap();
    talk(&session, 0..1, 400).await;
    let from = session.state().last();
    let mut quick = session.subscribe();
    let mut slow = session.subscribe();
    let reading = tokio::spawn(async move {
        let (mut records, mut others, mut lost) = (Vec::new(), 0, 0);
        while let Some(delivered) = quick.next().await.unwrap() {
            match delivered {
                Delivered::Event(SessionEvent::Recorded { sequence, .. }) => records.push(sequence),
                Delivered::Event(_) => others += 1,
                Delivered::Lost(events) => lost += events,
                _ => panic!("an event that this test does not know"),
            }
        }
        (records, others, lost)
    });
    for round in 0..5 {
        talk(&session, round * 8..round * 8 + 8, 400).await;
        admit(&session).await.unwrap();
    }
    let last = session.state().last();
    session.shut_down().await;
    drop(session);
    let (records, all_others, lost) = reading.await.unwrap();
    assert_eq!(records, (from + 1..=last).collect::<Vec<_>>());
    let (mut again, mut others, mut lost_by_slow) = (Vec::new(), 0, 0);
    while let Some(delivered) = slow.next().await.unwrap() {
        match delivered {
            Delivered::Event(SessionEvent::Recorded { sequence, .. }) => again.push(sequence),
            Delivered::Event(_) => others += 1,
            Delivered::Lost(events) => lost_by_slow += events,
            _ => panic!("an event that this test does not know"),
        }
    }
    assert_eq!(again, records);
    assert!(lost_by_slow > 0);
    assert_eq!(others + lost_by_slow, all_others + lost);
}

/// An item of the provider that stands for everything before it.
fn provider_compaction() -> Message {
    let raw = r#"{"type":"compaction","encrypted_content":"gAAAAB"}"#;
    let raw = epitome_loop::RawJson::parse(raw.to_owned()).unwrap();
    let item = epitome_loop::Block::Opaque(epitome_loop::Opaque { kind: "compaction".into(), raw });
    Message::Assistant { blocks: [item].into(), usage: None }
}

#[tokio::test(start_paused = true)]
async fn what_stands_before_a_compaction_of_the_provider_is_not_sent_any_more() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    session.append([Message::system("Be brief.")]).await.unwrap();
    talk(&session, 0..6, 400).await;
    session.append([provider_compaction()]).await.unwrap();
    talk(&session, 6..7, 400).await;
    is_as_written(&scene, &session).await;
    let mut expected = vec![Message::system("Be brief."), provider_compaction()];
    expected.extend(turn(6, 400));
    assert_eq!(session.messages().to_vec(), expected);
    assert!(admit(&session).await.unwrap().measurement.unwrap().input_tokens.get() < 600);

    // Ours stands behind it, since what stands in front of it is not read; and it stays.
    talk(&session, 7..15, 400).await;
    let admitted = admit(&session).await.unwrap();
    assert!(admitted.compacted.is_some());
    assert_eq!(admitted.messages[..2], expected[..2]);
    assert!(summarized(&admitted.messages[2..]).is_some());
    is_as_written(&scene, &session).await;

    // The next one of the provider stands for our summary and for its forerunner as well.
    session.append([provider_compaction()]).await.unwrap();
    assert_eq!(session.messages().to_vec(), expected[..2]);
    is_as_written(&scene, &session).await;
    // What was taken back is not in the way, and nothing of it is lost.
    session.undo().await.unwrap();
    assert_eq!(session.messages().to_vec(), expected[..2]);
    is_as_written(&scene, &session).await;
    assert_eq!(session.state().messages(), 1 + 15 * 4 + 2);
    session.shut_down().await;
    let again = scene.open().await.unwrap();
    assert_eq!(again.messages().to_vec(), expected[..2]);
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_not_worn_down_by_being_asked_for_again() {
    let scene = SessionScene { kept: 2_000, ..SessionScene::default() };
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    admit(&session).await.unwrap();
    let messages = session.messages();
    assert!(messages.len() > 5, "so much is kept that one could go on");
    for _ in 0..3 {
        let error = session.compact(None).await.unwrap_err();
        let CompactError::Rejected(refused) = error else { panic!("{error}") };
        assert_eq!(refused.detail.unwrap().as_str(), "nothing_to_compact");
    }
    assert_eq!(session.messages(), messages);
    assert_eq!(scene.worker.asked().len(), 1);
    is_as_written(&scene, &session).await;
}
