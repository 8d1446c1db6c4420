//! `cargo xtask fuzz`: runs the targets of `fuzz/` with libFuzzer, one after the other.
//!
//! The committed corpora are seeds and are never written to; what is found goes to `target/fuzz`.

mod figures;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::StepError;
use crate::workspace;

use self::figures::Figures;

/// Longest input. The laws are linear, and what breaks them fits into less.
const LONGEST_INPUT: u32 = 16 << 10;

/// One input may take so many seconds, on a busy machine and without optimization of the checks.
const SLOWEST_INPUT: u32 = 10;

/// Memory of the whole process in MB, the corpus included; one allocation may take an eighth of it.
const MEMORY: u32 = 1_024;

/// How often a long run says where it is.
const PULSE: Duration = Duration::from_secs(60);

/// Exit code when nothing could be run, as opposed to a finding.
const NOT_RUN: i32 = 2;

/// Runs one target or all of them, each for so many seconds. A finding ends its target, not the others.
pub(crate) fn run(target: Option<&str>, seconds: u32) -> Result<(), StepError> {
    let root = workspace::root();
    let targets = targets(&workspace::read(&root, "fuzz/Cargo.toml")?);
    let chosen: Vec<&String> = targets.iter().filter(|name| target.is_none_or(|t| t == *name)).collect();
    if chosen.is_empty() {
        println!("no such target; the targets are {}", targets.join(", "));
        return Err(StepError::Exit(NOT_RUN));
    }
    let Some(nightly) = nightly()? else {
        println!("fuzzing needs a nightly toolchain: rustup toolchain install nightly");
        return Err(StepError::Exit(NOT_RUN));
    };
    if !has_cargo_fuzz(&nightly)? && !install_cargo_fuzz(&nightly)? {
        println!("cargo-fuzz cannot be installed: cargo install cargo-fuzz --locked");
        return Err(StepError::Exit(NOT_RUN));
    }
    let fuzzer = Fuzzer { root, nightly };
    let mut rows = Vec::new();
    for name in chosen {
        fuzzer.build(name)?;
        println!("==> {name}, {seconds} s");
        rows.push((name, fuzzer.run(name, seconds)?));
    }
    println!("\n{}", Figures::HEADING);
    for (name, outcome) in &rows {
        println!("{}", outcome.figures.row(name, outcome.finds.len()));
    }
    let executions: u64 = rows.iter().map(|(_, outcome)| outcome.figures.executions).sum();
    let broken: Vec<&str> =
        rows.iter().filter(|(_, outcome)| !outcome.is_clean()).map(|(name, _)| name.as_str()).collect();
    let count = rows.len();
    if broken.is_empty() {
        println!("fuzz: no finding in {executions} executions of {count} targets");
        return Ok(());
    }
    println!("fuzz: findings in {} of {count} targets: {}", broken.len(), broken.join(", "));
    for (name, outcome) in &rows {
        fuzzer.explain(name, outcome);
    }
    Err(StepError::Findings { check: "fuzz", count: broken.len() })
}

/// The names of the targets, as the manifest lists them.
fn targets(manifest: &str) -> Vec<String> {
    let bins = manifest.split("[[bin]]").skip(1);
    bins.filter_map(|bin| Some(bin.split_once("name = \"")?.1.split_once('"')?.0.to_owned())).collect()
}

/// The first nightly toolchain that rustup knows.
fn nightly() -> Result<Option<String>, StepError> {
    let listed = Command::new("rustup").args(["toolchain", "list", "--quiet"]).output();
    // Toolchains may have come without rustup; then there is none to choose from.
    let Ok(listed) = listed else { return Ok(None) };
    let names = String::from_utf8_lossy(&listed.stdout);
    Ok(names.split_whitespace().find(|name| name.starts_with("nightly")).map(str::to_owned))
}

/// A command of cargo under another toolchain than the one that runs this.
fn cargo_of(toolchain: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, "cargo"]).current_dir(workspace::root());
    // What this process was told by its own cargo is not true of another one.
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

fn has_cargo_fuzz(nightly: &str) -> Result<bool, StepError> {
    let asked = cargo_of(nightly).args(["fuzz", "--version"]).output();
    Ok(asked.map_err(start)?.status.success())
}

fn install_cargo_fuzz(nightly: &str) -> Result<bool, StepError> {
    println!("==> cargo-fuzz is missing and is installed");
    let installed = cargo_of(nightly).args(["install", "cargo-fuzz", "--locked", "--quiet"]).status();
    Ok(installed.map_err(start)?.success())
}

fn start(source: io::Error) -> StepError {
    StepError::Start { program: "rustup", source }
}

