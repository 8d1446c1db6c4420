//! A policy with a fallback: who is asked when, and what is said of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    AnswerFault, InvalidSummaryReason, RejectionReason, RetryPolicy, SharedText, Summarizer, SummarizerError,
    SummaryDraft, SummaryRequest, SummarySections, TokenCount, Usage,
};
use epitome_sessionruntime::journal::{Committed, PageLimit, RecordBody, StableName, decode_record};
use epitome_sessionruntime::{CompactError, RequestFrame, Session, SummarizerWorker};
use epitome_tests::session_scene::{ScriptedWorker, SessionScene, WorkAct, turn};

fn with_fallback(first: WorkAct, fallback: WorkAct) -> SessionScene {
    let scene = SessionScene {
        fallback: Some(Arc::new(ScriptedWorker::new(fallback))),
        window: 8_000,
        ..SessionScene::default()
    };
    scene.worker.play([first]);
    scene
}

async fn full(scene: &SessionScene) -> Session {
    let session = scene.open().await.unwrap();
    for at in 0..16 {
        session.append(turn(at, 400)).await.unwrap();
    }
    session
}

async fn commits(scene: &SessionScene) -> Vec<Committed> {
    let page = scene.journal.read(scene.id, 1, PageLimit { records: 1_000, ..PageLimit::default() });
    let page = page.await.unwrap();
    let no_blobs = std::collections::BTreeMap::new();
    let bodies = page.records.iter().map(|stored| decode_record(scene.id, stored, &no_blobs).unwrap().body);
    let committed = bodies.filter_map(|body| match body {
        RecordBody::Committed(committed) => Some(*committed),
        _ => None,
    });
    committed.collect()
}

