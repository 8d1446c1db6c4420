//! The newest decisions of a loop, packed: a loop that has nothing to do still keeps them.

use std::collections::VecDeque;
use std::time::Duration;

use epitome_loop::{BasisPoints, CommandId, ContextBasis, ContextRevision, EventId, PressureLevel};

use crate::decision::{Decision, LatchRule, Reading, Verdict};

/// So many decisions can be asked for afterwards.
const KEPT: usize = 32;

/// The newest decisions, oldest first.
#[derive(Debug, Default)]
pub(super) struct Trace(VecDeque<Packed>);

/// A decision without the gaps that its parts have side by side.
#[derive(Clone, Copy, Debug)]
struct Packed {
    command: CommandId,
    through_event_id: EventId,
    revision: ContextRevision,
    /// In nanoseconds; the longest wait takes ten minutes.
    retry_after: u64,
    occupancy: BasisPoints,
    level: PressureLevel,
    verdict: PackedVerdict,
    rule: LatchRule,
}

#[derive(Clone, Copy, Debug)]
enum PackedVerdict {
    Proceed,
    Attempt,
    Limit { exhausted: bool },
    LimitFor { exhausted: bool },
}

impl Trace {
    pub(super) fn push(&mut self, decision: Decision) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Packed::of(decision));
    }

    pub(super) fn decisions(&self) -> Vec<Decision> {
        self.0.iter().map(|packed| packed.unpacked()).collect()
    }
}

impl Packed {
    fn of(decision: Decision) -> Self {
        let Decision { command, reading, verdict, rule } = decision;
        let Reading { basis, occupancy, level } = reading;
        let ContextBasis { revision, through_event_id } = basis;
        let (verdict, retry_after) = match verdict {
            Verdict::Proceed => (PackedVerdict::Proceed, None),
            Verdict::Attempt => (PackedVerdict::Attempt, None),
            Verdict::ContextLimit { exhausted, retry_after: None } => {
                (PackedVerdict::Limit { exhausted }, None)
            }
            Verdict::ContextLimit { exhausted, retry_after } => {
                (PackedVerdict::LimitFor { exhausted }, retry_after)
            }
        };
        let retry_after = retry_after.map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        Self { command, through_event_id, revision, retry_after, occupancy, level, verdict, rule }
    }

    fn unpacked(&self) -> Decision {
        let Self { command, through_event_id, revision, retry_after, occupancy, level, verdict, rule } =
            *self;
        let basis = ContextBasis { revision, through_event_id };
        let verdict = match verdict {
            PackedVerdict::Proceed => Verdict::Proceed,
            PackedVerdict::Attempt => Verdict::Attempt,
            PackedVerdict::Limit { exhausted } => Verdict::ContextLimit { exhausted, retry_after: None },
            PackedVerdict::LimitFor { exhausted } => {
                Verdict::ContextLimit { exhausted, retry_after: Some(Duration::from_nanos(retry_after)) }
            }
        };
        Decision { command, reading: Reading { basis, occupancy, level }, verdict, rule }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Disarmed;

    fn decision(number: u8, verdict: Verdict, rule: LatchRule) -> Decision {
        let basis = ContextBasis {
            revision: ContextRevision(u64::from(number) + 1),
            through_event_id: EventId::from_bytes([number; 16]),
        };
        let reading =
            Reading { basis, occupancy: BasisPoints(u16::from(number)), level: PressureLevel::HardLimit };
        Decision { command: CommandId::from_bytes([number + 1; 16]), reading, verdict, rule }
    }

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let waits = [None, Some(Duration::ZERO), Some(Duration::new(599, 999_999_999))];
        let limits = [false, true]
            .into_iter()
            .flat_map(|exhausted| waits.map(|retry_after| Verdict::ContextLimit { exhausted, retry_after }));
        for verdict in [Verdict::Proceed, Verdict::Attempt].into_iter().chain(limits) {
            for rule in [LatchRule::AtThreshold, LatchRule::Disarmed(Disarmed::Undone)] {
                let decision = decision(7, verdict, rule);
                assert_eq!(Packed::of(decision).unpacked(), decision);
            }
        }
        assert!(size_of::<Packed>() <= 56, "{}", size_of::<Packed>());
    }

    #[test]
    fn the_newest_are_kept() {
        let mut trace = Trace::default();
        for number in 0..100 {
            trace.push(decision(number, Verdict::Proceed, LatchRule::BelowRearm));
        }
        let decisions = trace.decisions();
        assert_eq!(decisions.len(), KEPT);
        assert_eq!(decisions.first().map(|decision| decision.reading.occupancy), Some(BasisPoints(68)));
        assert_eq!(decisions.last().map(|decision| decision.reading.occupancy), Some(BasisPoints(99)));
    }
}
