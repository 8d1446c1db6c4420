//! `epitome session show`.

use std::io::Write as _;

use epitome_counters::{LocalCounter, model_info};
use epitome_loop::{Message, Request, Role, Section, SharedText, TextEstimator as _, TokenCount, occupancy};
use epitome_loopruntime::parse_summary;
use epitome_sessionruntime::journal::{Committed, LiveContext, MessageRange, SessionOpened};
use serde::Serialize;

use super::journal_file::JournalFile;
use super::past::{Past, Source};
use super::recording::format_as_shown;
use super::words::{counted, latch, ranges};
use crate::failure::Failure;
use crate::report::{MeasurementReport, VERSION, emphasis, harmless, print_json, printable, tokens};
use crate::session_args::ShowArgs;
use crate::target::counter_for;

#[derive(Serialize)]
struct Report {
    report: u32,
    session: String,
    journal: String,
    /// The record behind which the session is looked at, and how many there are.
    record: u64,
    records: u64,
    provider: String,
    model: String,
    window: u64,
    tools: usize,
    source: Option<SourceReport>,
    /// Messages that were ever appended up to here.
    messages: u64,
    compactions_in_force: u64,
    compactions_taken_back: u64,
    summary: Option<SummaryReport>,
    /// Messages of the context in front of the summary and behind it, as pairs of a first number and the one behind
    /// the last.
    leading: Vec<[u64; 2]>,
    kept: Vec<[u64; 2]>,
    kept_messages: u64,
    by_role: Vec<RoleReport>,
    /// Messages, summary and tools, for a model that is known.
    size: Option<MeasurementReport>,
    /// The newest measurement of a whole request up to here.
    measured: Option<MeasurementReport>,
    latch: String,
    attempt_under_way: bool,
}

#[derive(Serialize)]
struct SourceReport {
    name: Option<String>,
    format: String,
    bytes: Option<usize>,
    messages: usize,
    repairs: u64,
}

#[derive(Serialize)]
struct SummaryReport {
    bytes: usize,
    tokens: Option<u64>,
    sections: Vec<SectionReport>,
    /// What was repaired in the answer of the model that wrote it, by name.
    repairs: Vec<String>,
    /// Why a fallback wrote it; `None`: the first choice of the policy did.
    degraded: Option<String>,
}

#[derive(Serialize)]
struct SectionReport {
    section: &'static str,
    items: usize,
}

#[derive(Serialize)]
struct RoleReport {
    role: &'static str,
    messages: usize,
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let journal = JournalFile::look(&args.kept.journal.file)?;
    let past = Past::of(&journal, &args.kept, &args.moment)?;
    let report = report(&journal, &past)?;
    if args.json {
        return print_json(&report);
    }
    show(&report).map_err(Failure::io("standard output"))
}

fn report(journal: &JournalFile, past: &Past) -> Result<Report, Failure> {
    let state = past.state();
    let LiveContext { leading, summary, rest } = state.context();
    let opened = state.opened();
    let sent = past.sent();
    let pairs = |ranges: &[MessageRange]| ranges.iter().map(|range| [range.first, range.end]).collect();
    let kept = || past.restored.messages_in(&leading).chain(past.restored.messages_in(&rest));
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool].map(|role| RoleReport {
        role: role.as_str(),
        messages: kept().filter(|message| message.role() == role).count(),
    });
    let source = past.source(journal)?.map(|Source { imported, bytes, messages }| SourceReport {
        name: imported.name.map(|name| name.as_str().to_owned()),
        format: format_as_shown(&imported.format),
        bytes: bytes.map(|bytes| bytes.len()),
        messages,
        repairs: imported.repairs,
    });
    let committed = past.committed(journal)?;
    Ok(Report {
        report: VERSION,
        session: past.session.to_string(),
        journal: journal.path().display().to_string(),
        record: past.record,
        records: past.records,
        provider: opened.map_or(String::new(), |opened| opened.model.provider.as_str().to_owned()),
        model: opened.map_or(String::new(), |opened| opened.model.model.as_str().to_owned()),
        window: opened.map_or(0, window),
        tools: opened.map_or(0, |opened| opened.tools.len()),
        source,
        messages: state.messages(),
        compactions_in_force: state.in_force(),
        compactions_taken_back: (state.commits().len() as u64).saturating_sub(state.in_force()),
        summary: summary.as_ref().map(|summary| summary_report(summary, opened, committed.as_deref())),
        leading: pairs(&leading),
        kept: pairs(&rest),
        kept_messages: kept().count() as u64,
        by_role: roles.into_iter().filter(|role| role.messages > 0).collect(),
        size: opened.and_then(|opened| size(opened, sent)),
        measured: state.tracker().measurement().map(Into::into),
        latch: latch(&state.latch()),
        attempt_under_way: state.unfinished().is_some(),
    })
}

fn window(opened: &SessionOpened) -> u64 {
    opened.limits.window.get().max(opened.limits.max_input.get())
}

