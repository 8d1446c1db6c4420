//! The reports' policies in our words.

use std::time::Duration;

use epitome_loop::{
    BasisPoints, CompactionPolicy, CompactionPolicyError, ContextLimits, CountQuality, CounterPolicy,
    KeepRecent, TokenCount, ValidPolicy,
};
use serde_json::Value;

use super::CaseError;

/// A policy and the limits of the model that it is for.
pub(super) struct SessionPolicy {
    pub(super) policy: ValidPolicy,
    /// The same as a loop's definition takes it.
    pub(super) settings: CompactionPolicy,
    pub(super) limits: ContextLimits,
    pub(super) rearm_below: BasisPoints,
    pub(super) force: bool,
}

/// Maps a case's policy to the nearest of ours. What a case leaves out takes a middling value.
/// The inner error is our refusal of a policy that makes no sense.
pub(super) fn read_policy(policy: &Value) -> Result<Result<SessionPolicy, CompactionPolicyError>, CaseError> {
    let number = |key: &str| policy[key].as_u64();
    let limit = number("context_limit").unwrap_or(128_000);
    let compact_at = number("compact_at_bp").unwrap_or(8_500);
    let rearm_below = number("rearm_below_bp").unwrap_or(compact_at.min(10_000) * 7 / 10);
    // A summary as large as the window leaves room for nothing; half of it is the most that makes sense.
    let max_summary = number("max_summary_tokens").unwrap_or(limit / 3).clamp(1, (limit / 2).max(1));
    let basis_points =
        |points: u64| u16::try_from(points).map(BasisPoints).map_err(|_| CaseError::Part("policy"));
    let rearm_below = basis_points(rearm_below)?;
    let policy_of_ours = CompactionPolicy {
        automatic: true,
        counter_policy: CounterPolicy::AllowConservative,
        // What compacts only when the room is full compacts one step before it here.
        compact_at: basis_points(compact_at.min(9_999))?,
        rearm_below,
        reserved_output: TokenCount(number("reserved_output").unwrap_or(1)),
        safety_margin: TokenCount(number("safety_margin").unwrap_or(1)),
        max_summary_tokens: TokenCount(max_summary),
        count_timeout: Duration::from_secs(10),
        hustle: "context.compact".into(),
        keep_recent: Some(keep_recent(&policy["keep_tail"], limit)),
        max_request_bytes: number("max_request_bytes"),
        fallback: None,
        carry_constraints: true,
    };
    let settings = policy_of_ours.clone();
    let validated = policy_of_ours.validate(Some(CountQuality::HeuristicEstimate));
    Ok(validated.map(|policy_of_ours| SessionPolicy {
        policy: policy_of_ours,
        settings,
        limits: ContextLimits { window: TokenCount(limit), ..ContextLimits::default() },
        rearm_below,
        force: policy["force"] == true,
    }))
}

/// Messages and user turns are segments of ours; a third of the window is the most that a tail may take.
fn keep_recent(keep: &Value, limit: u64) -> KeepRecent {
    let segments = keep["messages"].as_u64().or(keep["user_turns"].as_u64());
    KeepRecent {
        segments: segments.unwrap_or(64).max(1),
        tokens: TokenCount(keep["tokens"].as_u64().unwrap_or(limit / 3).max(1)),
    }
}
