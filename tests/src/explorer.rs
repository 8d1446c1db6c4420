//! Walks through the decision core of a loop: every interleaving of what can happen, up to a depth, and long random
//! ones beyond it. Each step is held against what must be true of every loop.

mod bugs;
mod ledger;
mod world;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

pub use bugs::Bug;
pub use ledger::Broken;

use world::{Action, World};

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// Different states that were reached.
    pub states: u64,
    /// Steps that were taken.
    pub steps: u64,
    /// Summaries that occupancy asked for.
    pub calls: u64,
    /// How many of them were paid for.
    pub paid: u64,
    /// The run that came nearest to its bound: what it asked for, and what was paid for.
    pub nearest: (u64, u64),
    /// The first thing that was not true, with the steps that lead to it.
    pub broken: Option<(Broken, String)>,
}

/// Takes every step that can be taken from every state, up to so many in a row. Ends at the first fault.
#[must_use]
pub fn explore(depth: usize, bug: Option<Bug>) -> Walk {
    let mut walk = Walk { states: 1, ..Walk::default() };
    let mut seen: HashSet<u64> = HashSet::new();
    let mut frontier = vec![(World::new(bug), Vec::new())];
    for level in 0..depth {
        let mut next = Vec::new();
        for (world, path) in frontier {
            for action in world.actions() {
                walk.steps += 1;
                let mut reached = world.clone();
                let mut path: Vec<Action> = path.clone();
                path.push(action);
                let fault = reached.step(action).err().or_else(|| {
                    // What is begun must come to an end from everywhere; at the last level that is tried.
                    (level + 1 == depth).then(|| reached.clone().run_out().err()).flatten()
                });
                if let Some(broken) = fault {
                    walk.broken = Some((broken, format!("{path:?}")));
                    return walk;
                }
                if seen.insert(hash_of(&reached)) {
                    walk.states += 1;
                    next.push((reached, path));
                }
            }
        }
        frontier = next;
    }
    walk
}

/// Takes random steps, many in a row, in so many runs. Each run has habits: it takes some kinds of steps alone, so
/// that what shows only when one thing happens again and again shows too. Ends at the first fault.
#[must_use]
pub fn wander(runs: u64, length: usize, bug: Option<Bug>) -> Walk {
    let mut walk = Walk::default();
    for run in 0..runs {
        let mut world = World::unbounded(bug);
        let mut dice = Dice(run);
        let mut habit = || Action::KINDS.get(dice.roll() as usize % Action::KINDS.len()).copied();
        let habits = [habit(), habit(), habit()];
        let is_usual =
            |action: &Action| run % 3 == 0 || action.is_progress() || habits.contains(&Some(*action));
        let mut path = Vec::new();
        for step in 0..=length {
            let mut actions = world.actions();
            actions.retain(is_usual);
            let at = dice.roll() as usize % actions.len().max(1);
            let Some(&action) = actions.get(at) else { break };
            path.push(action);
            walk.steps += 1;
            let taken = if step == length { world.run_out() } else { world.step(action) };
            if let Err(broken) = taken {
                walk.broken = Some((broken, format!("run {run}, {} steps", path.len())));
                return walk;
            }
        }
        let (calls, paid) = world.account();
        walk.calls += calls;
        walk.paid += paid;
        if calls * walk.nearest.1.max(1) >= walk.nearest.0 * paid {
            walk.nearest = (calls, paid);
        }
    }
    walk
}

fn hash_of(value: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::world::{Answer, Count};
    use super::*;

    #[test]
    fn a_latch_that_forgets_is_found_by_its_thrift() {
        let mut world = World::unbounded(Some(Bug::ForgetfulLatch));
        let cycle = [
            Action::Admit(8_000),
            Action::Durable,
            Action::Summarized(Answer::Proven),
            Action::Counted(Count::High),
            Action::Durable,
        ];
        let broken = (0..20).flat_map(|_| cycle).find_map(|action| world.step(action).err());
        assert_eq!(broken, Some(Broken::Unpaid));
    }
}
