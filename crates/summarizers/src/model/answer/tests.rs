use std::sync::Arc;

use super::*;
use epitome_loop::{Opaque, RawJson, Thinking, ToolUse};

const RIGHT: &str = "<conversation_summary><goal>Port it</goal><constraints></constraints><decisions></decisions>\
                     <state>read</state><open_items></open_items></conversation_summary>";
const MARKDOWN: &str = "## Goal\nPort it\n## State\n- read";
const JSON: &str = r#"{"goal":"Port it","state":["read"]}"#;

fn answer(finish: FinishReason, blocks: &[Block]) -> Result<Vec<&'static str>, AnswerFault> {
    let answer = ModelAnswer { blocks: Arc::from(blocks), finish, usage: None, model: None };
    read_answer(&answer).map(|answered| answered.repairs)
}

fn refusal() -> Block {
    Block::Refusal { text: "No.".into() }
}

fn call() -> Block {
    Block::ToolUse(ToolUse::new("1", "run", None, None))
}

#[test]
fn each_fault_has_its_name() {
    use FinishReason::{Length, Refused, Stop, ToolCalls, Unknown};
    let thought = || Block::Thinking(Thinking::new(RIGHT, "", "", None));
    let opaque = || Block::Opaque(Opaque { kind: "x".into(), raw: RawJson::parse("{}").unwrap() });
    let invalid = |reason| Err(AnswerFault::Invalid(reason));
    let text = |text: &str| Block::text(text);
    for (finish, blocks, outcome) in [
        (Stop, vec![text(RIGHT)], Ok(vec![])),
        (Stop, vec![thought(), text(RIGHT)], Ok(vec![])),
        (Stop, vec![text(RIGHT.split_at(40).0), text(RIGHT.split_at(40).1)], Ok(vec![])),
        (Stop, vec![text(RIGHT), refusal()], Ok(vec![])),
        (Length, vec![text(RIGHT)], Err(AnswerFault::CutOff)),
        (Length, vec![thought()], Err(AnswerFault::CutOff)),
        (Length, vec![], Err(AnswerFault::CutOff)),
        (Refused, vec![text(RIGHT)], Err(AnswerFault::Refused)),
        (Stop, vec![refusal()], Err(AnswerFault::Refused)),
        (Stop, vec![text("I would rather not."), refusal()], Err(AnswerFault::Refused)),
        (Stop, vec![text(RIGHT), call()], Err(AnswerFault::ToolCall)),
        (Unknown, vec![call()], Err(AnswerFault::ToolCall)),
        (ToolCalls, vec![text(RIGHT)], Err(AnswerFault::ToolCall)),
        (Stop, vec![], Err(AnswerFault::NoText)),
        (Stop, vec![text(" \n\t\u{a0}")], Err(AnswerFault::NoText)),
        (Stop, vec![thought()], Err(AnswerFault::NoText)),
        (Stop, vec![opaque()], Err(AnswerFault::NoText)),
        (Unknown, vec![], Err(AnswerFault::NoText)),
        (Unknown, vec![text(RIGHT)], Ok(vec![])),
        (Unknown, vec![text(JSON)], Ok(vec!["missing_sections", "json"])),
        (Stop, vec![text(MARKDOWN)], Ok(vec!["missing_sections", "markdown"])),
        // Where Markdown ends nobody says.
        (Unknown, vec![text(MARKDOWN)], invalid(InvalidSummaryReason::XmlSyntax)),
        (Unknown, vec![text(RIGHT.split_at(RIGHT.len() - 30).0)], invalid(InvalidSummaryReason::XmlSyntax)),
        (Stop, vec![text("I cannot help.")], invalid(InvalidSummaryReason::XmlRoot)),
    ] {
        assert_eq!(answer(finish, &blocks), outcome, "{finish:?}");
    }
}

#[test]
fn the_text_of_an_error_is_no_summary() {
    for text in [
        "Error generating summary: connection closed early",
        "Error: 429 Too Many Requests",
        "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
        "<html><body><h1>502 Bad Gateway</h1></body></html>",
        "{\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}",
        "(no summary available)",
        "data: [DONE]",
        "null",
    ] {
        let outcome = answer(FinishReason::Stop, &[Block::text(text)]);
        assert!(matches!(outcome, Err(AnswerFault::Invalid(_))), "{text}: {outcome:?}");
    }
}

#[test]
fn a_shell_is_no_summary() {
    for (goal, state) in [("...", "read"), ("Port it", "- ..."), ("None.", "read"), ("Port it", "(nothing)")]
    {
        let text = RIGHT.replace("Port it", goal).replace(">read", &format!(">{state}"));
        let outcome = answer(FinishReason::Stop, &[Block::text(text)]);
        assert_eq!(outcome, Err(AnswerFault::Invalid(InvalidSummaryReason::XmlContent)));
    }
    let text = RIGHT.replace("<decisions>", "<decisions>None").replace(">read", ">- read\n- ...");
    assert_eq!(answer(FinishReason::Stop, &[Block::text(text)]), Ok(vec!["empty_items"]));
}

#[test]
fn a_refusal_in_the_form_of_a_summary_is_none() {
    let none = Err(AnswerFault::Invalid(InvalidSummaryReason::XmlContent));
    let read = |goal: &str, state: &str| {
        let said = serde_json::json!({"goal": [goal], "state": [state]}).to_string();
        answer(FinishReason::Stop, &[Block::text(said)])
    };
    for (goal, state) in [
        ("I cannot help with that request.", "I'm sorry, but I can't summarize this."),
        ("Error: rate limit exceeded", "Error 429"),
    ] {
        assert_eq!(read(goal, state), none);
    }
    for (goal, state) in [
        ("Fix `I cannot connect` in the client", "Error 429 comes from the proxy"),
        ("Error: 429 is to be retried", "Half done"),
        ("Error handling for the worker", "Error handling is ported"),
    ] {
        assert!(read(goal, state).is_ok(), "{goal}");
    }
}
