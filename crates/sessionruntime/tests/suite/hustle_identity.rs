//! How an answer is bound to its input, and what a worker is given.

use std::sync::{Arc, Mutex};

use epitome_loop::{
    Block, HustleSettings, IdentityBinding, Image, InvalidSummaryReason, Message, RejectionReason,
    SummarySections, TokenCount, Usage,
};
use epitome_sessionruntime::{
    HustleValue, SummaryTask, WorkAnswer, WorkInput, compaction_rejection, decode_input, translate_failure,
};

use super::hustle_scene::*;

/// Runs a compaction whose worker answers the input that it reads by this function.
fn run(
    identity: IdentityBinding,
    task: SummaryTask,
    answer: impl Fn(epitome_loop::CompactionInput) -> WorkAnswer + Send + Sync + 'static,
) -> Result<HustleValue, InvalidSummaryReason> {
    paused().block_on(async {
        let (desk, records) = (Desk::new(Manner::Works), Arc::new(Records::working()));
        let answer = Arc::new(answer);
        let worker = scripted(move |order| {
            let answer = answer.clone();
            Box::pin(async move {
                let WorkInput::Bytes(wire) = order.input else { panic!("wire was asked for") };
                Ok(answer(decode_input(&wire).unwrap()))
            })
        });
        let settings = HustleSettings { identity, ..settings("h") };
        let controller = controller(limits((1, 0), (1, 0)), [hustle(settings, worker)], &records);
        let outcome = controller.submit(compaction("h", task, &desk)).unwrap().outcome().await;
        outcome.result.map_err(|failure| {
            assert_eq!(compaction_rejection(&failure), RejectionReason::InvalidSummary);
            translate_failure(&failure.cause.unwrap()).unwrap().reason
        })
    })
}

fn bare(output: impl Into<Vec<u8>>) -> WorkAnswer {
    answers(output).unwrap()
}

fn echo(input: &epitome_loop::CompactionInput, summary: &str) -> String {
    let (basis, model) = (input.basis(), input.model());
    format!(
        "{{\"version\":1,\"basis\":{{\"revision\":{},\"through_event_id\":\"{}\"}},\"model\":{{\"provider\":\"{}\",\
         \"model\":\"{}\"}},\"request_fingerprint\":\"{}\",\"summary\":\"{summary}\"}}",
        basis.revision.0,
        basis.through_event_id,
        model.provider.as_str(),
        model.model.as_str(),
        input.request_fingerprint(),
    )
}

fn asked() -> SummaryTask {
    task(input(7, [Message::user("hello")]))
}

fn summary(value: HustleValue) -> epitome_sessionruntime::HustleSummary {
    let HustleValue::Summary(summary) = value else { panic!("a summary was asked for") };
    *summary
}

#[test]
fn the_host_takes_a_bare_summary_and_binds_it_itself() {
    let made = summary(run(IdentityBinding::Host, asked(), |_| bare(XML)).unwrap());
    assert_eq!(made.proven.output.summary(), &XML);
    assert_eq!(made.proven.output.basis(), asked().input.basis());
    // Nobody reported a usage, so the loop's own counter did.
    assert_eq!((made.is_estimated, made.usage.output), (true, TokenCount(XML.len() as u64 / 4)));
}

#[test]
fn a_run_that_was_bound_to_another_context_does_not_finish_this_attempt() {
    let attempt = (&input(8, [Message::user("hello")])).into();
    let stale = SummaryTask { attempt, ..asked() };
    let refused = run(IdentityBinding::Host, stale.clone(), |_| bare(XML));
    assert_eq!(refused.unwrap_err(), InvalidSummaryReason::Identity);
    // The program repeats what it was given, which is not what is wanted either.
    let refused = run(IdentityBinding::Echo, stale, |input| bare(echo(&input, XML)));
    assert_eq!(refused.unwrap_err(), InvalidSummaryReason::Identity);
}

#[test]
fn an_echo_is_decoded_and_compared() {
    let made = summary(run(IdentityBinding::Echo, asked(), |input| bare(echo(&input, XML))).unwrap());
    assert_eq!(made.proven.output.summary(), &XML);
    assert_eq!(made.usage.output, TokenCount(XML.len() as u64 / 4), "the summary is sized, not its wire");

    type Wrong = fn(epitome_loop::CompactionInput) -> String;
    let wrong: [(Wrong, InvalidSummaryReason); 6] = [
        (
            |input| echo(&input, XML).replace("\"revision\":7", "\"revision\":6"),
            InvalidSummaryReason::Identity,
        ),
        (
            |input| echo(&input, XML).replace("\"model\":\"m\"", "\"model\":\"n\""),
            InvalidSummaryReason::Identity,
        ),
        (|input| echo(&input, XML).replace("0202", "0203"), InvalidSummaryReason::Identity),
        (|_| XML.to_owned(), InvalidSummaryReason::Wire),
        (|input| echo(&input, XML) + "x", InvalidSummaryReason::Wire),
        (|input| echo(&input, ""), InvalidSummaryReason::XmlRoot),
    ];
    for (answer, reason) in wrong {
        let refused = run(IdentityBinding::Echo, asked(), move |input| bare(answer(input)));
        assert_eq!(refused.unwrap_err(), reason);
    }
}

#[test]
fn a_reported_usage_goes_before_an_estimate() {
    let reported = |tokens| WorkAnswer {
        usage: Some(Usage { output: TokenCount(tokens), ..Usage::default() }),
        ..bare(XML)
    };
    let made = summary(run(IdentityBinding::Host, asked(), move |_| reported(2_000)).unwrap());
    assert_eq!((made.is_estimated, made.usage.output), (false, TokenCount(2_000)));
    let over = run(IdentityBinding::Host, asked(), move |_| reported(2_001));
    assert_eq!(over.unwrap_err(), InvalidSummaryReason::TokenLimit);
    let none = run(IdentityBinding::Host, asked(), move |_| reported(0));
    assert_eq!(none.unwrap_err(), InvalidSummaryReason::TokenUsage);
    let padded = XML.replace("<state>s", &format!("<state>{}", "s".repeat(8_000)));
    let over = run(IdentityBinding::Host, asked(), move |_| bare(padded.clone()));
    assert_eq!(over.unwrap_err(), InvalidSummaryReason::TokenLimit, "an estimate counts as well");
}

#[test]
fn the_wire_is_projected_and_tells_the_earlier_summary() {
    let image = Block::Image(Image {
        media_type: "image/png".into(),
        data: Some(vec![0; 10].into()),
        ..Image::default()
    });
    let messages = [Message::user("hello"), Message::User { blocks: [image].into() }];
    let previous = SummarySections {
        goal: vec!["the goal".into()],
        state: vec!["where it stands".into()],
        ..SummarySections::default()
    };
    let xml = previous.render().xml;
    let task = SummaryTask { previous: Some(previous), ..task(input(7, messages)) };
    let seen: Arc<Mutex<Option<epitome_loop::CompactionInput>>> = Arc::default();
    let keep = seen.clone();
    run(IdentityBinding::Host, task.clone(), move |input| {
        *keep.lock().unwrap() = Some(input);
        bare(XML)
    })
    .unwrap();
    let seen = seen.lock().unwrap().take().unwrap();
    let mark = Message::user("[image omitted: image/png, 10 bytes, #1]");
    let expected = [Message::user(xml), Message::user("hello"), mark];
    assert_eq!(**seen.transcript(), expected);
    assert_eq!(seen.basis(), task.input.basis());
}
