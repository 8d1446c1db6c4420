//! The registry of loops and hustles.

use std::time::Duration;

use epitome_loop::{
    ByteLimits, CounterCapability, HustleSettings, IdentityBinding, InferenceCapability, LoopDefinition,
    LoopDefinitionBuilder, Model, ModelKey, ModelSource, Participation, RetryPolicy, SystemPrompt,
};
use epitome_rig::{Rig, RigBuilder, RigErrorKind};
use serde_json::{Value, json};

use super::Judgment;
use super::hustles::read_limits;
use crate::reference_definitions::{read_policy, read_quality};
use crate::reference_form::{ReadError, flag, number, text};

pub(super) fn rig_hustles(input: &Value, expect: &Value) -> Judgment {
    let builder = match read_rig(input) {
        // A negative queue is refused by the reference for its range, and by us because it cannot be held.
        Err(error) => return Judgment::unreadable(error, expect["kind"] == "invalid_hustle_limits"),
        Ok(builder) => builder,
    };
    let got = match builder.build() {
        Ok(_) => json!({"ok": true}),
        // The reference judges hustles alone; a rig without loops is of no use.
        Err(error) if error.kind == RigErrorKind::NoLoop && expect["ok"] == true => {
            return Judgment::Stricter("no-loop");
        }
        Err(error) => json!({"kind": error.kind.as_str(), "name": error.name.as_str()}),
    };
    if expect["kind"] == "incompatible_compaction_hustle"
        && only_named(input, &expect["name"])
        && (got["ok"] == true || is_about_another_loop(&got, &expect["name"]))
    {
        return Judgment::Looser("named-model-for-compaction");
    }
    Judgment::of_answers(expect, &got)
}

/// Whether nothing but its named model speaks against this hustle.
fn only_named(input: &Value, name: &Value) -> bool {
    let hustle = input["hustles"].as_array().into_iter().flatten().find(|hustle| hustle["name"] == *name);
    hustle.is_some_and(|hustle| hustle["model_source"] == 2 && hustle["participation"] == 1)
}

/// Past the loop that the reference stops at, we meet the fault of a later one.
fn is_about_another_loop(got: &Value, name: &Value) -> bool {
    let late = ["missing_compaction_hustle", "incompatible_compaction_hustle"];
    late.iter().any(|kind| got["kind"] == *kind) && got["name"] != *name
}

fn read_rig(input: &Value) -> Result<RigBuilder, ReadError> {
    let mut builder = Rig::builder();
    if !input["limits"].is_null() {
        builder = builder.with_hustle_limits(read_limits(&input["limits"])?);
    }
    let list = |key: &str| input[key].as_array().ok_or(ReadError::Malformed);
    for hustle in list("hustles")? {
        builder = builder.with_hustle(read_hustle(hustle)?);
    }
    for agent_loop in list("loops")? {
        builder = builder.with_loop(read_loop(agent_loop)?);
    }
    Ok(builder)
}

/// What the vectors do not say is valid, apart from an undefined hustle, of which nothing is.
fn read_hustle(value: &Value) -> Result<HustleSettings, ReadError> {
    let zero = flag(value, "zero");
    let prompt = || SystemPrompt { text: "Summarize.".into(), revision: "1".into() };
    let model = match number(value, "model_source")? {
        1 => ModelSource::CurrentLoop { prompt: prompt() },
        2 => ModelSource::Named {
            client: "c".into(),
            model: ModelKey::new("p", "m"),
            revision: "1".into(),
            prompt: prompt(),
        },
        0 if zero => {
            ModelSource::CurrentLoop { prompt: SystemPrompt { text: "".into(), revision: "".into() } }
        }
        _ => return Err(ReadError::OutsideEnum),
    };
    let participation = match number(value, "participation")? {
        2 => Participation::Background,
        1 => Participation::Blocking,
        0 if zero => Participation::Blocking,
        _ => return Err(ReadError::OutsideEnum),
    };
    let bytes = if zero { 0 } else { 1 << 20 };
    Ok(HustleSettings {
        name: text(value, "name")?,
        participation,
        timeout: Duration::from_secs(u64::from(!zero)),
        limits: ByteLimits { input: bytes, output: bytes },
        model,
        policy_revision: if zero { "".into() } else { "1".into() },
        output_schema: None,
        retry: RetryPolicy::None,
        identity: IdentityBinding::Host,
    })
}

fn read_loop(value: &Value) -> Result<LoopDefinitionBuilder, ReadError> {
    let model = Model { provider: "p".into(), name: "m".into(), ..Model::default() };
    let builder = LoopDefinition::builder(text(value, "name")?, model);
    let policy = &value["compaction"];
    if policy.is_null() {
        return Ok(builder);
    }
    let quality = read_quality(policy)?.ok_or(ReadError::OutsideEnum)?;
    Ok(builder
        .with_context_counter(CounterCapability::local("t", quality))
        .with_inference_capability(InferenceCapability::local())
        .with_compaction(read_policy(policy)?))
}
