//! Every public fault case whose fault shows in a live session, played through one; and behind them the others.

use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::cases::{CaseError, CaseReport, KINDS, LIVE_KINDS, case_files, judge_live, read_case};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("cases");
    let (mut live, mut others) = (Count::default(), Count::default());
    for file in case_files(&folder).map_err(unreadable)? {
        let case = read_case(&file).map_err(unreadable)?;
        let count = match case.kind.as_str() {
            kind if LIVE_KINDS.contains(&kind) => &mut live,
            // Sizes without messages are no session.
            kind if KINDS.contains(&kind) && case.has_content() => &mut others,
            _ => continue,
        };
        let report = judge_live(&case).unwrap_or_else(|error: CaseError| CaseReport {
            id: case.id.clone(),
            kind: case.kind.clone(),
            outcome: String::new(),
            failures: vec![error.to_string()],
        });
        count.add(&report, out)?;
    }
    let line = format!(
        "{} cases of {} kinds played through a live session, {} failed; of {} cases of other kinds {} failed",
        live.run,
        LIVE_KINDS.len(),
        live.failed,
        others.run,
        others.failed
    );
    Ok(Verdict { holds: live.run > 0 && live.failed == 0 && others.failed == 0, line })
}

#[derive(Default)]
struct Count {
    run: usize,
    failed: usize,
}

impl Count {
    fn add(&mut self, report: &CaseReport, out: &mut dyn Write) -> Result<(), EvidenceError> {
        let CaseReport { id, kind, outcome, failures } = report;
        let word = if failures.is_empty() { "ok" } else { "FAILED" };
        writeln!(out, "{word:6} {kind:26} {id:36} {outcome}")?;
        for failure in failures {
            writeln!(out, "       {failure}")?;
        }
        self.run += 1;
        self.failed += usize::from(!failures.is_empty());
        Ok(())
    }
}

fn unreadable(error: CaseError) -> EvidenceError {
    EvidenceError::Data { what: error.to_string() }
}
