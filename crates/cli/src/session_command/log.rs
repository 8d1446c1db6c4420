//! `epitome session log`.

use std::io::Write as _;

use epitome_sessionruntime::journal::RecordBody;

use super::journal_file::JournalFile;
use super::log_line::LogLine;
use super::words::{time, words};
use crate::failure::Failure;
use crate::report::{emphasis, harmless, write_json_line};
use crate::session_args::LogArgs;

pub(super) fn run(args: &LogArgs) -> Result<(), Failure> {
    let journal = JournalFile::look(&args.kept.journal.file)?;
    let session = journal.choose(args.kept.id.as_deref())?.session;
    let failed = || Failure::io("standard output");
    let mut out = anstream::stdout().lock();
    if !args.json {
        let (id, path) = (emphasis(session), harmless(&journal.path().display().to_string()));
        writeln!(out, "session   {id} in {path}").map_err(failed())?;
    }
    let mut compactions = 0;
    journal.records(session, |stored, record| {
        let body = &record.body;
        compactions += u64::from(matches!(body, RecordBody::Committed(_)));
        if matches!(body, RecordBody::Answered(_)) && !args.all {
            return Ok(true);
        }
        if args.json {
            write_json_line(&mut out, &LogLine::of(stored.sequence, &record, compactions))
                .map_err(failed())?;
        } else {
            let (time, kind) = (time(record.at), format!("{:<9}", body.kind()));
            let (number, kind) = (stored.sequence, emphasis(kind));
            writeln!(out, "{number:>6}  {time}  {kind}  {}", words(body, compactions)).map_err(failed())?;
        }
        Ok(true)
    })
}
