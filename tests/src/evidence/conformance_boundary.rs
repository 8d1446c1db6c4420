//! Every vector of the boundary: what comes in, what goes out, and what identifies both.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{EvidenceError, Places, Verdict, conformance_reference};
use crate::conformance::FileReport;

/// The files of the boundary. Each must be covered.
const BOUNDARY: [&str; 14] = [
    "input_decode",
    "output_validate",
    "translate_error",
    "fingerprint",
    "capability",
    "loop_define",
    "hustle_name",
    "hustle_descriptor",
    "hustle_limits",
    "rig_hustles",
    "retry",
    "reason_allowed",
    "reject_reason",
    "waiter_reply_id",
];

/// Identities that others compute too: refusing more than the reference would part us from them.
const NOT_STRICTER: [&str; 2] = ["fingerprint", "waiter_reply_id"];

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let reports = conformance_reference::judge_all(places, out)?;
    let mut faults = Vec::new();
    for name in BOUNDARY {
        match reports.iter().find(|report| report.name == name) {
            None => faults.push(format!("{name} is not covered")),
            Some(report) if report.cases == 0 => faults.push(format!("{name} has no cases")),
            Some(report) if NOT_STRICTER.contains(&name) && !report.stricter.is_empty() => {
                faults.push(format!("{name} is stricter than the reference"));
            }
            Some(_) => {}
        }
    }
    list_classes(out, "stricter classes", &reports, |report| &report.stricter)?;
    list_classes(out, "looser by a rule of ours", &reports, |report| &report.looser)?;
    for fault in &faults {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let verdict = conformance_reference::verdict(&reports);
    Ok(Verdict { holds: verdict.holds && faults.is_empty(), ..verdict })
}

/// A row for each class of a file.
fn list_classes(
    out: &mut dyn Write,
    title: &str,
    reports: &[FileReport],
    classes: fn(&FileReport) -> &BTreeMap<&'static str, usize>,
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    for report in reports {
        for (class, count) in classes(report) {
            writeln!(out, "    {:20} {class:32} {count:>6}", report.name)?;
        }
    }
    Ok(())
}
