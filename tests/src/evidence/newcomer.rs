//! A fresh clone and nothing but the README.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::program::{capture, must_run};
use super::{EvidenceError, Places, Verdict};

/// One command is not waited for longer than this.
const LONGEST: Duration = Duration::from_secs(3_600);

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let folder = tempfile::tempdir()?;
    let clone = folder.path().join("clone");
    must_run(Command::new("git").arg("clone").arg("--quiet").arg(&places.workspace).arg(&clone))?;
    let readme = fs::read_to_string(clone.join("README.md"))
        .map_err(|source| EvidenceError::Data { what: format!("README.md: {source}") })?;
    let shown = commands(&readme);
    if shown.is_empty() {
        return Err(EvidenceError::Data { what: "README.md shows no commands".to_owned() });
    }
    let mut minutes = 0.0;
    let mut faults = Vec::new();
    for Shown { command, output } in &shown {
        writeln!(out, "$ {command}")?;
        out.flush()?;
        let ran = capture(&mut typed(command, &clone), LONGEST)?;
        let printed = String::from_utf8_lossy(&ran.stdout);
        out.write_all(printed.as_bytes())?;
        writeln!(out, "    {:.1} s, {}", ran.time.as_secs_f64(), ran.ending())?;
        minutes += ran.time.as_secs_f64() / 60.0;
        if ran.code() != Some(0) {
            out.write_all(&ran.stderr)?;
            faults.push(format!("`{command}`: {}", ran.ending()));
        } else if !output.is_empty() && output.trim() != printed.trim() {
            faults.push(format!("`{command}` prints something else than the README shows"));
        }
    }
    let line = format!("{} commands, {minutes:.1} minutes", shown.len());
    let line = faults.iter().fold(line, |line, fault| format!("{line}; {fault}"));
    Ok(Verdict { holds: faults.is_empty(), line })
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

/// A command that the README shows, with the output that it shows.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    command: String,
    output: String,
}

/// The commands of the `console` blocks: a line with a prompt, and the lines below it.
fn commands(readme: &str) -> Vec<Shown> {
    let blocks = readme.split("```console\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let mut shown: Vec<Shown> = Vec::new();
    for line in blocks.flat_map(|(block, _)| block.lines()) {
        match (line.strip_prefix("$ "), shown.last_mut()) {
            (Some(command), _) => shown.push(Shown { command: command.to_owned(), output: String::new() }),
            (None, Some(last)) => {
                last.output.push_str(line);
                last.output.push('\n');
            }
            (None, None) => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_a_prompt_and_their_output_below() {
        let readme = "# X\n```rust\n$ no\n```\n```console\n$ cargo run\na\nb\n$ cargo test\n```\ntext\n```console\n$ last\n```";
        let found: Vec<_> = commands(readme).into_iter().map(|shown| (shown.command, shown.output)).collect();
        let expected = [("cargo run", "a\nb\n"), ("cargo test", ""), ("last", "")];
        assert_eq!(found, expected.map(|(command, output)| (command.to_owned(), output.to_owned())));
        assert!(commands("nothing").is_empty());
    }
}
