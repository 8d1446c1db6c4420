//! Starting cargo, and what can go wrong with a command.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::workspace;

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("cannot start {program}: {source}")]
    Start { program: &'static str, source: io::Error },
    #[error("exit code {0}")]
    Exit(i32),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot understand the answer of cargo metadata: {0}")]
    Metadata(serde_json::Error),
    #[error("{check}: {count} finding(s)")]
    Findings { check: &'static str, count: usize },
    #[error("failed: {0}")]
    Steps(String),
}

/// One call of cargo in the workspace's folder.
#[derive(Clone, Debug)]
pub(crate) struct Cargo {
    args: Vec<OsString>,
    env: Vec<(&'static str, &'static str)>,
}

impl Cargo {
    pub(crate) fn new(args: &[&str]) -> Self {
        Self { args: args.iter().map(OsString::from).collect(), env: Vec::new() }
    }

    /// Runs an optimized binary of a package.
    pub(crate) fn run_release(package: &str, bin: &str) -> Self {
        Self::new(&["run", "--quiet", "--release", "--package", package, "--bin", bin, "--"])
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// How a person would type it in the workspace's folder.
    pub(crate) fn as_typed(&self) -> String {
        let mut typed = String::new();
        for (name, value) in &self.env {
            typed.push_str(&format!("{name}='{value}' "));
        }
        typed.push_str("cargo");
        for arg in &self.args {
            typed.push(' ');
            typed.push_str(&arg.to_string_lossy());
        }
        typed
    }

    /// Runs it with this process's terminal.
    pub(crate) fn execute(&self) -> Result<(), StepError> {
        // Cargo names itself to what it starts; so the same toolchain is used all the way down.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(workspace::root())
            .args(&self.args)
            .envs(self.env.iter().copied())
            .status()
            .map_err(|source| StepError::Start { program: "cargo", source })?;
        match status.code() {
            Some(0) => Ok(()),
            // Ended by a signal: there is no code.
            code => Err(StepError::Exit(code.unwrap_or(1))),
        }
    }
}
