//! `epitome check rig`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use epitome_loop::{
    BasisPoints, HustleDefinition, HustleLimits, ModelSource, Participation, SharedText, Trigger,
};
use epitome_rig::{BoundLoop, MAX_FILE_BYTES, Rig, read_rig_file_with};
use serde::Serialize;

use crate::failure::Failure;
use crate::input::{is_stdio, read_definition};
use crate::report::{FaultReport, VERSION, emphasis, print_json, printable, tokens};

#[derive(Serialize)]
struct Report {
    report: u32,
    outcome: &'static str,
    loops: Vec<LoopReport>,
    hustles: Vec<HustleReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<LaneReport>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct LoopReport {
    name: String,
    provider: String,
    model: String,
    /// `compacted`, `observed` or `left_alone`.
    context: &'static str,
    /// Where it compacts on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    compact_at_basis_points: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hustle: Option<String>,
    policy_revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Serialize)]
struct HustleReport {
    name: String,
    participation: &'static str,
    /// `current_loop`, `named` or `embedded`.
    source: &'static str,
    timeout_ms: u128,
    input_bytes: u64,
    output_bytes: u64,
    retry: &'static str,
    identity: &'static str,
    policy_revision: String,
    /// How many loops ask for it.
    loops: usize,
}

#[derive(Serialize)]
struct LaneReport {
    lane: &'static str,
    concurrent: u64,
    queued: u64,
}

/// Judges a rig file.
pub(crate) fn run(file: &Path, json: bool) -> Result<(), Failure> {
    let rig = read_rig(file, json)?;
    let report = Report::of(&rig);
    if json { print_json(&report) } else { report.show().map_err(Failure::io("standard output")) }
}

/// Reads a rig file, with its prompts. `reports` says whether a fault gets a report of its own.
pub(crate) fn read_rig(file: &Path, reports: bool) -> Result<Rig, Failure> {
    let bytes = read_definition(file).map_err(Failure::io(file))?;
    let mut unread = None;
    let prompt_file = |name: &str| match read_prompt(file, name) {
        Ok(text) => Some(text),
        Err(fault) => {
            unread = Some(fault);
            None
        }
    };
    read_rig_file_with(&bytes, prompt_file).map_err(|fault| {
        if reports {
            // The failure says it as well.
            let _ = print_json(&FaultReport::from(&fault));
        }
        Failure::RigFile { path: file.to_owned(), fault: Box::new(fault), prompt: unread, reported: reports }
    })
}

/// The text of a prompt's file beside the rig file, or in the current folder for a rig on standard input.
fn read_prompt(rig: &Path, name: &str) -> Result<SharedText, (PathBuf, io::Error)> {
    let folder = if is_stdio(rig) { None } else { rig.parent() };
    let path = folder.unwrap_or(Path::new("")).join(name);
    let text = read_definition(&path).and_then(|bytes| match String::from_utf8(bytes) {
        _ if is_stdio(&path) => Err(io::Error::other("a prompt cannot come from standard input")),
        Ok(text) if text.len() > MAX_FILE_BYTES => Err(io::Error::from(io::ErrorKind::FileTooLarge)),
        Ok(text) => Ok(SharedText::from(text)),
        Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "not UTF-8")),
    });
    text.map_err(|kind| (path, kind))
}

impl Report {
    fn of(rig: &Rig) -> Self {
        let loops: Vec<LoopReport> = rig.loops().iter().map(LoopReport::of).collect();
        let hustles: Vec<HustleReport> =
            rig.hustles().iter().map(|hustle| HustleReport::of(hustle, &loops)).collect();
        let unused = hustles.iter().filter(|hustle| hustle.loops == 0);
        let notes = unused.map(|hustle| format!("no loop asks for the hustle {}", hustle.name)).collect();
        Self {
            report: VERSION,
            outcome: "valid",
            loops,
            hustles,
            lanes: rig.hustle_limits().map(lanes).unwrap_or_default(),
            notes,
        }
    }

