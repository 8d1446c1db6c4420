//! Policies, limits and names.

use std::time::Duration;

use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextLimitUnknown, ContextLimits, ContextLimitsField, CountQuality,
    CounterPolicy, HustleName, HustleNameError, KeepRecent, ModelKeyField, TokenCount, occupancy,
    resolve_context_limits,
};
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::{ReadError, flag, number, read_model, string, text, tokens, word};

pub(super) fn hustle_name(input: &Value, expect: &Value) -> Judgment {
    match string(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(name) => {
            let got = match HustleName::new(name) {
                Ok(_) => json!({"ok": true}),
                Err(error) => json!({"kind": name_fault(error), "field": "name"}),
            };
            Judgment::of_answers(expect, &got)
        }
    }
}

pub(super) fn policy(input: &Value, expect: &Value) -> Judgment {
    match validate(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(got) => Judgment::of_answers(expect, &got),
    }
}

fn validate(input: &Value) -> Result<Value, ReadError> {
    let policy = CompactionPolicy {
        automatic: flag(input, "automatic"),
        counter_policy: match number(input, "counter_policy")? {
            1 => CounterPolicy::RequireExact,
            2 => CounterPolicy::AllowConservative,
            _ => CounterPolicy::Unknown,
        },
        compact_at: basis_points(input, "compact_at")?,
        rearm_below: basis_points(input, "rearm_below")?,
        reserved_output: tokens(input, "reserved_output")?,
        safety_margin: tokens(input, "safety_margin")?,
        max_summary_tokens: tokens(input, "max_summary_tokens")?,
        count_timeout: Duration::from_nanos(negative_is_zero(number(input, "count_timeout_nanos"))?),
        hustle: text(input, "hustle")?,
        keep_recent: Some(KeepRecent {
            segments: negative_is_zero(number(input, "keep_recent_segments"))?,
            tokens: tokens(input, "keep_recent_tokens")?,
        }),
        max_request_bytes: None,
    };
    let quality = match number(input, "quality")? {
        1 => Some(CountQuality::ExactProvider),
        2 => Some(CountQuality::ExactLocal),
        3 => Some(CountQuality::HeuristicEstimate),
        _ => None,
    };
    Ok(match policy.validate(quality) {
        Ok(_) => json!({"ok": true}),
        Err(error) => match error.cause {
            None => json!({"field": error.field.as_str()}),
            Some(cause) => json!({"field": error.field.as_str(), "cause": name_fault(cause)}),
        },
    })
}

/// Zero is refused as negative numbers are: both mean that nothing is kept, or no time is left.
pub(super) fn negative_is_zero(number: Result<u64, ReadError>) -> Result<u64, ReadError> {
    match number {
        Err(ReadError::Negative) => Ok(0),
        other => other,
    }
}

fn basis_points(input: &Value, key: &str) -> Result<BasisPoints, ReadError> {
    u16::try_from(number(input, key)?).map(BasisPoints).map_err(|_| ReadError::Malformed)
}

fn name_fault(error: HustleNameError) -> &'static str {
    match error {
        HustleNameError::Missing => "missing_name",
        HustleNameError::Reserved => "reserved_name",
        _ => "unknown",
    }
}

pub(super) fn limits(input: &Value, expect: &Value) -> Judgment {
    let got = match word(input, "op") {
        Ok("resolve") => resolve(input),
        Ok("occupancy") => occupied(input),
        _ => Err(ReadError::Malformed),
    };
    match got {
        Err(error) => Judgment::unreadable(error, false),
        Ok(got) => Judgment::of_answers(expect, &got),
    }
}

fn resolve(input: &Value) -> Result<Value, ReadError> {
    let key = read_model(&input["model"])?;
    let limits = ContextLimits {
        window: tokens(&input["limits"], "window_tokens")?,
        max_input: tokens(&input["limits"], "max_input_tokens")?,
        max_output: tokens(&input["limits"], "max_output_tokens")?,
    };
    let reserved: TokenCount = tokens(input, "reserved_output")?;
    Ok(match resolve_context_limits(&key, &limits, reserved, tokens(input, "safety_margin")?) {
        Ok(found) => json!({
            "ok": true,
            "reserved_output": found.reserved_output.get(),
            "raw_input_limit": found.raw_input_limit.get(),
            "input_limit": found.input_limit.get(),
        }),
        Err(ContextLimitUnknown::Model(error)) => {
            let field = match error.field {
                ModelKeyField::Provider => "Provider",
                ModelKeyField::Model => "Model",
            };
            json!({"error": "unknown", "cause": {"type": "model_key", "field": field}})
        }
        Err(ContextLimitUnknown::Limits(error)) => {
            let field = match error.field {
                ContextLimitsField::MaxInput => "MaxInputTokens",
                ContextLimitsField::MaxOutput => "MaxOutputTokens",
            };
            json!({"error": "unknown", "cause": {"type": "context_limits", "field": field}})
        }
        Err(_) => json!({"error": "unknown"}),
    })
}

fn occupied(input: &Value) -> Result<Value, ReadError> {
    Ok(match occupancy(tokens(input, "used")?, tokens(input, "limit")?) {
        Ok(share) => json!({"ok": true, "basis_points": share.get()}),
        Err(_) => json!({"error": "zero_limit"}),
    })
}
