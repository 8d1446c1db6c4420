//! Cases that give the sizes of a request's parts directly: is it due for a compaction?

use epitome_loop::{ModelKey, PressureLevel, TokenCount, occupancy, resolve_context_limits};
use epitome_loopruntime::pressure_level;
use serde_json::Value;

use super::session_policy::read_policy;
use super::{Case, CaseError};

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let session = read_policy(&case.policy)?.map_err(|_| CaseError::Part("policy"))?;
    let parts = case.measured.values().map(|part| part.as_u64().ok_or(CaseError::Part("measured size")));
    let used = parts.sum::<Result<u64, _>>()?;
    let limits = resolve_context_limits(
        &ModelKey::new("case", "model"),
        &session.limits,
        session.policy.reserved_output(),
        session.policy.safety_margin(),
    );
    let level = limits.ok().and_then(|limits| {
        let share = occupancy(TokenCount(used), limits.input_limit).ok()?;
        Some(pressure_level(PressureLevel::Unknown, share, session.policy.trigger()))
    });
    let outcome = match level {
        None => "policy_error",
        Some(PressureLevel::Compact | PressureLevel::HardLimit) => "compact",
        Some(_) => "no_compact",
    };
    let mut failures = Vec::new();
    for (name, wanted) in &case.expect {
        match (name.as_str(), wanted) {
            ("outcome", Value::String(wanted)) if wanted == outcome => {}
            ("outcome", Value::String(wanted))
                if outcome == "policy_error" && wanted.starts_with("error") => {}
            ("outcome", wanted) => failures.push(format!("outcome is {outcome}, not {wanted}")),
            ("context_tokens", wanted) if *wanted == used => {}
            ("context_tokens", wanted) => failures.push(format!("counted {used}, not {wanted}")),
            (other, _) => return Err(CaseError::Expectation(other.to_owned())),
        }
    }
    Ok((format!("{outcome} at {used} tokens"), failures))
}
