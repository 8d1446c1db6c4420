//! Whether occupancy alone may start an attempt. Every attempt is paid for: by a crossing of the threshold, by growth
//! since the last landing, or by time that passed at the hard limit. Nothing loops for free.
//!
//! With `crossings` the times that occupancy went from below `rearm_below` to `compact_at` or above, `growth` the sum
//! of its rises in basis points, `step` what lies above `compact_at`, and `waits` the back-off periods that passed at
//! the hard limit, the attempts that a latch allows are at most `2 * (crossings + 1) + growth / step + waits`.

use std::time::Duration;

use epitome_loop::{BasisPoints, ContextBasis, PressureLevel, RejectionReason, Timestamp, Trigger};

use super::AttemptReason;

/// The first wait that buys an attempt at the hard limit; each further one is twice as long, up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// What is known of the context when the latch is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reading {
    /// Which context it is.
    pub basis: ContextBasis,
    /// How full it is; full scale when the request has too many bytes.
    pub occupancy: BasisPoints,
    /// The level that this stands for.
    pub level: PressureLevel,
}

/// Why no attempt starts by itself any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Disarmed {
    /// The last commit landed at `rearm_below` or above: the next one would too.
    LandedHigh = 1,
    /// Two attempts failed for reasons that may pass.
    Failed = 2,
    /// The last attempt was refused for a reason that stays.
    Cannot = 3,
    /// The user took a compaction back.
    Undone = 4,
}

/// Whether occupancy may start an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatchState {
    /// At the threshold an attempt starts.
    Armed,
    /// None starts below the hard limit, and there it must be paid for.
    Disarmed {
        /// Why.
        why: Disarmed,
        /// Where the last attempt left the context; `None` until it has been measured.
        landing: Option<BasisPoints>,
    },
}

/// The latch of a loop. It is part of what is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Latch {
    /// Whether it is armed.
    pub state: LatchState,
    /// The context of the last attempt that occupancy started. Each context gets one, unless time buys another.
    pub attempted: Option<ContextBasis>,
    /// How many attempts in a row failed for reasons that may pass.
    pub failures: u32,
    /// When the last of them did.
    pub failed_at: Timestamp,
}

/// How an attempt ended, for the latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// It was committed, and the context is as full as this now.
    Landed(BasisPoints),
    /// It was refused, with the context as full as this.
    Refused(RejectionReason, BasisPoints),
}

/// What is to happen with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It goes out as it is.
    Proceed,
    /// An attempt starts.
    Attempt,
    /// It cannot go out, and no attempt is made.
    ContextLimit {
        /// Whether occupancy will start none until the context has become smaller or the user acts.
        exhausted: bool,
        /// After how long another attempt would be made for the same context.
        retry_after: Option<Duration>,
    },
}

/// The rule that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatchRule {
    /// The policy is not automatic.
    NotAutomatic,
    /// Below `rearm_below`: armed, if it was not.
    BelowRearm,
    /// Below `compact_at`.
    BelowThreshold,
    /// At `compact_at` or above, and armed.
    AtThreshold,
    /// As before, after one attempt that failed for a reason that may pass.
    Retry,
    /// There was an attempt for this context.
    SameContext,
    /// Not armed.
    Disarmed(Disarmed),
    /// Not armed, and the context has grown enough since the last attempt left it.
    PaidByGrowth,
    /// An attempt failed for a reason that may pass, and enough time has passed.
    PaidByWaiting,
}

impl Default for Latch {
    fn default() -> Self {
        Self { state: LatchState::Armed, attempted: None, failures: 0, failed_at: Timestamp::default() }
    }
}

