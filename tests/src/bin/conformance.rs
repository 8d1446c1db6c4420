//! `conformance DIR [NAME...]`: compares our functions with the vectors of a folder.

#![expect(clippy::print_stderr, reason = "a command line speaks to its terminal")]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use epitome_tests::conformance::{self, FileReport, print_reports, suite};
use epitome_tests::with_deep_stack;

/// Compares our functions with the vectors of a folder; exit code 1 when any answer differs.
#[derive(Parser)]
struct Cli {
    /// Folder of `NAME.jsonl` files.
    dir: PathBuf,
    /// Only these files, without their ending.
    names: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether every answer is equal, or differs for a named reason.
fn run(cli: &Cli) -> Result<bool, Box<dyn std::error::Error>> {
    let files = conformance::files_of(&cli.dir).map_err(|error| format!("{}: {error}", cli.dir.display()))?;
    for name in &cli.names {
        let Some((_, path)) = files.iter().find(|(file, _)| file == name) else {
            return Err(format!("{name}: no such file in {}", cli.dir.display()).into());
        };
        if suite(name).is_none() && !conformance::is_structured(path)? {
            return Err(format!("{name}: not covered").into());
        }
    }
    let mut covered = Vec::new();
    let mut uncovered = Vec::new();
    for (name, path) in files {
        if !cli.names.is_empty() && !cli.names.contains(&name) {
            continue;
        }
        match suite(&name) {
            _ if conformance::is_structured(&path)? => covered.push((name, None, path)),
            Some(suite) => covered.push((name, Some(suite), path)),
            None => uncovered.push(name),
        }
    }
    let reports = with_deep_stack(|| {
        let reports = covered.iter().map(|(name, suite, path)| match suite {
            Some(suite) => conformance::run(suite, path),
            None => conformance::run_structured(name, path),
        });
        reports.collect::<Result<Vec<FileReport>, _>>()
    })??;
    let mut out = io::stdout().lock();
    print_reports(&mut out, &reports)?;
    if !uncovered.is_empty() {
        writeln!(out, "not covered: {}", uncovered.join(", "))?;
    }
    if reports.is_empty() {
        return Err("no covered vector file in this folder".into());
    }
    Ok(reports.iter().all(|report| report.different.is_empty()))
}
