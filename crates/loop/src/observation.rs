//! Watching a context without ever compacting it.

use std::time::Duration;

use thiserror::Error;

use crate::{CountQuality, PolicyField, TokenCount};

/// How a context is measured when it is only watched: requests are counted and their sizes published, and
/// nothing is compacted. There is no default: every value is a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextObservationPolicy {
    /// Room kept for the model's answer.
    pub reserved_output: TokenCount,
    /// Room kept for the error of the count.
    pub safety_margin: TokenCount,
    /// How long a count may take.
    pub count_timeout: Duration,
}

/// An observation policy is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("context observation policy: {field} {}", problem(*field))]
pub struct ContextObservationError {
    /// The first field that is wrong: `ReservedOutput`, `CountTimeout` or `SafetyMargin`.
    pub field: PolicyField,
}

fn problem(field: PolicyField) -> &'static str {
    match field {
        PolicyField::SafetyMargin => "must not be zero with a heuristic counter",
        _ => "must not be zero",
    }
}

impl ContextObservationPolicy {
    /// Checks the policy for a counter of this quality.
    ///
    /// # Errors
    /// [`ContextObservationError`] with the first wrong field, in the order reserved_output, count_timeout,
    /// safety_margin.
    pub fn validate(&self, counter: CountQuality) -> Result<(), ContextObservationError> {
        let Self { reserved_output, safety_margin, count_timeout } = *self;
        let wrong = if reserved_output == TokenCount::ZERO {
            PolicyField::ReservedOutput
        } else if count_timeout.is_zero() {
            PolicyField::CountTimeout
        } else if counter == CountQuality::HeuristicEstimate && safety_margin == TokenCount::ZERO {
            PolicyField::SafetyMargin
        } else {
            return Ok(());
        };
        Err(ContextObservationError { field: wrong })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_field_is_named() {
        let good = ContextObservationPolicy {
            reserved_output: TokenCount(10),
            safety_margin: TokenCount(0),
            count_timeout: Duration::from_millis(1),
        };
        assert_eq!(good.validate(CountQuality::ExactLocal), Ok(()));
        let refused = good.validate(CountQuality::HeuristicEstimate).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "context observation policy: SafetyMargin must not be zero with a heuristic counter"
        );
        let hasty = ContextObservationPolicy { count_timeout: Duration::ZERO, ..good };
        let refused = hasty.validate(CountQuality::HeuristicEstimate).unwrap_err();
        assert_eq!(refused.field, PolicyField::CountTimeout);
    }
}