impl Latch {
    /// Decides about a request, and notes the attempt if there is to be one.
    #[must_use]
    pub fn observe(
        mut self,
        reading: Reading,
        trigger: Trigger,
        now: Timestamp,
    ) -> (Self, Verdict, LatchRule) {
        let is_full = reading.level == PressureLevel::HardLimit;
        // A clock that was ahead would make a wait last until it is reached again.
        self.failed_at = self.failed_at.min(now);
        let Trigger::Automatic { compact_at, rearm_below } = trigger else {
            let verdict = self.without_attempt(is_full.then_some((false, None)));
            return (self, verdict, LatchRule::NotAutomatic);
        };
        if reading.occupancy < rearm_below {
            self.arm();
            return (self, Verdict::Proceed, LatchRule::BelowRearm);
        }
        let rise = self.rise_to(reading.occupancy);
        if reading.occupancy < compact_at {
            return (self, Verdict::Proceed, LatchRule::BelowThreshold);
        }
        let wait = self.wait().map(|wait| wait.saturating_sub(now.since(self.failed_at)));
        let is_same = self.attempted == Some(reading.basis);
        let step = BasisPoints::FULL_SCALE.get().saturating_sub(compact_at.get());
        let (attempts, rule) = match self.state {
            _ if is_full && wait == Some(Duration::ZERO) => (true, LatchRule::PaidByWaiting),
            _ if is_same => (false, LatchRule::SameContext),
            LatchState::Armed if self.failures == 0 => (true, LatchRule::AtThreshold),
            LatchState::Armed => (true, LatchRule::Retry),
            LatchState::Disarmed { .. } if is_full && rise >= step => (true, LatchRule::PaidByGrowth),
            LatchState::Disarmed { why, .. } => (false, LatchRule::Disarmed(why)),
        };
        if attempts {
            self.attempted = Some(reading.basis);
            return (self, Verdict::Attempt, rule);
        }
        let exhausted = self.state != LatchState::Armed;
        let verdict = self.without_attempt(is_full.then_some((exhausted, wait)));
        (self, verdict, rule)
    }

    /// Notes how an attempt ended.
    #[must_use]
    pub fn ended(
        mut self,
        end: AttemptEnd,
        reason: AttemptReason,
        rearm_below: BasisPoints,
        now: Timestamp,
    ) -> Self {
        let is_automatic = reason == AttemptReason::Automatic;
        match end {
            AttemptEnd::Landed(occupancy) if occupancy < rearm_below => self.arm(),
            AttemptEnd::Landed(occupancy) if is_automatic => {
                self.failures = 0;
                self.disarm(Disarmed::LandedHigh, Some(occupancy));
            }
            // Somebody asked for it: whether occupancy may start one is not touched, where it landed is known.
            AttemptEnd::Landed(occupancy) => {
                if let LatchState::Disarmed { landing, .. } = &mut self.state {
                    *landing = Some(occupancy);
                }
            }
            AttemptEnd::Refused(..) if !is_automatic => {}
            AttemptEnd::Refused(reason, occupancy) if may_pass(reason) => {
                self.failures = self.failures.saturating_add(1);
                self.failed_at = now;
                if self.failures > 1 || self.state != LatchState::Armed {
                    self.disarm(Disarmed::Failed, Some(occupancy));
                }
            }
            AttemptEnd::Refused(_, occupancy) => {
                self.failures = 0;
                self.disarm(Disarmed::Cannot, Some(occupancy));
            }
        }
        self
    }

    /// The model, its limits or the policy are others now: what was learned does not apply. That the user took a
    /// compaction back was not learned but said, and holds for as long as requests fit: at the hard limit of other
    /// settings, growth counts from nothing, so that an attempt may start.
    #[must_use]
    pub fn settings_changed(self) -> Self {
        let mut changed = Self::default();
        if matches!(self.state, LatchState::Disarmed { why: Disarmed::Undone, .. }) {
            changed.disarm(Disarmed::Undone, Some(BasisPoints(0)));
        }
        changed
    }

    /// The user took a compaction back, and does not want the next request to bring it again.
    #[must_use]
    pub fn undone(mut self) -> Self {
        self.failures = 0;
        self.disarm(Disarmed::Undone, None);
        self
    }

    /// The user put a compaction in force again that was taken back.
    #[must_use]
    pub fn redone(mut self) -> Self {
        if matches!(self.state, LatchState::Disarmed { why: Disarmed::Undone, .. }) {
            self.arm();
        }
        self
    }

    fn arm(&mut self) {
        self.state = LatchState::Armed;
        self.failures = 0;
    }

