//! The one clean second try: when, after how long, and with what the worker is told.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use epitome_loop::{
    Cause, CauseKind, HustleSettings, IdentityBinding, InvalidSummaryReason, Message, OutputFault,
    RetryPolicy, malformed_answer, retry_correction,
};
use epitome_sessionruntime::{HustleOutcome, SummaryTask, WorkAnswer, WorkFailure, WorkStage};
use tokio::time::Instant;

use super::hustle_scene::*;

fn failed(stage: WorkStage, cause: impl Into<Cause>) -> Result<WorkAnswer, WorkFailure> {
    Err(WorkFailure { stage, cause: cause.into(), diagnostic_bytes: 10, spent: None })
}

fn api(status: u16, seconds: Option<u64>) -> Cause {
    CauseKind::Api { status, retry_after: seconds.map(Duration::from_secs) }.into()
}

type Answer = Arc<dyn Fn() -> Result<WorkAnswer, WorkFailure> + Send + Sync>;

fn always(answer: impl Fn() -> Result<WorkAnswer, WorkFailure> + Send + Sync + 'static) -> Answer {
    Arc::new(answer)
}

/// What a run came to whose first tries are answered so, and all later ones well: the outcome, when each try
/// began in seconds of the run, and what each was told.
struct Told {
    outcome: HustleOutcome,
    begun: Vec<u64>,
    corrections: Vec<Option<&'static str>>,
    records: Vec<String>,
}

/// When a try began, and what it was told.
type Seen = (Instant, Option<&'static str>);

fn run(policy: RetryPolicy, firsts: Vec<Answer>, cancel_after: Option<Duration>) -> Told {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let script = {
            let seen = seen.clone();
            move |order: epitome_sessionruntime::WorkOrder| -> Work {
                let mut seen = seen.lock().unwrap();
                let first = firsts.get(seen.len()).cloned();
                seen.push((Instant::now(), order.correction));
                Box::pin(async move { first.map_or_else(|| answers(XML), |answer| answer()) })
            }
        };
        let settings = HustleSettings { retry: policy, timeout: Duration::from_secs(10), ..settings("h") };
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings, scripted(script))], &records);
        let begin = Instant::now();
        let run = controller.submit(compaction("h", task(input(1, [Message::user("u")])), &desk)).unwrap();
        if let Some(after) = cancel_after {
            tokio::time::sleep(after).await;
            run.cancel();
        }
        let outcome = run.outcome().await;
        assert_eq!(desk.runs().len(), 1);
        let seen = seen.lock().unwrap();
        Told {
            outcome,
            begun: seen.iter().map(|(at, _)| at.duration_since(begin).as_secs()).collect(),
            corrections: seen.iter().map(|(_, correction)| *correction).collect(),
            records: records.words(),
        }
    })
}

fn retried(first: Answer) -> Told {
    run(RetryPolicy::ClassifiedOnce, vec![first], None)
}

#[test]
fn passing_failures_get_a_second_try_after_the_wait_that_was_asked_for() {
    let passing: [(Cause, u64); 6] = [
        (CauseKind::Network.into(), 0),
        (api(408, None), 0),
        (api(429, Some(4)), 4),
        (api(500, Some(9)), 9),
        (api(503, None), 0),
        (Cause::new(CauseKind::Network).inside(CauseKind::Run), 0),
    ];
    for (cause, seconds) in passing {
        let told = retried(always(move || failed(WorkStage::Inference, cause.clone())));
        assert_eq!(words(&told.outcome.result), "ok");
        assert_eq!((told.outcome.tries, told.begun), (2, vec![0, seconds]));
        assert_eq!(told.corrections, [None, None], "there was no answer to correct");
        assert_eq!(told.records, ["started", "completed"], "two tries are one run");
    }
}

#[test]
fn a_malformed_answer_gets_a_second_try_with_a_fixed_sentence() {
    let malformed = [
        ("", InvalidSummaryReason::OutputShape),
        (" \n", InvalidSummaryReason::OutputShape),
        (
            "<conversation_summary><goal>canary & bird</goal><constraints/><decisions/><state>s</state><open_items/>\
             </conversation_summary>",
            InvalidSummaryReason::XmlSyntax,
        ),
        ("<canary/>", InvalidSummaryReason::XmlRoot),
        ("<conversation_summary><canary/></conversation_summary>", InvalidSummaryReason::XmlStructure),
        (
            "<conversation_summary><goal/><constraints/><decisions/><state>s</state><open_items/>\
             </conversation_summary>",
            InvalidSummaryReason::XmlContent,
        ),
    ];
    for (answer, reason) in malformed {
        let told = retried(always(move || answers(answer)));
        assert_eq!((words(&told.outcome.result).as_str(), told.outcome.tries), ("ok", 2), "{reason}");
        assert_eq!(told.corrections, [None, retry_correction(reason)], "{reason}");
        assert!(told.corrections[1].is_some_and(|sentence| !sentence.contains("canary")));
    }
    let no_text = retried(always(|| answers([0xff, 0xfe])));
    assert_eq!(no_text.corrections, [None, retry_correction(InvalidSummaryReason::OutputShape)]);
    // A worker that reads answers itself may mark one too.
    let marked = || failed(WorkStage::Output, malformed_answer(InvalidSummaryReason::Wire));
    assert_eq!(retried(always(marked)).corrections[1], retry_correction(InvalidSummaryReason::Wire));
}

