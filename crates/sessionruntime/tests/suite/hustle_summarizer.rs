//! A summarizer of this program as the worker of a hustle.

use std::future::pending;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    Message, Summarizer, SummarizerError, SummaryDraft, SummaryRequest, SummarySections, TokenCount,
    TranscriptError,
};
use epitome_sessionruntime::{
    AdmissionError, HustleFault, HustleOutcome, HustleValue, SummarizerWorker, SummaryTask, translate_failure,
};

use super::hustle_scene::*;

fn run(summarizer: impl Summarizer + 'static, task: SummaryTask) -> HustleOutcome {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let worker = Arc::new(SummarizerWorker::new(Arc::new(summarizer)));
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings("h"), worker)], &records);
        let outcome = controller.submit(compaction("h", task, &desk)).unwrap().outcome().await;
        assert_eq!((desk.runs().len(), controller.fault()), (1, None));
        outcome
    })
}

fn draft() -> SummaryDraft {
    let sections = SummarySections {
        goal: vec!["a & b".into()],
        state: vec!["here".into()],
        ..SummarySections::default()
    };
    SummaryDraft { left_out: [0, 1, 2, 3, 4], ..sections.into() }
}

#[test]
fn it_gets_the_request_unprojected_and_its_draft_is_proven() {
    let seen: Arc<Mutex<Option<SummaryRequest>>> = Arc::default();
    let keep = seen.clone();
    let summarizer = move |request: &SummaryRequest| {
        *keep.lock().unwrap() = Some(request.clone());
        Ok(draft())
    };
    let messages = [Message::user("u"), Message::tool_result("c", "r".repeat(5_000), false)];
    let asked = SummaryTask {
        previous: Some(draft().sections),
        instructions: Some("mind the tests".into()),
        max_bytes: Some(900),
        ..task(input(1, messages.clone()))
    };
    let outcome = run(summarizer, asked);
    let HustleValue::Summary(summary) = outcome.result.unwrap() else { panic!("a summary") };
    assert_eq!(summary.proven.output.summary(), &draft().sections.render().xml);
    assert_eq!(summary.left_out, [0, 1, 2, 3, 4]);
    let seen = seen.lock().unwrap().take().unwrap();
    assert_eq!(*seen.transcript, messages);
    assert_eq!(seen.previous, Some(draft().sections));
    assert_eq!(seen.instructions, Some("mind the tests".into()));
    assert_eq!((seen.max_tokens, seen.max_bytes), (TokenCount(2_000), Some(900)));
}

#[test]
fn its_failures_keep_their_meaning() {
    let asked = || task(input(1, [Message::user("u")]));
    let told = |error: SummarizerError| run(move |_: &SummaryRequest| Err(error), asked());
    assert_eq!(words(&told(SummarizerError::Unavailable).result), "inference inference");
    let unusable = told(SummarizerError::Transcript(TranscriptError::Empty));
    assert_eq!(words(&unusable.result), "inference inference");
    let small = told(SummarizerError::BudgetTooSmall { needed_bytes: 1, needed_tokens: TokenCount(1) });
    assert_eq!(words(&small.result), "output invalid_output");
    let cause = small.result.unwrap_err().cause.unwrap();
    assert_eq!(translate_failure(&cause).unwrap().reason.as_str(), "token_limit");
    let panicked = run(|_: &SummaryRequest| panic!("canary"), asked());
    assert_eq!(words(&panicked.result), "inference internal");
    let silent = run(|_: &SummaryRequest| Ok(SummarySections::default().into()), asked());
    assert_eq!(words(&silent.result), "output invalid_output");
}

struct Waits;

#[async_trait]
impl Summarizer for Waits {
    async fn summarize(&self, _: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        pending().await
    }

    fn name(&self) -> &'static str {
        "waits"
    }
}

/// One that waits is let go at once. The clock is the real one, because it stands still for blocking work.
#[test]
fn a_summarizer_that_waits_ends_with_its_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let worker = Arc::new(SummarizerWorker::new(Arc::new(Waits)));
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings("h"), worker)], &records);
        let run = controller.submit(compaction("h", task(input(1, [Message::user("u")])), &desk)).unwrap();
        while records.words().is_empty() {
            tokio::task::yield_now().await;
        }
        run.cancel();
        assert_eq!(words(&run.outcome().await.result), "inference canceled");
        assert_eq!(controller.fault(), None);
    });
}

/// What computes cannot be taken off its thread: its run waits for it, for the drain time at most.
#[test]
fn a_summarizer_that_computes_on_is_waited_for_and_poisons_when_it_does_not_end() {
    for ends_in_time in [true, false] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (held, (begun, has_begun)) = (Mutex::new(held), mpsc::channel::<()>());
        runtime.block_on(async {
            let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
            let computes = move |_: &SummaryRequest| {
                // Heard once.
                let _ = begun.send(());
                // Returns when the test lets go of the other end.
                let _ = held.lock().unwrap().recv();
                Ok(draft())
            };
            let drain = if ends_in_time { Duration::from_secs(60) } else { Duration::from_millis(5) };
            let worker = Arc::new(SummarizerWorker::new(Arc::new(computes)));
            let limits = drained_in(drain);
            let controller = controller(limits, [hustle(settings("h"), worker)], &records);
            let run =
                controller.submit(compaction("h", task(input(1, [Message::user("u")])), &desk)).unwrap();
            tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
            run.cancel();
            if ends_in_time {
                // Its place in the lane is not free while it computes.
                tokio::task::yield_now().await;
                let again = controller.submit(compaction("h", task(input(1, [Message::user("u")])), &desk));
                assert_eq!(again.unwrap_err(), AdmissionError::Full);
            }
            let release = if ends_in_time {
                drop(release);
                None
            } else {
                Some(release)
            };
            assert_eq!(words(&run.outcome().await.result), "inference canceled");
            assert_eq!(controller.fault().is_none(), ends_in_time);
            assert_eq!(desk.runs(), [1]);
            let Some(release) = release else { return };
            let again = || compaction("h", task(input(1, [Message::user("u")])), &desk);
            assert_eq!(controller.submit(again()).unwrap_err(), AdmissionError::Poisoned);
            // It comes back after all: nothing is left that it could disturb.
            drop(release);
            recovered(&controller).await;
            assert_eq!(controller.last_fault(), Some(HustleFault::WorkerIgnoredTheEnd));
            assert_eq!(words(&controller.submit(again()).unwrap().outcome().await.result), "ok");
            assert_eq!(desk.runs(), [1, 1]);
            assert_eq!(*records.faults.lock().unwrap(), [(1, true), (1, false)]);
        });
    }
}