    fn show(&self) -> io::Result<()> {
        let Self { report: _, outcome: _, loops, hustles, lanes, notes } = self;
        let mut out = anstream::stdout().lock();
        writeln!(
            out,
            "{}: {} and {}",
            emphasis("valid rig"),
            counted(loops.len(), "loop"),
            counted(hustles.len(), "hustle")
        )?;
        for found in loops {
            let LoopReport { name, provider, model, hustle, warning, .. } = found;
            let what = match (hustle, found.compact_at_basis_points) {
                (Some(hustle), Some(points)) => {
                    let share = BasisPoints(points);
                    format!("compacts at {share} by {}", printable(hustle))
                }
                (Some(hustle), None) => format!("compacts when asked by {}", printable(hustle)),
                (None, _) if found.context == "observed" => "is only watched".to_owned(),
                (None, _) => "is left alone".to_owned(),
            };
            let model = format!("{} ({})", printable(model), printable(provider));
            writeln!(out, "  loop {}, {model}: {what}", emphasis(printable(name)))?;
            if let Some(warning) = warning {
                writeln!(out, "    warning: {warning}")?;
            }
        }
        for found in hustles {
            let HustleReport { name, participation, source, input_bytes, output_bytes, retry, .. } = found;
            let (input, output) = (tokens(*input_bytes), tokens(*output_bytes));
            writeln!(
                out,
                "  hustle {}: {participation}, {}, at most {input} bytes in and {output} out, retry {}",
                emphasis(printable(name)),
                source.replace('_', " "),
                retry.replace('_', " ")
            )?;
        }
        for LaneReport { lane, concurrent, queued } in lanes {
            writeln!(out, "  {lane} lane: {} at once, {} waiting", tokens(*concurrent), tokens(*queued))?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "note: {}", printable(note)))
    }
}

impl LoopReport {
    fn of(bound: &BoundLoop) -> Self {
        let definition = bound.definition();
        let compaction = bound.compaction();
        let model = definition.model();
        Self {
            name: bound.name().as_str().to_owned(),
            provider: model.provider.as_str().to_owned(),
            model: model.name.as_str().to_owned(),
            context: match (compaction, definition.context()) {
                (Some(_), _) => "compacted",
                (None, Some(_)) => "observed",
                (None, None) => "left_alone",
            },
            compact_at_basis_points: match compaction.map(|compaction| compaction.policy.trigger()) {
                Some(Trigger::Automatic { compact_at, .. }) => Some(compact_at.get()),
                _ => None,
            },
            hustle: compaction.map(|compaction| compaction.hustle.name().as_str().to_owned()),
            policy_revision: definition.policy_revision().as_str().to_owned(),
            warning: definition.floor_warning().map(ToString::to_string),
        }
    }
}

impl HustleReport {
    fn of(hustle: &HustleDefinition, loops: &[LoopReport]) -> Self {
        let name = hustle.name().as_str();
        Self {
            name: name.to_owned(),
            participation: hustle.participation().as_str(),
            source: match hustle.model() {
                ModelSource::CurrentLoop { .. } => "current_loop",
                ModelSource::Named { .. } => "named",
                ModelSource::Embedded => "embedded",
            },
            timeout_ms: hustle.timeout().as_millis(),
            input_bytes: hustle.limits().input,
            output_bytes: hustle.limits().output,
            retry: hustle.retry().as_str(),
            identity: hustle.identity().as_str(),
            policy_revision: hustle.policy_revision().to_string(),
            loops: loops.iter().filter(|found| found.hustle.as_deref() == Some(name)).count(),
        }
    }
}

fn lanes(limits: &HustleLimits) -> Vec<LaneReport> {
    let lane = |participation: Participation| {
        let held = limits.lane(participation);
        LaneReport { lane: participation.as_str(), concurrent: held.concurrent, queued: held.queued }
    };
    vec![lane(Participation::Blocking), lane(Participation::Background)]
}

fn counted(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