fn names(names: &[StableName]) -> Vec<&str> {
    names.iter().map(StableName::as_str).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_choice_is_not_degraded_and_the_fallback_not_asked() {
    let scene = with_fallback(WorkAct::Answers, WorkAct::Answers);
    let session = full(&scene).await;
    let report = session.admit(RequestFrame::default()).await.unwrap().compacted.unwrap();
    assert_eq!(report.degraded, None);
    assert!(scene.fallback.as_ref().unwrap().asked().is_empty());
    assert_eq!(commits(&scene).await[0].degraded, None);
}

#[tokio::test(start_paused = true)]
async fn where_the_first_choice_gives_nothing_the_fallback_does_and_it_shows() {
    for (first, reason) in [
        (WorkAct::Fails, "inference"),
        (WorkAct::Panics, "inference"),
        (WorkAct::Hangs, "timed_out"),
        (WorkAct::Says(String::new()), "output_shape"),
        (WorkAct::Says("Error generating summary: connection closed early".to_owned()), "xml_structure"),
        (WorkAct::Says("<summary/>".to_owned()), "xml_root"),
    ] {
        let scene = with_fallback(first.clone(), WorkAct::Answers);
        let session = full(&scene).await;
        let admitted = session.admit(RequestFrame::default()).await.unwrap();
        let report = admitted.compacted.unwrap_or_else(|| panic!("{first:?}: {:?}", admitted.refused));
        assert_eq!(report.degraded.as_ref().map(StableName::as_str), Some(reason), "{first:?}");
        let written = commits(&scene).await;
        assert_eq!((written.len(), &written[0].degraded), (1, &report.degraded), "{first:?}");
        // Both were asked for the same summary.
        let (asked, again) = (scene.worker.asked(), scene.fallback.as_ref().unwrap().asked());
        assert_eq!((asked.len(), again.len()), (1, 1), "{first:?}");
        assert_eq!(asked[0].transcript, again[0].transcript);
        // The next one begins with the first choice again.
        scene.worker.play([WorkAct::Answers]);
        session.append(turn(20, 400)).await.unwrap();
        session.append(turn(21, 400)).await.unwrap();
        assert_eq!(session.compact(None).await.unwrap().degraded, None);
    }
}

#[tokio::test(start_paused = true)]
async fn where_both_give_nothing_the_first_ones_reason_is_told_and_nothing_changes() {
    let scene = with_fallback(WorkAct::Says("nothing".to_owned()), WorkAct::Fails);
    let session = full(&scene).await;
    let before = session.messages();
    let Err(CompactError::Rejected(refused)) = session.compact(None).await else { panic!("no refusal") };
    assert_eq!(refused.reason, RejectionReason::InvalidSummary);
    assert_eq!(refused.detail.unwrap().as_str(), "xml_structure");
    assert_eq!(session.messages(), before);
    assert!(commits(&scene).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_else_is_asked_for_what_nobody_wants_any_more() {
    let scene = with_fallback(WorkAct::Waits, WorkAct::Answers);
    let session = full(&scene).await;
    let (compacted, ()) = tokio::join!(session.compact(None), async {
        scene.worker.was_asked(1).await;
        session.interrupt().unwrap();
    });
    let Err(CompactError::Rejected(refused)) = compacted else { panic!("no refusal") };
    assert_eq!(refused.reason, RejectionReason::Interrupted);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(scene.fallback.as_ref().unwrap().asked().is_empty());
    assert!(commits(&scene).await.is_empty());
}

/// A summarizer that has its answers written down, and writes down how it is corrected.
#[derive(Default)]
struct Written {
    answers: Mutex<Vec<Result<SummaryDraft, SummarizerError>>>,
    corrections: Mutex<Vec<Option<&'static str>>>,
}

#[async_trait]
impl Summarizer for Written {
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        self.corrections.lock().unwrap().push(request.correction);
        assert!(request.carry_constraints);
        self.answers.lock().unwrap().pop().unwrap()
    }

    fn name(&self) -> &'static str {
        "written"
    }
}

fn draft() -> SummaryDraft {
    let sections = SummarySections {
        goal: vec!["See the steps through.".into()],
        constraints: vec!["Never touch prod.".into()],
        state: vec!["Some steps are done.".into()],
        ..SummarySections::default()
    };
    SummaryDraft {
        repairs: vec!["code_fence", "bare_ampersand"],
        carried: vec!["Never touch prod.".into()],
        // A model that thinks puts out far more than its summary takes.
        usage: Some(Usage { output: TokenCount(50_000), ..Usage::default() }),
        left_out: [0, 0, 0, 2, 0],
        ..sections.into()
    }
}

fn scene_of(answers: Vec<Result<SummaryDraft, SummarizerError>>) -> (SessionScene, Arc<Written>) {
    let written = Arc::new(Written { answers: Mutex::new(answers), ..Written::default() });
    let worker = SummarizerWorker::new(written.clone());
    let scene = with_fallback(WorkAct::Fails, WorkAct::Answers);
    let retry = RetryPolicy::ClassifiedOnce;
    (SessionScene { instead: Some(Arc::new(worker)), retry, ..scene }, written)
}

#[tokio::test]
async fn repairs_carried_rules_and_cost_are_recorded() {
    let (scene, written) = scene_of(vec![Ok(draft())]);
    let session = full(&scene).await;
    let report = session.admit(RequestFrame::default()).await.unwrap().compacted.unwrap();
    assert_eq!(names(&report.repairs), ["code_fence", "bare_ampersand"]);
    assert_eq!(report.carried, [SharedText::from("Never touch prod.")]);
    assert_eq!(report.usage.unwrap().output, TokenCount(50_000));
    assert!(report.summary_tokens < TokenCount(200));
    assert_eq!((report.left_out, report.degraded.clone()), ([0, 0, 0, 2, 0], None));
    let committed = commits(&scene).await;
    assert_eq!(names(&committed[0].repairs), ["code_fence", "bare_ampersand"]);
    assert_eq!(committed[0].usage, report.usage);
    assert_eq!(*written.corrections.lock().unwrap(), [None]);
}

#[tokio::test]
async fn a_malformed_answer_is_corrected_once_and_then_the_fallback_is_asked() {
    let usage = Some(Usage { input: TokenCount(900), output: TokenCount(70), ..Usage::default() });
    let fault = AnswerFault::Invalid(InvalidSummaryReason::XmlStructure);
    let malformed = || Err(SummarizerError::Answer { fault, usage });
    let (scene, written) = scene_of(vec![Ok(draft()), malformed()]);
    let session = full(&scene).await;
    let report = session.admit(RequestFrame::default()).await.unwrap().compacted.unwrap();
    assert_eq!(report.degraded, None);
    // An answer that came to nothing is paid for too.
    let both = Usage { input: TokenCount(900), output: TokenCount(50_070), ..Usage::default() };
    assert_eq!((report.usage, commits(&scene).await[0].usage), (Some(both), Some(both)));
    let corrections = written.corrections.lock().unwrap().clone();
    assert_eq!(corrections[0], None);
    assert_eq!(corrections[1], epitome_loop::retry_correction(InvalidSummaryReason::XmlStructure));

    let (scene, written) = scene_of(vec![malformed(), malformed()]);
    let session = full(&scene).await;
    let report = session.admit(RequestFrame::default()).await.unwrap().compacted.unwrap();
    assert_eq!(report.degraded.unwrap().as_str(), "xml_structure");
    let both = Usage { input: TokenCount(1_800), output: TokenCount(140), ..Usage::default() };
    assert_eq!(report.usage, Some(both));
    assert_eq!(written.corrections.lock().unwrap().len(), 2);

    // A refusal, and an answer that was cut, are not asked for again.
    for (fault, reason) in [(AnswerFault::Refused, "refused"), (AnswerFault::CutOff, "token_limit")] {
        let (scene, written) = scene_of(vec![Ok(draft()), Err(SummarizerError::from(fault))]);
        let session = full(&scene).await;
        let report = session.admit(RequestFrame::default()).await.unwrap().compacted.unwrap();
        assert_eq!(report.degraded.unwrap().as_str(), reason);
        assert_eq!(written.corrections.lock().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_whose_policy_names_a_fallback_needs_somebody_to_work_for_it() {
    let scene = with_fallback(WorkAct::Answers, WorkAct::Answers);
    let mut ports = scene.ports();
    ports.agent_loop.fallback = None;
    let settings = epitome_sessionruntime::SessionSettings::of(scene.id);
    let refused = Session::open(&scene.bound(), settings, ports).await.unwrap_err();
    assert_eq!(refused, epitome_sessionruntime::OpenError::NoWorker);
}
