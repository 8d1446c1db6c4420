//! A path with its target, and what a run of it showed.

use std::time::Duration;

/// A hot path: what it must reach, and how it is measured.
///
/// A new one is a row in the table of its module (for example `PATHS` in `summary_paths.rs`); a new module is a
/// line in [`crate::GROUPS`].
#[derive(Clone, Copy, Debug)]
pub struct HotPath {
    /// What it belongs to, as typed after `cargo xtask bench`; where there is a criterion suite for it, its
    /// name.
    pub group: &'static str,
    /// What is measured, for people.
    pub name: &'static str,
    /// What it must reach.
    pub target: Target,
    /// Why the target is not reached by now; printed beside it. `None` when it is.
    pub reason: Option<&'static str>,
    /// Measures it, in turns with its rival where it has one.
    pub measure: fn() -> Measured,
}

/// What a path must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// So many times as fast as the rival.
    TimesFaster(f64, &'static str),
    /// So many times what the rival takes, at most.
    AtMost(f64, &'static str),
    /// So many megabytes (10^6 bytes) a second, on input of [`Measured::bytes`].
    Megabytes(f64),
    /// So long, at most.
    Within(Duration),
}

/// What a run showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Ours, in `unit`.
    pub ours: f64,
    /// The rival in the same run, in `unit`; 0 where there is none.
    pub rival: f64,
    /// What was measured.
    pub unit: Unit,
    /// Size of the input in bytes; 0 where the target does not ask for it.
    pub bytes: usize,
    /// Whether ours gave the right answer, each time. A path that does not misses its target.
    pub agreed: bool,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds of processor time for one run.
    Seconds,
    /// Bytes of memory.
    Bytes,
}

/// How far a path came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target is reached.
    Met,
    /// It is missed by at most [`MOST_MISSED`], which a busy machine may do.
    Near,
    /// It is missed.
    Missed,
    /// Ours gave another answer than it must.
    Wrong,
}

/// What part of a target may be missed before a check fails.
pub const MOST_MISSED: f64 = 0.2;

impl Measured {
    /// Times of one path alone.
    #[must_use]
    pub fn alone(ours: Duration, bytes: usize) -> Self {
        Self { ours: ours.as_secs_f64(), rival: 0.0, unit: Unit::Seconds, bytes, agreed: true }
    }
}

impl Target {
    /// What was reached, as a part of the target: 1 and more is enough.
    #[must_use]
    pub fn reached(&self, measured: &Measured) -> f64 {
        let Measured { ours, rival, bytes, .. } = *measured;
        // No clock counts less than a nanosecond.
        let ours = ours.max(1e-9);
        match *self {
            Self::TimesFaster(times, _) => rival / ours / times,
            Self::AtMost(times, _) => times * rival / ours,
            Self::Megabytes(rate) => bytes as f64 / 1e6 / ours / rate,
            Self::Within(most) => most.as_secs_f64() / ours,
        }
    }

    /// How far a run came.
    #[must_use]
    pub fn verdict(&self, measured: &Measured) -> Verdict {
        let reached = self.reached(measured);
        if !measured.agreed {
            Verdict::Wrong
        } else if reached >= 1.0 {
            Verdict::Met
        } else if reached >= 1.0 - MOST_MISSED {
            Verdict::Near
        } else {
            Verdict::Missed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ours: f64, rival: f64) -> Measured {
        Measured { ours, rival, unit: Unit::Seconds, bytes: 1_000_000, agreed: true }
    }

    #[test]
    fn targets_are_reached_or_missed() {
        for (target, ours, verdict) in [
            (Target::TimesFaster(10.0, "x"), 0.1, Verdict::Met),
            (Target::TimesFaster(10.0, "x"), 0.12, Verdict::Near),
            (Target::TimesFaster(10.0, "x"), 0.2, Verdict::Missed),
            (Target::AtMost(2.0, "x"), 2.0, Verdict::Met),
            (Target::AtMost(2.0, "x"), 2.4, Verdict::Near),
            (Target::AtMost(2.0, "x"), 2.6, Verdict::Missed),
            (Target::Megabytes(50.0), 0.02, Verdict::Met),
            (Target::Megabytes(50.0), 0.04, Verdict::Missed),
            (Target::Within(Duration::from_secs(1)), 1.0, Verdict::Met),
            (Target::Within(Duration::from_secs(1)), 1.5, Verdict::Missed),
        ] {
            assert_eq!(target.verdict(&times(ours, 1.0)), verdict, "{target:?} {ours}");
        }
        let wrong = Measured { agreed: false, ..times(0.1, 1.0) };
        assert_eq!(Target::TimesFaster(1.0, "x").verdict(&wrong), Verdict::Wrong);
    }
}
