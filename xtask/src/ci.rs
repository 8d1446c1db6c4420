//! Every check that a change must pass, cheapest first; the tests come last, so that their result lines end
//! the output.

use std::time::{Duration, Instant};

use crate::command::{Cargo, StepError};
use crate::{layers, report, tidy, workspace};

/// One check: what it is called, how to run it alone, and what it does.
struct Step {
    name: &'static str,
    action: Action,
}

enum Action {
    Cargo(Cargo),
    Check { alone: &'static str, run: fn() -> Result<(), StepError> },
}

impl Step {
    fn cargo(name: &'static str, cargo: Cargo) -> Self {
        Self { name, action: Action::Cargo(cargo) }
    }

    fn alone(&self) -> String {
        match &self.action {
            Action::Cargo(cargo) => cargo.as_typed(),
            Action::Check { alone, .. } => (*alone).to_owned(),
        }
    }

    fn run(&self) -> Result<(), StepError> {
        match &self.action {
            Action::Cargo(cargo) => cargo.execute(),
            Action::Check { run, .. } => run(),
        }
    }
}

/// The fuzz targets are a workspace of their own.
const FUZZ: &str = "fuzz/Cargo.toml";

/// The steps share two sets of build artifacts: checked ones (clippy, doc) and those of the dev profile
/// (conformance, benches, tests). Nothing here builds with optimization, which would be a third.
fn steps() -> Vec<Step> {
    vec![
        Step::cargo("format", Cargo::new(&["fmt", "--all", "--check"])),
        Step {
            name: "layers",
            action: Action::Check {
                alone: "cargo xtask layers",
                run: || report("layers", &layers::findings_of_workspace()?),
            },
        },
        Step {
            name: "tidy",
            action: Action::Check {
                alone: "cargo xtask tidy",
                run: || report("tidy", &tidy::findings(&workspace::root())?),
            },
        },
        Step::cargo(
            "clippy",
            Cargo::new(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        ),
        // The decision core is pure: without its driver there is no async runtime, which the workspace's features hide.
        Step::cargo(
            "pure core",
            Cargo::new(&["check", "--quiet", "-p", "epitome-loopruntime", "--no-default-features"]),
        ),
        Step::cargo("fuzz format", Cargo::new(&["fmt", "--check", "--manifest-path", FUZZ])),
        // Without libFuzzer, which is C++ and needs a compiler for it. Beside the workspace's artifacts, as most
        // dependencies are the same.
        Step::cargo(
            "fuzz clippy",
            Cargo::new(&["clippy", "--quiet", "--locked", "--no-deps", "--no-default-features"])
                .args(["--manifest-path", FUZZ, "--target-dir"])
                .arg(workspace::target())
                .args(["--", "-D", "warnings"]),
        ),
        Step::cargo(
            "doc",
            Cargo::new(&["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
        ),
        Step::cargo(
            "conformance",
            Cargo::new(&["run", "--quiet", "-p", "epitome-tests", "--bin", "conformance", "--"])
                .arg("tests/vectors/reference"),
        ),
        Step::cargo(
            "conformance of structured summaries",
            Cargo::new(&["run", "--quiet", "-p", "epitome-tests", "--bin", "conformance", "--"])
                .arg("tests/vectors/structured"),
        ),
        // Criterion runs each benchmark once when it is started as a test.
        Step::cargo("benches", Cargo::new(&["test", "--quiet", "-p", "epitome-benches", "--benches"])),
        Step::cargo("test", Cargo::new(&["test", "--workspace"])),
    ]
}

/// Runs every step, also after a failure, and sums up.
pub(crate) fn run() -> Result<(), StepError> {
    let started = Instant::now();
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for step in steps() {
        println!("==> {}", step.name);
        let began = Instant::now();
        let outcome = step.run();
        let time = began.elapsed();
        let verdict = match outcome {
            Ok(()) => "ok".to_owned(),
            Err(error) => {
                failed.push(step.name);
                format!("FAILED ({error}); alone: {}", step.alone())
            }
        };
        println!("    {} {} {verdict}", step.name, seconds(time));
        rows.push((step.name, time, verdict));
    }
    println!("==> summary");
    for (name, time, verdict) in rows {
        println!("{name:12} {:>8} {verdict}", seconds(time));
    }
    println!("{:12} {:>8}", "all", seconds(started.elapsed()));
    if failed.is_empty() { Ok(()) } else { Err(StepError::Steps(failed.join(", "))) }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_says_how_to_run_it_alone() {
        for step in steps() {
            assert!(step.alone().contains("cargo "), "{}", step.name);
        }
        let doc = steps().into_iter().find(|step| step.name == "doc").unwrap();
        assert!(doc.alone().starts_with("RUSTDOCFLAGS='-D warnings' cargo doc"), "{}", doc.alone());
    }
}
