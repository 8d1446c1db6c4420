//! `epitome compact`: the main job.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_loop::{Section, SharedText, TokenCount, Trigger};
use epitome_loopruntime::{Landing, TailCut};
use epitome_sessionruntime::{
    Compaction, Demand, EarlierSummary, Outcome, Ports, Refusal, SessionContext, compact_once,
    recognize_earlier_summary,
};
use epitome_summarizers::Extractive;
use epitome_transcripts::{Replacement, Session};
use serde::Serialize;

use crate::args::CompactArgs;
use crate::failure::Failure;
use crate::identity::{basis_of, fingerprint_of};
use crate::input::{Progress, read_session};
use crate::latest;
use crate::output::Destination;
use crate::pins::{self, Pin};
use crate::profile::{for_compaction, for_session, room};
use crate::report::{
    BandReport, MeasurementReport, VERSION, emphasis, harmless, level_name, listed, printable, tokens,
    write_json,
};
use crate::session_command::journal_file::JournalFile;
use crate::session_command::recording::{Beginning, record_outcome};
use crate::target::Target;
use crate::unseen::{Unseen, UnseenSource};

#[derive(Serialize)]
struct Report {
    report: u32,
    /// The file that `--latest` chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    outcome: &'static str,
    format: &'static str,
    provider: String,
    model: String,
    messages: usize,
    notes: Vec<String>,
    repairs: Vec<String>,
    /// Tokens that are sent but not in the file; they are part of every measurement here.
    unseen: u64,
    unseen_source: UnseenSource,
    before: Option<MeasurementReport>,
    /// How far off the counts may be; `None` when they are exact.
    error_band: Option<BandReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    /// `threshold` or `asked`.
    demand: &'static str,
    /// `None`: the policy compacts only when asked.
    compact_at_basis_points: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<CompactionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<RecordedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<WrittenReport>,
}

/// Where a compaction was recorded.
#[derive(Serialize)]
struct RecordedReport {
    session: String,
    journal: String,
}

#[derive(Serialize)]
struct CompactionReport {
    after: MeasurementReport,
    landing: &'static str,
    cut: &'static str,
    system_messages: usize,
    kept_messages: usize,
    kept_from: Option<usize>,
    kept_anchor: Option<usize>,
    /// What each option `--pin` names.
    pins: Vec<Pin>,
    /// All messages that stay because of pins, what they need to be legal included.
    pinned_messages: Vec<usize>,
    pinned_tokens: u64,
    replaced_messages: usize,
    /// Of the replaced ones, system messages that a newer one supersedes.
    superseded_messages: usize,
    summary_tokens: u64,
    summary_bytes: usize,
    sections: Vec<SectionReport>,
    dropped_characters: u64,
}

#[derive(Serialize)]
struct SectionReport {
    section: &'static str,
    items: usize,
    left_out: u64,
}

#[derive(Serialize)]
struct RefusalReport {
    reason: &'static str,
    detail: Option<&'static str>,
    message: String,
}

#[derive(Serialize)]
struct WrittenReport {
    /// `None` is standard output.
    file: Option<String>,
    format: &'static str,
    bytes: usize,
    left_out: Vec<String>,
}

