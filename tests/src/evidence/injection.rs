//! Hostile conversations: nothing of them becomes structure, and nothing from tools becomes a goal, a rule or a decision.

use std::collections::BTreeMap;
use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::injection::{judge, texts, transcripts};

/// Fewer texts than this would show too little.
const FEWEST: usize = 60;

pub(super) fn run(_: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let (mut run, mut failed) = (0, 0);
    let mut kinds: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for hostile in transcripts() {
        let faults = judge(&hostile);
        run += 1;
        let kind = kinds.entry((hostile.text.attack, hostile.place)).or_default();
        kind.0 += 1;
        kind.1 += usize::from(!faults.is_empty());
        failed += usize::from(!faults.is_empty());
        for fault in faults.iter().take(3) {
            writeln!(
                out,
                "    FAULT: {:?} {:?} {}: {fault}",
                hostile.text.attack, hostile.place, hostile.text.disguise
            )?;
        }
    }
    for ((attack, place), (run, failed)) in &kinds {
        writeln!(
            out,
            "    {:14} {:12} {run:4} {failed:4} failed",
            format!("{attack:?}"),
            format!("{place:?}")
        )?;
    }
    let texts = texts().len();
    let line = format!("{texts} hostile texts at 7 places, {run} conversations, {failed} failed");
    Ok(Verdict { holds: texts >= FEWEST && failed == 0, line })
}
