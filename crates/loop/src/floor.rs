//! The floor of a context: what no compaction can take away.
//!
//! Some parts of a request are there after every compaction: the system prompt, the tools, the summary itself
//! and the kept tail. When they alone reach a threshold, compaction cannot do its work: users of many tools
//! report sessions that compact at every turn for this reason. It is known when a loop is defined, so it is said
//! then (spec: policy, floor check).

use thiserror::Error;

use crate::{BasisPoints, ResolvedLimits, TokenCount, Trigger, ValidPolicy, occupancy};

/// The part of every request that is no conversation, in tokens as the loop's counter counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct FixedPart {
    /// The system prompt.
    pub system: TokenCount,
    /// The tool definitions.
    pub tools: TokenCount,
}

/// The least that a request can take after a compaction, and the room it has. All in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Floor {
    /// System prompt and tools.
    pub fixed: FixedPart,
    /// The summary's budget.
    pub summary: TokenCount,
    /// The budget of the kept tail; 0 when nothing is kept.
    pub kept_tail: TokenCount,
    /// Room for input.
    pub input_limit: TokenCount,
}

impl Floor {
    /// The floor under a policy, in a room of this size.
    #[must_use]
    pub fn of(policy: &ValidPolicy, limits: &ResolvedLimits, fixed: FixedPart) -> Self {
        Self {
            fixed,
            summary: policy.max_summary_tokens(),
            kept_tail: policy.keep_recent().map_or(TokenCount::ZERO, |keep| keep.tokens),
            input_limit: limits.input_limit,
        }
    }

    /// All parts together, in tokens.
    #[must_use]
    pub fn total(&self) -> TokenCount {
        let Self { fixed: FixedPart { system, tools }, summary, kept_tail, input_limit: _ } = *self;
        [system, tools, summary, kept_tail].into_iter().sum()
    }

    /// How full the context is at its floor.
    #[must_use]
    pub fn occupancy(&self) -> BasisPoints {
        occupancy(self.total(), self.input_limit).unwrap_or(BasisPoints::FULL_SCALE)
    }
}

impl std::fmt::Display for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { fixed: FixedPart { system, tools }, summary, kept_tail, input_limit } = self;
        let (total, share) = (self.total(), self.occupancy());
        write!(
            f,
            "system prompt {system}, tools {tools}, summary {summary} and kept tail {kept_tail} make {total} of \
             {input_limit} tokens, {share}"
        )
    }
}

/// Even a perfect compaction lands at or above `rearm_below`: the loop works, but after each compaction it may
/// not compact again until the hard limit. A warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloorAboveRearm {
    /// The least that a request can take.
    pub floor: Floor,
    /// The level that it does not get below.
    pub rearm_below: BasisPoints,
}

impl std::fmt::Display for FloorAboveRearm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { floor, rearm_below } = self;
        write!(f, "no compaction can land below rearm_below, {rearm_below}: {floor}")
    }
}

/// Even a perfect compaction lands at or above `compact_at`: the loop would have to compact again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("no compaction can land below compact_at, {compact_at}: {floor}")]
pub struct FloorAboveCompact {
    /// The least that a request can take.
    pub floor: Floor,
    /// The level that it does not get below.
    pub compact_at: BasisPoints,
}

/// Checks that compaction can do its work. A policy that compacts only when asked has no level to miss.
///
/// # Errors
/// [`FloorAboveCompact`] when even a perfect compaction cannot land below `compact_at`. When it cannot land below
/// `rearm_below`, the answer holds a warning.
pub fn check_floor(
    policy: &ValidPolicy,
    limits: &ResolvedLimits,
    fixed: FixedPart,
) -> Result<Option<FloorAboveRearm>, FloorAboveCompact> {
    let Trigger::Automatic { compact_at, rearm_below } = policy.trigger() else { return Ok(None) };
    let floor = Floor::of(policy, limits, fixed);
    let lands_at = floor.occupancy();
    if lands_at >= compact_at {
        return Err(FloorAboveCompact { floor, compact_at });
    }
    Ok((lands_at >= rearm_below).then_some(FloorAboveRearm { floor, rearm_below }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CompactionPolicy, CountQuality, CounterPolicy, KeepRecent};
    use std::time::Duration;

    fn verdict(automatic: bool, tools: u64) -> Result<Option<FloorAboveRearm>, FloorAboveCompact> {
        let policy = CompactionPolicy {
            automatic,
            counter_policy: CounterPolicy::RequireExact,
            compact_at: BasisPoints(8_500),
            rearm_below: BasisPoints(6_000),
            reserved_output: TokenCount(1),
            safety_margin: TokenCount(0),
            max_summary_tokens: TokenCount(100),
            count_timeout: Duration::from_secs(1),
            hustle: "c".into(),
            keep_recent: Some(KeepRecent { segments: 1, tokens: TokenCount(200) }),
            max_request_bytes: None,
            fallback: None,
            carry_constraints: true,
        };
        let limits = ResolvedLimits {
            reserved_output: TokenCount(1),
            raw_input_limit: TokenCount(1_000),
            input_limit: TokenCount(1_000),
        };
        let fixed = FixedPart { system: TokenCount(50), tools: TokenCount(tools) };
        check_floor(&policy.validate(Some(CountQuality::ExactLocal)).unwrap(), &limits, fixed)
    }

    #[test]
    fn the_floor_is_held_to_both_levels() {
        assert_eq!(verdict(true, 249), Ok(None), "59.9 %");
        let warned = verdict(true, 250).unwrap().unwrap();
        assert_eq!(warned.floor.occupancy(), BasisPoints(6_000));
        assert!(matches!(verdict(true, 499), Ok(Some(_))), "84.9 %");
        let refused = verdict(true, 500).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "no compaction can land below compact_at, 85.00%: system prompt 50, tools 500, summary 100 and kept \
             tail 200 make 850 of 1000 tokens, 85.00%"
        );
        assert!(verdict(true, u64::MAX).is_err());
        assert_eq!(verdict(false, u64::MAX), Ok(None), "nothing is due on its own");
    }
}