/// What messages take together with the tools; `None` for a model that is not known.
fn size(opened: &SessionOpened, messages: Vec<Message>) -> Option<MeasurementReport> {
    let request = Request {
        model: opened.model.clone(),
        tools: opened.tools.clone(),
        messages: messages.into(),
        unseen_tokens: TokenCount::ZERO,
    };
    let counter = counter_for(&model_info(&opened.model.model)?, &request)?;
    let count = counter.count_request(&request).ok()?;
    let limit = TokenCount(window(opened));
    Some(MeasurementReport {
        tokens: count.input_tokens.get(),
        limit: limit.get(),
        occupancy_basis_points: occupancy(count.input_tokens, limit).map_or(0, |share| share.get()),
        quality: count.quality.as_str(),
    })
}

fn summary_report(
    summary: &SharedText,
    opened: Option<&SessionOpened>,
    committed: Option<&Committed>,
) -> SummaryReport {
    // One that does not follow the grammar cannot have been committed; then there is nothing to list.
    let sections = parse_summary(summary.as_bytes()).ok();
    let sections = sections.iter().flat_map(|parsed| {
        Section::ALL.map(|section| SectionReport {
            section: section.as_str(),
            items: parsed.sections().items(section).len(),
        })
    });
    let taken = opened.and_then(|opened| {
        let counter = LocalCounter::new(&model_info(&opened.model.model)?, true).ok()?;
        Some(counter.estimate(summary).get())
    });
    let repairs = committed.into_iter().flat_map(|committed| committed.repairs.iter());
    SummaryReport {
        bytes: summary.len(),
        tokens: taken,
        sections: sections.collect(),
        repairs: repairs.map(ToString::to_string).collect(),
        degraded: committed.and_then(|committed| committed.degraded.as_ref()).map(ToString::to_string),
    }
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let Report { session, journal, record, records, model, provider, window, .. } = report;
    writeln!(out, "session   {} in {}", emphasis(session), harmless(journal))?;
    match record == records {
        true => writeln!(out, "moment    now, behind record {record}")?,
        false => writeln!(out, "moment    behind record {record} of {records}")?,
    }
    let (model, provider) = (printable(model), printable(provider));
    let tools = counted(report.tools as u64, "tool");
    writeln!(out, "model     {model} ({provider}), window {}, {tools}", tokens(*window))?;
    if let Some(SourceReport { name, format, bytes, messages, repairs }) = &report.source {
        let name = name.as_deref().map_or("a stream".to_owned(), printable);
        let bytes = bytes.map_or("damaged".to_owned(), |bytes| counted(bytes as u64, "byte"));
        let repairs = if *repairs > 0 { format!(", {}", counted(*repairs, "repair")) } else { String::new() };
        writeln!(out, "source    {name} ({format}, {bytes}), #0-#{}{repairs}", messages.saturating_sub(1))?;
    }
    let (in_force, back) = (report.compactions_in_force, report.compactions_taken_back);
    let back = if back > 0 { format!(", {back} taken back") } else { String::new() };
    let attempt = if report.attempt_under_way { ", and one under way" } else { "" };
    let times = match in_force {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        _ => counted(in_force, "time"),
    };
    writeln!(out, "compacted {times}{back}{attempt}")?;
    let ranges = |pairs: &[[u64; 2]]| {
        ranges(&pairs.iter().map(|&[first, end]| MessageRange { first, end }).collect::<Vec<_>>())
    };
    if let Some(SummaryReport { bytes, tokens: taken, sections, repairs, degraded }) = &report.summary {
        let taken = taken.map_or(String::new(), |taken| format!("about {} tokens, ", tokens(taken)));
        writeln!(out, "summary   {taken}{}", counted(*bytes as u64, "byte"))?;
        for SectionReport { section, items } in sections {
            writeln!(out, "            {section:<12} {items:>4}")?;
        }
        if !repairs.is_empty() {
            writeln!(out, "          repaired in the model's answer: {}", repairs.join(", "))?;
        }
        if let Some(reason) = degraded {
            writeln!(out, "          degraded: {reason}; a fallback wrote it")?;
        }
    }
    let all = counted(report.messages, "message");
    let (before, behind) = (ranges(&report.leading), ranges(&report.kept));
    let kept = match (&report.summary, report.leading.is_empty()) {
        (None, _) => behind,
        (Some(_), true) => format!("{behind}, behind the summary"),
        (Some(_), false) => format!("{before} in front of the summary, {behind} behind it"),
    };
    writeln!(out, "kept      {} of {all}: {kept}", tokens(report.kept_messages))?;
    for RoleReport { role, messages } in &report.by_role {
        writeln!(out, "            {role:<12} {:>4}", tokens(*messages as u64))?;
    }
    match &report.size {
        Some(size) => writeln!(out, "size      {size}")?,
        None => writeln!(out, "size      not known: the model is not in the table")?,
    }
    if let Some(measured) = &report.measured {
        writeln!(out, "measured  {measured}")?;
    }
    writeln!(out, "latch     {}", report.latch)
}