/// Compacts one session.
pub(crate) fn run(args: &CompactArgs) -> Result<(), Failure> {
    let session_args =
        args.session.as_ref().filter(|session| session.file.is_some()).ok_or(Failure::NoFile)?;
    let file = for_compaction(args)?;
    let destination = match session_args.latest {
        Some(agent) => latest::destination(agent, session_args, args.out.as_deref(), args.to)?,
        None => Destination::of(session_args.file(), args.out.as_deref(), args.to)?,
    };
    let progress = Progress::new(args.quiet || args.json);
    let (source, original) = read_session(session_args, &progress)?;
    let target = Target::of(session_args, &original)?;
    let (session, repairs) = epitome_transcripts::repair(&original);
    let given = for_session(&file, &target)?;
    let policy = given.clone().validate(Some(target.quality())).map_err(Failure::Policy)?;
    // A policy that cannot work for this model is the same fault here as in `measure`; what the runtime refuses is
    // about the session.
    room(&file, &target)?;
    let unseen = Unseen::of(session_args, &session, &target)?;
    let earlier = earlier_of(&session);
    let pins = pins::resolve(&args.pin, &original, &session, earlier.as_ref()).map_err(Failure::Pin)?;
    let mut context = context_of(&source, &session, &target, args, unseen.tokens);
    context.earlier = earlier;
    context.pinned = pins::messages(&pins);
    let ports = Ports {
        counter: target.counter.clone(),
        estimator: target.counter.clone(),
        summarizer: Arc::new(Extractive::new()),
    };
    let journal = match args.journal.as_deref().filter(|_| !args.dry_run) {
        Some(path) => {
            let beginning =
                Beginning::of(session_args, source.clone().into(), &session, repairs.len(), &target, given)?;
            let journal = JournalFile::make(path)?;
            destination.is_apart_from(path)?;
            Some((journal, beginning))
        }
        None => None,
    };
    progress.stage("compacting");
    let outcome = run_to_end(compact_once(&context, &policy, &ports))?;
    // What was done is on record before anybody can see it.
    let recorded = match &journal {
        Some((journal, beginning)) => {
            let session =
                record_outcome(journal, beginning, &outcome, context.demand, policy.trigger(), |basis| {
                    fingerprint_of(&session, &target, basis).unwrap_or_default()
                })?;
            Some(RecordedReport {
                session: session.to_string(),
                journal: journal.path().display().to_string(),
            })
        }
        None => None,
    };
    progress.done();

    let mut report = Report {
        report: VERSION,
        session: latest::chosen(session_args),
        outcome: "left_alone",
        format: session.format().as_str(),
        provider: target.model.provider.as_str().to_owned(),
        model: target.model.model.as_str().to_owned(),
        messages: original.messages().len(),
        notes: original.notes().iter().map(ToString::to_string).collect(),
        repairs: Vec::new(),
        unseen: unseen.tokens,
        unseen_source: unseen.source,
        before: None,
        error_band: target.error_band().map(Into::into),
        level: None,
        demand: match context.demand {
            Demand::Threshold => "threshold",
            Demand::Manual => "asked",
        },
        compact_at_basis_points: match policy.trigger() {
            Trigger::Automatic { compact_at, .. } => Some(compact_at.get()),
            Trigger::Manual => None,
        },
        compaction: None,
        refusal: None,
        recorded,
        written: None,
    };
    let show = |report: &Report| match (&destination, args.quiet) {
        (_, true) => Ok(()),
        (Destination::Stdout, _) if !args.dry_run => show(&mut anstream::stderr().lock(), report, args.json),
        _ => show(&mut anstream::stdout().lock(), report, args.json),
    };
    match outcome {
        Outcome::LeftAlone { measurement, level } => {
            report.before = Some((&measurement).into());
            report.level = Some(level_name(level));
            // A filter passes on what needs no change; beside a file there is nothing to write.
            if !args.dry_run
                && (destination == Destination::Stdout || args.out.is_some() || args.to.is_some())
            {
                let whole: Vec<usize> = (0..original.messages().len()).collect();
                let unchanged = Replacement { summary: None, kept: &whole };
                report.written = Some(write(&original, &unchanged, args, &destination)?);
            }
            show(&report)
        }
        Outcome::Compacted(done) => {
            report.outcome = "compacted";
            report.before = Some((&done.before).into());
            report.repairs = repairs.iter().map(ToString::to_string).collect();
            let mut compaction = compaction_report(&done, session.leading_system());
            compaction.pinned_tokens = target.tokens_of(&session, &done.pinned)?;
            compaction.pins = pins;
            report.compaction = Some(compaction);
            if !args.dry_run {
                let compacted = Replacement { summary: Some(done.summary.raw()), kept: &done.kept };
                report.written = Some(write(&session, &compacted, args, &destination)?);
            }
            show(&report)
        }
        Outcome::Refused(refusal) => {
            let Refusal { before, reason } = *refusal;
            report.outcome = "refused";
            report.before = before.as_ref().map(Into::into);
            report.refusal = Some(RefusalReport {
                reason: reason.as_str(),
                detail: reason.detail(),
                message: reason.to_string(),
            });
            if args.json {
                show(&report)?;
            }
            Err(Failure::Refused { reason })
        }
    }
}

/// What an earlier compaction left at the head.
fn earlier_of(session: &Session) -> Option<EarlierSummary> {
    match session.derived_prefix() {
        0 => recognize_earlier_summary(session.messages()),
        messages => {
            // Marked as a summary by its format; ours is also read back, another tool's is folded in as text.
            let ours = recognize_earlier_summary(session.messages()).and_then(|earlier| earlier.sections);
            Some(EarlierSummary { messages, sections: ours.filter(|_| messages == 1) })
        }
    }
}

