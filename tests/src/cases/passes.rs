//! Cases that give only the sizes before and after each compaction: did it help, and may it be tried again?

use epitome_loop::{
    ContextBasis, ContextMeasurement, CountQuality, ModelKey, RequestFingerprint, TokenCount,
};
use epitome_loopruntime::{Landing, judge_landing};

use super::session_policy::read_policy;
use super::{Case, CaseError};

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let session = read_policy(&case.policy)?.map_err(|_| CaseError::Part("policy"))?;
    let measured = |tokens| ContextMeasurement {
        basis: ContextBasis::default(),
        model: ModelKey::new("case", "model"),
        request_fingerprint: RequestFingerprint::default(),
        input_tokens: TokenCount(tokens),
        input_limit: session.limits.window,
        quality: CountQuality::HeuristicEstimate,
    };
    let mut passes = 0_u64;
    let mut outcome = "compact";
    for (before, after) in case.passes() {
        passes += 1;
        match judge_landing(&measured(before), &measured(after), session.policy.trigger()) {
            Ok(Landing::Low) => {}
            // It relieved, but landed where it would fire again: without new content there is no second pass.
            Ok(Landing::High) => {
                outcome = "ineffective";
                break;
            }
            Err(_) => {
                outcome = "reject_summary";
                break;
            }
        }
    }
    let mut failures = Vec::new();
    for (name, wanted) in &case.expect {
        match name.as_str() {
            "outcome" if *wanted == outcome => {}
            "outcome" => failures.push(format!("outcome is {outcome}, not {wanted}")),
            "max_passes" if wanted.as_u64().is_some_and(|most| passes <= most) => {}
            "max_passes" => failures.push(format!("{passes} passes, more than {wanted}")),
            other => return Err(CaseError::Expectation(other.to_owned())),
        }
    }
    Ok((format!("{outcome} after {passes} pass(es)"), failures))
}
