//! Every public fault case whose fault lies in what a model answers, with a model that answers so over HTTP.

use std::io::Write;

use super::{EvidenceError, Places, Verdict};
use crate::cases::{CaseError, CaseReport, MODEL_KINDS, case_files, judge_by_model, read_case};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let (mut run, mut repaired, mut failed, mut silent) = (0, 0, 0, 0);
    for file in case_files(&places.shared.join("cases")).map_err(unreadable)? {
        let case = read_case(&file).map_err(unreadable)?;
        if !MODEL_KINDS.contains(&case.kind.as_str()) {
            continue;
        }
        if !case.has_answer() {
            silent += 1;
            continue;
        }
        run += 1;
        let CaseReport { id, kind, outcome, failures } =
            judge_by_model(&case).unwrap_or_else(|error| CaseReport {
                id: case.id.clone(),
                kind: case.kind.clone(),
                outcome: String::new(),
                failures: vec![error.to_string()],
            });
        let word = if failures.is_empty() { "ok" } else { "FAILED" };
        writeln!(out, "{word:6} {kind:22} {id:32} {outcome}")?;
        for failure in &failures {
            writeln!(out, "       {failure}")?;
        }
        failed += usize::from(!failures.is_empty());
        repaired += usize::from(failures.is_empty() && outcome.contains("repaired"));
    }
    let line = format!(
        "{run} cases of {} kinds answered over HTTP, {failed} failed, {repaired} of the others with a repair where the report \
         expects a refusal; {silent} cases of these kinds script no answer and are for `cases`",
        MODEL_KINDS.len()
    );
    Ok(Verdict { holds: run > 0 && failed == 0, line })
}

fn unreadable(error: CaseError) -> EvidenceError {
    EvidenceError::Data { what: error.to_string() }
}
