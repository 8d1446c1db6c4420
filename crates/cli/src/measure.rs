//! `epitome measure`: what a session takes.

use std::io::Write as _;

use anstyle::AnsiColor;
use epitome_loop::{Message, Request, TokenCount, occupancy};
use serde::Serialize;

use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::input::{Progress, is_stdio, read_session};
use crate::profile::{self, room};
use crate::report::{
    BandReport, MeasurementReport, VERSION, bar, emphasis, listed, print_json, printable, tokens,
};
use crate::target::Target;
use crate::unseen::{Unseen, UnseenSource};

/// How many of the largest messages are listed.
const LARGEST: usize = 10;

#[derive(Serialize)]
struct Report {
    report: u32,
    format: &'static str,
    provider: String,
    model: String,
    messages: usize,
    measurement: MeasurementReport,
    /// `None` for an exact count.
    error_band: Option<BandReport>,
    by_role: Vec<Share>,
    by_kind: Vec<Share>,
    tools: u64,
    framing: u64,
    unseen: u64,
    unseen_source: UnseenSource,
    largest: Vec<Largest>,
    reported_by_provider: Option<u64>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Share {
    name: &'static str,
    tokens: u64,
}

#[derive(Serialize)]
struct Largest {
    message: usize,
    role: &'static str,
    kinds: Vec<&'static str>,
    tokens: u64,
}

/// Measures a session and shows where its tokens are.
pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    if is_stdio(&args.session.file) && args.policy.as_deref().is_some_and(is_stdio) {
        return Err(Failure::TwoInputs);
    }
    let policy = profile::load(args.policy.as_deref())?;
    let progress = Progress::new(args.json);
    let (_, session) = read_session(&args.session, &progress)?;
    let target = Target::of(&args.session, &session)?;
    let room = room(&policy, &target)?;
    let unseen = Unseen::of(&args.session, &session, &target)?;
    let request = Request {
        model: target.model.clone(),
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen.tokens),
    };
    let parts = target.counter.measure_parts(&request).map_err(Failure::Count)?;
    progress.done();

    let share = |(name, tokens): (&'static str, u64)| Share { name, tokens };
    let mut by_size: Vec<(usize, u64)> = parts.per_message.iter().copied().enumerate().collect();
    by_size.sort_by_key(|&(at, tokens)| (std::cmp::Reverse(tokens), at));
    let largest = by_size.iter().take(LARGEST).filter_map(|&(message, tokens)| {
        let found = session.messages().get(message)?;
        Some(Largest { message, role: found.role().as_str(), kinds: kinds(found), tokens })
    });
    let report = Report {
        report: VERSION,
        format: session.format().as_str(),
        provider: target.model.provider.as_str().to_owned(),
        model: target.model.model.as_str().to_owned(),
        messages: session.messages().len(),
        measurement: MeasurementReport {
            tokens: parts.total,
            limit: room.input_limit.get(),
            occupancy_basis_points: occupancy(TokenCount(parts.total), room.input_limit)
                .map_or(0, |share| share.get()),
            quality: target.quality().as_str(),
        },
        error_band: target.error_band().map(Into::into),
        by_role: parts.by_role.iter().map(|(role, tokens)| share((role.as_str(), *tokens))).collect(),
        by_kind: parts.by_kind.iter().map(|(&kind, &tokens)| share((kind, tokens))).collect(),
        tools: parts.tools,
        framing: parts.framing,
        unseen: parts.unseen,
        unseen_source: unseen.source,
        largest: largest.collect(),
        reported_by_provider: session.reported_usage().map(|usage| usage.context_tokens.get()),
        notes: session.notes().iter().map(ToString::to_string).collect(),
    };
    if args.json { print_json(&report) } else { show(&report, session.lacks_system_and_tools()) }
}

/// The kinds of blocks in a message, each once, in order of appearance.
fn kinds(message: &Message) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for block in message.blocks().iter() {
        if !kinds.contains(&block.kind()) {
            kinds.push(block.kind());
        }
    }
    kinds
}

fn show(report: &Report, lacks_system_and_tools: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let mut write = || {
        writeln!(
            out,
            "{}, {} messages, for {} ({})",
            emphasis(report.format),
            report.messages,
            printable(&report.model),
            printable(&report.provider)
        )?;
        writeln!(out, "\n{}\n  {}", emphasis("pressure"), report.measurement)?;
        if let Some(band) = &report.error_band {
            writeln!(out, "  an estimate: the true count is to be expected within {band}")?;
        }
        if let Some(reported) = report.reported_by_provider {
            writeln!(out, "  the provider last reported {} tokens", tokens(reported))?;
        }
        let total = report.measurement.tokens;
        let mut chart = |title: &str, rows: &[(&str, u64)]| {
            writeln!(out, "\n{}", emphasis(title))?;
            rows.iter().filter(|(_, count)| *count > 0).try_for_each(|(name, count)| {
                writeln!(out, "  {name:<12} {:>10}  {}", tokens(*count), bar(*count, total, AnsiColor::Cyan))
            })
        };
        let rows =
            |shares: &[Share]| shares.iter().map(|share| (share.name, share.tokens)).collect::<Vec<_>>();
        let mut by_role = rows(&report.by_role);
        by_role.extend([("tools", report.tools), ("framing", report.framing), ("unseen", report.unseen)]);
        chart("tokens by role", &by_role)?;
        chart("tokens by kind", &rows(&report.by_kind))?;
        writeln!(out, "\n{}", emphasis("largest messages"))?;
        for Largest { message, role, kinds, tokens: count } in &report.largest {
            let kinds = kinds.join(", ");
            writeln!(out, "  #{message:<6} {role:<10} {:>10}  {kinds}", tokens(*count))?;
        }
        if report.unseen_source == UnseenSource::Reported && report.unseen > 0 {
            let unseen = tokens(report.unseen);
            writeln!(
                out,
                "note: by the provider's figure, {unseen} tokens were sent that this file does not hold"
            )?;
        }
        for note in listed(&report.notes) {
            writeln!(out, "note: {note}")?;
        }
        if lacks_system_and_tools && report.unseen_source == UnseenSource::Unknown {
            writeln!(
                out,
                "note: this format leaves out the system prompt and the tools; add them with --unseen TOKENS"
            )?;
        }
        std::io::Result::Ok(())
    };
    write().map_err(Failure::io("standard output"))
}
