//! Every public fault case of a covered kind.

use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::cases::{CaseError, KINDS, LIVE_KINDS, case_files, judge_case, read_case};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("cases");
    let (mut run, mut failed, mut live, mut uncovered) = (0, 0, 0, 0);
    for file in case_files(&folder).map_err(unreadable)? {
        let case = read_case(&file).map_err(unreadable)?;
        if !KINDS.contains(&case.kind.as_str()) {
            let is_live = LIVE_KINDS.contains(&case.kind.as_str());
            *if is_live { &mut live } else { &mut uncovered } += 1;
            continue;
        }
        run += 1;
        match judge_case(&case) {
            Ok(report) => {
                let word = if report.failures.is_empty() { "ok" } else { "FAILED" };
                writeln!(out, "{word:6} {:20} {:32} {}", report.kind, report.id, report.outcome)?;
                for failure in &report.failures {
                    writeln!(out, "       {failure}")?;
                }
                failed += usize::from(!report.failures.is_empty());
            }
            Err(error) => {
                writeln!(out, "FAILED {:20} {:32} {error}", case.kind, case.id)?;
                failed += 1;
            }
        }
    }
    let line = format!(
        "{run} cases of {} kinds run, {failed} failed; {live} cases are for cases-runtime; {uncovered} are of kinds that are \
         not covered",
        KINDS.len()
    );
    Ok(Verdict { holds: run > 0 && failed == 0, line })
}

fn unreadable(error: CaseError) -> EvidenceError {
    EvidenceError::Data { what: error.to_string() }
}
