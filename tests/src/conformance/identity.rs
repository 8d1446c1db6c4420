//! Fingerprints, capabilities and reply ids.

use epitome_loop::{
    AttemptId, CapabilityError, CommandId, CountQuality, CounterCapability, CounterIncompatible,
    FingerprintError, InferenceCapability, RequestFingerprintInput, compatible_counter, waiter_reply_id,
};
use serde_json::{Value, json};

use super::Judgment;
use super::causes::{capability_cause, model_cause};
use crate::reference_definitions::{read_counter, read_inference, read_model_definition};
use crate::reference_form::{ReadError, flag, read_basis, text, word};

pub(super) fn fingerprint(input: &Value, expect: &Value) -> Judgment {
    let mut expect = expect.clone();
    if expect["field"] == "Encoding" {
        // The cause is the text of the reference's JSON library.
        expect.as_object_mut().map(|expect| expect.remove("cause"));
    }
    match fingerprint_of(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(got) => Judgment::of_answers(&expect, &got),
    }
}

fn fingerprint_of(value: &Value) -> Result<Value, ReadError> {
    let counter = read_counter(&value["counter_capability"])?;
    let inference = read_inference(&value["inference_capability"])?;
    let input = RequestFingerprintInput {
        system_revision: text(value, "system_revision")?,
        tool_policy_revision: text(value, "tool_policy_revision")?,
        model: read_model_definition(&value["model"])?,
        basis: read_basis(&value["basis"])?,
        runtime_context_revision: text(value, "runtime_context_revision")?,
        // A capability with refused numbers cannot be held; any valid one stands in for what is judged earlier.
        counter_capability: counter
            .clone()
            .unwrap_or_else(|_| CounterCapability::local("stand-in", CountQuality::ExactLocal)),
        inference_capability: inference.clone().unwrap_or_else(|_| InferenceCapability::local()),
    };
    let json = match (input.canonical_json(), counter, inference) {
        (Err(error), _, _) if error != FingerprintError::Encoding => Err(error),
        (_, Err(fault), _) => Err(FingerprintError::CounterCapability(fault)),
        (_, _, Err(fault)) => Err(FingerprintError::InferenceCapability(fault)),
        (json, _, _) => json,
    };
    Ok(match json {
        Ok(json) => json!({
            "ok": true,
            "json": String::from_utf8(json).map_err(|_| ReadError::NotUtf8)?,
            "sha256": input.fingerprint().map_err(|_| ReadError::Malformed)?.to_string(),
        }),
        Err(error) => refusal(error),
    })
}

fn refusal(error: FingerprintError) -> Value {
    let field = error.field();
    match error {
        FingerprintError::Model(fault) => json!({"field": field, "cause": model_cause(fault)}),
        FingerprintError::CounterCapability(fault) | FingerprintError::InferenceCapability(fault) => {
            json!({"field": field, "cause": capability_cause(fault)})
        }
        _ => json!({"field": field}),
    }
}

pub(super) fn capability(input: &Value, expect: &Value) -> Judgment {
    match capability_of(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(got) => Judgment::of_answers(expect, &got),
    }
}

fn capability_of(input: &Value) -> Result<Value, ReadError> {
    let answer = |verdict: Result<(), CapabilityError>| match verdict {
        Ok(()) => json!({"ok": true}),
        Err(fault) => capability_cause(fault),
    };
    Ok(match (&input["counter"], &input["inference"]) {
        (counter, Value::Null) => answer(read_counter(counter)?.map(drop)),
        (Value::Null, inference) => answer(read_inference(inference)?.map(drop)),
        (counter, inference) => {
            let fits = match (read_inference(inference)?, read_counter(counter)?) {
                (Err(fault), _) => Err(CounterIncompatible::InvalidInference(fault)),
                (_, Err(fault)) => Err(CounterIncompatible::InvalidCounter(fault)),
                (Ok(inference), Ok(counter)) => compatible_counter(&inference, &counter),
            };
            match fits {
                Ok(()) => json!({"ok": true}),
                Err(refused) => match refused {
                    CounterIncompatible::InvalidInference(fault)
                    | CounterIncompatible::InvalidCounter(fault) => {
                        json!({"incompatible": refused.as_str(), "cause": capability_cause(fault)})
                    }
                    _ => json!({"incompatible": refused.as_str()}),
                },
            }
        }
    })
}

pub(super) fn waiter_reply(input: &Value, expect: &Value) -> Judgment {
    let ids = || {
        let attempt = AttemptId::parse(word(input, "attempt_id")?).map_err(|_| ReadError::Malformed)?;
        let command = CommandId::parse(word(input, "command_id")?).map_err(|_| ReadError::Malformed)?;
        Ok(waiter_reply_id(attempt, command, flag(input, "resolved")))
    };
    match ids() {
        Err(error) => Judgment::unreadable(error, false),
        Ok(id) => Judgment::of_answers(expect, &json!({"id": id.to_string()})),
    }
}