#[test]
fn nothing_else_gets_a_second_try() {
    let in_stage = |stage, cause: Cause| always(move || failed(stage, cause.clone()));
    let refused = Cause::new(CauseKind::Output(Some(OutputFault::Refused)));
    let none: Vec<(&str, Answer)> = vec![
        ("unknown failure", in_stage(WorkStage::Inference, CauseKind::Other.into())),
        ("bad request", in_stage(WorkStage::Inference, api(400, None))),
        ("a wait that leaves no time", in_stage(WorkStage::Inference, api(429, Some(10)))),
        ("refusal", in_stage(WorkStage::Output, refused)),
        ("nothing to ask", in_stage(WorkStage::Resolution, CauseKind::Network.into())),
        ("a deadline of its own", in_stage(WorkStage::Inference, CauseKind::Deadline.into())),
        ("wrong identity", in_stage(WorkStage::Output, malformed_answer(InvalidSummaryReason::Identity))),
        ("too many bytes", always(|| answers(vec![b'x'; (1 << 16) + 1]))),
        ("over the budget", always(|| answers("x".repeat(9_000)))),
        ("panic", always(|| panic!("canary"))),
    ];
    for (name, first) in none {
        let told = retried(first);
        assert!(told.outcome.result.is_err(), "{name}");
        assert_eq!((told.outcome.tries, told.begun.len()), (1, 1), "{name}");
    }
}

#[test]
fn there_is_no_third_try_and_none_without_the_policy() {
    let network = || always(|| failed(WorkStage::Inference, CauseKind::Network));
    let twice = run(RetryPolicy::ClassifiedOnce, vec![network(), network()], None);
    assert_eq!((words(&twice.outcome.result).as_str(), twice.outcome.tries), ("inference inference", 2));
    assert_eq!(twice.records, ["started", "inference inference"]);
    let never = run(RetryPolicy::None, vec![network()], None);
    assert_eq!((words(&never.outcome.result).as_str(), never.outcome.tries), ("inference inference", 1));
    // Two different failures: the second is the outcome.
    let mixed = run(RetryPolicy::ClassifiedOnce, vec![network(), always(|| answers("<x/>"))], None);
    assert_eq!(words(&mixed.outcome.result), "output invalid_output");
}

#[test]
fn a_run_can_be_canceled_while_it_waits_for_its_second_try() {
    let first = always(|| failed(WorkStage::Inference, api(429, Some(8))));
    let told = run(RetryPolicy::ClassifiedOnce, vec![first], Some(Duration::from_secs(3)));
    assert_eq!(words(&told.outcome.result), "inference canceled");
    assert_eq!(told.begun, [0]);
}

#[test]
fn both_tries_share_one_timeout() {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let tries = Arc::new(Mutex::new(0));
        let script = move |_| -> Work {
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            match *tries {
                1 => Box::pin(async {
                    tokio::time::sleep(Duration::from_secs(6)).await;
                    failed(WorkStage::Inference, api(429, Some(3)))
                }),
                _ => Box::pin(pending()),
            }
        };
        let settings = HustleSettings {
            retry: RetryPolicy::ClassifiedOnce,
            timeout: Duration::from_secs(10),
            identity: IdentityBinding::Host,
            ..settings("h")
        };
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings, scripted(script))], &records);
        let begin = Instant::now();
        let run = controller.submit(request(1, "h", b"x", &desk)).unwrap();
        let outcome = run.outcome().await;
        assert_eq!((words(&outcome.result).as_str(), outcome.tries), ("inference timeout", 2));
        assert_eq!(begin.elapsed().as_secs(), 10);
    });
}

#[test]
fn the_hosts_instructions_reach_both_tries() {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let told: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let script = {
            let told = told.clone();
            move |order: epitome_sessionruntime::WorkOrder| -> Work {
                let mut told = told.lock().unwrap();
                told.push(order.instructions.map(|text| text.as_str().to_owned()));
                let is_first = told.len() == 1;
                Box::pin(async move { answers(if is_first { "<x/>" } else { XML }) })
            }
        };
        let settings = HustleSettings { retry: RetryPolicy::ClassifiedOnce, ..settings("h") };
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings, scripted(script))], &records);
        let asked = SummaryTask {
            instructions: Some("mind the tests".into()),
            ..task(input(1, [Message::user("u")]))
        };
        let outcome = controller.submit(compaction("h", asked, &desk)).unwrap().outcome().await;
        assert_eq!((words(&outcome.result).as_str(), outcome.tries), ("ok", 2));
        let instructions = Some("mind the tests".to_owned());
        assert_eq!(*told.lock().unwrap(), [instructions.clone(), instructions]);
    });
}
