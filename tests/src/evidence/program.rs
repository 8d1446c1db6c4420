//! Starting programs and timing them.

use std::io::Write;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use super::{EvidenceError, Places};

/// What a program left behind.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) time: Duration,
}

/// Runs a program to its end with this input and keeps what it prints.
pub(crate) fn capture(command: &mut Command, input: &[u8]) -> Result<Ran, EvidenceError> {
    let program = name_of(command);
    let failed = |source| EvidenceError::Program { program: program.clone(), source };
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // Fed beside the reading, so that neither side waits for the other.
        scope.spawn(move || stdin.map(|mut pipe| pipe.write_all(input)));
        child.wait_with_output()
    });
    let Output { status, stdout, stderr } = output.map_err(failed)?;
    Ok(Ran { status, stdout, stderr, time: started.elapsed() })
}

/// Runs a program on this terminal; it must succeed.
pub(crate) fn must_run(command: &mut Command) -> Result<Duration, EvidenceError> {
    let program = name_of(command);
    let started = Instant::now();
    let status =
        command.status().map_err(|source| EvidenceError::Program { program: program.clone(), source })?;
    if status.success() {
        Ok(started.elapsed())
    } else {
        Err(EvidenceError::Failed { program, code: status.to_string() })
    }
}

/// Cargo in the workspace's folder.
pub(crate) fn cargo(places: &Places, args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&places.workspace).args(args);
    cargo
}

fn name_of(command: &Command) -> String {
    let mut name = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        name.push(' ');
        name.push_str(&arg.to_string_lossy());
    }
    name
}
