//! Where a live session meets what its host, its ports and its runtime may do wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Message, RejectionReason,
    Request, SharedText, Timestamp, TokenCount, ToolResult,
};
use epitome_loopruntime::decision::{Disarmed, LatchState};
use epitome_sessionruntime::journal::{Journal, MemoryJournal};
use epitome_sessionruntime::{
    AdmitError, CompactError, CountFailure, OpenError, RequestFrame, Session, SessionError, SessionSettings,
};
use epitome_tests::session_scene::{SessionScene, Treatment, WorkAct, turn};

async fn talk(session: &Session, turns: std::ops::Range<u64>, tokens: u64) {
    for at in turns {
        session.append(turn(at, tokens)).await.unwrap();
    }
}

async fn admit(session: &Session) -> Result<epitome_sessionruntime::Admitted, AdmitError> {
    session.admit(RequestFrame::default()).await
}

fn said(words: &str) -> RequestFrame {
    RequestFrame { system: Some(SharedText::from(words)), ..RequestFrame::default() }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_answered_in_its_own_frame() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Waits]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    let asks = |words: &'static str| {
        let session = session.clone();
        tokio::spawn(async move { session.admit(said(words)).await })
    };
    let first = asks("I am the first.");
    scene.worker.was_asked(1).await;
    let second = asks("I am the second.");
    tokio::time::sleep(Duration::from_millis(5)).await;
    scene.worker.let_through();
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert!(first.compacted.is_some(), "what the second one asks is no matter of the first");
    assert_eq!(first.messages[0], Message::system("I am the first."));
    assert_eq!(second.messages[0], Message::system("I am the second."));
    assert_eq!(first.messages[1..], second.messages[1..]);
}

