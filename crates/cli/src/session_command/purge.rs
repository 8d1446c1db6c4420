//! `epitome session purge`.

use std::io::Write as _;

use epitome_loop::SessionId;
use epitome_sessionruntime::journal::{Journal as _, JournalError, PageLimit, Purged, SessionEntry};
use serde::Serialize;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::words::counted;
use crate::failure::Failure;
use crate::report::{VERSION, emphasis, harmless, print_json};
use crate::session_args::PurgeArgs;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `purged` or `not_confirmed`.
    outcome: &'static str,
    session: String,
    journal: String,
    records: u64,
    bytes: u64,
    /// Media and files that went with it, as no other session refers to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    blobs: Option<u64>,
}

pub(super) fn run(args: &PurgeArgs) -> Result<(), Failure> {
    let path = &args.journal.file;
    let journal = if args.yes { JournalFile::change(path)? } else { JournalFile::look(path)? };
    let SessionEntry { session, last } = journal.choose(Some(&args.id))?;
    let bytes = size(&journal, session)?;
    let purged = match args.yes {
        true => Some(journal.ask(journal.journal().purge(session))?),
        false => None,
    };
    let report = Report {
        report: VERSION,
        outcome: if purged.is_some() { "purged" } else { "not_confirmed" },
        session: session.to_string(),
        journal: path.display().to_string(),
        records: purged.map_or(last, |purged| purged.records),
        bytes,
        blobs: purged.map(|Purged { blobs, .. }| blobs),
    };
    match args.json {
        true => print_json(&report)?,
        false => show(&report).map_err(Failure::io("standard output"))?,
    }
    if purged.is_some() { Ok(()) } else { Err(JournalFailure::NotConfirmed.into()) }
}

/// What the records of a session take. They need not make sense to be removed.
fn size(journal: &JournalFile, session: SessionId) -> Result<u64, Failure> {
    let (mut next, mut bytes) = (Some(1), 0);
    while let Some(from) = next {
        let page = match journal.wait(journal.journal().read(session, from, PageLimit::default())) {
            Ok(page) => page,
            Err(JournalError::NotAJournal | JournalError::Incomplete { .. }) => return Ok(bytes),
            Err(error) => return Err(journal.failed(error)),
        };
        bytes += page.records.iter().map(|record| record.body.len() as u64).sum::<u64>();
        next = page.next;
    }
    Ok(bytes)
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let Report { session, journal, records, bytes, blobs, .. } = report;
    let what = if blobs.is_some() { "purged    " } else { "would go  " };
    writeln!(out, "{what}{} of {}", emphasis(session), harmless(journal))?;
    writeln!(out, "records   {}, {}", counted(*records, "record"), counted(*bytes, "byte"))?;
    match blobs {
        Some(blobs) => {
            writeln!(out, "media     {} that no other session refers to", counted(*blobs, "medium or file"))
        }
        None => writeln!(out, "media     and what media and files no other session refers to"),
    }
}
