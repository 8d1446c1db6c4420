//! One compaction whose summary is made by the hustles that the policy names.

use std::sync::Arc;

use epitome_loop::*;
use epitome_sessionruntime::*;

use crate::compaction_scene::{Setup, sections, talk};
use crate::hustle_scene::{Records, answers, controller, hustle, limits, paused, scripted, settings};

type Made = Result<SummaryDraft, SummarizerError>;

fn worker(made: impl Fn() -> Made + Send + Sync + 'static) -> Arc<dyn HustleWorker> {
    Arc::new(SummarizerWorker::new(Arc::new(move |_: &SummaryRequest| made())))
}

/// Compacts by a hustle `h` and, where there is one, a fallback `f`.
fn compact(first: Arc<dyn HustleWorker>, fallback: Option<Arc<dyn HustleWorker>>) -> Outcome {
    let setup = Setup::new(talk(10), 900);
    let (ports, session) = (setup.ports(), setup.session.clone());
    let policy = CompactionPolicy { fallback: fallback.as_ref().map(|_| "f".into()), ..setup.policy };
    let policy = policy.validate(Some(CountQuality::HeuristicEstimate)).unwrap();
    paused().block_on(async {
        let records = Arc::new(Records::working());
        let hustles = [Some(("h", first)), fallback.map(|worker| ("f", worker))];
        let hustles = hustles.into_iter().flatten().map(|(name, worker)| hustle(settings(name), worker));
        let lanes = controller(limits((1, 0), (1, 0)), hustles, &records);
        let Ports { counter, estimator, .. } = ports;
        compact_by_hustles(&session, &policy, &HustlePorts { counter, estimator, lanes }).await
    })
}

fn compacted(outcome: Outcome) -> Compaction {
    match outcome {
        Outcome::Compacted(compaction) => *compaction,
        other => panic!("{other:?}"),
    }
}

fn refused(outcome: Outcome) -> RefusalReason {
    match outcome {
        Outcome::Refused(refusal) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_comes_to_what_the_summarizer_alone_comes_to() {
    let by_hustle = compacted(compact(worker(|| Ok(sections("state").into())), None));
    let (alone, _) = Setup::new(talk(10), 900).compacted();
    assert_eq!(by_hustle, alone);
}

#[test]
fn what_a_model_came_to_is_told() {
    let made = || {
        Ok(SummaryDraft {
            usage: Some(Usage { output: TokenCount(9_999), ..Usage::default() }),
            repairs: vec!["code_fence", "Not a name"],
            carried: vec!["a rule".into()],
            ..sections("state").into()
        })
    };
    let done = compacted(compact(worker(made), None));
    assert_eq!(done.repairs.iter().map(journal::StableName::as_str).collect::<Vec<_>>(), ["code_fence"]);
    assert_eq!(done.carried, [SharedText::from("a rule")]);
    assert_eq!(done.usage.unwrap().output, TokenCount(9_999));
    assert_eq!(done.degraded, None);
}

#[test]
fn the_fallback_is_asked_only_when_the_first_choice_gave_nothing() {
    let silent = || worker(|| panic!("nobody asked for this one"));
    let done = compacted(compact(worker(|| Ok(sections("state").into())), Some(silent())));
    assert_eq!(done.degraded, None);
    type Kind = ModelCallErrorKind;
    for (error, reason) in [
        (SummarizerError::Model(Kind::Network.into()), "network"),
        (SummarizerError::Model(Kind::Timeout.into()), "timed_out"),
        (SummarizerError::Model(Kind::Status(401).into()), "not_authorized"),
        (SummarizerError::Model(Kind::Status(429).into()), "rate_limited"),
        (SummarizerError::Model(Kind::Status(500).into()), "provider_error"),
        (SummarizerError::Model(Kind::TooLarge { limit: 1 }.into()), "byte_limit"),
        (SummarizerError::Model(Kind::Malformed.into()), "output_shape"),
        (SummarizerError::Model(Kind::OtherModel.into()), "output"),
        (SummarizerError::Model(Kind::NoKey.into()), "inference"),
        (SummarizerError::from(AnswerFault::Refused), "refused"),
        (SummarizerError::from(AnswerFault::ToolCall), "output_shape"),
        (SummarizerError::from(AnswerFault::CutOff), "token_limit"),
        (SummarizerError::WindowTooSmall { window: TokenCount(1) }, "window_too_small"),
        (SummarizerError::Unavailable, "inference"),
    ] {
        let fallback = || worker(|| Ok(sections("by the fallback").into()));
        let done = compacted(compact(worker(move || Err(error)), Some(fallback())));
        assert_eq!(done.degraded.as_ref().map(journal::StableName::as_str), Some(reason), "{error}");
        assert_eq!(done.summary.text(Section::State), "by the fallback");
        // Without one, or with one that does no better, the reason is that of the first choice.
        for fallback in [None, Some(worker(|| Err(SummarizerError::Unavailable)))] {
            let refusal = refused(compact(worker(move || Err(error)), fallback));
            assert_eq!(refusal.detail(), Some(reason), "{error}");
            let RefusalReason::Hustle(inner) = &refusal else { panic!("{refusal}") };
            assert_eq!(refusal.to_string(), inner.to_string());
        }
    }
}

#[test]
fn what_came_to_nothing_is_paid_for_all_the_same() {
    let usage = Some(Usage { output: TokenCount(70), ..Usage::default() });
    let malformed = move || Err(SummarizerError::Answer { fault: AnswerFault::CutOff, usage });
    let Outcome::Refused(refusal) = compact(worker(malformed), None) else { panic!("it was not refused") };
    assert_eq!((refusal.reason.detail(), refusal.usage), (Some("token_limit"), usage));
    // By the fallback too, though its own summary cost nothing.
    let done = compacted(compact(worker(malformed), Some(worker(|| Ok(sections("state").into())))));
    assert_eq!((done.usage, done.degraded.is_some()), (usage, true));
}

#[test]
fn a_program_that_answers_something_else_is_named_as_such() {
    let refusal = refused(compact(scripted(|_| Box::pin(async { answers("no XML") })), None));
    assert_eq!((refusal.as_str(), refusal.detail()), ("invalid_summary", Some("xml_structure")));
    assert_eq!(refusal.to_string(), "what the summarizer answered is no valid summary: xml_structure");
}

#[test]
fn a_policy_that_names_nobody_who_is_there_is_refused() {
    let setup = Setup::new(talk(10), 900);
    let (ports, session) = (setup.ports(), setup.session.clone());
    let policy = setup.policy.validate(Some(CountQuality::HeuristicEstimate)).unwrap();
    let outcome = paused().block_on(async {
        let lanes = controller(limits((1, 0), (1, 0)), [], &Arc::new(Records::working()));
        let Ports { counter, estimator, .. } = ports;
        compact_by_hustles(&session, &policy, &HustlePorts { counter, estimator, lanes }).await
    });
    assert_eq!(refused(outcome).detail(), Some("unknown_hustle"));
}