#[tokio::test(start_paused = true)]
async fn another_loop_re_arms_a_session_that_is_opened_again() {
    let mut scene = SessionScene::default();
    scene.worker.play([WorkAct::Fails]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    for at in 8..11 {
        admit(&session).await.unwrap();
        talk(&session, at..at + 1, 30).await;
    }
    assert!(matches!(session.state().latch().state, LatchState::Disarmed { why: Disarmed::Failed, .. }));
    session.shut_down().await;
    // The same loop remembers, another one begins anew.
    let same = scene.open().await.unwrap();
    assert!(matches!(same.state().latch().state, LatchState::Disarmed { .. }));
    same.shut_down().await;
    scene.window = 4_200;
    scene.worker.play([WorkAct::Answers]);
    let other = scene.open().await.unwrap();
    assert_eq!(other.state().latch().state, LatchState::Armed);
    assert!(admit(&other).await.unwrap().compacted.is_some());
}

#[tokio::test(start_paused = true)]
async fn bytes_alone_do_not_compact_for_ever() {
    let scene =
        SessionScene { max_request_bytes: Some(20_000), window: 1_000_000, ..SessionScene::default() };
    let session = scene.open().await.unwrap();
    let frame = said(&"x".repeat(17_500));
    for at in 0..60 {
        let messages = [Message::user(format!("Step {at}.")), Message::assistant("Done. ".repeat(20))];
        session.append(messages).await.unwrap();
        let _ = session.admit(frame.clone()).await;
    }
    assert!(scene.worker.asked().len() <= 4, "{} summaries", scene.worker.asked().len());
}

#[tokio::test(start_paused = true)]
async fn limits_without_end_are_limits_without_end() {
    let mut scene = SessionScene::default();
    scene.limits.attempt_timeout = Some(Duration::MAX);
    scene.limits.record_timeout = Duration::MAX;
    scene.limits.boundary_timeout = Duration::MAX;
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    assert!(admit(&session).await.unwrap().compacted.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_compaction_that_waits() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 300).await;
    admit(&session).await.unwrap();
    let compacting = tokio::spawn({
        let session = session.clone();
        async move { session.compact(None).await }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    session.interrupt().unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(1), compacting).await.expect("at once");
    let CompactError::Rejected(report) = ended.unwrap().unwrap_err() else { panic!() };
    assert_eq!(report.reason, RejectionReason::Interrupted);
    // It was about that one alone.
    session.compact(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_is_another_one_is_so_in_everything() {
    let observed = SessionScene { treatment: Treatment::Observed, ..SessionScene::default() };
    let session = observed.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    // How long an attempt may take is the new loop's business.
    observed.worker.play([WorkAct::AnswersAfter(Duration::from_secs(5))]);
    let compacting = SessionScene { treatment: Treatment::Automatic, ..SessionScene::default() };
    session.rebind(&compacting.bound(), observed.loop_ports()).unwrap();
    let admitted = admit(&session).await.unwrap();
    assert!(admitted.compacted.is_some(), "{:?}", admitted.refused);
    assert_eq!(admitted.level, epitome_loop::PressureLevel::Normal);
    // And so is the level that a measurement stands for.
    talk(&session, 8..16, 400).await;
    observed.worker.play([WorkAct::Fails]);
    assert_eq!(admit(&session).await.unwrap().level, epitome_loop::PressureLevel::Compact);
    let restored = epitome_sessionruntime::journal::restore(
        &*observed.journal,
        observed.id,
        compacting.bound().compaction().unwrap().policy.trigger(),
    );
    assert_eq!(restored.await.unwrap().state.lean(), session.state());
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_learns_of_the_end() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    let mut listening = session.subscribe();
    talk(&session, 0..1, 100).await;
    session.shut_down().await;
    let all = async { while let Some(_event) = listening.next().await.unwrap() {} };
    tokio::time::timeout(Duration::from_secs(1), all).await.expect("it ends although a handle is left");
    assert!(session.subscribe().next().await.unwrap().is_none());
    assert_eq!(session.id(), scene.id);
    // One that was purged before a slow subscriber came to read is at its end too.
    let session = scene.open().await.unwrap();
    let mut slow = session.subscribe();
    talk(&session, 1..400, 20).await;
    session.shut_down().await;
    scene.journal.purge(scene.id).await.unwrap();
    while let Some(_event) = slow.next().await.unwrap() {}
}

/// A counter that does what it is told.
struct Counter {
    panics: AtomicBool,
    is_exact: AtomicBool,
}

#[async_trait]
impl ContextCounter for Counter {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        if self.panics.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("as the script has it"));
        }
        Ok(ContextCount {
            model: request.model.clone(),
            input_tokens: TokenCount(request.messages.len() as u64),
            quality: self.capability().quality,
        })
    }

    fn capability(&self) -> CounterCapability {
        let is_exact = self.is_exact.load(Ordering::Relaxed);
        let quality = if is_exact { CountQuality::ExactLocal } else { CountQuality::HeuristicEstimate };
        CounterCapability::local("function", quality)
    }
}

#[tokio::test(start_paused = true)]
async fn a_counter_is_held_to_what_it_declared_and_may_panic() {
    let scene = SessionScene::default();
    let counter = Arc::new(Counter { panics: AtomicBool::new(true), is_exact: AtomicBool::new(false) });
    let mut ports = scene.ports();
    ports.agent_loop.counter = counter.clone();
    let session = Session::open(&scene.bound(), SessionSettings::of(scene.id), ports).await.unwrap();
    talk(&session, 0..2, 100).await;
    assert_eq!(admit(&session).await.unwrap_err(), AdmitError::Count(CountFailure::Panicked));
    counter.panics.store(false, Ordering::Relaxed);
    admit(&session).await.unwrap();
    counter.is_exact.store(true, Ordering::Relaxed);
    assert_eq!(admit(&session).await.unwrap_err(), AdmitError::Count(CountFailure::OtherQuality));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_leave_to_behind_the_end() {
    for treatment in [Treatment::Alone, Treatment::Observed, Treatment::Automatic] {
        let scene = SessionScene { treatment, ..SessionScene::default() };
        let session = scene.open().await.unwrap();
        talk(&session, 0..1, 100).await;
        session.shut_down().await;
        assert_eq!(admit(&session).await.unwrap_err(), AdmitError::Session(SessionError::Ended));
    }
}

#[test]
fn a_runtime_that_cannot_do_it_is_told_so() {
    let scene = SessionScene::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(scene.open()).unwrap_err(), OpenError::NoTimer);
}

#[tokio::test(start_paused = true)]
async fn redo_brings_back_the_latch_that_undo_took() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    admit(&session).await.unwrap();
    session.undo().await.unwrap();
    assert!(matches!(session.state().latch().state, LatchState::Disarmed { why: Disarmed::Undone, .. }));
    session.redo().await.unwrap();
    assert_eq!(session.state().latch().state, LatchState::Armed);
    talk(&session, 8..16, 400).await;
    assert!(admit(&session).await.unwrap().compacted.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_does_not_make_a_wait_last() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Fails]);
    let time = Arc::new(AtomicU64::new(1_000_000_000_000_000_000));
    let mut ports = scene.ports();
    let told = Arc::clone(&time);
    ports.clock = Arc::new(move || Timestamp(told.load(Ordering::Relaxed)));
    let session = Session::open(&scene.bound(), SessionSettings::of(scene.id), ports).await.unwrap();
    talk(&session, 0..11, 400).await;
    let wait = |answer: Result<epitome_sessionruntime::Admitted, AdmitError>| match answer {
        Err(AdmitError::ContextLimit { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    };
    assert!(wait(admit(&session).await).is_some());
    // The clock is set right: a day earlier. The wait begins anew, and ends.
    time.fetch_sub(86_400_000_000_000, Ordering::Relaxed);
    let left = wait(admit(&session).await).unwrap();
    let asked = scene.worker.asked().len();
    time.fetch_add(u64::try_from(left.as_nanos()).unwrap(), Ordering::Relaxed);
    let _ = admit(&session).await;
    assert_eq!(scene.worker.asked().len(), asked + 1);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_request_is_as_deep_as_a_message_may_be() {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..1, 100).await;
    let mut block = epitome_loop::Block::text("x");
    for _ in 0..200 {
        block = epitome_loop::Block::ToolResult(ToolResult {
            tool_use_id: "id".into(),
            content: [block].into(),
            is_error: false,
        });
    }
    let tail = Message::User { blocks: [block].into() };
    assert!(session.append([tail.clone()]).await.is_err());
    let frame = RequestFrame { runtime_tail: Some(tail), ..RequestFrame::default() };
    assert!(matches!(session.admit(frame).await, Err(AdmitError::RuntimeTail(_))));
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_with_the_journal_that_it_was_opened_on() {
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let scene = SessionScene::on(Arc::clone(&journal));
    let session = scene.open().await.unwrap();
    talk(&session, 0..1, 100).await;
    journal.purge(scene.id).await.unwrap();
    assert_eq!(session.append(turn(1, 100)).await.unwrap_err(), SessionError::TakenOver);
    assert_eq!(session.append(turn(2, 100)).await.unwrap_err(), SessionError::TakenOver);
}

#[tokio::test(start_paused = true)]
async fn an_open_that_fails_leaves_the_owner_alone() {
    use epitome_sessionruntime::journal::EncodedRecord;
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    talk(&session, 0..1, 100).await;
    // A session that cannot be restored: a line in it is of a newer version.
    let other = SessionScene { id: epitome_loop::SessionId::from_bytes([8; 16]), ..SessionScene::default() };
    let lease = scene.journal.open(other.id).await.unwrap();
    let body = br#"{"version":99,"kind":"opened","at":1,"body":{}}"#.to_vec();
    let id = epitome_loop::EventId::from_bytes([9; 16]);
    let newer = EncodedRecord { id, body: body.into(), blobs: Vec::new() };
    scene.journal.append(&lease, vec![newer]).await.unwrap();
    let settings = SessionSettings::of(other.id);
    let opened = Session::open(&scene.bound(), settings, scene.ports()).await;
    assert!(matches!(opened, Err(OpenError::Restore(_))));
    let id = epitome_loop::EventId::from_bytes([10; 16]);
    let more = EncodedRecord { id, body: b"{}".to_vec().into(), blobs: Vec::new() };
    assert!(scene.journal.append(&lease, vec![more]).await.is_ok(), "its lease still holds");
    talk(&session, 1..2, 100).await;
}
