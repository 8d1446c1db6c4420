//! Definitions of loops.

use epitome_loop::{
    CapabilityError, ContextObservationPolicy, CountQuality, CounterCapability, InferenceCapability,
    LoopDefinition, LoopDefinitionBuilder, LoopDefinitionError, Model,
};
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_definitions::{read_counter, read_inference, read_observation, read_policy};
use crate::reference_form::{ReadError, flag};

pub(super) fn loop_define(input: &Value, expect: &Value) -> Judgment {
    if flag(input, "nil_counter") {
        return Judgment::unreadable(ReadError::NilCounter, expect["kind"] == "invalid_context_counter");
    }
    match define(input) {
        Err(error) => Judgment::unreadable(error, false),
        Ok(got) => Judgment::of_answers(expect, &got),
    }
}

fn define(input: &Value) -> Result<Value, ReadError> {
    let given = |key: &str| Some(&input[key]).filter(|value| !value.is_null());
    let counter = given("counter").map(read_counter).transpose()?;
    let inference = given("inference").map(read_inference).transpose()?;
    let model = Model { provider: "p".into(), name: "m".into(), ..Model::default() };
    let mut builder = LoopDefinition::builder("loop", model);
    let twice = |name: &str| if input["duplicate"] == name { 2 } else { 1 };
    if let Some(counter) = &counter {
        // A capability with refused numbers cannot be held; a valid one stands in for what is judged earlier.
        let stand_in = || CounterCapability::local("stand-in", CountQuality::ExactLocal);
        let counter = counter.clone().unwrap_or_else(|_| stand_in());
        builder = repeat(builder, twice("counter"), |builder| builder.with_context_counter(counter.clone()));
    }
    if let Some(inference) = &inference {
        let inference = inference.clone().unwrap_or_else(|_| InferenceCapability::local());
        builder = repeat(builder, twice("inference"), |builder| {
            builder.with_inference_capability(inference.clone())
        });
    }
    if let Some(observation) = given("observation") {
        let policy: ContextObservationPolicy = read_observation(observation)?;
        builder = repeat(builder, twice("observation"), |builder| builder.with_context_observation(policy));
    }
    if let Some(compaction) = given("compaction") {
        let policy = read_policy(compaction)?;
        builder = repeat(builder, twice("compaction"), |builder| builder.with_compaction(policy.clone()));
    }
    let refused = |fault: Option<Result<(), CapabilityError>>| fault.and_then(Result::err);
    let counter_fault = refused(counter.map(|counter| counter.map(drop)));
    let inference_fault = refused(inference.map(|inference| inference.map(drop)));
    let defined = match (builder.build(), counter_fault, inference_fault) {
        (Err(error), _, _) if is_about_what_is_given(&error) => Err(error),
        (_, Some(fault), _) => Err(LoopDefinitionError::InvalidContextCounter(fault)),
        (_, _, Some(fault)) => Err(LoopDefinitionError::InvalidInferenceCapability(fault)),
        (defined, _, _) => defined,
    };
    Ok(match defined {
        Ok(defined) => json!({
            "ok": true,
            "compaction_configured": defined.compaction().is_some(),
            "compaction_hustle": defined.compaction_hustle().map_or("", |hustle| hustle.as_str()),
        }),
        Err(error) => refusal(error),
    })
}

fn repeat(
    mut builder: LoopDefinitionBuilder,
    times: usize,
    give: impl Fn(LoopDefinitionBuilder) -> LoopDefinitionBuilder,
) -> LoopDefinitionBuilder {
    for _ in 0..times {
        builder = give(builder);
    }
    builder
}

/// These are found before any capability is looked at.
fn is_about_what_is_given(error: &LoopDefinitionError) -> bool {
    matches!(
        error,
        LoopDefinitionError::Duplicate(_)
            | LoopDefinitionError::ConflictingContextPolicy
            | LoopDefinitionError::MissingContextCounter
            | LoopDefinitionError::MissingInferenceCapability
            | LoopDefinitionError::MissingContextPolicy
    )
}

fn refusal(error: LoopDefinitionError) -> Value {
    let capability = |fault: CapabilityError| format!("{}.{}", fault.capability.as_str(), fault.field);
    let cause = match error {
        LoopDefinitionError::InvalidContextCounter(fault)
        | LoopDefinitionError::InvalidInferenceCapability(fault) => Some(capability(fault)),
        LoopDefinitionError::IncompatibleContextCounter(reason) => Some(reason.as_str().to_owned()),
        LoopDefinitionError::InvalidContextObservation(fault) => Some(fault.field.to_string()),
        LoopDefinitionError::InvalidCompaction(fault) => Some(fault.field.to_string()),
        _ => None,
    };
    let mut answer = json!({"kind": error.kind(), "field": error.field().as_str()});
    if let (Some(cause), Some(answer)) = (cause, answer.as_object_mut()) {
        answer.insert("cause".to_owned(), cause.into());
    }
    answer
}