/// The session as the runtime sees it, nothing pinned.
fn context_of(
    source: &[u8],
    session: &Session,
    target: &Target,
    args: &CompactArgs,
    unseen: u64,
) -> SessionContext {
    let basis = basis_of(source);
    let instructions =
        args.instructions.as_deref().filter(|text| !text.trim().is_empty()).map(SharedText::from);
    SessionContext {
        model: target.model.clone(),
        limits: target.limits,
        tools: session.tools().clone(),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount(unseen),
        earlier: None,
        basis,
        // What cannot be identified stays without a fingerprint, and the runtime refuses to compact it.
        request_fingerprint: fingerprint_of(session, target, basis).unwrap_or_default(),
        demand: if args.force { Demand::Manual } else { Demand::Threshold },
        instructions,
        pinned: BTreeSet::new(),
    }
}

pub(crate) fn run_to_end<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    Ok(runtime.map_err(Failure::io("the async runtime"))?.block_on(future))
}

fn write(
    session: &Session,
    replacement: &Replacement<'_>,
    args: &CompactArgs,
    destination: &Destination,
) -> Result<WrittenReport, Failure> {
    let format = args.to.unwrap_or(session.format());
    let (bytes, report) = epitome_transcripts::write(session, replacement, format).map_err(Failure::Write)?;
    destination.write(&bytes)?;
    let file = match destination {
        Destination::Stdout => None,
        Destination::File { path, .. } => Some(path.display().to_string()),
    };
    let left_out = report.losses.iter().map(|loss| format!("{} {}", loss.count, loss.kind)).collect();
    Ok(WrittenReport { file, format: format.as_str(), bytes: bytes.len(), left_out })
}

fn compaction_report(done: &Compaction, lead: usize) -> CompactionReport {
    let items = done.summary.sections();
    let sections = Section::ALL.iter().zip(done.left_out).map(|(&section, left_out)| SectionReport {
        section: section.as_str(),
        items: items.items(section).len(),
        left_out,
    });
    let (cut, anchor, tail) = match done.cut {
        TailCut::BetweenSegments { head } => ("between_segments", None, head),
        TailCut::InsideSegment(inside) => {
            ("inside_segment", inside.anchor.map(|anchor| lead + anchor), inside.tail)
        }
    };
    CompactionReport {
        after: (&done.after).into(),
        landing: match done.landing {
            Landing::Low => "low",
            Landing::High => "high",
        },
        cut,
        system_messages: lead,
        kept_messages: done.kept.len(),
        kept_from: done.kept.contains(&(lead + tail)).then_some(lead + tail),
        kept_anchor: anchor,
        pins: Vec::new(),
        pinned_messages: done.pinned.clone(),
        pinned_tokens: 0,
        replaced_messages: done.replaced.len(),
        superseded_messages: done.superseded.len(),
        summary_tokens: done.summary_tokens.get(),
        summary_bytes: done.summary.raw().len(),
        sections: sections.collect(),
        dropped_characters: done.dropped_characters,
    }
}

fn show(out: &mut impl std::io::Write, report: &Report, json: bool) -> Result<(), Failure> {
    let shown = if json { write_json(out, report) } else { show_words(out, report) };
    shown.map_err(Failure::io("the report"))
}

