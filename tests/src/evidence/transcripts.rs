//! Real sessions through the command line: compact each, measure the result.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::program::{Ran, capture, cargo, must_run};
use super::{EvidenceError, Places, Verdict};

/// What a transcript of up to [`STRETCH`] bytes may take beyond the start of the program; each further stretch
/// may take as long again.
const MOST_TIME: Duration = Duration::from_secs(1);

/// A long session of some hundred exchanges.
const STRETCH: u64 = 2_400_000;

/// A run that takes longer than that is repeated, up to so many runs in all.
const MOST_TRIES: u32 = 4;

/// A command that takes longer is ended.
const LONGEST: Duration = Duration::from_secs(60);

/// Begins of the names of files that must be readable; the others may be refused as not supported yet.
const SUPPORTED: &[&str] =
    &["anthropic-", "cc-", "codex-", "gemini-", "openai-chat-", "openhands-fncall-", "pi-", "responses-"];

/// Replies alone are no transcripts, whatever their format.
const REPLY: &str = ".response.json";

/// What became of one file.
struct Row {
    name: String,
    bytes: u64,
    code: Option<i32>,
    time: Duration,
    /// Tokens before and after, or the reason of the refusal.
    said: String,
    fault: Option<String>,
}

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    must_run(&mut cargo(places, &["build", "--quiet", "--release", "-p", "epitome"]))?;
    let epitome = places.binary("epitome");
    let start = capture(Command::new(&epitome).arg("--version"), LONGEST)?.time;
    writeln!(out, "{:52} {:>9} {:>4} {:>8}  result", "file", "bytes", "exit", "time")?;
    let mut rows = Vec::new();
    for file in transcripts(&places.shared.join("transcripts"))? {
        let row = compact(&epitome, &file, start)?;
        let Row { name, bytes, code, time, said, fault } = &row;
        let code = code.map_or_else(|| "-".to_owned(), |code| code.to_string());
        writeln!(out, "{name:52} {bytes:>9} {code:>4} {:>6} ms  {said}", time.as_millis())?;
        if let Some(fault) = fault {
            writeln!(out, "    FAULT: {fault}")?;
        }
        rows.push(row);
    }
    let faults = rows.iter().filter(|row| row.fault.is_some()).count();
    let with_code = |code| rows.iter().filter(|row| row.code == Some(code)).count();
    let line = format!(
        "{} files: {} compacted or in no need, {} refused, {} not readable, {faults} with a fault",
        rows.len(),
        with_code(0),
        with_code(4),
        with_code(3),
    );
    Ok(Verdict { holds: faults == 0 && with_code(0) > 0, line })
}

fn compact(epitome: &Path, file: &Path, start: Duration) -> Result<Row, EvidenceError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::metadata(file)?.len();
    let folder = tempfile::tempdir()?;
    let compacted = folder.path().join("compacted");
    let mut choices: Vec<&str> = Vec::new();
    let mut tries = 1;
    let mut ran = loop {
        let mut command = Command::new(epitome);
        command.arg("compact").arg(file).args(&choices).args(["--force", "--json", "--out"]).arg(&compacted);
        let ran = capture(&mut command, LONGEST)?;
        match choice(&ran) {
            Some(choice) if !choices.contains(&choice[0]) => choices.extend(choice),
            _ => break ran,
        }
    };
    // On a busy machine the same work takes longer: the quickest of some runs counts.
    while tries < MOST_TRIES && is_slow(&ran, bytes, start) {
        tries += 1;
        let mut command = Command::new(epitome);
        command.arg("compact").arg(file).args(&choices).args(["--force", "--json", "--out"]).arg(&compacted);
        let again = capture(&mut command, LONGEST)?;
        if again.time < ran.time {
            ran = again;
        }
    }
    let report: Option<Value> = serde_json::from_slice(&ran.stdout).ok();
    let mut fault = fault_of(&name, bytes, &ran, start, report.as_ref());
    if let (None, Some(report)) = (&fault, &report)
        && compacted.exists()
    {
        choices.retain(|choice| *choice != CONVERSATION[0] && *choice != CONVERSATION[1]);
        let mut measure = Command::new(epitome);
        // A compacted file holds no figure of a provider for itself, so what is unseen is stated.
        let unseen = report["unseen"].as_u64().unwrap_or(0).to_string();
        measure.arg("measure").arg(&compacted).args(&choices).args(["--unseen", &unseen, "--json"]);
        fault = fault_of_output(&capture(&mut measure, LONGEST)?, report);
    }
    let said = said(&ran, report.as_ref());
    Ok(Row { name, bytes, code: ran.code(), time: ran.time, said, fault })
}

