//! What a loop decides, in every interleaving of what can happen, and over long random lives.

use std::io::Write;
use std::time::Instant;

use super::{EvidenceError, Places, Verdict};
use crate::explorer::{Bug, Walk, explore, wander};

/// Steps in a row that every interleaving is followed for.
const DEPTH: usize = 7;

/// A core with a bug is searched no deeper than this; random walks go on from there.
const BUG_DEPTH: usize = 6;

/// Random lives.
const LIVES: u64 = 100_000;
const LENGTH: usize = 300;

pub(super) fn run(_: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let started = Instant::now();
    let walk = explore(DEPTH, None);
    let seconds = started.elapsed().as_secs_f64();
    show(out, &walk)?;
    let mut found = 0;
    for bug in Bug::ALL {
        let walk = Some(explore(BUG_DEPTH, Some(bug))).filter(|walk| walk.broken.is_some());
        let walk = walk.unwrap_or_else(|| wander(LIVES, LENGTH, Some(bug)));
        match &walk.broken {
            Some((broken, path)) if *broken == bug.breaks() => {
                found += 1;
                writeln!(out, "    {bug:?} is found after {} steps: {broken}; {path}", walk.steps)?;
            }
            _ => writeln!(out, "    FAULT: {bug:?} is not found in {} steps", walk.steps)?,
        }
    }
    let line = format!(
        "{} states and {} steps up to {DEPTH} in a row, in {seconds:.1} s, {} not as promised; {found} of {} planted \
         bugs found",
        walk.states,
        walk.steps,
        u8::from(walk.broken.is_some()),
        Bug::ALL.len(),
    );
    Ok(Verdict { holds: walk.broken.is_none() && found == Bug::ALL.len(), line })
}

/// Whether a loop ever asks for more summaries than are paid for.
pub(super) fn termination(_: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let walk = wander(LIVES, LENGTH, None);
    show(out, &walk)?;
    let line = format!(
        "{LIVES} random lives, {} steps, {} summaries asked for by occupancy, {} paid for; nearest to its bound: {} \
         of {}; {} over it",
        walk.steps,
        walk.calls,
        walk.paid,
        walk.nearest.0,
        walk.nearest.1,
        u8::from(walk.broken.is_some()),
    );
    Ok(Verdict { holds: walk.broken.is_none() && walk.calls > 0, line })
}

fn show(out: &mut dyn Write, walk: &Walk) -> Result<(), EvidenceError> {
    if let Some((broken, path)) = &walk.broken {
        writeln!(out, "    FAULT: {broken}; {path}")?;
    }
    Ok(())
}
