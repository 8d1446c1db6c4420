//! Where a compaction lands: whether the new request is small enough to have been worth it.

use epitome_loop::{BasisPoints, ContextMeasurement, TooLargeDetail, Trigger};

/// Where an acceptable compaction landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Landing {
    /// Below the level at which a further compaction may start.
    Low,
    /// Smaller, but still at or above that level: it relieves, and would fire again at once. A further attempt
    /// without new content would be a loop.
    High,
}

/// Judges a new request against the one it replaces, both counted by the same counter.
///
/// At the limit there is no room to answer, so a count equal to it is refused, and so is a request that did
/// not shrink. A policy without thresholds has no level to land below; half of the limit stands in for it.
///
/// # Errors
/// [`TooLargeDetail`] when the new request may not replace the old one.
pub fn judge_landing(
    before: &ContextMeasurement,
    after: &ContextMeasurement,
    trigger: Trigger,
) -> Result<Landing, TooLargeDetail> {
    if after.input_tokens >= after.input_limit {
        return Err(TooLargeDetail::AtLimit);
    }
    if after.input_tokens >= before.input_tokens {
        return Err(TooLargeDetail::NotSmaller);
    }
    Ok(if after.occupancy() < landing_level(trigger) { Landing::Low } else { Landing::High })
}

/// The occupancy below which a compaction should land.
#[must_use]
pub fn landing_level(trigger: Trigger) -> BasisPoints {
    match trigger {
        Trigger::Automatic { rearm_below, .. } => rearm_below,
        Trigger::Manual => BasisPoints(BasisPoints::FULL_SCALE.get() / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{ContextBasis, CountQuality, ModelKey, RequestFingerprint, TokenCount};

    fn measured(tokens: u64) -> ContextMeasurement {
        ContextMeasurement {
            basis: ContextBasis::default(),
            model: ModelKey::new("p", "m"),
            request_fingerprint: RequestFingerprint::default(),
            input_tokens: TokenCount(tokens),
            input_limit: TokenCount(1_000),
            quality: CountQuality::ExactLocal,
        }
    }

    #[test]
    fn a_landing_is_low_high_or_refused() {
        let automatic =
            Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };
        for (before, after, trigger, expected) in [
            (900, 599, automatic, Ok(Landing::Low)),
            (900, 600, automatic, Ok(Landing::High)),
            (900, 900, automatic, Err(TooLargeDetail::NotSmaller)),
            (1_200, 1_000, automatic, Err(TooLargeDetail::AtLimit)),
            (900, 499, Trigger::Manual, Ok(Landing::Low)),
        ] {
            assert_eq!(judge_landing(&measured(before), &measured(after), trigger), expected);
        }
    }
}
