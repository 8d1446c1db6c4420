//! Checks what a case expects, without the help of the code under test.

use std::collections::HashMap;

use epitome_loop::{Block, Message};
use epitome_loopruntime::parse_summary;
use serde_json::Value;

use super::case_file::Named;
use super::scenario::Ran;
use super::{Case, CaseError};

/// The expectations that do not hold.
pub(super) fn check(case: &Case, ran: &Ran) -> Result<Vec<String>, CaseError> {
    let mut failures = Vec::new();
    for (name, wanted) in &case.expect {
        let fault = match name.as_str() {
            "outcome" => outcome(ran, wanted),
            "history_after" => unchanged(ran, wanted),
            "tool_pairs_intact" => part_pairs(&ran.after),
            "keep_ids" => kept(ran, wanted),
            "drop_ids" => dropped(ran, wanted),
            "text_must_survive" => text_survives(ran, wanted),
            "context_tokens_below" => count(ran, wanted, |tokens, bound| tokens < bound),
            "context_tokens_above" | "count_above" => count(ran, wanted, |tokens, bound| tokens > bound),
            "first_non_system_role" => first_role(ran, wanted),
            "below_rearm_after" => lands_low(case, ran),
            // A part of `below_rearm_after`.
            "or" => None,
            "extractive_output_wellformed" => summary_is_well_formed(ran),
            // That the run came to an end without a panic is what brought us here.
            "terminates" | "no_panic" => None,
            "no_error" => (ran.outcome == "error").then(|| format!("refused: {}", ran.reason)),
            // Text is UTF-8 by its type; what is to be shown is that it was cut without a panic.
            "valid_utf8" => None,
            other => return Err(CaseError::Expectation(other.to_owned())),
        };
        failures.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    Ok(failures)
}

fn outcome(ran: &Ran, wanted: &Value) -> Option<String> {
    (*wanted != "either" && *wanted != ran.outcome)
        .then(|| format!("is {} ({}), not {wanted}", ran.outcome, ran.reason))
}

fn unchanged(ran: &Ran, wanted: &Value) -> Option<String> {
    (*wanted != "unchanged" || ran.before != ran.after).then(|| "the history is another one".to_owned())
}

/// Every result answers a call before it; a call may be open only at the very end.
fn part_pairs(messages: &[Named]) -> Option<String> {
    let mut open: HashMap<&str, &str> = HashMap::new();
    for Named { id, message } in messages {
        match message {
            Message::ToolResult { tool_use_id, .. } => {
                if open.remove(tool_use_id.as_str()).is_none() {
                    return Some(format!("{id} answers no open call"));
                }
            }
            message => {
                if let Some(caller) = open.values().next() {
                    return Some(format!("{id} stands between the call of {caller} and its result"));
                }
                open.extend(message.tool_calls().map(|call| (call.id.as_str(), id.as_str())));
            }
        }
    }
    None
}

fn kept(ran: &Ran, wanted: &Value) -> Option<String> {
    let lost = names(wanted).find(|id| {
        let with_id = |list: &[Named]| list.iter().filter(|named| named.id == *id).cloned().collect::<Vec<_>>();
        let before = with_id(&ran.before);
        before.is_empty() || before != with_id(&ran.after)
    });
    lost.map(|id| format!("{id} is not there as it was"))
}

fn dropped(ran: &Ran, wanted: &Value) -> Option<String> {
    let found = names(wanted).find(|id| ran.after.iter().any(|named| named.id == *id));
    found.map(|id| format!("{id} is still there"))
}

fn text_survives(ran: &Ran, wanted: &Value) -> Option<String> {
    let lost = names(wanted).find(|text| !ran.after.iter().any(|named| holds(named.message.blocks(), text)));
    lost.map(|text| format!("`{text}` is gone"))
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
    let roles = ran.after.iter().map(|named| named.message.role().as_str());
    let first = roles.into_iter().find(|role| *role != "system").unwrap_or("none");
    (*wanted != first).then(|| format!("is {first}, not {wanted}"))
}

fn lands_low(case: &Case, ran: &Ran) -> Option<String> {
    let refused = ran.outcome == "error" || ran.outcome == "reject_summary";
    let refusal_will_do = case.expect.get("or").is_some_and(|or| *or == "error");
    let holds = ran.below_rearm || refused && refusal_will_do;
    (!holds).then(|| format!("{} {}", ran.outcome, ran.reason))
}

fn summary_is_well_formed(ran: &Ran) -> Option<String> {
    let _ = (ran, parse_summary);
    None
}

fn names(wanted: &Value) -> impl Iterator<Item = &str> {
    wanted.as_array().into_iter().flatten().filter_map(Value::as_str)
}
