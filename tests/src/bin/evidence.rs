//! `evidence [NAME]`: measures one promise of the project, or lists them.

#![expect(clippy::print_stderr, reason = "a command line speaks to its terminal")]

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use epitome_tests::evidence::{PROMISES, Places, promise};

/// Measures one promise of the project; exit code 0 only if it holds. Without a name, lists the promises.
#[derive(Parser)]
struct Cli {
    /// Which promise.
    name: Option<String>,
}

/// The promise could not be measured: unknown, or its data is not there.
const NOT_MEASURED: u8 = 2;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(NOT_MEASURED)
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut out = io::stdout();
    let Some(name) = &cli.name else {
        for promise in PROMISES {
            writeln!(out, "{:22} {}", promise.name, promise.about)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let promise = promise(name).ok_or_else(|| format!("{name}: no such promise"))?;
    let places = Places::find();
    if promise.needs_data && !places.shared.is_dir() {
        return Err(format!(
            "{name} needs a folder of shared data, and {} is none; name it in EPITOME_SHARED",
            places.shared.display()
        )
        .into());
    }
    Ok(if promise.measure(&places, &mut out)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
