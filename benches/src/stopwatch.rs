//! Taking times so that two contenders can be compared on a busy machine.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What two contenders took for the same work.
pub(crate) struct Duel {
    pub(crate) ours: Duration,
    pub(crate) rival: Duration,
    /// Whether they gave the same answer in every round.
    pub(crate) agreed: bool,
}

/// Lets two contenders do the same work in turns. Their times are the best of all rounds, as everything that
/// disturbs a run makes it longer.
pub(crate) fn duel<A: PartialEq>(
    rounds: usize,
    mut ours: impl FnMut(usize) -> A,
    mut rival: impl FnMut(usize) -> A,
) -> Duel {
    let mut duel = Duel { ours: Duration::MAX, rival: Duration::MAX, agreed: true };
    for round in 0..rounds {
        let (took, answer) = time(|| ours(round));
        duel.ours = duel.ours.min(took);
        let (took, expected) = time(|| rival(round));
        duel.rival = duel.rival.min(took);
        duel.agreed &= answer == expected;
    }
    duel
}

/// The time of one run, the best of several.
pub(crate) fn solo<A>(rounds: usize, mut ours: impl FnMut() -> A) -> Duration {
    (0..rounds).map(|_| time(&mut ours).0).min().unwrap_or(Duration::MAX)
}

fn time<A>(run: impl FnOnce() -> A) -> (Duration, A) {
    let start = Instant::now();
    let answer = black_box(run());
    (start.elapsed(), answer)
}