fn is_slow(ran: &Ran, bytes: u64, start: Duration) -> bool {
    let allowed = MOST_TIME * u32::try_from(bytes.div_ceil(STRETCH)).unwrap_or(u32::MAX);
    ran.time.saturating_sub(start) > allowed
}

const WINDOW: [&str; 2] = ["--window", "200000"];
const CONVERSATION: [&str; 2] = ["--conversation", "0"];

/// What a user would add after reading why the command did not go on.
fn choice(ran: &Ran) -> Option<[&'static str; 2]> {
    let reason = String::from_utf8_lossy(&ran.stderr);
    match ran.code() {
        Some(2) if reason.contains(WINDOW[0]) => Some(WINDOW),
        Some(3) if reason.contains("choose one") => Some(CONVERSATION),
        _ => None,
    }
}

fn fault_of(name: &str, bytes: u64, ran: &Ran, start: Duration, report: Option<&Value>) -> Option<String> {
    let reason = String::from_utf8_lossy(&ran.stderr);
    let must_be_read = SUPPORTED.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(REPLY);
    match ran.code() {
        None => Some(ran.ending()),
        Some(0) if report.is_none() => Some("its report is not JSON".to_owned()),
        Some(0 | 4) if is_slow(ran, bytes, start) => Some("too slow".to_owned()),
        Some(4) if reason.trim().is_empty() && report.is_none() => {
            Some("refused without a reason".to_owned())
        }
        Some(0 | 4) => None,
        Some(3) if must_be_read => Some("its format is supported and it was not read".to_owned()),
        Some(3) if reason.trim().is_empty() => Some("not read, without a reason".to_owned()),
        Some(3) => None,
        Some(code) => Some(format!("exit code {code}")),
    }
}

/// What was written must measure as the report says.
fn fault_of_output(measured: &Ran, report: &Value) -> Option<String> {
    if measured.code() != Some(0) {
        return Some(format!("its output cannot be measured: {}", measured.ending()));
    }
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap_or_default();
    let stated = match &report["compaction"] {
        Value::Null => &report["before"]["tokens"],
        compaction => &compaction["after"]["tokens"],
    };
    let found = &measured["measurement"]["tokens"];
    (stated != found).then(|| format!("its output measures {found} tokens, the report says {stated}"))
}

/// What the command said, in a few words.
fn said(ran: &Ran, report: Option<&Value>) -> String {
    let Some(report) = report.filter(|report| report["outcome"] != "failed") else {
        let reason = String::from_utf8_lossy(&ran.stderr);
        let line = reason.lines().next().unwrap_or_default();
        // Program and path come first; the row names the file already.
        return line.rsplit(": ").next().unwrap_or_default().chars().take(90).collect();
    };
    let (before, after) = (&report["before"]["tokens"], &report["compaction"]["after"]["tokens"]);
    match (&report["compaction"]["landing"], &report["refusal"]["message"]) {
        (Value::String(landing), _) => format!("{before} to {after} tokens, landing {landing}"),
        (_, Value::String(message)) => format!("refused at {before} tokens: {message}"),
        _ => format!("left alone at {before} tokens"),
    }
}

/// The files of a folder and its subfolders, sorted; the index is not one of them.
pub(super) fn transcripts(folder: &Path) -> Result<Vec<PathBuf>, EvidenceError> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|ending| ending != "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
