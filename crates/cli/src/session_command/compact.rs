//! `epitome session compact`.

use std::io::Write as _;

use epitome_loop::SharedText;
use epitome_sessionruntime::CompactError;
use serde::Serialize;

use super::decisions::{CompactionLine, RejectionLine};
use super::failure::JournalFailure;
use super::live::Live;
use crate::failure::Failure;
use crate::report::{VERSION, emphasis, print_json};
use crate::session_args::CompactNowArgs;
use crate::summarizer::SummarizerReport;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `compacted`, `refused` or `failed`.
    outcome: &'static str,
    session: String,
    in_force: u64,
    compacted: Option<CompactionLine>,
    refused: Option<RejectionLine>,
    summarizer: SummarizerReport,
}

pub(super) fn run(args: &CompactNowArgs) -> Result<(), Failure> {
    let live = Live::open(&args.kept, &args.agent_loop, Some(&args.summarizer))?;
    let instructions = args.instructions.as_deref().map(SharedText::from);
    let done = live.run(live.session.compact(instructions));
    let report = Report {
        report: VERSION,
        outcome: match &done {
            Ok(_) => "compacted",
            Err(CompactError::Rejected(_)) => "refused",
            Err(_) => "failed",
        },
        session: live.id.to_string(),
        in_force: live.session.state().in_force(),
        compacted: done.as_ref().ok().map(Into::into),
        refused: match &done {
            Err(CompactError::Rejected(refused)) => Some(refused.into()),
            _ => None,
        },
        summarizer: live.summarizing.report(),
    };
    match args.json {
        true => print_json(&report)?,
        false => show(&report).map_err(Failure::io("standard output"))?,
    }
    done.map(drop).map_err(|error| {
        let summarizer = match &error {
            CompactError::Rejected(_) => live.summarizing.advice(),
            _ => String::new(),
        };
        JournalFailure::NotCompacted { error, summarizer }.into()
    })
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "session   {}", emphasis(&report.session))?;
    if let Some(compacted) = &report.compacted {
        compacted.show(&mut out, &report.summarizer)?;
    }
    if let Some(refused) = &report.refused {
        writeln!(out, "refused   {}", refused.words())?;
    }
    Ok(())
}
