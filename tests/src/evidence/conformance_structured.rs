//! Every vector of the structured summarizer.

use std::collections::BTreeMap;
use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::conformance::{self, BETTER_CLASSES, FileReport, is_structured, print_reports};
use crate::vectors::with_deep_stack;

pub(super) fn run(places: &Places, mut out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("vectors/structured");
    let files = conformance::files_of(&folder)?;
    let mut not_covered = Vec::new();
    let mut covered = Vec::new();
    for (name, path) in files {
        if is_structured(&path)? { covered.push((name, path)) } else { not_covered.push(name) }
    }
    let reports = with_deep_stack(|| {
        let reports = covered.iter().map(|(name, path)| conformance::run_structured(name, path));
        reports.collect::<Result<Vec<FileReport>, _>>()
    })??;
    print_reports(&mut out, &reports)?;
    for name in &not_covered {
        writeln!(out, "    FAULT: {name} is not covered")?;
    }
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for (&class, count) in reports.iter().flat_map(|report| &report.better) {
        *classes.entry(class).or_default() += count;
    }
    writeln!(out, "better by a named rule")?;
    for class in BETTER_CLASSES {
        let count = classes.get(class.name).copied().unwrap_or_default();
        writeln!(out, "    {:24} {count:>6}  {}", class.name, class.about)?;
    }
    let sum = |count: fn(&FileReport) -> usize| reports.iter().map(count).sum::<usize>();
    let different = sum(|report| report.different.len());
    let skipped = sum(|report| report.skipped.values().sum());
    let line = format!(
        "{} files, {} cases, {} equal, {} better by a named rule, {skipped} skipped, {different} different",
        reports.len(),
        sum(|report| report.cases),
        sum(|report| report.equal),
        classes.values().sum::<usize>(),
    );
    let holds = different == 0 && skipped == 0 && not_covered.is_empty() && !reports.is_empty();
    Ok(Verdict { holds, line })
}