/// How one run ended.
struct Outcome {
    figures: Figures,
    /// Inputs that broke a law in this run.
    finds: Vec<PathBuf>,
    succeeded: bool,
    log: PathBuf,
}

impl Outcome {
    fn is_clean(&self) -> bool {
        self.succeeded && self.finds.is_empty()
    }
}

struct Fuzzer {
    root: PathBuf,
    nightly: String,
}

impl Fuzzer {
    /// Optimized, with overflow checks and assertions. Without the address sanitizer: none of our crates has
    /// unsafe code, and without it a run sees twice as many inputs.
    fn cargo_fuzz(&self, action: &str) -> Command {
        let mut command = cargo_of(&self.nightly);
        command.args(["fuzz", action, "--sanitizer", "none", "--target-dir"]).arg(self.place("build"));
        command
    }

    fn build(&self, name: &str) -> Result<(), StepError> {
        let status = self.cargo_fuzz("build").arg(name).status().map_err(start)?;
        if status.success() { Ok(()) } else { Err(StepError::Exit(NOT_RUN)) }
    }

    fn run(&self, name: &str, seconds: u32) -> Result<Outcome, StepError> {
        let (work, artifacts) = (self.folder(&["corpus", name])?, self.folder(&["artifacts", name])?);
        let before = files(&artifacts)?;
        let mut command = self.cargo_fuzz("run");
        command.arg(name).arg(&work).arg(self.root.join("fuzz/corpus").join(name)).arg("--");
        command.args([
            format!("-max_total_time={seconds}"),
            format!("-max_len={LONGEST_INPUT}"),
            format!("-timeout={SLOWEST_INPUT}"),
            format!("-rss_limit_mb={MEMORY}"),
            format!("-malloc_limit_mb={}", MEMORY / 8),
            format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1".to_owned(),
        ]);
        let dictionary = self.root.join("fuzz/dict").join(name).with_extension("dict");
        if dictionary.is_file() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        let log = self.folder(&["logs"])?.join(name).with_extension("log");
        let (figures, succeeded) = watch(&mut command, &log)?;
        let finds = files(&artifacts)?.into_iter().filter(|file| !before.contains(file)).collect();
        Ok(Outcome { figures, finds, succeeded, log })
    }

    /// Tells how to see a finding again.
    fn explain(&self, name: &str, outcome: &Outcome) {
        if outcome.is_clean() {
            return;
        }
        println!("\n{name}: the log is {}", outcome.log.display());
        for find in &outcome.finds {
            let toolchain = &self.nightly;
            println!("  found: {}", find.display());
            println!(
                "  smaller: rustup run {toolchain} cargo fuzz tmin --sanitizer none --target-dir {} {name} {}",
                self.place("build").display(),
                find.display()
            );
            println!(
                "  again, on stable: put it into fuzz/corpus/{name}, then \
                 cargo test -p epitome-tests --test suite fuzz_corpus::{name}"
            );
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        workspace::target().join("fuzz").join(name)
    }

    fn folder(&self, names: &[&str]) -> Result<PathBuf, StepError> {
        let path = self.place("").join(names.iter().collect::<PathBuf>());
        fs::create_dir_all(&path).map_err(|source| StepError::Read { path: path.clone(), source })?;
        Ok(path)
    }
}

/// Runs the fuzzer, keeps what it says in a log, and prints a line now and then.
fn watch(command: &mut Command, log: &Path) -> Result<(Figures, bool), StepError> {
    let read = |source| StepError::Read { path: log.to_path_buf(), source };
    let mut kept = File::create(log).map_err(read)?;
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(start)?;
    let mut figures = Figures::default();
    let mut spoke = Instant::now();
    if let Some(stderr) = child.stderr.take() {
        // Inputs may be printed as they are.
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(read)?;
            kept.write_all(&line).and_then(|()| kept.write_all(b"\n")).map_err(read)?;
            let line = String::from_utf8_lossy(&line);
            figures.take(&line);
            if spoke.elapsed() > PULSE && line.starts_with('#') {
                println!("    {}", line.trim_end());
                spoke = Instant::now();
            }
        }
    }
    let status = child.wait().map_err(start)?;
    Ok((figures, status.success()))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, StepError> {
    let read = |source| StepError::Read { path: folder.to_path_buf(), source };
    let entries = fs::read_dir(folder).map_err(read)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(read)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_the_manifest() {
        let manifest =
            "[package]\nname = \"p\"\n[[bin]]\nname = \"a\"\npath = \"x\"\n\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(manifest), ["a", "b"]);
        assert!(!targets(&workspace::read(&workspace::root(), "fuzz/Cargo.toml").unwrap()).is_empty());
    }
}
