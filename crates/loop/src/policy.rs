//! The compaction policy: every value a decision, checked before a session starts.

use std::time::Duration;

use thiserror::Error;

use crate::{BasisPoints, CountQuality, HustleName, HustleNameError, SharedText, TokenCount};

/// Which counts may trigger a compaction on their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterPolicy {
    /// Undecided; not valid for an automatic policy.
    Unknown,
    /// Only exact counts, by the provider or by a local tokenizer.
    RequireExact,
    /// Exact counts and estimates.
    AllowConservative,
}

/// How much recent conversation stays verbatim behind a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeepRecent {
    /// At most this many segments; a segment starts at a user message.
    pub segments: u64,
    /// At most this many estimated tokens.
    pub tokens: TokenCount,
}

/// A compaction policy as its author writes it. There is no default: every value is a decision.
///
/// The fields are the seed's, in its order; those from `keep_recent` on are ours. Thresholds and
/// counter policy are not used unless `automatic` is set. Check it with [`CompactionPolicy::validate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionPolicy {
    /// Whether occupancy alone may start a compaction.
    pub automatic: bool,
    /// Which counts may do so.
    pub counter_policy: CounterPolicy,
    /// Occupancy at which to compact.
    pub compact_at: BasisPoints,
    /// Occupancy below which a further compaction may start.
    pub rearm_below: BasisPoints,
    /// Room kept for the model's answer.
    pub reserved_output: TokenCount,
    /// Room kept for the error of the count.
    pub safety_margin: TokenCount,
    /// The summary's budget.
    pub max_summary_tokens: TokenCount,
    /// How long a count may take.
    pub count_timeout: Duration,
    /// Which hustle summarizes.
    pub hustle: SharedText,
    /// How much recent conversation stays verbatim; without it the summary replaces everything.
    pub keep_recent: Option<KeepRecent>,
    /// Largest encoded request in bytes, where the provider has such a limit. Not 0.
    pub max_request_bytes: Option<u64>,
    /// Which other hustle summarizes when the first one gave no valid summary. What it makes is recorded as degraded.
    /// Without it the compaction is refused.
    pub fallback: Option<SharedText>,
    /// Whether the user's rules that a model's summary lacks are put into it, word for word.
    pub carry_constraints: bool,
}

/// When a valid policy compacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Only when asked.
    Manual,
    /// When asked, and at a threshold.
    Automatic {
        /// Occupancy at which to compact.
        compact_at: BasisPoints,
        /// Occupancy below which a further compaction may start.
        rearm_below: BasisPoints,
    },
}

/// A policy that passed its checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidPolicy {
    trigger: Trigger,
    reserved_output: TokenCount,
    safety_margin: TokenCount,
    max_summary_tokens: TokenCount,
    count_timeout: Duration,
    hustle: HustleName,
    keep_recent: Option<KeepRecent>,
    max_request_bytes: Option<u64>,
    fallback: Option<HustleName>,
    carry_constraints: bool,
}

impl ValidPolicy {
    /// When to compact.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        self.trigger
    }
    /// Room kept for the model's answer.
    #[must_use]
    pub fn reserved_output(&self) -> TokenCount {
        self.reserved_output
    }
    /// Room kept for the error of the count.
    #[must_use]
    pub fn safety_margin(&self) -> TokenCount {
        self.safety_margin
    }
    /// The summary's budget.
    #[must_use]
    pub fn max_summary_tokens(&self) -> TokenCount {
        self.max_summary_tokens
    }
    /// How long a count may take.
    #[must_use]
    pub fn count_timeout(&self) -> Duration {
        self.count_timeout
    }
    /// Which hustle summarizes.
    #[must_use]
    pub fn hustle(&self) -> &HustleName {
        &self.hustle
    }
    /// How much recent conversation stays verbatim.
    #[must_use]
    pub fn keep_recent(&self) -> Option<KeepRecent> {
        self.keep_recent
    }
    /// Largest encoded request in bytes.
    #[must_use]
    pub fn max_request_bytes(&self) -> Option<u64> {
        self.max_request_bytes
    }
    /// Which hustle summarizes when the first one gave no valid summary.
    #[must_use]
    pub fn fallback(&self) -> Option<&HustleName> {
        self.fallback.as_ref()
    }
    /// Whether the user's rules that a model's summary lacks are put into it.
    #[must_use]
    pub fn carry_constraints(&self) -> bool {
        self.carry_constraints
    }
}

