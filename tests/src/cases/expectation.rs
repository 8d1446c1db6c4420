//! Checks what a case expects, without the help of the code under test.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_loop::{
    Block, Message, Section, SharedText, SummaryRequest, SummarySections, TokenCount, core_json_len,
};
use epitome_loopruntime::{Projection, TOOL_RESULT_CODE_POINTS, parse_summary, project};
use epitome_summarizers::Extractive;
use epitome_transcripts::{Format, Note, Replacement, write};
use serde_json::Value;

use super::scenario::{Named, Ran};
use super::{Case, CaseError};

/// The expectations that do not hold.
pub(super) fn check(case: &Case, ran: &Ran) -> Result<Vec<String>, CaseError> {
    let mut failures = Vec::new();
    // Whatever a case expects, a compacted session is one that a provider takes.
    if ran.outcome == "compact" {
        failures.extend(parted_pairs(&ran.after));
        failures.extend(over_bytes(case, &ran.after));
    }
    if case.kind == "thinking_blocks" {
        failures.extend(signed_for_summarizer(ran));
    }
    failures.extend(ran.live.iter().flat_map(|facts| facts.broken_laws.iter().cloned()));
    for (name, wanted) in &case.expect {
        let fault = match name.as_str() {
            "outcome" => outcome(case, ran, wanted),
            "history_after" => changed(ran, wanted),
            "history_after_failure" if ran.live.is_some() => changed_by_failure(ran, wanted),
            "history_after_failure" if ran.outcome == "compact" => None,
            "history_after_failure" => changed(ran, wanted),
            "tool_pairs_intact" => parted_pairs(&ran.after),
            "unique_ids_per_exchange" => repeated_ids(&ran.after),
            "keep_ids" | "keep_blocks_identical" => lost(ran, wanted),
            "drop_ids" => left(ran, wanted),
            "text_must_survive" => missing_text(ran, wanted),
            "text_must_not_appear" => present_text(ran, wanted),
            "context_tokens" => count(ran, wanted, |tokens, wanted| tokens == wanted),
            "context_tokens_below" | "count_below" => count(ran, wanted, |tokens, bound| tokens < bound),
            "context_tokens_above" | "count_above" => count(ran, wanted, |tokens, bound| tokens > bound),
            "first_id" => other_name(ran.after.first(), wanted),
            "order_last_user" => {
                let is_user = |named: &&Named| matches!(named.message, Message::User { .. });
                other_name(ran.after.iter().rfind(is_user), wanted)
            }
            "first_non_system_role" => first_role(ran, wanted),
            "below_rearm_after" => lands_high(case, ran),
            // A part of `below_rearm_after`.
            "or" => None,
            "same_measure_before_and_after" => ran.tokens_after.and_then(|(stated, found)| {
                (stated != found).then(|| format!("{stated} stated, {found} read back"))
            }),
            "max_continuations" => (wanted.as_u64() < Some(ran.compactions as u64))
                .then(|| format!("{} compactions in a row", ran.compactions)),
            "extractive_output_wellformed" => broken_markup(ran),
            "recovered_ids" => not_recovered(ran, wanted),
            "reported_lines" => not_reported(ran, wanted),
            "valid_utf8" => bad_text(ran),
            "no_error" => (ran.outcome == "error").then(|| format!("refused: {}", ran.reason)),
            // That the run came to its end without a panic is what brought us here.
            "terminates" | "no_panic" | "never_divide_by_zero" => None,
            other => match &ran.live {
                Some(facts) => facts.check(other, wanted, &ran.after)?,
                None => return Err(CaseError::Expectation(other.to_owned())),
            },
        };
        failures.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    Ok(failures)
}

fn over_bytes(case: &Case, messages: &[Named]) -> Option<String> {
    let limit = case.policy["max_request_bytes"].as_u64()?;
    let bytes: u64 = messages.iter().map(|named| core_json_len(&named.message)).sum();
    (bytes > limit).then(|| format!("{bytes} bytes are over the limit of {limit}"))
}

/// A signature is worth something only to the model that made it, so no summarizer may get one.
fn signed_for_summarizer(ran: &Ran) -> Option<String> {
    let messages: Vec<Message> = ran.before.iter().map(|named| named.message.clone()).collect();
    let Ok(projected) = project(&messages, Projection::Reference) else {
        return Some("the session cannot be projected for a summarizer".to_owned());
    };
    let mut blocks = projected.iter().flat_map(|message| message.blocks().iter());
    let signed = blocks.any(|block| matches!(block, Block::Thinking(_)));
    signed.then(|| "a summarizer would get signed thinking".to_owned())
}

fn outcome(case: &Case, ran: &Ran, wanted: &Value) -> Option<String> {
    // These kinds ask whether a compaction is due. Their sessions may be too short to have something to
    // summarize, which is no fault of the arithmetic.
    let asks_for_decision = matches!(case.kind.as_str(), "usage_accounting" | "limit_arithmetic");
    let holds = match wanted.as_str() {
        Some("either") => true,
        Some("error" | "error_or_default") => matches!(ran.outcome, "error" | "policy_error"),
        Some("compact") if asks_for_decision => ran.is_due,
        wanted => wanted == Some(ran.outcome),
    };
    (!holds).then(|| format!("is {} ({}), not {wanted}", ran.outcome, ran.reason))
}

fn changed(ran: &Ran, wanted: &Value) -> Option<String> {
    let is_as_before = match &ran.live {
        Some(facts) => facts.is_unchanged,
        None => ran.before == ran.after && ran.bytes_unchanged,
    };
    let unchanged = *wanted == "unchanged" && is_as_before;
    (!unchanged).then(|| "the history is another one".to_owned())
}

fn changed_by_failure(ran: &Ran, wanted: &Value) -> Option<String> {
    let survived = *wanted == "unchanged" && ran.live.as_ref().is_some_and(|facts| facts.survived_failures);
    (!survived).then(|| "a compaction that failed changed the history".to_owned())
}

/// Every result answers a call before it; a call may be open only at the very end.
fn parted_pairs(messages: &[Named]) -> Option<String> {
    let mut open: HashMap<&str, &str> = HashMap::new();
    for Named { name, message } in messages {
        match message {
            Message::ToolResult { tool_use_id, .. } => {
                if open.remove(tool_use_id.as_str()).is_none() {
                    return Some(format!("{name} answers no open call"));
                }
            }
            message => {
                if let Some(caller) = open.values().next() {
                    return Some(format!("{name} stands between the call of {caller} and its result"));
                }
                open.extend(message.tool_calls().map(|call| (call.id.as_str(), name.as_str())));
            }
        }
    }
    None
}

/// Calls that are open at the same time have different ids.
fn repeated_ids(messages: &[Named]) -> Option<String> {
    let repeated = messages.iter().find(|named| {
        let mut ids: Vec<&str> = named.message.tool_calls().map(|call| call.id.as_str()).collect();
        let calls = ids.len();
        ids.sort_unstable();
        ids.dedup();
        ids.len() < calls
    });
    repeated.map(|named| format!("{} calls twice by one id", named.name)).or_else(|| parted_pairs(messages))
}

fn lost(ran: &Ran, wanted: &Value) -> Option<String> {
    let with_name = |messages: &[Named], name: &str| -> Vec<Message> {
        let found = messages.iter().filter(|named| named.name == name);
        found.map(|named| named.message.clone()).collect()
    };
    let lost = texts(wanted).find(|name| {
        let before = with_name(&ran.before, name);
        before.is_empty() || before != with_name(&ran.after, name)
    });
    lost.map(|name| format!("{name} is not there as it was"))
}

fn left(ran: &Ran, wanted: &Value) -> Option<String> {
    let left = texts(wanted).find(|name| ran.after.iter().any(|named| named.name == *name));
    left.map(|name| format!("{name} is still there"))
}

fn missing_text(ran: &Ran, wanted: &Value) -> Option<String> {
    let missing =
        texts(wanted).find(|text| !ran.after.iter().any(|named| holds(named.message.blocks(), text)));
    missing.map(|text| format!("`{text}` is gone"))
}

fn present_text(ran: &Ran, wanted: &Value) -> Option<String> {
    let present =
        texts(wanted).find(|text| ran.after.iter().any(|named| holds(named.message.blocks(), text)));
    present.map(|text| format!("`{text}` is there"))
}

fn holds(blocks: &[Block], wanted: &str) -> bool {
    blocks.iter().any(|block| match block {
        Block::Text { text } => text.contains(wanted),
        Block::ToolResult(result) => holds(&result.content, wanted),
        _ => false,
    })
}

fn count(ran: &Ran, bound: &Value, holds: fn(u64, u64) -> bool) -> Option<String> {
    match (ran.tokens, bound.as_u64()) {
        (Some(tokens), Some(bound)) if holds(tokens, bound) => None,
        (Some(tokens), _) => Some(format!("counted {tokens}, bound {bound}")),
        (None, _) => Some(format!("could not be counted: {}", ran.reason)),
    }
}

fn first_role(ran: &Ran, wanted: &Value) -> Option<String> {
    let mut roles = ran.after.iter().map(|named| named.message.role().as_str());
    let first = roles.find(|role| *role != "system").unwrap_or("none");
    (*wanted != first).then(|| format!("is {first}, not {wanted}"))
}

fn other_name(found: Option<&Named>, wanted: &Value) -> Option<String> {
    let found = found.map_or("none", |named| named.name.as_str());
    (*wanted != found).then(|| format!("is {found}, not {wanted}"))
}

fn lands_high(case: &Case, ran: &Ran) -> Option<String> {
    let refused = ran.outcome == "error" || ran.outcome == "reject_summary";
    let refusal_will_do = case.expect.get("or").is_some_and(|or| *or == "error");
    let holds = ran.below_rearm || refused && refusal_will_do;
    (!holds).then(|| format!("{} {}", ran.outcome, ran.reason))
}

/// The extractive summary of the session is read back, and text with markup in it comes out as it went in.
fn broken_markup(ran: &Ran) -> Option<String> {
    let messages = ran.before.iter().map(|named| named.message.clone());
    let draft = match Extractive::new().summarize_now(&request(messages.collect(), None)) {
        Ok(draft) => draft,
        Err(error) => return Some(error.to_string()),
    };
    let xml = draft.sections.render().xml;
    let summary = match parse_summary(xml.as_bytes()) {
        Ok(summary) => summary,
        Err(error) => return Some(error.to_string()),
    };
    let shown: String = Section::ALL.iter().map(|section| summary.text(*section).into_owned()).collect();
    let spoken = ran.before.iter().flat_map(|named| named.message.blocks().iter());
    let marked_up = spoken.filter_map(|block| match block {
        Block::Text { text } if text.contains(['<', '&']) => Some(text),
        _ => None,
    });
    for text in marked_up {
        let quoted =
            SummarySections { goal: vec![text.clone()], state: vec!["s".into()], ..Default::default() };
        let xml = quoted.render().xml;
        let read_back = parse_summary(xml.as_bytes()).map(|summary| summary.text(Section::Goal).into_owned());
        if read_back.as_deref() != Ok(text.as_str()) {
            return Some("text with markup is not read back as it was".to_owned());
        }
        let words = text.split_whitespace().filter(|word| word.contains(['<', '&']));
        if !words.into_iter().any(|word| shown.contains(word)) {
            return Some("the extractive summary shows nothing of text with markup".to_owned());
        }
    }
    None
}

fn not_recovered(ran: &Ran, wanted: &Value) -> Option<String> {
    let names: Vec<&str> = ran.before.iter().map(|named| named.name.as_str()).collect();
    let wanted: Vec<&str> = texts(wanted).collect();
    if names != wanted {
        return Some(format!("{} of {} messages", names.len(), wanted.len()));
    }
    let session = ran.session.as_ref()?;
    for (at, named) in ran.before.iter().enumerate() {
        let reported = session.notes().iter().any(|note| {
            matches!(note, Note::LoneSurrogates { message, .. } | Note::InvalidUtf8 { message, .. } if *message == at)
        });
        if holds(named.message.blocks(), "\u{fffd}") && !reported {
            return Some(format!("the repair of {} is not reported", named.name));
        }
    }
    None
}

fn not_reported(ran: &Ran, wanted: &Value) -> Option<String> {
    let notes = ran.session.as_ref()?.notes().iter();
    let reported: Vec<u64> = notes
        .filter_map(|note| match note {
            Note::Damaged { line, .. } => Some(*line),
            _ => None,
        })
        .collect();
    let wanted: Vec<u64> = wanted.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    (reported != wanted).then(|| format!("are {reported:?}, not {wanted:?}"))
}

/// Whether something is written that is not text, or is cut in the middle of a character.
fn bad_text(ran: &Ran) -> Option<String> {
    let session = ran.session.as_ref()?;
    let whole: Vec<usize> = (0..session.messages().len()).collect();
    // In its own format an unchanged file stays as it is; any other is encoded anew, and nothing broken may
    // be passed through.
    let formats = [Format::OpenAiChat, Format::AnthropicMessages, Format::EpitomeJson];
    for format in formats.into_iter().filter(|format| *format != session.format()) {
        let Ok((bytes, _)) = write(session, &Replacement { summary: None, kept: &whole }, format) else {
            return Some(format!("cannot be written as {format}"));
        };
        if serde_json::from_slice::<Value>(&bytes).is_err() {
            return Some(format!("written as {format}, it is not JSON"));
        }
    }
    ran.before.iter().find_map(|named| cut_anywhere(&named.message))
}

/// Cuts the message's text at every place around each of its characters, by projection and by a byte budget.
fn cut_anywhere(message: &Message) -> Option<String> {
    for block in message.blocks().iter() {
        let Block::Text { text } = block else { continue };
        let long = text.repeat(TOOL_RESULT_CODE_POINTS / text.chars().count().max(1) + 2);
        for pad in 0..text.len().min(256) {
            let padded = format!("{}{long}", "x".repeat(pad));
            let result = Message::tool_result("id", padded.as_str(), false);
            let projected = project(std::slice::from_ref(&result), Projection::Reference).ok()?;
            let kept = projected.first().and_then(|message| match &**message.blocks() {
                [Block::Text { text }] => Some(text.chars().count()),
                _ => None,
            });
            if kept.is_none_or(|kept| kept > TOOL_RESULT_CODE_POINTS) {
                return Some("a projected result is not cut to its length".to_owned());
            }
            let said = vec![Message::user(padded), result];
            let budget = 200 + pad;
            match Extractive::new().summarize_now(&request(said, Some(budget))) {
                Ok(draft) if draft.sections.render().xml.len() <= budget => {}
                Ok(_) => return Some("an extractive summary is over its bytes".to_owned()),
                Err(_) => {}
            }
        }
    }
    None
}

fn request(transcript: Vec<Message>, max_bytes: Option<usize>) -> SummaryRequest {
    SummaryRequest {
        transcript: transcript.into(),
        previous: None::<SummarySections>,
        instructions: None::<SharedText>,
        max_tokens: TokenCount(2_000),
        max_bytes,
        estimator: Arc::new(|text: &str| TokenCount(text.len().div_ceil(4) as u64)),
        correction: None,
        carry_constraints: true,
    }
}

fn texts(wanted: &Value) -> impl Iterator<Item = &str> {
    wanted.as_array().into_iter().flatten().filter_map(Value::as_str)
}
