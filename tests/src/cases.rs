//! Fault cases that users of other tools reported, run through our libraries as a user of ours would meet
//! them.
//!
//! A case file says what stands in the session, what the policy is, what a model answers, and what must hold
//! afterwards. Everything here is driven by those fields, so further files of the same kinds need no code.

mod by_model;
mod case_file;
mod expectation;
mod live;
mod measured;
mod passes;
mod scenario;
mod session_policy;
mod text_macros;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use case_file::{Case, CaseError};

/// Kinds of faults that are covered, in the words of the case files.
pub const KINDS: [&str; 19] = [
    "byte_limit",
    "duplicate_ids",
    "image_tokens",
    "limit_arithmetic",
    "markup_and_injection",
    "no_gain",
    "orphan_at_cut",
    "pending_tool",
    "roles_and_noop",
    "server_tool_pair",
    "special_tokens",
    "summary_empty",
    "summary_error_text",
    "system_prompt",
    "tail_budget",
    "thinking_blocks",
    "torn_file",
    "unicode_cut",
    "usage_accounting",
];

/// Kinds of faults that show when a session is live: they are run through one.
pub const LIVE_KINDS: [&str; 6] = [
    "chained_compaction",
    "compaction_loop",
    "concurrency",
    "failure_keeps_history",
    "stale_task",
    "summarizer_request_too_big",
];

/// Kinds of faults that lie in what a model answers: they are run through a model that is asked over HTTP.
pub const MODEL_KINDS: [&str; 5] =
    ["markup_and_injection", "summary_empty", "summary_error_text", "summary_not_prose", "summary_truncated"];

/// What a case showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseReport {
    /// The case's name.
    pub id: String,
    /// The kind of fault.
    pub kind: String,
    /// What came of it, for people.
    pub outcome: String,
    /// Expectations that do not hold; none when all is well.
    pub failures: Vec<String>,
}

/// Reads one case file.
///
/// # Errors
/// [`CaseError`] when it cannot be read or is no case.
pub fn read_case(path: &Path) -> Result<Case, CaseError> {
    let text = fs::read_to_string(path).map_err(|_| CaseError::Read)?;
    let value: Value = serde_json::from_str(&text).map_err(|_| CaseError::Json)?;
    Case::from_json(text_macros::expand(value)?)
}

/// The case files of a folder, sorted.
///
/// # Errors
/// [`CaseError`] when the folder cannot be read.
pub fn case_files(folder: &Path) -> Result<Vec<PathBuf>, CaseError> {
    let entries = fs::read_dir(folder).map_err(|_| CaseError::Read)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|_| CaseError::Read)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    Ok(paths)
}

/// Runs one case and checks what it expects.
///
/// # Errors
/// [`CaseError`] when the case says something that is not understood.
pub fn judge_case(case: &Case) -> Result<CaseReport, CaseError> {
    let (outcome, failures) = if !case.passes().is_empty() {
        passes::judge(case)?
    } else if !case.measured.is_empty() {
        measured::judge(case)?
    } else {
        scenario::judge(case)?
    };
    Ok(CaseReport { id: case.id.clone(), kind: case.kind.clone(), outcome, failures })
}

/// Runs one case with a model behind HTTP that answers as the case says, and checks what it expects.
///
/// # Errors
/// [`CaseError`] when the case says something that is not understood.
pub fn judge_by_model(case: &Case) -> Result<CaseReport, CaseError> {
    let (outcome, failures) = by_model::judge(case)?;
    Ok(CaseReport { id: case.id.clone(), kind: case.kind.clone(), outcome, failures })
}

/// Plays one case through a live session, as its host would, and checks what it expects. Sizes without messages are no
/// session, and are judged as by [`judge_case`].
///
/// # Errors
/// [`CaseError`] when the case says something that is not understood.
pub fn judge_live(case: &Case) -> Result<CaseReport, CaseError> {
    if !case.has_content() {
        return judge_case(case);
    }
    let (outcome, failures) = live::judge(case)?;
    Ok(CaseReport { id: case.id.clone(), kind: case.kind.clone(), outcome, failures })
}