fn show_words(out: &mut impl std::io::Write, report: &Report) -> std::io::Result<()> {
    let (format, model, provider) =
        (emphasis(report.format), printable(&report.model), printable(&report.provider));
    writeln!(out, "{format}, {} messages, for {model} ({provider})", report.messages)?;
    if let Some(session) = &report.session {
        writeln!(out, "session   {}", printable(session))?;
    }
    for note in listed(&report.notes) {
        writeln!(out, "note      {note}")?;
    }
    for repair in listed(&report.repairs) {
        writeln!(out, "repaired  {repair}")?;
    }
    if report.unseen_source == UnseenSource::Reported && report.unseen > 0 {
        let unseen = tokens(report.unseen);
        writeln!(out, "unseen    {unseen} tokens that the provider counted and this file does not hold")?;
    }
    if let Some(before) = &report.before {
        writeln!(out, "before    {before}")?;
    }
    if let Some(band) = &report.error_band {
        writeln!(out, "counts    estimates; the true counts are to be expected within {band}")?;
    }
    let level = report.compact_at_basis_points.map(|points| f64::from(points) / 100.0);
    match &report.compaction {
        Some(done) => {
            match report.demand {
                "asked" => writeln!(out, "why       you asked for it")?,
                _ => writeln!(out, "why       {}", why_due(report, level))?,
            }
            show_compaction(out, done)?;
        }
        None => match level {
            Some(level) => writeln!(
                out,
                "left alone: it is below {level} %, the level at which to compact; --force compacts anyway"
            )?,
            None => writeln!(out, "left alone: the policy compacts only when asked; --force does")?,
        },
    }
    if let Some(RecordedReport { session, journal }) = &report.recorded {
        writeln!(out, "recorded  {} in {}", emphasis(session), harmless(journal))?;
    }
    match &report.written {
        Some(WrittenReport { file, format, bytes, left_out }) => {
            let file = file.as_deref().map_or("standard output".to_owned(), harmless);
            writeln!(out, "wrote     {} ({format}, {} bytes)", emphasis(file), tokens(*bytes as u64))?;
            left_out.iter().try_for_each(|loss| writeln!(out, "left out  {loss}"))
        }
        None => writeln!(out, "wrote     nothing"),
    }
}

/// Occupancy is one reason; the size of the encoded request may be another.
fn why_due(report: &Report, level: Option<f64>) -> String {
    let occupied = report.before.as_ref().map_or(0, |before| before.occupancy_basis_points);
    match (report.compact_at_basis_points, level) {
        (Some(points), Some(level)) if occupied >= points => {
            format!("it is at or above {level} %, the level at which to compact")
        }
        _ => "its request is larger than the policy's max_request_bytes".to_owned(),
    }
}

/// How many of the pinned messages a person gets to see.
const MOST_PINS_SHOWN: usize = 12;

fn show_compaction(out: &mut impl std::io::Write, done: &CompactionReport) -> std::io::Result<()> {
    writeln!(out, "after     {}", done.after)?;
    let system = if done.system_messages > 0 { "the system messages, " } else { "" };
    let what = match (done.cut, done.kept_anchor, done.kept_from) {
        (_, Some(anchor), Some(from)) => format!(
            "{system}the user's message #{anchor}, and everything from #{from} on; the cut lies inside the newest \
             turn, between whole tool exchanges"
        ),
        (_, Some(anchor), None) => {
            format!("{system}the user's message #{anchor}; even the newest exchange was too large to keep")
        }
        ("inside_segment", None, Some(from)) => format!(
            "{system}everything from #{from} on; the cut lies inside the newest turn, between whole tool \
             exchanges, and the summary says what that turn is for"
        ),
        (_, None, Some(from)) => format!("{system}everything from the user's message #{from} on"),
        (_, None, None) => format!("{system}nothing else"),
    };
    writeln!(out, "kept      {} messages: {what}", done.kept_messages)?;
    if !done.pinned_messages.is_empty() {
        let mut numbers: Vec<String> =
            done.pinned_messages.iter().take(MOST_PINS_SHOWN).map(|at| format!("#{at}")).collect();
        numbers.extend((done.pinned_messages.len() > MOST_PINS_SHOWN).then(|| "...".to_owned()));
        writeln!(
            out,
            "pinned    {} messages of about {} tokens: {}",
            done.pinned_messages.len(),
            tokens(done.pinned_tokens),
            numbers.join(", ")
        )?;
    }
    writeln!(
        out,
        "replaced  {} messages by a summary of {} tokens",
        done.replaced_messages,
        tokens(done.summary_tokens)
    )?;
    if done.superseded_messages > 0 {
        writeln!(
            out,
            "dropped   {} system messages that say again, or differently, what another one says",
            done.superseded_messages
        )?;
    }
    for SectionReport { section, items, left_out } in &done.sections {
        let more = if *left_out > 0 { format!(", {left_out} more did not fit") } else { String::new() };
        writeln!(out, "            {section:<12} {items:>4}{more}")?;
    }
    if done.dropped_characters > 0 {
        writeln!(out, "dropped   {} characters that XML forbids", done.dropped_characters)?;
    }
    if done.landing == "high" {
        writeln!(
            out,
            "note      this is still above the level below which a further compaction makes sense; what is kept \
             takes that much"
        )?;
    }
    Ok(())
}