    fn disarm(&mut self, why: Disarmed, landing: Option<BasisPoints>) {
        self.state = LatchState::Disarmed { why, landing };
    }

    /// How much fuller the context is than the last attempt left it.
    fn rise_to(&mut self, occupancy: BasisPoints) -> u16 {
        match &mut self.state {
            LatchState::Armed => 0,
            LatchState::Disarmed { landing, .. } => {
                let landing = landing.get_or_insert(occupancy);
                occupancy.get().saturating_sub(landing.get())
            }
        }
    }

    /// How long the wait is that buys another attempt at the hard limit; none when the last one did not fail, or for
    /// a reason that stays.
    fn wait(&self) -> Option<Duration> {
        let doublings = self.failures.checked_sub(1)?;
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        Some(FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT))
    }

    fn without_attempt(&self, at_limit: Option<(bool, Option<Duration>)>) -> Verdict {
        match at_limit {
            None => Verdict::Proceed,
            Some((exhausted, retry_after)) => Verdict::ContextLimit { exhausted, retry_after },
        }
    }
}

/// Whether another attempt could end otherwise although nothing else is different.
fn may_pass(reason: RejectionReason) -> bool {
    use RejectionReason as Reason;
    match reason {
        Reason::Unavailable | Reason::ContextLimitUnknown | Reason::RetainedTailTooLarge => false,
        Reason::ControlLaneFull
        | Reason::ShuttingDown
        | Reason::Interrupted
        | Reason::Canceled
        | Reason::StaleBasis
        | Reason::ProgressPublication
        | Reason::ExecutionFailed
        | Reason::InvalidSummary
        | Reason::ContextCountFailed
        | Reason::SummaryTooLarge
        | Reason::Internal => true,
    }
}

#[cfg(test)]
mod tests {
    use epitome_loop::{ContextRevision, EventId};

    use super::*;

