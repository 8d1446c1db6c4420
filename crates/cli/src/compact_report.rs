//! What `epitome compact` says about a compaction.

use epitome_loop::Section;
use epitome_loopruntime::{Landing, TailCut};
use epitome_sessionruntime::Compaction;
use serde::Serialize;

use crate::failure::Failure;
use crate::pins::Pin;
use crate::report::{
    BandReport, MeasurementReport, emphasis, harmless, listed, printable, tokens, write_json,
};
use crate::summarizer::{SummarizerReport, UsageReport, carried_rules, show_answer};
use crate::unseen::UnseenSource;

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) report: u32,
    /// The file that `--latest` chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) format: &'static str,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) messages: usize,
    pub(crate) notes: Vec<String>,
    pub(crate) repairs: Vec<String>,
    /// Tokens that are sent but not in the file; they are part of every measurement here.
    pub(crate) unseen: u64,
    pub(crate) unseen_source: UnseenSource,
    pub(crate) before: Option<MeasurementReport>,
    /// How far off the counts may be; `None` when they are exact.
    pub(crate) error_band: Option<BandReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) level: Option<&'static str>,
    /// `threshold` or `asked`.
    pub(crate) demand: &'static str,
    /// `None`: the policy compacts only when asked.
    pub(crate) compact_at_basis_points: Option<u16>,
    /// Who was to write the summary, and how that went.
    pub(crate) summarizer: SummarizerReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compaction: Option<CompactionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<RefusalReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recorded: Option<RecordedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) written: Option<WrittenReport>,
}

/// Where a compaction was recorded.
#[derive(Serialize)]
pub(crate) struct RecordedReport {
    pub(crate) session: String,
    pub(crate) journal: String,
}

#[derive(Serialize)]
pub(crate) struct CompactionReport {
    pub(crate) after: MeasurementReport,
    pub(crate) landing: &'static str,
    pub(crate) cut: &'static str,
    pub(crate) system_messages: usize,
    pub(crate) kept_messages: usize,
    pub(crate) kept_from: Option<usize>,
    pub(crate) kept_anchor: Option<usize>,
    /// What each option `--pin` names.
    pub(crate) pins: Vec<Pin>,
    /// All messages that stay because of pins, what they need to be legal included.
    pub(crate) pinned_messages: Vec<usize>,
    pub(crate) pinned_tokens: u64,
    pub(crate) replaced_messages: usize,
    /// Of the replaced ones, system messages that a newer one supersedes.
    pub(crate) superseded_messages: usize,
    pub(crate) summary_tokens: u64,
    pub(crate) summary_bytes: usize,
    pub(crate) sections: Vec<SectionReport>,
    pub(crate) dropped_characters: u64,
    /// Why the fallback wrote the summary; `None`: the first choice did.
    pub(crate) degraded: Option<String>,
    /// What was repaired in a model's answer, by name.
    pub(crate) answer_repairs: Vec<String>,
    /// The user's rules that the model's summary lacked, as they were put into it; without
    /// the secrets in them, which are no business of a report.
    pub(crate) carried_constraints: Vec<String>,
    /// What a provider reported for the summary.
    pub(crate) usage: Option<UsageReport>,
}

#[derive(Serialize)]
pub(crate) struct SectionReport {
    pub(crate) section: &'static str,
    pub(crate) items: usize,
    pub(crate) left_out: u64,
}

#[derive(Serialize)]
pub(crate) struct RefusalReport {
    pub(crate) reason: &'static str,
    pub(crate) detail: Option<&'static str>,
    pub(crate) message: String,
}

#[derive(Serialize)]
pub(crate) struct WrittenReport {
    /// `None` is standard output.
    pub(crate) file: Option<String>,
    pub(crate) format: &'static str,
    pub(crate) bytes: usize,
    pub(crate) left_out: Vec<String>,
}

pub(crate) fn compaction_report(done: &Compaction, lead: usize) -> CompactionReport {
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
        degraded: done.degraded.as_ref().map(ToString::to_string),
        answer_repairs: done.repairs.iter().map(ToString::to_string).collect(),
        carried_constraints: carried_rules(&done.carried),
        usage: done.usage.as_ref().map(Into::into),
    }
}

pub(crate) fn show(out: &mut impl std::io::Write, report: &Report, json: bool) -> Result<(), Failure> {
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
            report.summarizer.show(out, done.degraded.as_deref())?;
            show_answer(out, &done.answer_repairs, &done.carried_constraints)?;
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
