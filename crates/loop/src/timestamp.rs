//! Moments, as records and commands carry them.

use std::time::Duration;

/// Nanoseconds since 1970-01-01 UTC, without leap seconds; 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// How long it is since an earlier moment; nothing when that one is later, as clocks can be set back.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
