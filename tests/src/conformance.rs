//! Compares our functions with the reference's vectors, file by file.

mod causes;
mod compaction_input;
mod decisions;
mod failures;
mod history;
mod hustles;
mod identity;
mod judgment;
mod loop_definition;
mod output;
mod policy;
mod report;
mod result;
mod rig;
mod stricter_wire;
mod structured;
mod summary_xml;
mod text_form;
mod wire_decode;

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

use crate::vectors::{VectorError, read_vectors};

pub(crate) use compaction_input::read_input;
pub use judgment::Judgment;
pub use report::{FileReport, print_reports};
pub use stricter_wire::{STRICTER_WIRE, StricterClass, stricter_class};
pub use structured::{BETTER_CLASSES, BetterClass};

/// How the cases of one vector file are judged.
pub struct Suite {
    /// The file's name without its ending.
    pub name: &'static str,
    /// Judges one case.
    pub judge: fn(input: &Value, expect: &Value) -> Judgment,
}

/// Every file that is covered.
pub const SUITES: &[Suite] = &[
    Suite { name: "candidate", judge: history::candidate },
    Suite { name: "capability", judge: identity::capability },
    Suite { name: "control", judge: decisions::control },
    Suite { name: "fingerprint", judge: identity::fingerprint },
    Suite { name: "fit", judge: compaction_input::fit },
    Suite { name: "hustle_descriptor", judge: hustles::hustle_descriptor },
    Suite { name: "hustle_limits", judge: hustles::hustle_limits },
    Suite { name: "hustle_name", judge: policy::hustle_name },
    Suite { name: "input_decode", judge: wire_decode::input_decode },
    Suite { name: "input_wire", judge: compaction_input::input_wire },
    Suite { name: "limits", judge: policy::limits },
    Suite { name: "loop_define", judge: loop_definition::loop_define },
    Suite { name: "message_json", judge: text_form::message_json },
    Suite { name: "output_struct", judge: output::output_struct },
    Suite { name: "output_validate", judge: result::output_validate },
    Suite { name: "policy", judge: policy::policy },
    Suite { name: "projection", judge: history::projection },
    Suite { name: "reason_allowed", judge: failures::allowed_reason },
    Suite { name: "reject_reason", judge: failures::reject_reason },
    Suite { name: "retained_history", judge: history::retained_history },
    Suite { name: "retained_tail_fits", judge: history::retained_tail_fits },
    Suite { name: "retry", judge: failures::retry },
    Suite { name: "rig_hustles", judge: rig::rig_hustles },
    Suite { name: "summary_xml", judge: summary_xml::summary_xml },
    Suite { name: "tail", judge: history::tail },
    Suite { name: "tracker", judge: decisions::tracker },
    Suite { name: "translate_error", judge: failures::translate_error },
    Suite { name: "waiter_reply_id", judge: identity::waiter_reply },
];

/// The suite of a file's name.
#[must_use]
pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| suite.name == name)
}

/// Judges every case of one file. Call it inside [`crate::with_deep_stack`].
///
/// # Errors
/// [`VectorError`] when the file cannot be read.
pub fn run(suite: &Suite, file: &Path) -> Result<FileReport, VectorError> {
    let mut report = FileReport::new(suite.name);
    for case in read_vectors(file)? {
        report.count(&case.id, (suite.judge)(&case.input, &case.expect));
    }
    Ok(report)
}

/// Judges every case of a file of structured summaries by the operation that it names. Call it inside
/// [`crate::with_deep_stack`].
///
/// # Errors
/// [`VectorError`] when the file cannot be read.
pub fn run_structured(name: &str, file: &Path) -> Result<FileReport, VectorError> {
    let mut report = FileReport::new(name);
    for case in read_vectors(file)? {
        report.count(&case.id, structured::judge(&case.op, &case.input, &case.expect));
    }
    Ok(report)
}

/// Whether a file's first case names an operation of structured summaries.
///
/// # Errors
/// The error of reading the file.
pub fn is_structured(file: &Path) -> io::Result<bool> {
    let mut line = String::new();
    io::BufReader::new(fs::File::open(file)?).read_line(&mut line)?;
    let first: Value = serde_json::from_str(&line).unwrap_or_default();
    Ok(first["op"].as_str().is_some_and(structured::is_known))
}

/// The vector files of a folder with their names, sorted.
///
/// # Errors
/// The error of reading the folder.
pub fn files_of(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "jsonl")) {
            files.push((name, path));
        }
    }
    files.sort();
    Ok(files)
}
