//! `crash_writer JOURNAL RECORDS BYTES`: writes to a journal until it is killed, and says what was acknowledged. See
//! `epitome_tests::crash_workload`.

#![expect(clippy::print_stderr, reason = "a command line speaks to its terminal")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use epitome_tests::crash_workload::write;

/// Writes to a journal until it is killed.
#[derive(Parser)]
struct Cli {
    /// The journal's file.
    journal: PathBuf,
    /// How many records each session may get.
    records: u64,
    /// The size of messages and summaries.
    bytes: usize,
}

fn main() -> ExitCode {
    let Cli { journal, records, bytes } = Cli::parse();
    match write(&journal, records, bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
