//! How pressing it is: from a measurement to a level.

use epitome_loop::{BasisPoints, PressureLevel, Trigger};

/// The level that an occupancy stands for, given the level before it.
///
/// At full scale it is always [`PressureLevel::HardLimit`]. Below it a policy without thresholds knows no
/// pressure. With thresholds, pressure begins at `compact_at` and, once begun, ends only below `rearm_below`,
/// so that a context which hovers around one threshold does not flap.
#[must_use]
pub fn pressure_level(previous: PressureLevel, occupancy: BasisPoints, trigger: Trigger) -> PressureLevel {
    if occupancy >= BasisPoints::FULL_SCALE {
        return PressureLevel::HardLimit;
    }
    let Trigger::Automatic { compact_at, rearm_below } = trigger else { return PressureLevel::Normal };
    let was_pressed = matches!(previous, PressureLevel::Compact | PressureLevel::HardLimit);
    if occupancy >= compact_at || was_pressed && occupancy >= rearm_below {
        PressureLevel::Compact
    } else {
        PressureLevel::Normal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_begins_at_one_threshold_and_ends_below_the_other() {
        use PressureLevel::{Compact, HardLimit, Normal, Unknown};
        let automatic =
            Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };
        for (previous, occupancy, trigger, expected) in [
            (Unknown, 7_999, automatic, Normal),
            (Unknown, 8_000, automatic, Compact),
            (Compact, 6_000, automatic, Compact),
            (HardLimit, 6_000, automatic, Compact),
            (Compact, 5_999, automatic, Normal),
            (Normal, 6_000, automatic, Normal),
            (Normal, 10_000, automatic, HardLimit),
            (Normal, 10_000, Trigger::Manual, HardLimit),
            (HardLimit, 9_999, Trigger::Manual, Normal),
        ] {
            assert_eq!(pressure_level(previous, BasisPoints(occupancy), trigger), expected);
        }
    }
}
