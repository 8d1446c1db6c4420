//! `epitome session verify`.

use std::io::Write as _;

use epitome_loop::SessionId;
use epitome_sessionruntime::journal::{
    CodecFault, Finding, FindingKind, JournalError, VerifyReport, verify_session,
};
use serde::Serialize;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::words::counted;
use crate::failure::Failure;
use crate::report::{VERSION, emphasis, harmless, print_json, tokens};
use crate::session_args::VerifyArgs;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `whole` or `damaged`.
    outcome: &'static str,
    journal: String,
    /// How many faults SQLite finds in the file; `None` when it could not even look.
    file_faults: Option<u64>,
    sessions: Vec<SessionReport>,
}

#[derive(Serialize)]
struct SessionReport {
    session: String,
    records: u64,
    bytes: u64,
    blobs: u64,
    /// How many findings there are; at most the first 100 are listed.
    found: u64,
    findings: Vec<FindingReport>,
}

#[derive(Serialize)]
struct FindingReport {
    /// `None` when it is about the whole session.
    record: Option<u64>,
    kind: &'static str,
    message: String,
    advice: String,
}

pub(super) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let journal = JournalFile::look(&args.journal.file)?;
    let chosen = match &args.id {
        Some(id) => vec![journal.choose(Some(id))?.session],
        None => journal.sessions()?.into_iter().map(|entry| entry.session).collect(),
    };
    let file_faults = journal.wait(journal.journal().check_file()).ok();
    let mut sessions = Vec::new();
    for session in chosen {
        match journal.wait(verify_session(&**journal.journal(), session)) {
            Ok(found) => sessions.push(SessionReport::of(session, &found)),
            // Somebody purged it meanwhile.
            Err(JournalError::UnknownSession) => {}
            Err(JournalError::NotAJournal) => sessions.push(SessionReport::unreadable(session)),
            Err(error) => return Err(journal.failed(error)),
        }
    }
    let is_whole = file_faults == Some(0) && sessions.iter().all(|session| session.found == 0);
    let report = Report {
        report: VERSION,
        outcome: if is_whole { "whole" } else { "damaged" },
        journal: journal.path().display().to_string(),
        file_faults,
        sessions,
    };
    match args.json {
        true => print_json(&report)?,
        false => show(&report).map_err(Failure::io("standard output"))?,
    }
    if is_whole { Ok(()) } else { Err(JournalFailure::Damaged.into()) }
}

impl SessionReport {
    fn of(session: SessionId, report: &VerifyReport) -> Self {
        let VerifyReport { records, bytes, blobs, findings, found } = report;
        Self {
            session: session.to_string(),
            records: *records,
            bytes: *bytes,
            blobs: *blobs,
            found: *found,
            findings: findings.iter().map(FindingReport::of).collect(),
        }
    }

    /// A session whose pages in the file are damaged.
    fn unreadable(session: SessionId) -> Self {
        let finding = FindingReport {
            record: None,
            kind: "file",
            message: "its part of the file cannot be read".to_owned(),
            advice: FILE_ADVICE.to_owned(),
        };
        Self {
            session: session.to_string(),
            records: 0,
            bytes: 0,
            blobs: 0,
            found: 1,
            findings: vec![finding],
        }
    }
}

const FILE_ADVICE: &str = "keep a copy of the file with its -wal and -shm before anything else; what can still be \
                           read can be exported, and a backup has the rest";

impl FindingReport {
    fn of(finding: &Finding) -> Self {
        let Finding { sequence, kind } = finding;
        Self {
            record: Some(*sequence),
            kind: match kind {
                FindingKind::Gap(_) => "gap",
                FindingKind::Incomplete { .. } => "incomplete",
                FindingKind::Unreadable(CodecFault::NewerVersion { .. }) => "newer_version",
                FindingKind::Unreadable(_) => "unreadable",
                FindingKind::Media => "media",
                FindingKind::Replay(_) => "replay",
                _ => "other",
            },
            message: kind.to_string(),
            advice: advice(*sequence, *kind),
        }
    }
}

/// What to do about a finding.
fn advice(sequence: u64, kind: FindingKind) -> String {
    match kind {
        FindingKind::Unreadable(CodecFault::NewerVersion { .. }) => {
            "a newer epitome wrote it, and reads it".to_owned()
        }
        FindingKind::Media => {
            "everything else of the session can be exported; a file that was imported is written anew then"
                .to_owned()
        }
        _ => match sequence.checked_sub(1) {
            Some(last @ 1..) => format!(
                "`epitome session export --record {last}` gives the session as it was before; a backup has the rest"
            ),
            _ => "nothing of the session can be told any more; a backup has it".to_owned(),
        },
    }
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let path = harmless(&report.journal);
    match report.file_faults {
        Some(0) => writeln!(out, "file      {path}: whole")?,
        Some(faults) => {
            writeln!(out, "file      {path}: {}: {}", emphasis("damaged"), counted(faults, "fault"))?;
            writeln!(out, "            {FILE_ADVICE}")?;
        }
        None => {
            writeln!(out, "file      {path}: {}: it cannot be checked", emphasis("damaged"))?;
            writeln!(out, "            {FILE_ADVICE}")?;
        }
    }
    for session in &report.sessions {
        let SessionReport { session, records, bytes, blobs, found, findings } = session;
        let state = if *found == 0 { "whole".to_owned() } else { emphasis("damaged") };
        let (records, bytes) = (counted(*records, "record"), counted(*bytes, "byte"));
        let media = counted(*blobs, "reference");
        writeln!(out, "session   {session}: {state}: {records}, {bytes}, {media} to media and files")?;
        for FindingReport { record, message, advice, .. } in findings {
            let record = record.map_or(String::new(), |record| format!("record {record}: "));
            writeln!(out, "            {record}{message}\n              {advice}")?;
        }
        let more = found.saturating_sub(findings.len() as u64);
        if more > 0 {
            writeln!(out, "            and {} more", tokens(more))?;
        }
    }
    Ok(())
}
