//! How far the next count is off, by our count alone and by what the provider reported before.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use epitome_counters::{LocalCounter, model_info};
use epitome_loop::{Message, ModelKey, Request, TokenCount, Usage, core_json_len};
use epitome_sessionruntime::{Calibration, CountedReport};
use epitome_transcripts::Session;

use super::counting::{WRITE, quantile, request_figures, request_of, states, unknown_counter, write_tables};
use super::transcripts::transcripts;
use super::{EvidenceError, Places, Verdict};

/// The mark of the table in the documentation.
const MARK: &str = "calibration";

/// Fewer figures than this show nothing.
const FEWEST: usize = 20;

/// Where what is off by less is off by nothing that matters, in percent.
const NEGLIGIBLE: f64 = 0.2;

/// Which request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// One of a session, of which its log leaves out the system prompt and the tools.
    Step,
    /// The first one behind a compaction of the program that wrote the log.
    BehindCompaction,
    /// One that is there whole.
    Whole,
}

impl Place {
    fn as_str(self) -> &'static str {
        match self {
            Self::Step => "a request of a session without its system prompt and tools",
            Self::BehindCompaction => "the first of these behind a compaction",
            Self::Whole => "a whole request of a log",
        }
    }
}

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// The counter for the model, in estimates.
    Model,
    /// A quarter of the bytes.
    Bytes,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::Model => "the model's counter",
            Self::Bytes => "a quarter of the bytes",
        }
    }
}

/// How far counts of one kind are off, in percent of the provider's figure: without reports and with them.
#[derive(Debug, Default)]
struct Errors {
    without: Vec<f64>,
    with: Vec<f64>,
}

type Found = BTreeMap<(Place, By), Errors>;

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = places.shared.join("transcripts");
    let mut files = transcripts(&folder)?;
    // Subfolders hold shapes of formats, written by hand; their figures are invented.
    files.retain(|file| file.parent() == Some(&folder));
    let mut found = Found::new();
    for by in [By::Model, By::Bytes] {
        for file in &files {
            follow_sessions(&states(&fs::read(file)?), by, &mut found);
        }
    }
    follow_requests(&files, &mut found)?;
    found.values_mut().for_each(|errors| {
        errors.without.sort_by(f64::total_cmp);
        errors.with.sort_by(f64::total_cmp);
    });

    let table = table(&found);
    out.write_all(table.as_bytes())?;
    if env::var_os(WRITE).is_some() {
        write_tables(&places.workspace, MARK, &table)?;
        writeln!(out, "written")?;
    }
    let faults: Vec<String> = found.iter().filter_map(|(kind, errors)| fault(*kind, errors)).collect();
    for fault in &faults {
        writeln!(out, "FAULT: {fault}")?;
    }
    let judged = found.values().filter(|errors| errors.with.len() >= FEWEST);
    let figures: usize = judged.clone().map(|errors| errors.with.len()).sum();
    let line = format!(
        "{figures} next counts in {} kinds: with reports the median error is at most half, and nine in ten are no \
         further off; {} kinds outside of that",
        judged.count(),
        faults.len(),
    );
    Ok(Verdict { holds: faults.is_empty() && figures > 0, line })
}

/// Why reports did not make the counts of a kind better, if they did not.
fn fault((place, by): (Place, By), errors: &Errors) -> Option<String> {
    let Errors { without, with } = errors;
    let [before, now] = [without, with].map(|errors| (quantile(errors, 50), quantile(errors, 90)));
    let is_halved = now.0 <= before.0 / 2.0 || now.0 <= NEGLIGIBLE;
    let is_no_worse = now.1 <= before.1 || now.1 <= NEGLIGIBLE;
    (with.len() >= FEWEST && !(is_halved && is_no_worse))
        .then(|| format!("{}, by {}: {:.2} and {:.2} %", place.as_str(), by.as_str(), now.0, now.1))
}

fn table(found: &Found) -> String {
    let mut out = String::from(
        "| the next count of | by | counts | off without reports: median, nine in ten | with reports: median, nine in \
         ten |\n|---|---|--:|--:|--:|\n",
    );
    for ((place, by), Errors { without, with }) in found {
        let both = |errors: &[f64]| format!("{:.2} %, {:.2} %", quantile(errors, 50), quantile(errors, 90));
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            place.as_str(),
            by.as_str(),
            with.len(),
            both(without),
            both(with)
        ));
    }
    out
}

/// One conversation as it goes on: what was learned so far.
#[derive(Default)]
struct Line {
    calibration: Calibration,
    reports: usize,
}

impl Line {
    /// A request was counted, and then its provider reported.
    fn judge(&mut self, kind: (Place, By), counted: u64, reported: u64, found: &mut Found) {
        let Some(scale) = self.calibration.scale() else { return };
        let off = |ours: u64| 100.0 * ours.abs_diff(reported) as f64 / (reported.max(1) as f64);
        let errors = found.entry(kind).or_default();
        errors.without.push(off(counted));
        errors.with.push(off(scale.apply(TokenCount(counted), TokenCount::ZERO).get()));
    }

