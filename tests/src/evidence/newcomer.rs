//! A fresh clone and nothing but the README.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::program::must_run;
use super::{EvidenceError, Places, Verdict};

/// More would try a newcomer's patience.
const MOST_MINUTES: f64 = 15.0;

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = tempfile::tempdir()?;
    let clone = folder.path().join("clone");
    must_run(Command::new("git").arg("clone").arg("--quiet").arg(&places.workspace).arg(&clone))?;
    let readme = fs::read_to_string(clone.join("README.md"))
        .map_err(|source| EvidenceError::Data { what: format!("README.md: {source}") })?;
    let commands = first_commands(&readme);
    if commands.is_empty() {
        return Err(EvidenceError::Data { what: "README.md shows no commands in an `sh` block".to_owned() });
    }
    let mut minutes = 0.0;
    for command in &commands {
        writeln!(out, "$ {command}")?;
        out.flush()?;
        let ran = must_run(&mut typed(command, &clone));
        let time = match ran {
            Ok(time) => time,
            Err(EvidenceError::Failed { code, .. }) => {
                return Ok(Verdict { holds: false, line: format!("`{command}` ended with {code}") });
            }
            Err(other) => return Err(other),
        };
        writeln!(out, "  {:.1} s", time.as_secs_f64())?;
        minutes += time.as_secs_f64() / 60.0;
    }
    let line = format!("{} commands, {minutes:.1} of at most {MOST_MINUTES} minutes", commands.len());
    Ok(Verdict { holds: minutes <= MOST_MINUTES, line })
}

/// The command as a newcomer's shell would run it, with nothing of this process's cargo.
fn typed(command: &str, folder: &Path) -> Command {
    let mut words = command.split_whitespace();
    let mut typed = Command::new(words.next().unwrap_or_default());
    typed.args(words).current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let cargos = name.to_string_lossy().starts_with("CARGO") && name != "CARGO_HOME";
        if cargos || name == "RUSTUP_TOOLCHAIN" {
            typed.env_remove(name);
        }
    }
    typed
}

/// The lines of the first `sh` block, comments left out.
fn first_commands(readme: &str) -> Vec<String> {
    let block = readme.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    let lines = block.map_or("", |(block, _)| block).lines();
    lines
        .map(|line| line.split(" #").next().unwrap_or_default().trim().to_owned())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_in_the_first_shell_block() {
        let readme = "# X\n```rust\nfn a() {}\n```\n```sh\n# all\ncargo test   # 2 minutes\n\ncargo run -- x\n```\n```sh\nno\n```";
        assert_eq!(first_commands(readme), ["cargo test", "cargo run -- x"]);
        assert!(first_commands("nothing").is_empty());
    }
}
