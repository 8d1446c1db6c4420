//! Every vector file that there is.

use std::io::Write;

use super::{EvidenceError, Places, Verdict, conformance_reference};
use crate::conformance::{files_of, suite};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("vectors/reference");
    let files = files_of(&folder)?;
    let not_covered: Vec<&str> =
        files.iter().map(|(name, _)| name.as_str()).filter(|name| suite(name).is_none()).collect();
    for name in &not_covered {
        writeln!(out, "    FAULT: {name} is not covered")?;
    }
    let reports = conformance_reference::judge_all(places, out)?;
    let verdict = conformance_reference::verdict(&reports);
    let line = format!("{}; {} of {} files not covered", verdict.line, not_covered.len(), files.len());
    Ok(Verdict { holds: verdict.holds && not_covered.is_empty() && !files.is_empty(), line })
}
