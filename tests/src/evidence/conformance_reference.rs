//! Every vector of the reference that is covered.

use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::conformance::{self, SUITES, print_reports};
use crate::vectors::with_deep_stack;

pub(super) fn run(places: &Places, mut out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("vectors/reference");
    let reports = with_deep_stack(|| {
        SUITES
            .iter()
            .map(|suite| conformance::run(suite, &folder.join(format!("{}.jsonl", suite.name))))
            .collect::<Result<Vec<_>, _>>()
    })??;
    print_reports(&mut out, &reports)?;
    let sum = |count: fn(&conformance::FileReport) -> usize| reports.iter().map(count).sum::<usize>();
    let different = sum(|report| report.different.len());
    let line = format!(
        "{} files, {} cases, {} equal, {} stricter, {} not representable, {different} different",
        reports.len(),
        sum(|report| report.cases),
        sum(|report| report.equal),
        sum(|report| report.stricter.values().sum()),
        sum(|report| report.skipped.values().sum()),
    );
    Ok(Verdict { holds: different == 0, line })
}
