//! `epitome policy`: the built-in policy as a file, and what is to be said about others.

use std::io::Write as _;

use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextLimits, CountQuality, FixedPart, Floor, KeepRecent, ModelKey,
    ResolvedLimits, TokenCount, Trigger, ValidPolicy, check_floor, resolve_context_limits,
};
use epitome_rig::PolicyFile;
use serde::Serialize;

use crate::args::PolicyCheckArgs;
use crate::failure::Failure;
use crate::output::Destination;
use crate::profile::{self, BUILT_IN, built_in, resolved};
use crate::report::{FaultReport, VERSION, emphasis, print_json, printable, tokens};
use crate::summarizer::SummarizerKind;
use crate::target::{limits_of, named_model};

/// Prints the built-in policy.
pub(crate) fn show(json: bool) -> Result<(), Failure> {
    let text = if json { built_in()?.to_json() } else { BUILT_IN.to_owned() };
    Destination::Stdout.write(text.as_bytes())
}

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `valid`, `invalid` or `refused`: no compaction could do its work.
    outcome: &'static str,
    automatic: bool,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelReport>,
    /// What the policy comes to, for a counter that counts exactly and for one that estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CounterReport>,
}

#[derive(Serialize)]
struct ModelReport {
    provider: String,
    /// `None`: only a window was given.
    model: Option<String>,
    window: u64,
    max_input: u64,
    max_output: u64,
}

#[derive(Serialize)]
struct CounterReport {
    quality: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    numbers: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Whether the policy admits such a counter.
    admitted: bool,
}

/// All in tokens unless they say otherwise.
#[derive(Serialize)]
struct Numbers {
    reserved_output: u64,
    safety_margin: u64,
    input_limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_at: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rearm_below: Option<Level>,
    max_summary_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_segments: Option<u64>,
    kept_tokens: u64,
    floor: Level,
}

#[derive(Clone, Copy, Serialize)]
struct Level {
    basis_points: u16,
    tokens: u64,
}

/// Judges a policy file.
pub(crate) fn check(args: &PolicyCheckArgs) -> Result<(), Failure> {
    let policy = match profile::read(&args.file, args.json) {
        Ok(policy) => policy,
        Err(failure) => {
            if let (true, Failure::PolicyFile { fault, .. }) = (args.json, &failure) {
                print_json(&FaultReport::from(fault))?;
            }
            return Err(failure);
        }
    };
    let mut report = Report {
        report: VERSION,
        outcome: "valid",
        automatic: policy.automatic,
        notes: notes(&policy),
        model: None,
        counters: Vec::new(),
    };
    if args.model.is_some() || args.window.is_some() {
        let info = named_model(args.model.as_deref(), args.window)?;
        let limits = limits_of(info.as_ref(), args.window)?;
        let key = info.map_or_else(
            || ModelKey::new("unknown", args.model.as_deref().unwrap_or("unknown")),
            |info| info.key,
        );
        let fixed = FixedPart { system: TokenCount(args.system_tokens), tools: TokenCount(args.tool_tokens) };
        for quality in [CountQuality::ExactLocal, CountQuality::HeuristicEstimate] {
            report.counters.push(for_counter(&policy, &key, &limits, fixed, quality)?);
        }
        report.model = Some(ModelReport {
            provider: key.provider.as_str().to_owned(),
            model: args.model.is_some().then(|| key.model.as_str().to_owned()),
            window: limits.window.get(),
            max_input: limits.max_input.get(),
            max_output: limits.max_output.get(),
        });
    }
    let refused = report.counters.iter().find_map(|counter| counter.refused.clone());
    if refused.is_some() {
        report.outcome = "refused";
    }
    if args.json {
        print_json(&report)?
    } else {
        show_words(&report)?
    }
    match refused {
        Some(reason) => Err(Failure::PolicyRefused(reason)),
        None => Ok(()),
    }
}

/// What is worth knowing and no fault.
fn notes(policy: &PolicyFile) -> Vec<String> {
    let mut notes = Vec::new();
    let asked = std::iter::once(&policy.hustle).chain(&policy.fallback);
    let kinds: Vec<Option<SummarizerKind>> = asked.map(|name| SummarizerKind::named(name)).collect();
    if kinds.contains(&None) {
        let known = SummarizerKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ");
        notes.push(format!(
            "a hustle is another than {known}, those of this command: `epitome compact` will refuse the policy"
        ));
    }
    if kinds.contains(&Some(SummarizerKind::Model)) {
        notes.push("a model is asked for summaries: give --model-endpoint and --summarizer-model to `epitome compact`".to_owned());
    }
    if kinds.contains(&Some(SummarizerKind::Command)) {
        notes.push("a program is asked for summaries: give --command to `epitome compact`".to_owned());
    }
    if policy.keep_recent.is_none() {
        notes.push(
            "without keep_recent the summary replaces everything but calls that wait for their results"
                .to_owned(),
        );
    }
    notes
}

