//! Who runs and who waits in one lane: first in, first out. Nothing here waits; it only says whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use epitome_loop::LaneLimits;

/// The number of a run in its session, given out in the order of admission.
pub(super) type Ticket = u64;

/// One lane. `T` is what tells a waiting run that its turn has come.
#[derive(Debug)]
pub(super) struct Lane<T> {
    limits: LaneLimits,
    running: BTreeSet<Ticket>,
    /// Tickets count up, so the first is the one that waits longest.
    waiting: BTreeMap<Ticket, T>,
}

/// What becomes of a run that enters a lane. The caller gets the signal back where it is not kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<T> {
    /// It runs at once.
    Runs(T),
    /// It waits.
    Waits,
    /// There is no room.
    Full,
}

impl<T> Lane<T> {
    pub(super) fn new(limits: LaneLimits) -> Self {
        Self { limits, running: BTreeSet::new(), waiting: BTreeMap::new() }
    }

    /// Whether another run would be taken.
    pub(super) fn has_room(&self) -> bool {
        self.may_start() || (self.waiting.len() as u64) < self.limits.queued
    }

    /// Takes a run, if there is room.
    pub(super) fn enter(&mut self, ticket: Ticket, signal: T) -> Entry<T> {
        if self.may_start() {
            self.running.insert(ticket);
            return Entry::Runs(signal);
        }
        if !self.has_room() {
            return Entry::Full;
        }
        self.waiting.insert(ticket, signal);
        Entry::Waits
    }

    /// A run is over, or gives up waiting. Returns the signals of those whose turn it is now.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Vec<T> {
        self.running.remove(&ticket);
        self.waiting.remove(&ticket);
        let mut started = Vec::new();
        while (self.running.len() as u64) < self.limits.concurrent {
            let Some((next, signal)) = self.waiting.pop_first() else { break };
            self.running.insert(next);
            started.push(signal);
        }
        started
    }

    /// Whoever waits would go first, so nobody starts past them.
    fn may_start(&self) -> bool {
        self.waiting.is_empty() && (self.running.len() as u64) < self.limits.concurrent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(concurrent: u64, queued: u64) -> Lane<&'static str> {
        Lane::new(LaneLimits { concurrent, queued })
    }

    #[test]
    fn a_lane_holds_what_runs_and_what_waits_and_no_more() {
        let mut lane = lane(2, 1);
        assert_eq!(lane.enter(1, "a"), Entry::Runs("a"));
        assert_eq!(lane.enter(2, "b"), Entry::Runs("b"));
        assert!(lane.has_room());
        assert_eq!(lane.enter(3, "c"), Entry::Waits);
        assert!(!lane.has_room());
        assert_eq!(lane.enter(4, "d"), Entry::Full);
        assert_eq!(lane.leave(2), ["c"]);
        assert!(lane.has_room());
    }

    #[test]
    fn without_a_queue_nobody_waits() {
        let mut lane = lane(1, 0);
        assert_eq!(lane.enter(1, "a"), Entry::Runs("a"));
        assert_eq!(lane.enter(2, "b"), Entry::Full);
        assert!(lane.leave(1).is_empty());
        assert_eq!(lane.enter(3, "c"), Entry::Runs("c"));
    }

    #[test]
    fn first_in_first_out_and_who_gives_up_is_skipped() {
        let mut lane = lane(1, 4);
        for (ticket, signal) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            lane.enter(ticket, signal);
        }
        // Giving up waiting starts nobody.
        assert!(lane.leave(3).is_empty());
        assert_eq!(lane.leave(1), ["b"]);
        // Leaving twice is leaving once.
        assert!(lane.leave(1).is_empty());
        assert_eq!(lane.leave(2), ["d"]);
        assert!(lane.leave(4).is_empty());
    }

    proptest::proptest! {
        /// Whatever comes and goes: runs begin in the order of their admission, never more at once than allowed,
        /// and nobody waits where there is room.
        #[test]
        fn a_lane_keeps_its_order_and_its_limits(
            concurrent in 1_u64..4,
            queued in 0_u64..5,
            steps in proptest::collection::vec(proptest::option::of(0_usize..8), 0..80),
        ) {
            let mut lane = Lane::new(LaneLimits { concurrent, queued });
            let (mut next, mut inside, mut begun) = (0, Vec::new(), Vec::new());
            for step in steps {
                match step {
                    None => {
                        let had_room = lane.has_room();
                        let entry = lane.enter(next, next);
                        assert_eq!(had_room, entry != Entry::Full);
                        match entry {
                            Entry::Runs(ticket) => begun.push(ticket),
                            Entry::Waits => assert_eq!(lane.running.len() as u64, concurrent),
                            Entry::Full => {}
                        }
                        inside.extend((entry != Entry::Full).then_some(next));
                        next += 1;
                    }
                    Some(at) if at < inside.len() => begun.extend(lane.leave(inside.remove(at))),
                    Some(_) => {}
                }
                assert!(lane.running.len() as u64 <= concurrent && lane.waiting.len() as u64 <= queued);
                assert!(lane.waiting.is_empty() || lane.running.len() as u64 == concurrent);
                assert_eq!(lane.running.len() + lane.waiting.len(), inside.len());
            }
            assert!(begun.is_sorted());
        }
    }
}
