//! What a live session says of itself: errors, logs, `Debug`. Nothing of the conversation is in any of it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use epitome_loop::{Message, RawJson, Sampling, TokenCount};
use epitome_sessionruntime::journal::MemoryJournal;
use epitome_sessionruntime::{
    AdmitError, CompactError, OpenError, RequestFrame, Session, SessionError, SessionPorts, SessionSettings,
};
use epitome_tests::session_scene::{SessionScene, Treatment, WorkAct, turn};
use epitome_tests::{AppendFault, FaultyJournal};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const CANARY: &str = "ssn-123-45-6789";

/// Keeps everything that is logged, as words.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push_str(&format!("\n{} ", span.metadata().name()));
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push_str(&format!("\n{}: ", event.metadata().target()));
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Everything that could be shown of what happens in a session that is full of the canary.
async fn life(shown: &mut String) {
    let mut show = |value: &dyn Debug| shown.push_str(&format!("{value:?}\n{value:#?}\n"));
    let frame = || RequestFrame {
        system: Some(CANARY.into()),
        tools: [RawJson::parse_or_quote(&format!("{{\"{CANARY}\":1}}"))].into(),
        runtime_tail: Some(Message::user(CANARY)),
        ..RequestFrame::default()
    };
    show(&frame());
    let leaking = format!("<conversation_summary><{CANARY}/></conversation_summary>");
    for act in [WorkAct::Answers, WorkAct::Fails, WorkAct::Panics, WorkAct::Says(leaking)] {
        let scene = SessionScene::default();
        scene.worker.play([act]);
        let session = scene.open().await.unwrap();
        show(&session);
        let mut listening = session.subscribe();
        for at in 0..9 {
            let mut messages = turn(at, 300);
            messages.insert(0, Message::user(CANARY));
            show(&session.append(messages).await);
        }
        show(&session.admit(frame()).await);
        session.interrupt().unwrap();
        show(&session.compact(Some(CANARY.into())).await);
        show(&session.undo().await);
        show(&session.admit(RequestFrame { unseen_tokens: TokenCount(9_000), ..frame() }).await);
        show(&session.append([Message::system(CANARY)]).await);
        show(&session.decision_trace().await);
        show(&session.state());
        session.shut_down().await;
        show(&session.append([Message::user(CANARY)]).await);
        drop(session);
        while let Some(delivered) = listening.next().await.unwrap() {
            show(&delivered);
        }
    }
    let script = [AppendFault::None, AppendFault::Before];
    let scene = SessionScene::on(Arc::new(FaultyJournal::new(script)));
    let session = scene.open().await.unwrap();
    show(&session.append([Message::user(CANARY)]).await);
}

#[test]
fn a_session_says_nothing_of_its_conversation() {
    let log = Log::default();
    let mut shown = String::new();
    tracing::subscriber::with_default(log.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(life(&mut shown));
    });
    let logged = log.0.lock().unwrap().clone();
    for word in ["append", "admit", "compact", "recorded", "hustle", "journal failed", "request decided"] {
        assert!(logged.contains(word), "{word} is not in the log");
    }
    for text in [logged, shown] {
        assert!(!text.contains(CANARY) && !text.contains("6789"), "it leaks");
    }
}

/// The errors of a session, provoked by input that holds the canary.
pub(crate) async fn session_errors() -> (Vec<AdmitError>, SessionError, OpenError, CompactError) {
    let scene = SessionScene::default();
    let session = scene.open().await.unwrap();
    let not_finite = Sampling { temperature: Some(f64::NAN), ..Sampling::default() };
    let fingerprint =
        session.admit(RequestFrame { sampling: Some(not_finite), ..RequestFrame::default() }).await;
    let empty = session.append(Vec::new()).await.unwrap_err();
    session.append([Message::user(CANARY)]).await.unwrap();
    let full =
        session.admit(RequestFrame { unseen_tokens: TokenCount(9_000), ..RequestFrame::default() }).await;
    let refused = session.compact(Some(CANARY.into())).await.unwrap_err();
    let other = SessionScene { treatment: Treatment::Automatic, ..SessionScene::default() };
    let mut ports = other.loop_ports();
    ports.worker = None;
    let no_worker = Session::open(
        &other.bound(),
        SessionSettings::of(other.id),
        SessionPorts::new(Arc::new(MemoryJournal::new()), ports),
    )
    .await
    .unwrap_err();
    assert_eq!(no_worker, OpenError::NoWorker);
    assert!(matches!(full, Err(AdmitError::ContextLimit { .. })));
    (vec![fingerprint.unwrap_err(), full.unwrap_err()], empty, no_worker, refused)
}
