//! `epitome session export`.

use std::io::Write as _;
use std::path::Path;

use epitome_sessionruntime::journal::LiveContext;
use epitome_transcripts::{Format, Replacement, Session};

use super::journal_file::JournalFile;
use super::past::{Past, Source, numbers};
use crate::failure::Failure;
use crate::output::Destination;
use crate::session_args::ExportArgs;

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let journal = JournalFile::look(&args.kept.journal.file)?;
    let out = args.out.as_deref().unwrap_or(Path::new("-"));
    let destination = Destination::private(out);
    destination.is_apart_from(journal.path())?;
    let past = Past::of(&journal, &args.kept, &args.moment)?;
    let Exported { bytes, notes } = exported(&journal, &past, args.to)?;
    destination.write(&bytes)?;
    let mut err = anstream::stderr().lock();
    // Nothing can be said any more if standard error is gone.
    notes.iter().for_each(|note| drop(writeln!(err, "{note}")));
    Ok(())
}

struct Exported {
    bytes: Vec<u8>,
    notes: Vec<String>,
}

fn exported(journal: &JournalFile, past: &Past, to: Option<Format>) -> Result<Exported, Failure> {
    let source = past.source(journal)?;
    let recorded = &past.restored.messages;
    let LiveContext { leading, summary, rest } = past.state().context();
    let kept: Vec<usize> = numbers(&leading).chain(numbers(&rest)).collect();
    let format = to.or_else(|| source.as_ref()?.format()).unwrap_or(Format::EpitomeJson);
    let is_as_imported = |source: &Source| {
        let all = recorded.len();
        source.format() == Some(format) && summary.is_none() && source.messages == all && kept.len() == all
    };
    let file =
        source.as_ref().filter(|source| is_as_imported(source)).and_then(|source| source.bytes.as_ref());
    if let Some(file) = file {
        return Ok(Exported { bytes: file.to_vec(), notes: Vec::new() });
    }
    let read = source.as_ref().and_then(|source| {
        let session = source.session(recorded)?;
        Some(session.with_further(recorded.get(source.messages..).unwrap_or_default()))
    });
    let mut notes = Vec::new();
    if let Some(source) = source.as_ref().filter(|_| read.is_none()) {
        let why = match source.bytes {
            Some(_) => "reads differently today",
            None => "is damaged in the journal",
        };
        notes.push(format!("note      the file that was imported {why}; its messages are written anew"));
    }
    let session = read.unwrap_or_else(|| made_of(past));
    let replacement = Replacement { summary: summary.as_deref(), kept: &kept };
    let (bytes, report) =
        epitome_transcripts::write(&session, &replacement, format).map_err(Failure::Write)?;
    notes.extend(report.losses.iter().map(|loss| format!("left out  {} {}", loss.count, loss.kind)));
    Ok(Exported { bytes, notes })
}

/// The session that no file holds.
fn made_of(past: &Past) -> Session {
    let opened = past.state().opened();
    let tools = opened.map(|opened| opened.tools.clone()).unwrap_or_default();
    Session::of_messages(past.restored.messages.clone(), tools, opened.map(|opened| opened.model.clone()))
}
