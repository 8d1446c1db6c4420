//! Starting programs and timing them.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{EvidenceError, Places};

/// How often a running program is looked at.
const GLANCE: Duration = Duration::from_millis(1);

/// What a program left behind.
pub(crate) struct Ran {
    /// `None` when it took too long and was ended.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) time: Duration,
}

/// Runs a program for at most so long and keeps what it prints. It reads nothing.
pub(crate) fn capture(command: &mut Command, longest: Duration) -> Result<Ran, EvidenceError> {
    let program = name_of(command);
    let failed = |source| EvidenceError::Program { program: program.clone(), source };
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // Read beside the waiting, so that a full pipe holds nobody up.
        let stdout = scope.spawn(|| read_all(stdout));
        let stderr = scope.spawn(|| read_all(stderr));
        let status = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break Some(status),
                None if started.elapsed() > longest => {
                    child.kill().map_err(failed)?;
                    child.wait().map_err(failed)?;
                    break None;
                }
                None => thread::sleep(GLANCE),
            }
        };
        let time = started.elapsed();
        let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
        Ok(Ran { status, stdout, stderr, time })
    })
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before a fault is still worth showing.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

impl Ran {
    /// How it ended, for people.
    pub(crate) fn ending(&self) -> String {
        self.status.map_or_else(|| "no end in sight".to_owned(), |status| status.to_string())
    }

    /// The exit code, if it ended with one.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_is_kept() {
        let mut command = Command::new("git");
        let ran = capture(command.args(["hash-object", "--stdin"]), Duration::from_secs(20)).unwrap();
        assert_eq!(ran.code(), Some(0));
        assert_eq!(ran.stdout.len(), 41);
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_does_not_end_is_ended() {
        let ran = capture(Command::new("sleep").arg("600"), Duration::from_millis(20)).unwrap();
        assert_eq!(ran.status, None);
        assert!(ran.time < Duration::from_secs(60), "{:?}", ran.time);
    }
}
