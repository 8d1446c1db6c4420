//! Policies, limits and names.

use epitome_loop::{
    ContextLimitUnknown, ContextLimits, HustleName, TokenCount, occupancy, resolve_context_limits,
};
use serde_json::{Value, json};

use super::Judgment;
use super::causes::{key_cause, limits_cause, name_fault};
use crate::reference_definitions::{read_policy, read_quality};
use crate::reference_form::{ReadError, read_model, string, tokens, word};

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
    Ok(match read_policy(input)?.validate(read_quality(input)?) {
        Ok(_) => json!({"ok": true}),
        Err(error) => match error.cause {
            None => json!({"field": error.field.as_str()}),
            Some(cause) => json!({"field": error.field.as_str(), "cause": name_fault(cause)}),
        },
    })
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
        Err(ContextLimitUnknown::Model(error)) => json!({"error": "unknown", "cause": key_cause(error)}),
        Err(ContextLimitUnknown::Limits(error)) => {
            json!({"error": "unknown", "cause": limits_cause(error)})
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
