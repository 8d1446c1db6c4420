//! `epitome session list`.

use std::io::Write as _;

use epitome_loop::{Timestamp, Trigger};
use epitome_sessionruntime::journal::{JournalError, RecordBody, SessionEntry, SessionState};
use serde::Serialize;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::words::time;
use crate::failure::Failure;
use crate::report::{VERSION, emphasis, print_json, printable, tokens};
use crate::session_args::ListArgs;

#[derive(Serialize)]
struct Report {
    report: u32,
    journal: String,
    sessions: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    session: String,
    records: u64,
    messages: u64,
    compactions_in_force: u64,
    compactions_taken_back: u64,
    provider: Option<String>,
    model: Option<String>,
    /// The name of the file that it came from.
    source: Option<String>,
    /// When its newest record was written.
    time: Option<String>,
    /// Why it cannot be read further.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
}

pub(super) fn run(args: &ListArgs) -> Result<(), Failure> {
    let journal = JournalFile::look(&args.journal.file)?;
    let mut sessions = Vec::new();
    for entry in journal.sessions()? {
        match row(&journal, entry) {
            Ok(row) => sessions.push(row),
            // Somebody purged it meanwhile.
            Err(Failure::Journal(JournalFailure::Store { error: JournalError::UnknownSession, .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    let report = Report { report: VERSION, journal: journal.path().display().to_string(), sessions };
    if args.json {
        return print_json(&report);
    }
    show(&report).map_err(Failure::io("standard output"))
}

fn row(journal: &JournalFile, entry: SessionEntry) -> Result<Row, Failure> {
    let SessionEntry { session, last } = entry;
    let mut state = SessionState::new(Trigger::Manual);
    let (mut newest, mut source, mut damaged) = (None, None, None);
    let read = journal.records(session, |stored, record| {
        newest = Some(record.at);
        match std::mem::replace(&mut state, SessionState::new(Trigger::Manual))
            .apply(stored.sequence, &record)
        {
            Ok(after) => state = after,
            Err(fault) => damaged = Some(fault.to_string()),
        }
        if let RecordBody::Imported(imported) = record.body {
            source = source.take().or(imported.name);
        }
        Ok(damaged.is_none())
    });
    match read {
        Err(Failure::Journal(JournalFailure::Record { sequence, fault, .. })) => {
            damaged = Some(format!("record {sequence}: {fault}"));
        }
        Err(Failure::Journal(JournalFailure::Store {
            error: error @ JournalError::Incomplete { .. },
            ..
        })) => {
            damaged = Some(error.to_string());
        }
        other => other?,
    }
    let opened = state.opened();
    Ok(Row {
        session: session.to_string(),
        records: last,
        messages: state.messages(),
        compactions_in_force: state.in_force(),
        compactions_taken_back: (state.commits().len() as u64).saturating_sub(state.in_force()),
        provider: opened.map(|opened| opened.model.provider.as_str().to_owned()),
        model: opened.map(|opened| opened.model.model.as_str().to_owned()),
        source: source.map(|source| source.as_str().to_owned()),
        time: newest.map(|newest: Timestamp| time(newest)),
        damaged,
    })
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    if report.sessions.is_empty() {
        return writeln!(out, "no sessions; `epitome session import FILE` puts one in");
    }
    let head = format!(
        "{:<36}  {:<20}  {:>8}  {:>9}  {:<24}  source",
        "session", "newest record", "messages", "compacted", "model"
    );
    writeln!(out, "{}", emphasis(head))?;
    for row in &report.sessions {
        let Row { session, messages, compactions_in_force, time, model, source, damaged, .. } = row;
        let model = model.as_deref().map_or("-".to_owned(), printable);
        let source = source.as_deref().map_or("-".to_owned(), printable);
        let time = time.as_deref().unwrap_or("-");
        let (messages, compacted) = (tokens(*messages), tokens(*compactions_in_force));
        writeln!(out, "{session}  {time:<20}  {messages:>8}  {compacted:>9}  {model:<24}  {source}")?;
        if let Some(damaged) = damaged {
            writeln!(out, "  damaged: {damaged}; `epitome session verify` lists all that is wrong")?;
        }
    }
    Ok(())
}
