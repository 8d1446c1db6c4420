//! The kept tail, the projected head, and what a history must be.

use epitome_loop::{KeepRecent, Message};
use epitome_loopruntime::{
    Projection, ProjectionError, check_message_graph, check_retained_history, choose_candidate, project,
    retained_tail_fits as fits, select_tail,
};
use serde_json::{Value, json};

use super::Judgment;
use super::judgment::answer_kind;

use crate::reference_definitions::negative_is_zero;
use crate::reference_form::{ReadError, number, read_messages, tokens};

/// A transcript and how much of it is to be kept.
struct Choice {
    transcript: Vec<Message>,
    derived_prefix: usize,
    keep: KeepRecent,
}

fn read_choice(input: &Value) -> Result<Choice, ReadError> {
    let segments = negative_is_zero(number(input, "max_segments"))?;
    let derived_prefix = usize::try_from(number(input, "derived_prefix")?).unwrap_or(usize::MAX);
    let transcript = read_messages(&input["transcript"])?;
    let keep = KeepRecent { segments, tokens: tokens(input, "max_tokens")? };
    Ok(Choice { transcript, derived_prefix, keep })
}

/// Whether the reference refuses a transcript for what our types cannot hold.
fn is_refused_for(error: ReadError, answer: &Value) -> bool {
    let name = match error {
        ReadError::NilMessage | ReadError::RoleContradiction => "message",
        ReadError::NilBlock => "block",
        ReadError::InvalidJson | ReadError::NotUtf8 => "encoding",
        ReadError::Negative => "derived_prefix",
        ReadError::NilCounter | ReadError::Malformed | ReadError::OutsideEnum | ReadError::EvidenceTools => {
            return false;
        }
    };
    answer["error"] == name
}

pub(super) fn tail(input: &Value, expect: &Value) -> Judgment {
    let Choice { transcript, derived_prefix, keep } = match read_choice(input) {
        Ok(choice) => choice,
        Err(error) => return Judgment::unreadable(error, is_refused_for(error, expect)),
    };
    let got = match select_tail(&transcript, derived_prefix, keep) {
        Ok(choice) => json!({
            "ok": true,
            "head": choice.head,
            "retained": transcript.len().saturating_sub(choice.head),
            "message_tokens": choice.message_tokens,
        }),
        Err(error) => json!({"error": error.as_str()}),
    };
    Judgment::of_answers(expect, &got)
}

pub(super) fn candidate(input: &Value, expect: &Value) -> Judgment {
    let Choice { transcript, derived_prefix, keep } = match read_choice(input) {
        Ok(choice) => choice,
        // Whatever is wrong with the transcript, the reference rejects it with nothing retained.
        Err(error) => {
            return Judgment::unreadable(error, *expect == json!({"reject": 7, "retained": 0}));
        }
    };
    match choose_candidate(&transcript, derived_prefix, keep) {
        Ok(candidate) if expect["retained"] == candidate.retained => {
            same_transcript(expect, &candidate.transcript)
        }
        Ok(candidate) => Judgment::of(answer_kind(expect), format!("retained {}", candidate.retained)),
        // The reference has one number for every reason: unavailable.
        Err(refused) => Judgment::of_answers(expect, &json!({"reject": 7, "retained": refused.retained})),
    }
}

pub(super) fn projection(input: &Value, expect: &Value) -> Judgment {
    let transcript = match read_messages(&input["transcript"]) {
        Ok(transcript) => transcript,
        Err(error) => return Judgment::unreadable(error, is_refused_for(error, expect)),
    };
    match project(&transcript, Projection::Reference) {
        Ok(projected) => same_transcript(expect, &projected),
        Err(ProjectionError::Depth { .. }) => Judgment::of_answers(expect, &json!({"error": "depth"})),
        Err(_) => Judgment::of(answer_kind(expect), "another error"),
    }
}

/// Compares messages as values: whether an empty list is null or `[]` makes no difference.
fn same_transcript(expect: &Value, got: &[Message]) -> Judgment {
    if expect["ok"] != true {
        return Judgment::of(answer_kind(expect), "ok");
    }
    match read_messages(&expect["transcript"]) {
        Ok(expected) if expected == got => Judgment::Equal,
        Ok(_) => Judgment::of("this transcript", "another transcript"),
        Err(error) => Judgment::unreadable(error, false),
    }
}

pub(super) fn retained_history(input: &Value, expect: &Value) -> Judgment {
    let messages = match read_messages(&input["messages"]) {
        Ok(messages) => messages,
        Err(error) => {
            return Judgment::unreadable(error, *expect == json!({"graph": false, "history": false}));
        }
    };
    let got = json!({
        "graph": check_message_graph(&messages).is_ok(),
        "history": check_retained_history(&messages).is_ok(),
    });
    Judgment::of_answers(expect, &got)
}

pub(super) fn retained_tail_fits(input: &Value, expect: &Value) -> Judgment {
    let read = || {
        let (tail, summary) = (number(input, "tail_tokens")?, number(input, "max_summary_tokens")?);
        Ok(fits(tail, summary, number(input, "input_limit")?))
    };
    match read() {
        Ok(fits) => Judgment::of_answers(expect, &json!({"fits": fits})),
        Err(error) => Judgment::unreadable(error, false),
    }
}
