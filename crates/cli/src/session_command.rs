//! `epitome session`: sessions in a journal.

mod admit;
mod append;
mod calibration_line;
mod compact;
mod decisions;
mod export;
pub(crate) mod failure;
mod import;
pub(crate) mod journal_file;
mod list;
mod live;
mod log;
mod log_line;
mod past;
mod purge;
pub(crate) mod recording;
mod rewind;
mod rig_loop;
mod show;
mod verify;
mod words;

use crate::failure::Failure;
use crate::session_args::SessionCommand;

pub(crate) fn run(command: SessionCommand) -> Result<(), Failure> {
    match command {
        SessionCommand::List(args) => list::run(&args),
        SessionCommand::Import(args) => import::run(args),
        SessionCommand::Append(args) => append::run(&args),
        SessionCommand::Admit(args) => admit::run(&args),
        SessionCommand::Compact(args) => compact::run(&args),
        SessionCommand::Undo(args) => rewind::undo(&args),
        SessionCommand::Redo(args) => rewind::redo(&args),
        SessionCommand::Log(args) => log::run(&args),
        SessionCommand::Show(args) => show::run(&args),
        SessionCommand::Export(args) => export::run(&args),
        SessionCommand::Verify(args) => verify::run(&args),
        SessionCommand::Purge(args) => purge::run(&args),
    }
}