/// What the policy comes to with a counter of this quality.
fn for_counter(
    policy: &PolicyFile,
    key: &ModelKey,
    limits: &ContextLimits,
    fixed: FixedPart,
    quality: CountQuality,
) -> Result<CounterReport, Failure> {
    let mut report = CounterReport {
        quality: quality.as_str(),
        numbers: None,
        warning: None,
        refused: None,
        admitted: true,
    };
    let resolved: CompactionPolicy = resolved(policy, limits, quality)?;
    let valid = match resolved.validate(Some(quality)) {
        Ok(valid) => valid,
        Err(error) => {
            report.admitted = false;
            report.warning = Some(format!("with such a counter it is refused: {error}"));
            return Ok(report);
        }
    };
    match resolve_context_limits(key, limits, valid.reserved_output(), valid.safety_margin()) {
        Ok(room) => {
            report.numbers = Some(Numbers::of(&valid, &room, fixed));
            match check_floor(&valid, &room, fixed) {
                Ok(warning) => report.warning = warning.map(|warning| warning.to_string()),
                Err(refused) => report.refused = Some(refused.to_string()),
            }
        }
        Err(no_room) => report.refused = Some(no_room.to_string()),
    }
    Ok(report)
}

impl Numbers {
    fn of(policy: &ValidPolicy, room: &ResolvedLimits, fixed: FixedPart) -> Self {
        let limit = room.input_limit.get();
        // The least number of tokens that reaches the level.
        let level = |points: BasisPoints| Level {
            basis_points: points.get(),
            tokens: u64::try_from((u128::from(limit) * u128::from(points.get())).div_ceil(10_000))
                .unwrap_or(u64::MAX),
        };
        let (compact_at, rearm_below) = match policy.trigger() {
            Trigger::Automatic { compact_at, rearm_below } => {
                (Some(level(compact_at)), Some(level(rearm_below)))
            }
            Trigger::Manual => (None, None),
        };
        let floor = Floor::of(policy, room, fixed);
        let keep = policy.keep_recent();
        Self {
            reserved_output: room.reserved_output.get(),
            safety_margin: policy.safety_margin().get(),
            input_limit: limit,
            compact_at,
            rearm_below,
            max_summary_tokens: policy.max_summary_tokens().get(),
            kept_segments: keep.map(|keep| keep.segments).filter(|segments| *segments != u64::MAX),
            kept_tokens: keep.map_or(0, |KeepRecent { tokens, .. }| tokens.get()),
            floor: Level { basis_points: floor.occupancy().get(), tokens: floor.total().get() },
        }
    }
}

impl std::fmt::Display for ModelReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { provider, model, window, max_input, max_output: _ } = self;
        if let Some(model) = model {
            write!(f, "for {} ({}), ", emphasis(printable(model)), printable(provider))?;
        }
        match (window, max_input) {
            (0, input) => write!(f, "an input limit of {} tokens", tokens(*input)),
            (window, _) => write!(f, "a window of {} tokens", tokens(*window)),
        }
    }
}

fn show_words(report: &Report) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let mut write = || {
        let verdict =
            if report.outcome == "valid" { "valid policy" } else { "a policy that cannot work here" };
        let when = if report.automatic { "compacts on its own" } else { "compacts only when asked" };
        writeln!(out, "{}: {when}", emphasis(verdict))?;
        if let Some(named) = &report.model {
            writeln!(out, "{named}")?;
        }
        for counter in &report.counters {
            show_counter(&mut out, counter)?;
        }
        for note in &report.notes {
            writeln!(out, "note: {note}")?;
        }
        std::io::Result::Ok(())
    };
    write().map_err(Failure::io("standard output"))
}

fn show_counter(out: &mut impl std::io::Write, counter: &CounterReport) -> std::io::Result<()> {
    let CounterReport { quality, numbers, warning, refused, admitted: _ } = counter;
    let exact = *quality == CountQuality::ExactLocal.as_str();
    writeln!(out, "\n{}", emphasis(if exact { "with exact counts" } else { "with estimates" }))?;
    if let Some(numbers) = numbers {
        let mut row = |name: &str, count: u64, share: Option<u16>| {
            // Basis points end at the whole room.
            let over = if count > numbers.input_limit { "over " } else { "" };
            let share = share.map_or(String::new(), |points| format!("  {over}{}", BasisPoints(points)));
            writeln!(out, "  {name:<26} {:>12}{share}", tokens(count))
        };
        row("room for the answer", numbers.reserved_output, None)?;
        row("margin for the count", numbers.safety_margin, None)?;
        row("room for input", numbers.input_limit, None)?;
        for (name, level) in [
            ("compacts at", numbers.compact_at),
            ("may compact again below", numbers.rearm_below),
            ("lands at best at", Some(numbers.floor)),
        ] {
            if let Some(Level { basis_points, tokens }) = level {
                row(name, tokens, Some(basis_points))?;
            }
        }
        row("summary, at most", numbers.max_summary_tokens, None)?;
        row("kept word for word", numbers.kept_tokens, None)?;
    }
    for (name, text) in [("warning", warning), ("refused", refused)] {
        if let Some(text) = text {
            writeln!(out, "  {name}: {text}")?;
        }
    }
    Ok(())
}
