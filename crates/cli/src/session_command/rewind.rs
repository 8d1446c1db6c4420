//! `epitome session undo` and `redo`.

use std::io::Write as _;

use serde::Serialize;

use super::failure::JournalFailure;
use super::live::Live;
use super::words::counted;
use crate::failure::Failure;
use crate::report::{VERSION, emphasis, print_json};
use crate::session_args::RewindArgs;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `undone` or `redone`.
    outcome: &'static str,
    session: String,
    in_force_before: u64,
    in_force: u64,
    /// Messages of the context, the summary included.
    messages: usize,
}

pub(super) fn undo(args: &RewindArgs) -> Result<(), Failure> {
    rewind(args, true)
}

pub(super) fn redo(args: &RewindArgs) -> Result<(), Failure> {
    rewind(args, false)
}

fn rewind(args: &RewindArgs, back: bool) -> Result<(), Failure> {
    let live = Live::open(&args.kept, &args.agent_loop, None)?;
    let before = live.session.state().in_force();
    let done = live.run(async {
        match args.to {
            Some(wanted) if back != (wanted < before) || wanted == before => {
                Err(JournalFailure::WrongWay { in_force: before, wanted, back })
            }
            Some(wanted) => live.session.rewind_to(wanted).await.map_err(JournalFailure::from),
            None if back => live.session.undo().await.map_err(JournalFailure::from),
            None => live.session.redo().await.map_err(JournalFailure::from),
        }
    });
    let report = Report {
        report: VERSION,
        outcome: if back { "undone" } else { "redone" },
        session: live.id.to_string(),
        in_force_before: before,
        in_force: done?,
        messages: live.session.messages().len(),
    };
    if args.json {
        return print_json(&report);
    }
    show(&report).map_err(Failure::io("standard output"))
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let Report { outcome, session, in_force_before, in_force, messages, .. } = report;
    writeln!(out, "session   {}", emphasis(session))?;
    writeln!(out, "{outcome}    from {in_force_before} to {} in force", counted(*in_force, "compaction"))?;
    writeln!(out, "context   {} now", counted(*messages as u64, "message"))
}
