//! `speed [NAME...] [--check] [--reasons]`: measures the hot paths in turns with their rivals and prints what was
//! reached.

#![allow(clippy::print_stdout, reason = "the table is the program's output")]

use std::process::ExitCode;

use clap::Parser;
use epitome_benches::{GROUPS, HotPath, Verdict, heading, row};

/// Measures the hot paths in turns with their rivals and prints what was reached.
#[derive(Parser)]
struct Cli {
    /// Only paths of these groups, or with one of these words in their names.
    names: Vec<String>,
    /// Fail when a target is missed by more than 20 %.
    #[arg(long)]
    check: bool,
    /// Tell the peak memory of one compaction and the length of its session's JSON, and nothing else.
    #[arg(long, hide = true)]
    peak_of_a_compaction: bool,
    /// Tell how many seconds the first count took, and nothing else.
    #[arg(long, hide = true)]
    time_of_the_first_count: bool,
    /// With --check, a target that is missed for a stated reason does not fail.
    #[arg(long)]
    reasons: bool,
}

/// Nothing could be measured.
const NOT_MEASURED: u8 = 2;

fn main() -> ExitCode {
    let Cli { names, check, reasons, peak_of_a_compaction, time_of_the_first_count } = Cli::parse();
    if peak_of_a_compaction {
        let Some((peak, json)) = epitome_benches::peak_of_a_compaction() else {
            return ExitCode::from(NOT_MEASURED);
        };
        println!("{peak} {json}");
        return ExitCode::SUCCESS;
    }
    if time_of_the_first_count {
        println!("{} 0", epitome_benches::time_of_the_first_count());
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) {
        println!("built without optimization, so the figures mean nothing: use --release");
    }
    let wanted = |path: &&HotPath| {
        names.is_empty() || names.iter().any(|name| path.group == name || path.name.contains(name.as_str()))
    };
    let paths: Vec<&HotPath> = GROUPS.iter().flat_map(|group| group.iter()).filter(wanted).collect();
    if paths.is_empty() {
        let mut groups: Vec<&str> =
            GROUPS.iter().flat_map(|group| group.iter()).map(|path| path.group).collect();
        groups.dedup();
        println!("no such path; the groups are {}", groups.join(", "));
        return ExitCode::from(NOT_MEASURED);
    }
    println!("{}", heading());
    let (mut met, mut near, mut excused, mut missed) = (0, 0, 0, 0);
    for path in &paths {
        let measured = (path.measure)();
        println!("{}", row(path, &measured));
        match path.target.verdict(&measured) {
            Verdict::Met => met += 1,
            Verdict::Near => near += 1,
            Verdict::Missed if reasons && path.reason.is_some() => excused += 1,
            Verdict::Missed | Verdict::Wrong => missed += 1,
        }
    }
    let count = paths.len();
    println!(
        "bench: {met} of {count} targets met, {near} near, {missed} missed, {excused} missed for a stated reason"
    );
    if check && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
