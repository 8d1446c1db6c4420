//! Runs a case with a model that is asked over HTTP and answers as the case says, blocks and reason of the end included.
//!
//! One difference is ours by design. The reports come from tools whose reader is strict alone, so a case may expect that an
//! answer is refused for a bare `&` or `<`, a fence or an introduction. Our reader takes such an answer, says by name what it
//! repaired, and hands strict XML on. A case that expects a refusal counts as kept when all of this holds: the answer ended
//! by itself, the strict grammar refuses it as it is, nothing but these things was repaired, and every word of the summary
//! stands in the answer.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{Block, ContextLimits, Message, Sampling, Section, TokenCount};
use epitome_loopruntime::parse_summary;
use epitome_models::{AnswerMode, Bounds, Dialect, ModelCheck, ModelSettings, NetworkModel};
use epitome_sessionruntime::Ports;
use epitome_sessionruntime::journal::StableName;
use epitome_summarizers::{MODEL_PROMPT, ModelSummarizer, ModelSummarizerSettings, SummaryForm};
use serde_json::{Value, json};

use super::expectation::check;
use super::scenario::{MODELS, Ran, run_with};
use super::{Case, CaseError};
use crate::loopback::{Body, Loopback, Reply};
use crate::scripted::ports_for;

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let mut outcomes = Vec::new();
    let mut failures = Vec::new();
    for model in MODELS {
        let server = Loopback::start(reply(&case.summary)).map_err(|_| CaseError::Runtime)?;
        let (key, ports) = ports_for(model, None).ok_or(CaseError::Model)?;
        let ports = Ports { summarizer: Arc::new(summarizer(&server)?), ..ports };
        // An answer that is no summary at all is refused like one that is an invalid one.
        let (ran, repairs) = run_with(case, key, &ports, || true)?;
        let kept = is_repaired(case, &ran, &repairs);
        let mut found = check(&expectations(case, kept), &ran)?;
        found.extend(wrong_requests(case, &server));
        let names: Vec<&str> = repairs.iter().map(StableName::as_str).collect();
        let word = if kept { format!("repaired ({})", names.join(", ")) } else { ran.outcome.to_owned() };
        outcomes.push(format!("{model}: {word} {}", ran.reason));
        failures.extend(found.into_iter().map(|failure| format!("{model}: {failure}")));
    }
    Ok((outcomes.join("; "), failures))
}

/// What Anthropic's interface sends for the answer of a case.
fn reply(summary: &Value) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    if let Some(error) = summary["transport_error"].as_str() {
        return match error.parse() {
            Ok(status) => Reply { status, headers, body: Body::Whole(b"{}".to_vec()) },
            Err(_) => Reply { status: 200, headers, body: Body::Hangup },
        };
    }
    let content = match &summary["text"] {
        Value::String(text) => json!([{ "type": "text", "text": text }]),
        _ => summary["blocks"].clone(),
    };
    let body = json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": stop_reason(summary),
        "usage": { "input_tokens": 100, "output_tokens": 50 },
    });
    Reply { status: 200, headers, body: Body::Whole(body.to_string().into_bytes()) }
}

/// The reason of the end, in Anthropic's words.
fn stop_reason(summary: &Value) -> Option<&str> {
    summary["stop_reason"].as_str().map(|reason| match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    })
}

fn summarizer(server: &Loopback) -> Result<ModelSummarizer, CaseError> {
    let settings = ModelSettings {
        provider: "anthropic".into(),
        dialect: Dialect::AnthropicMessages,
        base_url: format!("{}/v1", server.base_url()).into(),
        key_variable: None,
        answers: AnswerMode::Whole,
        model_check: ModelCheck::Same,
        answer_forms: true,
        bounds: Bounds {
            connect_timeout: Duration::from_secs(2),
            total_timeout: Duration::from_secs(5),
            answer_bytes: 1 << 20,
        },
        retention: None,
    };
    let model = NetworkModel::new(settings, &|_| None).map_err(|_| CaseError::Runtime)?;
    let settings = ModelSummarizerSettings {
        model: "scripted".into(),
        limits: ContextLimits { window: TokenCount(32_000), ..ContextLimits::default() },
        prompt: MODEL_PROMPT.into(),
        form: SummaryForm::Xml,
        sampling: Sampling::default(),
        reasoning: TokenCount::ZERO,
        estimator: None,
    };
    ModelSummarizer::new(Arc::new(model), settings).map_err(|_| CaseError::Runtime)
}

/// What is wrong with what the server was asked.
fn wrong_requests(case: &Case, server: &Loopback) -> Vec<String> {
    let received = server.received();
    let mut faults = Vec::new();
    if received.is_empty() {
        faults.push("the model was not asked".to_owned());
    }
    for request in received {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            faults.push("a request is no JSON".to_owned());
            continue;
        };
        let tools = body["tools"].as_array().map_or(0, Vec::len) as u64;
        if tools != case.expect.get("tools_in_request").and_then(Value::as_u64).unwrap_or(0) {
            faults.push(format!("{tools} tools in a request"));
        }
    }
    faults
}

/// The case with what is to be checked of the session: where the answer was repaired, the other outcome that is right, see
/// the head of this file.
fn expectations(case: &Case, is_repaired: bool) -> Case {
    let mut case = case.clone();
    if is_repaired {
        case.expect.insert("outcome".to_owned(), "compact".into());
        case.expect.remove("history_after");
    }
    // Checked where the server received it.
    case.expect.remove("tools_in_request");
    case
}

/// What an answer that was asked for as XML may have around it or in it.
const TOLERATED: [&str; 6] =
    ["byte_order_mark", "outer_white_space", "code_fence", "text_around", "bare_ampersand", "bare_less_than"];

fn is_repaired(case: &Case, ran: &Ran, repairs: &[StableName]) -> bool {
    let ended_by_itself = matches!(case.summary["stop_reason"].as_str(), Some("end_turn" | "stop"));
    let answer = case.answer.as_deref().unwrap_or_default();
    let expects_refusal = case.expect.get("outcome").is_some_and(|wanted| wanted == "reject_summary");
    expects_refusal
        && ended_by_itself
        && ran.outcome == "compact"
        && !repairs.is_empty()
        && repairs.iter().all(|name| TOLERATED.contains(&name.as_str()))
        && parse_summary(answer.as_bytes()).is_err()
        && ran.after.iter().any(|named| summarizes(&named.message, answer))
}

/// Whether a message is a summary of which every item stands in the answer, word for word.
fn summarizes(message: &Message, answer: &str) -> bool {
    let [Block::Text { text }] = &**message.blocks() else { return false };
    let Ok(summary) = parse_summary(text.as_bytes()) else { return false };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (answer, sections) = (words(answer), summary.sections());
    Section::ALL
        .into_iter()
        .flat_map(|section| sections.items(section))
        .all(|item| answer.contains(&words(item)))
}
