//! How much of a session's side work may run and wait at once.

use std::time::Duration;

use thiserror::Error;

use super::Participation;

/// At most this many hustles may wait in one lane.
pub const MAX_QUEUED: u64 = 10_000;

/// What one lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneLimits {
    /// How many run at once; at least one.
    pub concurrent: u64,
    /// How many may wait behind them, first in, first out; at most [`MAX_QUEUED`].
    pub queued: u64,
}

/// Limits of a session's lanes as their author writes them. There is no default: every value is a decision.
/// Checked by [`HustleLimits::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HustleLimitSettings {
    /// The lane whose runs the session waits for.
    pub blocking: LaneLimits,
    /// The lane whose runs go on beside the session.
    pub background: LaneLimits,
    /// How long writing the record of a run may take.
    pub audit_timeout: Duration,
    /// How long handing over an outcome may take.
    pub finalization_timeout: Duration,
    /// How long a canceled worker may take to stop; after it the controller is poisoned.
    pub worker_drain_timeout: Duration,
}

/// Limits of a session's lanes, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HustleLimits(HustleLimitSettings);

/// Limits of lanes are out of range. The numbers are bounds, not input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum HustleLimitsError {
    /// `blocking.concurrent` is zero.
    #[error("blocking.concurrent must not be zero")]
    BlockingConcurrent,
    /// `blocking.queued` is above [`MAX_QUEUED`].
    #[error("blocking.queued must be at most {MAX_QUEUED}")]
    BlockingQueued,
    /// `background.concurrent` is zero.
    #[error("background.concurrent must not be zero")]
    BackgroundConcurrent,
    /// `background.queued` is above [`MAX_QUEUED`].
    #[error("background.queued must be at most {MAX_QUEUED}")]
    BackgroundQueued,
    /// `audit_timeout` is zero.
    #[error("audit_timeout must not be zero")]
    AuditTimeout,
    /// `finalization_timeout` is zero.
    #[error("finalization_timeout must not be zero")]
    FinalizationTimeout,
    /// `worker_drain_timeout` is zero.
    #[error("worker_drain_timeout must not be zero")]
    WorkerDrainTimeout,
}

impl HustleLimits {
    /// Checks limits: every lane runs at least one and lets at most [`MAX_QUEUED`] wait, and no timeout is
    /// zero (vectors `hustle_limits`).
    ///
    /// # Errors
    /// [`HustleLimitsError`] with the first field that is out of range, in the order of the fields.
    pub fn new(settings: HustleLimitSettings) -> Result<Self, HustleLimitsError> {
        use HustleLimitsError as Fault;
        let HustleLimitSettings {
            blocking,
            background,
            audit_timeout,
            finalization_timeout,
            worker_drain_timeout,
        } = settings;
        let faults = [
            (blocking.concurrent == 0, Fault::BlockingConcurrent),
            (blocking.queued > MAX_QUEUED, Fault::BlockingQueued),
            (background.concurrent == 0, Fault::BackgroundConcurrent),
            (background.queued > MAX_QUEUED, Fault::BackgroundQueued),
            (audit_timeout.is_zero(), Fault::AuditTimeout),
            (finalization_timeout.is_zero(), Fault::FinalizationTimeout),
            (worker_drain_timeout.is_zero(), Fault::WorkerDrainTimeout),
        ];
        match faults.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, fault)) => Err(fault),
            None => Ok(Self(settings)),
        }
    }

    /// What the lane for hustles of this kind holds.
    #[must_use]
    pub fn lane(&self, participation: Participation) -> LaneLimits {
        match participation {
            Participation::Blocking => self.0.blocking,
            Participation::Background => self.0.background,
        }
    }

    /// How long writing the record of a run may take.
    #[must_use]
    pub fn audit_timeout(&self) -> Duration {
        self.0.audit_timeout
    }

    /// How long handing over an outcome may take.
    #[must_use]
    pub fn finalization_timeout(&self) -> Duration {
        self.0.finalization_timeout
    }

    /// How long a canceled worker may take to stop.
    #[must_use]
    pub fn worker_drain_timeout(&self) -> Duration {
        self.0.worker_drain_timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_out_of_range_is_named() {
        let tick = Duration::from_nanos(1);
        let least = HustleLimitSettings {
            blocking: LaneLimits { concurrent: 1, queued: 0 },
            background: LaneLimits { concurrent: u64::MAX, queued: MAX_QUEUED },
            audit_timeout: tick,
            finalization_timeout: tick,
            worker_drain_timeout: tick,
        };
        let limits = HustleLimits::new(least).unwrap();
        assert_eq!(limits.lane(Participation::Background).queued, MAX_QUEUED);
        let late = HustleLimitSettings { worker_drain_timeout: Duration::ZERO, ..least };
        assert_eq!(HustleLimits::new(late), Err(HustleLimitsError::WorkerDrainTimeout));
        let early = HustleLimitSettings { blocking: LaneLimits { concurrent: 0, queued: 10_001 }, ..late };
        assert_eq!(HustleLimits::new(early), Err(HustleLimitsError::BlockingConcurrent));
    }
}
