//! Every vector of the boundary: what comes in, what goes out, and what identifies both.

use std::collections::BTreeMap;
use std::io::Write;

use super::{EvidenceError, Places, Verdict, conformance_reference};

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
    let mut classes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for report in &reports {
        for (class, count) in &report.stricter {
            *classes.entry((report.name, class)).or_default() += count;
        }
    }
    writeln!(out, "stricter classes")?;
    for ((file, class), count) in &classes {
        writeln!(out, "    {file:20} {class:32} {count:>6}")?;
    }
    for fault in &faults {
        writeln!(out, "    FAULT: {fault}")?;
    }
    let verdict = conformance_reference::verdict(&reports);
    Ok(Verdict { holds: verdict.holds && faults.is_empty(), ..verdict })
}
