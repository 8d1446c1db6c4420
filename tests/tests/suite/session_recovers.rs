//! What must not end compaction for the life of a session: damage in the conversation, a worker that takes its time.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use epitome_loop::{Block, Message, RejectionReason, SummaryDraft, SummaryRequest, SummarySections, ToolUse};
use epitome_loopruntime::check_retained_history;
use epitome_sessionruntime::{
    CompactError, Delivered, HustleFault, RequestFrame, Session, SessionEvent, SessionSettings,
    SummarizerWorker,
};
use epitome_tests::session_scene::{SessionScene, WorkAct, turn};

async fn talk(session: &Session, turns: std::ops::Range<u64>, tokens: u64) {
    for at in turns {
        session.append(turn(at, tokens)).await.unwrap();
    }
}

fn calls(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| Block::ToolUse(ToolUse::new(*id, "run", None, None)));
    Message::Assistant { blocks: calls.collect(), usage: None }
}

fn result(id: &str) -> Message {
    Message::tool_result(id, "r", false)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_was_interrupted_does_not_end_compaction() {
    for damage in [
        vec![Message::user("do"), calls(&["c"])],
        vec![Message::user("do"), result("lone")],
        vec![Message::user("do"), calls(&["c"]), calls(&["c"]), result("c"), result("c")],
        vec![Message::user("do"), calls(&["c", "c"]), result("c")],
        vec![Message::assistant("nobody asked"), Message::system("You are another one.")],
    ] {
        // In an older turn, in the part that the policy would keep, and before anything else.
        for before in [0, 3, 11] {
            let scene = SessionScene::default();
            let session = scene.open().await.unwrap();
            talk(&session, 0..before, 300).await;
            session.append(damage.clone()).await.unwrap();
            for round in 1..3 {
                talk(&session, before..14 * round, 300).await;
                let admitted = session.admit(RequestFrame::default()).await.unwrap();
                assert!(admitted.compacted.is_some(), "{damage:?} {before}: {:?}", admitted.refused);
                let sent = admitted.messages.iter().filter(|it| !matches!(it, Message::System { .. }));
                assert_eq!(check_retained_history(&sent.cloned().collect::<Vec<_>>()), Ok(()));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_summarizer_that_ran_out_of_time_says_so() {
    let scene = SessionScene::default();
    scene.worker.play([WorkAct::Hangs]);
    let session = scene.open().await.unwrap();
    talk(&session, 0..8, 400).await;
    let refused = session.admit(RequestFrame::default()).await.unwrap().refused.unwrap();
    assert_eq!(refused.reason, RejectionReason::Canceled);
    assert_eq!(refused.detail.unwrap().as_str(), "timed_out");
}

/// The times are real here: a thread that computes does not go by a clock of ours.
#[tokio::test]
async fn a_worker_that_comes_back_gives_the_lanes_back() {
    let (release, held) = mpsc::channel::<()>();
    let (held, (begun, has_begun)) = (Mutex::new(held), mpsc::channel::<()>());
    let computes = move |request: &SummaryRequest| {
        // Heard once.
        let _ = begun.send(());
        // Returns when the test lets go of the other end.
        let _ = held.lock().unwrap().recv();
        Ok(SummaryDraft::from(SummarySections {
            goal: vec!["See the steps through.".into()],
            state: vec![format!("{} messages are summarized.", request.transcript.len()).into()],
            ..SummarySections::default()
        }))
    };
    let scene = SessionScene::default();
    let mut ports = scene.ports();
    ports.agent_loop.worker = Some(Arc::new(SummarizerWorker::new(Arc::new(computes))));
    let settings = SessionSettings::of(scene.id);
    let session = Session::open(&scene.bound(), settings, ports).await.unwrap();
    let mut subscription = session.subscribe();
    talk(&session, 0..8, 400).await;
    let admitting = tokio::spawn({
        let session = session.clone();
        async move { session.admit(RequestFrame::default()).await }
    });
    tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
    session.interrupt().unwrap();
    let refused = admitting.await.unwrap().unwrap().refused.unwrap();
    assert_eq!(refused.reason, RejectionReason::Interrupted);
    while session.fault().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    session.append(turn(8, 10)).await.unwrap();
    let CompactError::Rejected(report) = session.compact(None).await.unwrap_err() else { panic!() };
    // It may be over the next time, so it is not a reason that stays.
    assert_eq!(report.reason, RejectionReason::ExecutionFailed);
    assert_eq!(report.detail.unwrap().as_str(), "lanes_poisoned");

    drop(release);
    while session.fault().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    session.append(turn(9, 10)).await.unwrap();
    assert!(session.admit(RequestFrame::default()).await.unwrap().compacted.is_some());
    session.shut_down().await;

    let mut told = Vec::new();
    while let Some(delivered) = subscription.next().await.unwrap() {
        if let Delivered::Event(SessionEvent::HustleFault(change)) = delivered {
            assert_eq!(change.fault, HustleFault::WorkerIgnoredTheEnd);
            told.push(change.is_so);
        }
    }
    assert_eq!(told, [true, false]);
}
