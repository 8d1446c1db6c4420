//! What a failed hustle means: records, second runs, refusals.

use std::time::Duration;

use epitome_loop::{
    Cause, CauseKind, HustleReason, HustleStage, InvalidSummaryReason, OutputFault, RetryClass,
    RetryDecision, RetryPolicy, RetryQuestion, RunFailure, ToolResponseFault, decide_retry, reason_allowed,
    rejection_reason, retry_class,
};
use epitome_sessionruntime::translate_failure;
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::{ReadError, number, word};

pub(super) fn allowed_reason(input: &Value, expect: &Value) -> Judgment {
    let (stage, reason) = match (number(input, "stage"), number(input, "reason")) {
        (Ok(stage), Ok(reason)) => (stage_of(stage), reason_of(reason)),
        (Err(error), _) | (_, Err(error)) => return Judgment::unreadable(error, false),
    };
    let allowed = stage.zip(reason).is_some_and(|(stage, reason)| reason_allowed(stage, reason));
    let got = json!({"allowed": allowed, "stage_valid": stage.is_some(), "reason_valid": reason.is_some()});
    Judgment::of_answers(expect, &got)
}

pub(super) fn reject_reason(input: &Value, expect: &Value) -> Judgment {
    match read_optional(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(cause) => {
            let got = json!({"reject_reason": rejection_reason(cause.as_ref()).number()});
            Judgment::of_answers(expect, &got)
        }
    }
}

pub(super) fn translate_error(input: &Value, expect: &Value) -> Judgment {
    match read_cause(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(cause) => {
            let got = match translate_failure(&cause) {
                Some(refused) => json!({"reason": refused.reason.as_str()}),
                None => json!({"unchanged": true}),
            };
            Judgment::of_answers(expect, &got)
        }
    }
}

pub(super) fn retry(input: &Value, expect: &Value) -> Judgment {
    let run = &input["run_error"];
    let cause = match read_optional(&run["cause"]) {
        Err(error) => return Judgment::unreadable(error, false),
        Ok(cause) => cause,
    };
    let class = match retry_class(cause.as_ref()) {
        RetryClass::None => "none",
        RetryClass::TransientInference => "transient_inference",
        RetryClass::RecoverableAnswer => "recoverable_terminal",
    };
    match read_question(input, cause) {
        // The class can be asked for by itself.
        Err(_) if expect["class"] != class => Judgment::of(expect["class"].to_string(), class),
        Err(error) => Judgment::unreadable(error, false),
        Ok((policy, attempt, failure)) => {
            let decision = decide_retry(&RetryQuestion {
                policy,
                attempt,
                ended: !input["context_error"].is_null(),
                poisoned: input["poisoned"] == true,
                failure: failure.as_ref(),
                time_left: Duration::MAX,
            });
            let again = decision != RetryDecision::Stop;
            Judgment::of_answers(expect, &json!({"retry": again, "class": class}))
        }
    }
}

type Question = (RetryPolicy, u32, Option<RunFailure>);

fn read_question(input: &Value, cause: Option<Cause>) -> Result<Question, ReadError> {
    let policy = u8::try_from(number(input, "policy")?).ok().and_then(RetryPolicy::from_number);
    let attempt = u32::try_from(number(input, "attempt")?).map_err(|_| ReadError::OutsideEnum)?;
    let run = &input["run_error"];
    let failure = match run {
        Value::Null => None,
        run => Some(RunFailure {
            stage: stage_of(number(run, "stage")?).ok_or(ReadError::OutsideEnum)?,
            reason: reason_of(number(run, "reason")?).ok_or(ReadError::OutsideEnum)?,
            cause,
        }),
    };
    Ok((policy.ok_or(ReadError::OutsideEnum)?, attempt, failure))
}

fn stage_of(number: u64) -> Option<HustleStage> {
    HustleStage::from_number(u8::try_from(number).ok()?)
}

fn reason_of(number: u64) -> Option<HustleReason> {
    HustleReason::from_number(u8::try_from(number).ok()?)
}

fn read_optional(value: &Value) -> Result<Option<Cause>, ReadError> {
    if value.is_null() { Ok(None) } else { read_cause(value).map(Some) }
}

/// Reads a tree of errors. Call it where the stack is deep.
fn read_cause(value: &Value) -> Result<Cause, ReadError> {
    let kind = match word(value, "type")? {
        "canceled" => CauseKind::Canceled,
        "deadline" => CauseKind::Deadline,
        "plain" | "wrap" => CauseKind::Other,
        "join" => {
            let list = value["list"].as_array().ok_or(ReadError::Malformed)?;
            let causes = list.iter().map(read_cause).collect::<Result<Vec<_>, _>>()?;
            return Ok(Cause::several(causes));
        }
        "run" => CauseKind::Run,
        "network" => CauseKind::Network,
        "api" => {
            let status = u16::try_from(number(value, "status")?).map_err(|_| ReadError::OutsideEnum)?;
            CauseKind::Api { status, retry_after: None }
        }
        "tool_response" => {
            let named = word(value, "reason")?;
            CauseKind::ToolResponse(find(ToolResponseFault::ALL, |fault| fault.as_str() == named)?)
        }
        "output" => CauseKind::Output(match value["reason"].as_str().filter(|named| !named.is_empty()) {
            None => None,
            Some(named) => Some(find(OutputFault::ALL, |fault| fault.as_str() == named)?),
        }),
        "recoverable_terminal" => CauseKind::Malformed,
        "invalid_summary" => {
            let named = word(value, "reason")?;
            CauseKind::InvalidSummary(find(InvalidSummaryReason::ALL, |reason| reason.as_str() == named)?)
        }
        "limit_unknown" => CauseKind::LimitUnknown,
        "count" => CauseKind::Count,
        "summary_too_large" => CauseKind::SummaryTooLarge,
        "input" => CauseKind::InvalidInput,
        _ => return Err(ReadError::Malformed),
    };
    match read_optional(&value["inner"])? {
        None => Ok(Cause::new(kind)),
        Some(inner) => Ok(inner.inside(kind)),
    }
}

fn find<T, const N: usize>(all: [T; N], wanted: impl Fn(&T) -> bool) -> Result<T, ReadError> {
    all.into_iter().find(wanted).ok_or(ReadError::OutsideEnum)
}
