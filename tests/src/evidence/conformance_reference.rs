//! Every vector of the reference that is covered.

use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::conformance::{self, FileReport, SUITES, print_reports};
use crate::vectors::with_deep_stack;

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    Ok(verdict(&judge_all(places, out)?))
}

/// Judges every file that is covered, and prints a row for each.
pub(super) fn judge_all(places: &Places, mut out: &mut dyn Write) -> Result<Vec<FileReport>, EvidenceError> {
    let folder = places.shared.join("vectors/reference");
    let reports = with_deep_stack(|| {
        SUITES
            .iter()
            .map(|suite| conformance::run(suite, &folder.join(format!("{}.jsonl", suite.name))))
            .collect::<Result<Vec<_>, _>>()
    })??;
    print_reports(&mut out, &reports)?;
    Ok(reports)
}

/// Whether no answer is another one.
pub(super) fn verdict(reports: &[FileReport]) -> Verdict {
    let sum = |count: fn(&FileReport) -> usize| reports.iter().map(count).sum::<usize>();
    let different = sum(|report| report.different.len());
    let line = format!(
        "{} files, {} cases, {} equal, {} stricter, {} looser by a rule of ours, {} not representable, {different} different",
        reports.len(),
        sum(|report| report.cases),
        sum(|report| report.equal),
        sum(|report| report.stricter.values().sum()),
        sum(|report| report.looser.values().sum()),
        sum(|report| report.skipped.values().sum()),
    );
    Verdict { holds: different == 0, line }
}
