//! The command `epitome`: compacts, measures and checks agent sessions.

mod agent_folders;
mod args;
mod check;
mod check_rig;
mod compact;
mod compact_report;
mod failure;
mod identity;
mod input;
mod latest;
mod measure;
mod model_endpoint;
mod model_servers;
mod models;
mod output;
mod pins;
mod policy;
mod profile;
mod report;
mod run;
mod session_args;
mod session_command;
mod session_head;
mod sessions;
mod stdio_chat;
mod summarizer;
mod survey;
mod target;
mod unseen;
mod utc_time;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{CheckCommand, Cli, Command, PolicyCommand};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let wants_json = cli.command.wants_json();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough, as in `epitome models | head`.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            if wants_json {
                failure.report();
            }
            // Nothing can be said any more if standard error is gone.
            let _ = writeln!(anstream::stderr(), "{}: {failure}", report::emphasis("epitome"));
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Compact(mut args) => match args.stdio_chat {
            Some(budget) => stdio_chat::run(budget),
            None => {
                if let Some(session) = &mut args.session {
                    latest::resolve(session)?;
                }
                compact::run(&args)
            }
        },
        Command::Measure(mut args) => {
            latest::resolve(&mut args.session)?;
            measure::run(&args)
        }
        Command::Sessions(args) => sessions::run(&args),
        Command::Session(command) => session_command::run(*command),
        Command::Check(CheckCommand::Summary { file, json }) => check::summary(&file, json),
        Command::Check(CheckCommand::Rig { file, json }) => check_rig::run(&file, json),
        Command::Policy(PolicyCommand::Show { json }) => policy::show(json),
        Command::Policy(PolicyCommand::Check(args)) => policy::check(&args),
        Command::Models(args) => models::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "epitome", &mut script);
            output::Destination::Stdout.write(&script)
        }
    }
}
