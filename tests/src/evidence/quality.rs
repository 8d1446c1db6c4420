//! The offline yardsticks: how much survives, compared with a prototype and with the goals.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

use super::program::{cargo, must_run};
use super::{EvidenceError, Places, Verdict};

/// Rows of the prototype; `tests/quality/README.md` says how they were made.
const PROTOTYPE: &str = include_str!("../../quality/prototype.jsonl");

/// What is compared: benchmark, metric, and the goal (more is better).
const SCORED: &[(&str, &str, f64)] = &[
    ("cck budget 10%", "survival", 0.55),
    ("cck budget 10%", "semantic_resolved", 0.65),
    ("cck budget 20%", "survival", 0.97),
    ("cck budget 20%", "semantic_resolved", 1.0),
    ("cck budget 30%", "survival", 1.0),
    ("cck budget 30%", "semantic_resolved", 1.0),
    ("cck generated 30% r5", "survival", 1.0),
    ("cck generated 30% r5", "updates_resolved", 0.81),
    ("cck generated 15% r5", "survival", 0.70),
    ("cck generated 15% r5", "updates_resolved", 0.65),
    ("conpact tau 16k->1k direct", "retention_words", 1.0),
    ("conpact tau 16k->1k bare", "retention_words", 1.0),
    ("conpact swe 16k->1k direct", "retention_words", 1.0),
    ("conpact swe 16k->1k bare", "retention_words", 1.0),
    ("conpact tau 64k->1k direct", "retention_words", 1.0),
    ("conpact tau 64k->1k bare", "retention_words", 1.0),
    ("tracegc 50%", "strict", 0.75),
    ("tracegc 25%", "strict", 0.65),
    ("jev custom 512tok", "codeword_r5", 1.0),
    ("jev custom 512tok", "rule_r5", 1.0),
    ("tau-args 25%", "arg_recall", 0.95),
    ("tau-args 10%", "arg_recall", 0.70),
    ("tau-args 512tok", "arg_recall", 0.97),
];

/// Benchmarks in which outdated facts are counted, as `found/planted`; none may be left.
const NO_STALE: &[&str] = &["cck budget 20%", "cck budget 30%"];

type Rows = BTreeMap<String, Value>;

#[derive(Deserialize)]
struct Row {
    bench: String,
    metrics: Value,
}

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let ours = score(places)?;
    let prototype = rows(PROTOTYPE)?;
    let (mut below, mut missed) = (0, 0);
    writeln!(out, "{:28} {:18} {:>6} {:>9} {:>6}", "benchmark", "metric", "ours", "prototype", "goal")?;
    for &(bench, metric, goal) in SCORED {
        let (value, rival) = (figure(&ours, bench, metric), figure(&prototype, bench, metric));
        let behind = value < rival;
        // Goals are stated to two places.
        let short = (value * 100.0).round() < (goal * 100.0).round();
        below += usize::from(behind);
        missed += usize::from(short);
        let mark = if behind { " below the prototype" } else { "" };
        let mark = if short { format!("{mark} short of the goal") } else { mark.to_owned() };
        writeln!(out, "{bench:28} {metric:18} {value:>6.3} {rival:>9.3} {goal:>6.2}{mark}")?;
    }
    let stale = NO_STALE.iter().filter(|bench| !text(&ours, bench, "stale").starts_with("0/")).count();
    let costs = ours.keys().filter(|bench| bench.ends_with(":cost"));
    let over: f64 = costs.map(|bench| figure(&ours, bench, "over_budget_calls")).sum();
    for (bench, metrics) in ours.iter().filter(|(_, metrics)| !metrics["ERROR"].is_null()) {
        writeln!(out, "{bench}: did not finish: {}", metrics["ERROR"])?;
    }
    let line = format!(
        "{} figures: {below} below the prototype, {missed} short of their goal; {stale} rows with outdated facts; \
         {over} outputs over budget",
        SCORED.len(),
    );
    Ok(Verdict { holds: below == 0 && stale == 0 && over == 0.0, line })
}

/// Builds the command, installs the yardsticks once, and runs them on it.
fn score(places: &Places) -> Result<Rows, EvidenceError> {
    must_run(&mut cargo(places, &["build", "--quiet", "--release", "-p", "epitome"]))?;
    let scripts = places.shared.join("quality");
    let venv =
        env::var_os("QUALITY_VENV").map_or_else(|| places.target().join("quality-venv"), PathBuf::from);
    if !venv.join("bin/python").exists() {
        must_run(Command::new(scripts.join("setup.sh")).arg(&venv))?;
    }
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("rows.jsonl");
    let command = format!("'{}' compact --stdio-chat", places.binary("epitome").display());
    let mut run = Command::new(scripts.join("run.sh"));
    run.arg(command).arg(&report).env("QUALITY_VENV", &venv);
    match must_run(&mut run) {
        // The rows say which benchmark did not finish.
        Ok(_) | Err(EvidenceError::Failed { .. }) => {}
        Err(other) => return Err(other),
    }
    let text = fs::read_to_string(&report)
        .map_err(|source| EvidenceError::Data { what: format!("the yardsticks' rows: {source}") })?;
    rows(&text)
}

fn rows(text: &str) -> Result<Rows, EvidenceError> {
    text.lines()
        .map(|line| match serde_json::from_str(line) {
            Ok(Row { bench, metrics }) => Ok((bench, metrics)),
            Err(_) => Err(EvidenceError::Data { what: "a row of the yardsticks cannot be read".to_owned() }),
        })
        .collect()
}

/// A figure; zero, the worst there is, when a benchmark did not finish.
fn figure(rows: &Rows, bench: &str, metric: &str) -> f64 {
    rows.get(bench).and_then(|metrics| metrics[metric].as_f64()).unwrap_or(0.0)
}

fn text<'a>(rows: &'a Rows, bench: &str, metric: &str) -> &'a str {
    rows.get(bench).and_then(|metrics| metrics[metric].as_str()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scored_figure_has_a_rival() {
        let prototype = rows(PROTOTYPE).unwrap();
        for &(bench, metric, goal) in SCORED {
            let figure = figure(&prototype, bench, metric);
            assert!((0.1..=1.0).contains(&figure), "{bench} {metric}: {figure}");
            assert!(goal + 0.005 >= figure, "{bench} {metric}: the goal is below the prototype");
        }
        for bench in NO_STALE {
            assert!(text(&prototype, bench, "stale").starts_with("0/"), "{bench}");
        }
    }
}
