//! Which program to start, and how.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;
use tokio::process::Command;

/// The variable that holds the host's instructions for this one summary, if there are any.
const INSTRUCTIONS: &str = "EPITOME_INSTRUCTIONS";

/// The variable that holds the fixed sentence about a malformed first answer, in a second try.
const CORRECTION: &str = "EPITOME_CORRECTION";

/// Longer text does not fit into a variable on every system (Linux takes 128 KiB, its name included).
const MAX_VARIABLE_BYTES: usize = 96 * 1024;

/// Which program to start, and how. No shell comes between, and nothing is inherited but what is stated here.
/// `Debug` prints numbers: arguments and variables may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSettings {
    /// The program: an absolute path. A name would be looked up in a `PATH` that is not stated.
    pub program: PathBuf,
    /// Its arguments, each as it is.
    pub arguments: Vec<OsString>,
    /// Its whole environment, beside `EPITOME_INSTRUCTIONS` and `EPITOME_CORRECTION`.
    pub variables: Vec<(OsString, OsString)>,
    /// The folder in which it works.
    pub working_directory: PathBuf,
}

/// A program could never be started so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The program is not an absolute path.
    #[error("the program is not an absolute path")]
    Program,
    /// The working directory is not absolute, so it would depend on where this process happens to be.
    #[error("the working directory is not an absolute path")]
    WorkingDirectory,
    /// A zero byte in the program, an argument, a variable or the working directory.
    #[error("a zero byte in program, arguments, variables or working directory")]
    ZeroByte,
    /// A variable without a name, or with `=` in its name, or one of those that Epitome sets.
    #[error("variable {at} has no name that can be set")]
    Variable {
        /// The place of the variable, from 0.
        at: usize,
    },
}

impl CommandSettings {
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let Self { program, arguments, variables, working_directory } = self;
        if !program.is_absolute() {
            return Err(CommandError::Program);
        }
        if !working_directory.is_absolute() {
            return Err(CommandError::WorkingDirectory);
        }
        let paths = [program.as_os_str(), working_directory.as_os_str()];
        let values = variables.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]);
        let mut texts = paths.into_iter().chain(arguments.iter().map(OsString::as_os_str)).chain(values);
        if texts.any(|text| text.as_encoded_bytes().contains(&0)) {
            return Err(CommandError::ZeroByte);
        }
        let bad = |(name, _): &(OsString, OsString)| {
            name.is_empty()
                || name.as_encoded_bytes().contains(&b'=')
                || name == INSTRUCTIONS
                || name == CORRECTION
        };
        match variables.iter().position(bad) {
            Some(at) => Err(CommandError::Variable { at }),
            None => Ok(()),
        }
    }

    /// The command of one try. `None` when the instructions cannot be handed over whole: a summary that does not
    /// know them is not the one that was asked for.
    pub(super) fn command(
        &self,
        instructions: Option<&str>,
        correction: Option<&'static str>,
    ) -> Option<Command> {
        let Self { program, arguments, variables, working_directory } = self;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir(working_directory);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(instructions) = instructions {
            if instructions.len() > MAX_VARIABLE_BYTES || instructions.contains('\0') {
                return None;
            }
            command.env(INSTRUCTIONS, instructions);
        }
        if let Some(correction) = correction {
            command.env(CORRECTION, correction);
        }
        Some(command)
    }
}

impl fmt::Debug for CommandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSettings")
            .field("arguments", &self.arguments.len())
            .field("variables", &self.variables.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> CommandSettings {
        CommandSettings {
            program: "/bin/sh".into(),
            arguments: vec!["canary".into()],
            variables: vec![("A".into(), "canary".into())],
            working_directory: std::env::temp_dir(),
        }
    }

    #[test]
    fn what_could_never_be_started_is_refused() {
        let refused = |settings: CommandSettings| settings.check().unwrap_err();
        let variable = |name: &str| vec![("A".into(), "1".into()), (name.into(), "2".into())];
        assert_eq!(settings().check(), Ok(()));
        for program in ["", "sh", "./sh"] {
            let unknown = CommandSettings { program: program.into(), ..settings() };
            assert_eq!(refused(unknown), CommandError::Program, "{program}");
        }
        let relative = CommandSettings { working_directory: "work".into(), ..settings() };
        assert_eq!(refused(relative), CommandError::WorkingDirectory);
        let zero = CommandSettings { arguments: vec!["a\0b".into()], ..settings() };
        assert_eq!(refused(zero), CommandError::ZeroByte);
        for name in ["", "A=B", INSTRUCTIONS, CORRECTION] {
            let wrong = CommandSettings { variables: variable(name), ..settings() };
            assert_eq!(refused(wrong), CommandError::Variable { at: 1 }, "{name}");
        }
    }

    #[test]
    fn debug_shows_no_argument_and_no_variable() {
        assert_eq!(format!("{:?}", settings()), "CommandSettings { arguments: 1, variables: 1, .. }");
    }

    #[test]
    fn instructions_are_handed_over_whole_or_not_at_all() {
        assert!(settings().command(Some(&"x".repeat(MAX_VARIABLE_BYTES)), None).is_some());
        assert!(settings().command(Some(&"x".repeat(MAX_VARIABLE_BYTES + 1)), None).is_none());
        assert!(settings().command(Some("a\0b"), None).is_none());
    }
}
