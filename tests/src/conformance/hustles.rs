//! Definitions of hustles and the limits of their lanes.

use std::time::Duration;

use epitome_loop::{
    ByteLimits, HustleDefinitionError, HustleDescriptor, HustleDescriptorParts, HustleLimitSettings,
    HustleLimits, IdentityBinding, LaneLimits, ModelDescriptor, OutputSchemaDescriptor, Participation,
    RequestFingerprint, RetryPolicy,
};
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_definitions::negative_is_zero;
use crate::reference_form::{ReadError, flag, number, read_model, text, word};

const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The fields of a descriptor in the order in which the reference checks them.
const CHECKED: [&str; 13] = [
    "name",
    "participation",
    "model_source",
    "timeout",
    "limits",
    "prompt_revision",
    "prompt_sha256",
    "policy_revision",
    "output_schema_name",
    "output_schema_sha256",
    "structured_output_revision",
    "retry_policy",
    "named_model_key",
];

pub(super) fn hustle_descriptor(input: &Value, expect: &Value) -> Judgment {
    if carries_evidence(input) {
        return Judgment::unreadable(ReadError::EvidenceTools, false);
    }
    let refused = match describe(input) {
        Err(error) => return Judgment::unreadable(error, false),
        Ok(refused) => refused,
    };
    // What our types cannot hold is refused by them; the reference refuses it among its checks.
    let found = refused.map(|error| (rank(error.field()), error.kind(), error.field()));
    let by_type = type_faults(input).into_iter().next();
    let got = match (found, by_type) {
        (Some((rank_found, kind, field)), by_type)
            if by_type.is_none_or(|(_, by_type)| rank_found < rank(by_type)) =>
        {
            json!({"kind": kind, "field": field})
        }
        (_, Some((kind, field))) => json!({"kind": kind, "field": field}),
        _ => json!({"ok": true}),
    };
    // The reference allows a second run to another kind of hustle only, which we do not have.
    if input["retry_policy"] == 1 && expect["field"] == "retry_policy" && rank_of(&got) > rank("retry_policy")
    {
        return Judgment::Looser("retry-for-any-hustle");
    }
    Judgment::of_answers(expect, &got)
}

fn rank(field: &str) -> usize {
    CHECKED.iter().position(|checked| *checked == field).unwrap_or(CHECKED.len())
}

fn rank_of(answer: &Value) -> usize {
    answer["field"].as_str().map_or(CHECKED.len(), rank)
}

fn carries_evidence(input: &Value) -> bool {
    let set = |key: &str, empty: Value| input[key] != empty;
    set("evidence_tool_policy_revision", json!(""))
        || set("evidence_tool_definitions_sha256", json!(NO_DIGEST))
        || set("evidence_produced_tool_names_sha256", json!(NO_DIGEST))
        || set("evidence_tool_limits", json!([0, 0, 0, 0, 0]))
        || set("evidence_tool_definition_count", json!(0))
        || flag(input, "structured_output_with_tools")
}

/// The faults that our types exclude, as kind and field, in the order of the reference's checks.
fn type_faults(input: &Value) -> Vec<(&'static str, &'static str)> {
    let no_model = json!({"provider": "", "model": ""});
    let stray = input["named_model_key"] != no_model || input["named_model_policy_revision"] != "";
    let known = |key: &str, known: &[u64]| input[key].as_u64().is_some_and(|number| known.contains(&number));
    let faults = [
        (!known("participation", &[1, 2]), ("invalid_participation", "participation")),
        (!known("model_source", &[1, 2]), ("invalid_model_source", "model_source")),
        (!known("retry_policy", &[0, 1]), ("invalid_retry_policy", "retry_policy")),
        (input["model_source"] == 1 && stray, ("invalid_model", "current_loop_model")),
    ];
    faults.into_iter().filter(|(wrong, _)| *wrong).map(|(_, fault)| fault).collect()
}

/// What we refuse, with something valid in place of what our types cannot hold.
fn describe(input: &Value) -> Result<Option<HustleDefinitionError>, ReadError> {
    let parts = HustleDescriptorParts {
        name: text(input, "name")?,
        participation: match input["participation"].as_u64() {
            Some(2) => Participation::Background,
            _ => Participation::Blocking,
        },
        model: match input["model_source"].as_u64() {
            Some(2) => ModelDescriptor::Named {
                client: "client".into(),
                model: read_model(&input["named_model_key"])?,
                revision: text(input, "named_model_policy_revision")?,
            },
            _ => ModelDescriptor::CurrentLoop,
        },
        prompt_revision: text(input, "prompt_revision")?,
        prompt_sha256: digest(input, "prompt_sha256")?,
        output_schema: read_schema(input)?,
        policy_revision: text(input, "policy_revision")?,
        timeout: Duration::from_nanos(negative_is_zero(number(input, "timeout_nanos"))?),
        limits: ByteLimits {
            input: negative_is_zero(number(input, "input_bytes"))?,
            output: negative_is_zero(number(input, "output_bytes"))?,
        },
        retry: match input["retry_policy"].as_u64() {
            Some(1) => RetryPolicy::ClassifiedOnce,
            _ => RetryPolicy::None,
        },
        identity: IdentityBinding::Host,
    };
    Ok(HustleDescriptor::new(parts).err())
}

/// A schema with nothing in it is none.
fn read_schema(input: &Value) -> Result<Option<OutputSchemaDescriptor>, ReadError> {
    let schema = OutputSchemaDescriptor {
        name: text(input, "output_schema_name")?,
        sha256: digest(input, "output_schema_sha256")?,
        revision: text(input, "structured_output_revision")?,
    };
    let empty = schema.name.is_empty() && schema.sha256 == [0; 32] && schema.revision.is_empty();
    Ok((!empty).then_some(schema))
}

fn digest(input: &Value, key: &str) -> Result<[u8; 32], ReadError> {
    let digest = RequestFingerprint::parse(word(input, key)?).map_err(|_| ReadError::Malformed)?;
    Ok(*digest.as_bytes())
}

pub(super) fn hustle_limits(input: &Value, expect: &Value) -> Judgment {
    match read_limits(input) {
        Err(error) => Judgment::unreadable(error, expect["valid"] == false),
        Ok(settings) => Judgment::of_answers(expect, &json!({"valid": HustleLimits::new(settings).is_ok()})),
    }
}

/// Negative timeouts and lanes are as void as zero; a negative queue cannot be held.
pub(super) fn read_limits(input: &Value) -> Result<HustleLimitSettings, ReadError> {
    let nanos = |key| negative_is_zero(number(input, key)).map(Duration::from_nanos);
    let lane = |concurrent, queued| {
        Ok(LaneLimits {
            concurrent: negative_is_zero(number(input, concurrent))?,
            queued: number(input, queued)?,
        })
    };
    Ok(HustleLimitSettings {
        blocking: lane("blocking_concurrent", "blocking_queued")?,
        background: lane("background_concurrent", "background_queued")?,
        audit_timeout: nanos("audit_timeout_nanos")?,
        finalization_timeout: nanos("finalization_timeout_nanos")?,
        worker_drain_timeout: nanos("worker_drain_timeout_nanos")?,
    })
}