    fn learn(&mut self, counted: u64, reported: u64) {
        let (counted, reported) = (TokenCount(counted), TokenCount(reported));
        self.calibration.take(CountedReport { counted, unseen: TokenCount::ZERO, reported }, None);
        self.reports += 1;
    }
}

/// Follows a session through its states, each as a compaction left it.
fn follow_sessions(states: &[Session], by: By, found: &mut Found) {
    let mut line = Line::default();
    for session in states {
        let Some(named) = session.model() else { continue };
        let info = model_info(&named.model);
        let counter = info.as_ref().and_then(|info| LocalCounter::new(info, true).ok());
        let counter = counter.unwrap_or_else(|| unknown_counter(session));
        let count = |messages| counted(session, named, &counter, by, messages);
        let mut place = if line.reports > 0 { Place::BehindCompaction } else { Place::Step };
        line.calibration.context_changed();
        for (at, message) in session.messages().iter().enumerate() {
            let Some((input, output)) = figures_of(message) else { continue };
            let (Some(request), Some(answered)) = (count(at), count(at + 1)) else { continue };
            line.judge((place, by), request, input, found);
            line.learn(answered, input.saturating_add(output));
            place = Place::Step;
        }
    }
}

/// What the first messages of a session take.
fn counted(
    session: &Session,
    model: &ModelKey,
    counter: &LocalCounter,
    by: By,
    messages: usize,
) -> Option<u64> {
    let request = request_of(session, model, messages);
    match by {
        By::Model => Some(counter.range(&request).ok()?.tokens.get()),
        By::Bytes => Some(quarter(&request)),
    }
}

fn quarter(request: &Request) -> u64 {
    let tools = request.tools.iter().map(|tool| tool.as_str().len() as u64);
    tools.chain(request.messages.iter().map(core_json_len)).sum::<u64>() / 4
}

/// What an answer says that its request took, and itself.
fn figures_of(message: &Message) -> Option<(u64, u64)> {
    let Message::Assistant { usage: Some(usage), .. } = message else { return None };
    let Usage { output, .. } = usage;
    let input = usage.context_tokens().ok()?.get();
    (input > 0).then_some((input, output.get()))
}

/// Follows the requests of each log, each of which is there whole, with its tools.
fn follow_requests(files: &[PathBuf], found: &mut Found) -> Result<(), EvidenceError> {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for figure in request_figures(files)? {
        let line = lines.entry(figure.file).or_default();
        line.judge((Place::Whole, By::Model), figure.ours, figure.theirs, found);
        line.learn(figure.ours, figure.theirs);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(without: [f64; 2], with: [f64; 2], count: usize) -> Errors {
        let spread = |[most, last]: [f64; 2]| {
            let mut errors = vec![most; count];
            errors.splice(count - count / 8.., vec![last; count / 8]);
            errors
        };
        Errors { without: spread(without), with: spread(with) }
    }

    #[test]
    fn reports_must_halve_the_median_and_must_not_make_the_worst_worse() {
        let kind = (Place::Step, By::Model);
        assert_eq!(fault(kind, &errors([4.0, 9.0], [2.0, 9.0], 40)), None);
        assert!(fault(kind, &errors([4.0, 9.0], [2.1, 9.0], 40)).is_some());
        assert!(fault(kind, &errors([4.0, 9.0], [2.0, 9.1], 40)).is_some());
        assert_eq!(fault(kind, &errors([0.1, 0.1], [0.2, 0.2], 40)), None);
        assert_eq!(fault(kind, &errors([4.0, 9.0], [8.0, 9.1], 8)), None);
    }

    #[test]
    fn a_count_is_judged_before_its_report_is_learned() {
        let (mut line, mut found) = (Line::default(), Found::new());
        let kind = (Place::Whole, By::Bytes);
        for (counted, reported) in [(1_000, 6_000), (2_000, 7_000), (3_000, 8_080)] {
            line.judge(kind, counted, reported, &mut found);
            line.learn(counted, reported);
        }
        let Errors { without, with } = &found[&kind];
        assert_eq!(with.len(), 2);
        assert!(with[0] == 0.0 && (with[1] - 100.0 * 80.0 / 8_080.0).abs() < 1e-9, "{with:?}");
        assert!((without[0] - 100.0 * 5.0 / 7.0).abs() < 1e-9);
    }

    /// The page names the command, and holds a table of the shape that is written.
    #[test]
    fn the_page_holds_the_table() {
        let page = include_str!("../../../docs/counting.md");
        assert!(page.contains("cargo xtask evidence calibration"));
        let head = table(&Found::new());
        let begin = format!("<!-- {MARK}: begin -->\n{head}");
        let (_, rest) = page.split_once(&begin).unwrap();
        let (rows, _) = rest.split_once("<!-- calibration: end -->").unwrap();
        assert!(rows.lines().count() >= 3);
    }
}