    const TRIGGER: Trigger =
        Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };
    const REARM: BasisPoints = BasisPoints(6_000);

    fn at(revision: u64, occupancy: u16) -> Reading {
        let basis = ContextBasis {
            revision: ContextRevision(revision),
            through_event_id: EventId::from_bytes([1; 16]),
        };
        let level = crate::pressure_level(PressureLevel::Unknown, BasisPoints(occupancy), TRIGGER);
        Reading { basis, occupancy: BasisPoints(occupancy), level }
    }

    fn seconds(seconds: u64) -> Timestamp {
        Timestamp(seconds * 1_000_000_000)
    }

    fn ask(latch: Latch, reading: Reading, now: u64) -> (Latch, Verdict) {
        let (latch, verdict, _) = latch.observe(reading, TRIGGER, seconds(now));
        (latch, verdict)
    }

    fn refused(latch: Latch, reason: RejectionReason, occupancy: u16, now: u64) -> Latch {
        let end = AttemptEnd::Refused(reason, BasisPoints(occupancy));
        latch.ended(end, AttemptReason::Automatic, REARM, seconds(now))
    }

    fn landed(latch: Latch, occupancy: u16) -> Latch {
        latch.ended(AttemptEnd::Landed(BasisPoints(occupancy)), AttemptReason::Automatic, REARM, seconds(1))
    }

    #[test]
    fn each_context_gets_one_attempt() {
        let (latch, verdict) = ask(Latch::default(), at(1, 8_000), 1);
        assert_eq!(verdict, Verdict::Attempt);
        let (latch, verdict) = ask(latch, at(1, 9_000), 1);
        assert_eq!(verdict, Verdict::Proceed);
        assert_eq!(ask(latch, at(2, 8_000), 1).1, Verdict::Attempt);
        assert_eq!(ask(latch, at(2, 7_999), 1).1, Verdict::Proceed);
    }

    #[test]
    fn a_high_landing_disarms_until_the_context_is_small_or_has_grown() {
        let (latch, _) = ask(Latch::default(), at(1, 9_000), 1);
        let latch = landed(latch, 7_900);
        assert_eq!(ask(latch, at(2, 9_999), 1).1, Verdict::Proceed);
        // Full, and grown by as much as lies above the threshold.
        assert_eq!(ask(latch, at(3, 10_000), 1).1, Verdict::Attempt);
        let latch = landed(latch, 8_001);
        let full = Verdict::ContextLimit { exhausted: true, retry_after: None };
        assert_eq!(ask(latch, at(3, 10_000), 1).1, full);
        let (latch, _) = ask(latch, at(4, 5_999), 1);
        assert_eq!(ask(latch, at(5, 8_000), 1).1, Verdict::Attempt);
    }

    #[test]
    fn what_may_pass_is_tried_once_more_and_then_bought_by_waiting() {
        let (latch, _) = ask(Latch::default(), at(1, 9_000), 1);
        let latch = refused(latch, RejectionReason::ExecutionFailed, 9_000, 100);
        let (latch, verdict) = ask(latch, at(2, 9_000), 100);
        assert_eq!(verdict, Verdict::Attempt);
        let latch = refused(latch, RejectionReason::ExecutionFailed, 9_000, 100);
        assert_eq!(ask(latch, at(3, 9_000), 10_000).1, Verdict::Proceed, "below the limit there is no hurry");
        let left = Duration::from_secs(20);
        let full = Verdict::ContextLimit { exhausted: true, retry_after: Some(left) };
        assert_eq!(ask(latch, at(3, 10_000), 140).1, full);
        assert_eq!(ask(latch, at(3, 10_000), 160).1, Verdict::Attempt);
        // Ten minutes are the most.
        let mut latch = latch;
        for _ in 0..40 {
            latch = refused(latch, RejectionReason::ExecutionFailed, 10_000, 200);
        }
        assert_eq!(
            ask(latch, at(3, 10_000), 799).1,
            Verdict::ContextLimit { exhausted: true, retry_after: Some(Duration::from_secs(1)) }
        );
        assert_eq!(ask(latch, at(3, 10_000), 800).1, Verdict::Attempt);
    }

    #[test]
    fn what_stays_is_not_tried_again() {
        let (latch, _) = ask(Latch::default(), at(1, 10_000), 1);
        let latch = refused(latch, RejectionReason::RetainedTailTooLarge, 10_000, 1);
        let full = Verdict::ContextLimit { exhausted: true, retry_after: None };
        assert_eq!(ask(latch, at(2, 10_000), 1_000_000).1, full);
        assert_eq!(ask(latch.settings_changed(), at(2, 10_000), 1).1, Verdict::Attempt);
    }

    #[test]
    fn what_somebody_asked_for_disarms_nothing_and_a_compaction_taken_back_does() {
        let manual = |end| Latch::default().ended(end, AttemptReason::Manual, REARM, seconds(1));
        assert_eq!(manual(AttemptEnd::Landed(BasisPoints(7_000))), Latch::default());
        assert_eq!(
            manual(AttemptEnd::Refused(RejectionReason::Unavailable, BasisPoints(9_000))),
            Latch::default()
        );
        let (latch, verdict) = ask(Latch::default().undone(), at(1, 9_000), 1);
        assert_eq!(verdict, Verdict::Proceed);
        assert_eq!(
            latch.state,
            LatchState::Disarmed { why: Disarmed::Undone, landing: Some(BasisPoints(9_000)) }
        );
        // Another model or policy does not bring it back, but where the request does not fit any more.
        let (latch, verdict) = ask(latch.settings_changed(), at(2, 9_500), 1);
        assert_eq!(verdict, Verdict::Proceed);
        assert_eq!(ask(latch, at(3, 10_000), 1).1, Verdict::Attempt);
    }

    #[test]
    fn a_policy_that_is_not_automatic_starts_nothing() {
        let ask = |occupancy| {
            let level =
                crate::pressure_level(PressureLevel::Unknown, BasisPoints(occupancy), Trigger::Manual);
            Latch::default().observe(Reading { level, ..at(1, occupancy) }, Trigger::Manual, seconds(1)).1
        };
        assert_eq!(ask(9_999), Verdict::Proceed);
        assert_eq!(ask(10_000), Verdict::ContextLimit { exhausted: false, retry_after: None });
    }
}
