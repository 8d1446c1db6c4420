//! A short run of every fuzz target.

use std::io::Write;
use std::time::Duration;

use super::program::{capture, cargo};
use super::{EvidenceError, Places, Verdict};

/// How long each target runs, in seconds, unless `EPITOME_FUZZ_SECONDS` says otherwise.
const SECONDS: u64 = 20;

/// How long building and each target may take beyond that.
const BESIDES: Duration = Duration::from_secs(1_800);

/// The exit code with which the command says that it cannot run here.
const NOT_RUN: i32 = 2;

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let named = std::env::var("EPITOME_FUZZ_SECONDS").ok();
    let seconds = match named {
        None => SECONDS,
        Some(text) => text.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(|| {
            EvidenceError::Data { what: "EPITOME_FUZZ_SECONDS is not a number of seconds".to_owned() }
        })?,
    };
    let targets = crate::fuzzing::LAWS.len() as u64;
    let mut command = cargo(places, &["run", "--quiet", "-p", "xtask", "--", "fuzz", "--seconds"]);
    let ran = capture(command.arg(seconds.to_string()), Duration::from_secs(seconds * targets) + BESIDES)?;
    out.write_all(&ran.stdout)?;
    let printed = String::from_utf8_lossy(&ran.stdout);
    if ran.code() != Some(0) {
        out.write_all(&ran.stderr)?;
    }
    if ran.code() == Some(NOT_RUN) {
        let what = printed.lines().next_back().unwrap_or("fuzzing cannot run here").to_owned();
        return Err(EvidenceError::Data { what });
    }
    let summary = printed.lines().find_map(|line| line.strip_prefix("fuzz: "));
    let line = format!(
        "{}, {seconds} s each, in {:.0} s; {}",
        summary.unwrap_or("no summary"),
        ran.time.as_secs_f64(),
        ran.ending()
    );
    Ok(Verdict { holds: ran.code() == Some(0) && summary.is_some(), line })
}
