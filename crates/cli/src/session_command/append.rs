//! `epitome session append`.

use std::io::Write as _;

use epitome_transcripts::ReadOptions;
use serde::Serialize;

use super::failure::JournalFailure;
use super::live::Live;
use super::words::{counted, ranges};
use crate::failure::Failure;
use crate::input::{is_stdio, read_bytes};
use crate::report::{VERSION, emphasis, listed, print_json};
use crate::session_args::AppendArgs;

#[derive(Serialize)]
struct Report {
    report: u32,
    outcome: &'static str,
    session: String,
    format: &'static str,
    /// The number of the first message.
    first: u64,
    messages: u64,
    notes: Vec<String>,
}

pub(super) fn run(args: &AppendArgs) -> Result<(), Failure> {
    if is_stdio(&args.file) && args.agent_loop.policy.as_deref().is_some_and(is_stdio) {
        return Err(Failure::TwoInputs);
    }
    let bytes = read_bytes(&args.file)?;
    let options = ReadOptions { format: args.from, conversation: args.conversation };
    // Nothing is repaired: a result in the file may answer a call in the session.
    let read = epitome_transcripts::read(&bytes, &options, &mut |_| {})
        .map_err(|reason| Failure::Read { path: args.file.clone(), reason })?;
    if read.messages().is_empty() {
        return Err(JournalFailure::NoMessages.into());
    }
    let live = Live::open(&args.kept, &args.agent_loop, None)?;
    let first = live.session.state().messages();
    live.run(live.session.append(read.messages().clone())).map_err(JournalFailure::from)?;
    let report = Report {
        report: VERSION,
        outcome: "appended",
        session: live.id.to_string(),
        format: read.format().as_str(),
        first,
        messages: read.messages().len() as u64,
        notes: read.notes().iter().map(ToString::to_string).collect(),
    };
    if args.json {
        return print_json(&report);
    }
    show(&report).map_err(Failure::io("standard output"))
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let Report { session, format, first, messages, notes, .. } = report;
    let end = first.saturating_add(*messages);
    let range = epitome_sessionruntime::journal::MessageRange { first: *first, end };
    writeln!(out, "session   {}", emphasis(session))?;
    writeln!(out, "appended  {} ({format}): {}", counted(*messages, "message"), ranges(&[range]))?;
    listed(notes).try_for_each(|note| writeln!(out, "note      {note}"))
}
