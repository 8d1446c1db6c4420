//! A program of the user's as the summarizer.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use epitome_sessionruntime::{CommandReport, CommandSettings, CommandWorker, HustleWorker};

use super::watch::Watch;
use super::{SummarizerArgs, SummarizerFault};
use crate::failure::Failure;

/// What a program gets of the environment without being asked: where programs and its user's files are, and in which
/// language it speaks. Nothing of it is a secret.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// The worker that starts the program.
pub(super) fn worker(args: &SummarizerArgs, watch: &Watch) -> Result<Arc<dyn HustleWorker>, Failure> {
    let program = args.command.as_deref().ok_or(SummarizerFault::NoProgram)?;
    let passed = PASSED.into_iter().chain(args.command_env.iter().map(String::as_str));
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for name in passed {
        let is_new = variables.iter().all(|(known, _)| known != name);
        if let Some(value) = std::env::var_os(name).filter(|_| is_new) {
            variables.push((name.into(), value));
        }
    }
    let settings = CommandSettings {
        program: found(program)?,
        arguments: args.command_arg.clone(),
        variables,
        working_directory: std::env::current_dir().map_err(Failure::io("the current folder"))?,
    };
    let worker = CommandWorker::new(settings).map_err(SummarizerFault::Program)?;
    end_with_us();
    let watch = watch.clone();
    let listener = move |report: CommandReport| watch.program_ended(report);
    Ok(Arc::new(worker.with_listener(Arc::new(listener))))
}

/// From now on a signal that ends this process ends the programs that it started as well: they lead groups of their own, so
/// that they can be killed with all that they start, and a terminal's interrupt does not reach them.
fn end_with_us() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without the thread a signal does what it does to every process.
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
            let Some(number) = runtime.ok().and_then(|runtime| runtime.block_on(signal())) else { return };
            CommandWorker::kill_all();
            // As shells count: 128, and the number of the signal.
            std::process::exit(128 + number);
        });
    });
}

/// Waits for a signal that ends processes; `None` where none can be waited for.
#[cfg(unix)]
async fn signal() -> Option<i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup()).ok()?;
    let mut interrupt = signal(SignalKind::interrupt()).ok()?;
    let mut terminate = signal(SignalKind::terminate()).ok()?;
    Some(tokio::select! {
        _ = hangup.recv() => SignalKind::hangup().as_raw_value(),
        _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
    })
}

/// Waits for a signal that ends processes; `None` where none can be waited for.
#[cfg(not(unix))]
async fn signal() -> Option<i32> {
    tokio::signal::ctrl_c().await.ok().map(|()| 2)
}

/// The program's absolute path: as it is given, or in the folders of PATH where it is a bare name.
fn found(program: &Path) -> Result<PathBuf, Failure> {
    let not_found = || SummarizerFault::NotFound { program: program.to_owned() };
    let is_bare = program.components().count() == 1 && program.file_name() == Some(program.as_os_str());
    let path = match is_bare {
        true => std::env::var_os("PATH").and_then(|folders| in_folders(&folders, program)),
        false => Some(program.to_owned()),
    };
    let path = path.filter(|path| path.is_file()).ok_or_else(not_found)?;
    std::path::absolute(path).map_err(Failure::io(program))
}

fn in_folders(folders: &OsStr, name: &Path) -> Option<PathBuf> {
    std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_for_where_programs_are_and_a_path_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("summarize");
        std::fs::write(&program, "").unwrap();
        let folders = std::env::join_paths([Path::new("/nowhere"), folder.path()]).unwrap();
        assert_eq!(in_folders(&folders, Path::new("summarize")), Some(program.clone()));
        assert_eq!(in_folders(&folders, Path::new("another")), None);
        assert_eq!(found(&program).unwrap(), program);
        for missing in ["/nowhere/summarize", "./no-such-summarizer", "no-such-summarizer", ""] {
            let refused = found(Path::new(missing)).unwrap_err();
            assert!(matches!(refused, Failure::Summarizer(SummarizerFault::NotFound { .. })), "{missing}");
        }
    }
}
