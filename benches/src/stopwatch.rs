//! Taking times so that two contenders can be compared on a busy machine.
//!
//! What is measured is the processor time of this thread, where the system tells it; so work that waits or that
//! runs on other threads needs another watch.

use std::hint::black_box;
use std::time::Duration;

use crate::path::{Measured, Unit};

/// What two contenders took for the same work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duel {
    pub(crate) ours: Duration,
    pub(crate) rival: Duration,
    /// Whether they gave the same answer in every round.
    pub(crate) agreed: bool,
}

impl Duel {
    /// The times of one run where each round made so many.
    pub(crate) fn each(self, runs: usize) -> Self {
        let runs = u32::try_from(runs.max(1)).unwrap_or(u32::MAX);
        Self { ours: self.ours / runs, rival: self.rival / runs, ..self }
    }

    /// What it showed on an input of so many bytes.
    pub(crate) fn on(self, bytes: usize) -> Measured {
        let Self { ours, rival, agreed } = self;
        Measured { ours: ours.as_secs_f64(), rival: rival.as_secs_f64(), unit: Unit::Seconds, bytes, agreed }
    }
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
    settle();
    let start = now();
    let answer = black_box(run());
    (now().saturating_sub(start), answer)
}

/// Lets the allocator put away what the other contender has freed, which it does at the next large request.
fn settle() {
    for _ in 0..64 {
        black_box(Vec::<u8>::with_capacity(black_box(100_000)));
    }
}

/// Processor time of this thread.
#[cfg(unix)]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time on the wall since the first call, where processor time cannot be had.
#[cfg(not(unix))]
fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