/// A field of [`CompactionPolicy`], by the name the seed gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyField {
    /// `keep_recent.segments`.
    KeepRecentSegments,
    /// `keep_recent.tokens`.
    KeepRecentTokens,
    /// `reserved_output`.
    ReservedOutput,
    /// `max_summary_tokens`.
    MaxSummaryTokens,
    /// `count_timeout`.
    CountTimeout,
    /// `hustle`.
    Hustle,
    /// `fallback`.
    Fallback,
    /// `safety_margin`.
    SafetyMargin,
    /// `max_request_bytes`.
    MaxRequestBytes,
    /// `rearm_below`.
    RearmBelow,
    /// `compact_at`.
    CompactAt,
    /// `counter_policy`.
    CounterPolicy,
}

impl PolicyField {
    /// The name in the seed's spelling, used by files that describe policies.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeepRecentSegments => "KeepRecentSegments",
            Self::KeepRecentTokens => "KeepRecentTokens",
            Self::ReservedOutput => "ReservedOutput",
            Self::MaxSummaryTokens => "MaxSummaryTokens",
            Self::CountTimeout => "CountTimeout",
            Self::Hustle => "Hustle",
            Self::Fallback => "Fallback",
            Self::SafetyMargin => "SafetyMargin",
            Self::MaxRequestBytes => "MaxRequestBytes",
            Self::RearmBelow => "RearmBelow",
            Self::CompactAt => "CompactAt",
            Self::CounterPolicy => "CounterPolicy",
        }
    }
}

impl std::fmt::Display for PolicyField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A policy is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("compaction policy: {field} {}", problem(*field, *cause))]
pub struct CompactionPolicyError {
    /// The first field that is wrong.
    pub field: PolicyField,
    /// Why the hustle name is refused, when it is.
    pub cause: Option<HustleNameError>,
}

fn problem(field: PolicyField, cause: Option<HustleNameError>) -> &'static str {
    match (field, cause) {
        (_, Some(HustleNameError::Missing)) => "is missing",
        (_, Some(HustleNameError::Reserved)) => "is a reserved name",
        (PolicyField::Fallback, _) => "must be another hustle than Hustle",
        (PolicyField::SafetyMargin, _) => "must not be zero with a heuristic counter",
        (PolicyField::RearmBelow, _) => "must be positive and below CompactAt",
        (PolicyField::CompactAt, _) => "must be below 10000 basis points",
        (PolicyField::CounterPolicy, _) => "does not admit the counter's quality",
        _ => "must not be zero",
    }
}

impl CompactionPolicy {
    /// Checks the policy for a counter of this quality (`None`: the counter does not say).
    ///
    /// # Errors
    /// [`CompactionPolicyError`] with the first wrong field, in the order: keep_recent, reserved_output,
    /// max_summary_tokens, count_timeout, hustle, fallback, safety_margin, max_request_bytes, and when automatic
    /// rearm_below, compact_at, counter_policy.
    pub fn validate(&self, counter: Option<CountQuality>) -> Result<ValidPolicy, CompactionPolicyError> {
        let Self {
            automatic,
            counter_policy,
            compact_at,
            rearm_below,
            reserved_output,
            safety_margin,
            max_summary_tokens,
            count_timeout,
            ref hustle,
            keep_recent,
            max_request_bytes,
            ref fallback,
            carry_constraints,
        } = *self;
        let refuse = |field| Err(CompactionPolicyError { field, cause: None });
        if keep_recent.is_some_and(|keep| keep.segments == 0) {
            return refuse(PolicyField::KeepRecentSegments);
        }
        if keep_recent.is_some_and(|keep| keep.tokens == TokenCount::ZERO) {
            return refuse(PolicyField::KeepRecentTokens);
        }
        if reserved_output == TokenCount::ZERO {
            return refuse(PolicyField::ReservedOutput);
        }
        if max_summary_tokens == TokenCount::ZERO {
            return refuse(PolicyField::MaxSummaryTokens);
        }
        if count_timeout.is_zero() {
            return refuse(PolicyField::CountTimeout);
        }
        let hustle = HustleName::new(hustle.clone())
            .map_err(|cause| CompactionPolicyError { field: PolicyField::Hustle, cause: Some(cause) })?;
        let named = fallback.clone().map(HustleName::new).transpose();
        let fallback = named
            .map_err(|cause| CompactionPolicyError { field: PolicyField::Fallback, cause: Some(cause) })?;
        if fallback.as_ref() == Some(&hustle) {
            return refuse(PolicyField::Fallback);
        }
        if counter == Some(CountQuality::HeuristicEstimate) && safety_margin == TokenCount::ZERO {
            return refuse(PolicyField::SafetyMargin);
        }
        // With no byte allowed every request would count as full.
        if max_request_bytes == Some(0) {
            return refuse(PolicyField::MaxRequestBytes);
        }
        let trigger = if automatic {
            if rearm_below.get() == 0 || rearm_below >= compact_at {
                return refuse(PolicyField::RearmBelow);
            }
            if compact_at >= BasisPoints::FULL_SCALE {
                return refuse(PolicyField::CompactAt);
            }
            if !counter_policy.admits(counter) {
                return refuse(PolicyField::CounterPolicy);
            }
            Trigger::Automatic { compact_at, rearm_below }
        } else {
            Trigger::Manual
        };
        Ok(ValidPolicy {
            trigger,
            reserved_output,
            safety_margin,
            max_summary_tokens,
            count_timeout,
            hustle,
            keep_recent,
            max_request_bytes,
            fallback,
            carry_constraints,
        })
    }
}

impl CounterPolicy {
    /// Whether counts of this quality may trigger a compaction.
    #[must_use]
    pub fn admits(self, quality: Option<CountQuality>) -> bool {
        match (self, quality) {
            (Self::Unknown, _) | (_, None) => false,
            (Self::RequireExact, Some(quality)) => quality != CountQuality::HeuristicEstimate,
            (Self::AllowConservative, Some(_)) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed_example() -> CompactionPolicy {
        CompactionPolicy {
            automatic: true,
            counter_policy: CounterPolicy::AllowConservative,
            compact_at: BasisPoints(8_500),
            rearm_below: BasisPoints(6_000),
            reserved_output: TokenCount(512),
            safety_margin: TokenCount(256),
            max_summary_tokens: TokenCount(256),
            count_timeout: Duration::from_secs(2),
            hustle: "context.compact".into(),
            keep_recent: None,
            max_request_bytes: None,
            fallback: None,
            carry_constraints: true,
        }
    }

    #[test]
    fn a_fallback_is_another_hustle() {
        let with = |name: &str| CompactionPolicy { fallback: Some(name.into()), ..seed_example() };
        let counter = Some(CountQuality::HeuristicEstimate);
        let valid = with("context.extract").validate(counter).unwrap();
        assert_eq!(valid.fallback().unwrap().as_str(), "context.extract");
        assert!(valid.carry_constraints());
        let refused = |name| with(name).validate(counter).unwrap_err().to_string();
        assert_eq!(
            refused("context.compact"),
            "compaction policy: Fallback must be another hustle than Hustle"
        );
        assert_eq!(refused(" "), "compaction policy: Fallback is missing");
        assert_eq!(refused("_looprig.x"), "compaction policy: Fallback is a reserved name");
    }

    #[test]
    fn the_seeds_example_is_valid() {
        let valid = seed_example().validate(Some(CountQuality::HeuristicEstimate)).unwrap();
        assert_eq!(
            valid.trigger(),
            Trigger::Automatic { compact_at: BasisPoints(8_500), rearm_below: BasisPoints(6_000) }
        );
    }

    #[test]
    fn a_limit_of_no_byte_is_refused_last_of_what_holds_for_every_policy() {
        let counter = Some(CountQuality::HeuristicEstimate);
        let none = CompactionPolicy { max_request_bytes: Some(0), ..seed_example() };
        let refused = |policy: &CompactionPolicy| policy.validate(counter).map_err(|error| error.field);
        assert_eq!(refused(&none), Err(PolicyField::MaxRequestBytes));
        assert_eq!(
            none.validate(counter).unwrap_err().to_string(),
            "compaction policy: MaxRequestBytes must not be zero"
        );
        assert_eq!(
            refused(&CompactionPolicy { automatic: false, ..none.clone() }),
            Err(PolicyField::MaxRequestBytes)
        );
        let margin = CompactionPolicy { safety_margin: TokenCount(0), ..none.clone() };
        assert_eq!(refused(&margin), Err(PolicyField::SafetyMargin), "earlier");
        let level = CompactionPolicy { rearm_below: BasisPoints(0), ..none.clone() };
        assert_eq!(refused(&level), Err(PolicyField::MaxRequestBytes), "only automatic ones have levels");
        assert!(refused(&CompactionPolicy { max_request_bytes: Some(1), ..none }).is_ok());
    }

    #[test]
    fn the_first_wrong_field_is_named() {
        let policy =
            CompactionPolicy { hustle: "_looprig.x".into(), safety_margin: TokenCount(0), ..seed_example() };
        let refused = policy.validate(Some(CountQuality::HeuristicEstimate)).unwrap_err();
        assert_eq!(refused.field, PolicyField::Hustle);
        assert_eq!(refused.cause, Some(HustleNameError::Reserved));
        assert_eq!(refused.to_string(), "compaction policy: Hustle is a reserved name");
        let manual = CompactionPolicy {
            automatic: false,
            rearm_below: BasisPoints(0),
            counter_policy: CounterPolicy::Unknown,
            ..seed_example()
        };
        assert_eq!(manual.validate(None).unwrap().trigger(), Trigger::Manual);
    }
}
