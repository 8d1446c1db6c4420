//! The speed suite prints its own table, marks what it missed, and decides by its exit code.

use std::io::Write;
use std::time::Duration;

use super::program::{capture, cargo, must_run};
use super::{EvidenceError, Places, Verdict};

/// The suite is not waited for longer than this.
const LONGEST: Duration = Duration::from_secs(1_800);

/// How the last line of the suite begins.
const SUMMARY: &str = "bench: ";

/// Every path.
pub(super) fn bench(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    measure(places, &[], out)
}

/// The paths that everything else stands on.
pub(super) fn foundation(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    measure(places, &["summary_xml", "counters", "extractive"], out)
}

/// Durable commits, alone and in a crowd, and reopening.
pub(super) fn commits(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    measure(places, &["journal"], out)
}

fn measure(places: &Places, groups: &[&str], out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let suite = ["--quiet", "--release", "-p", "epitome-benches", "--bin", "speed"];
    // Built first, so that no compiler runs beside the measurements.
    must_run(cargo(places, &["build"]).args(suite))?;
    let ran = capture(
        cargo(places, &["run"]).args(suite).args(["--", "--check", "--reasons"]).args(groups),
        LONGEST,
    )?;
    out.write_all(&ran.stdout)?;
    out.write_all(&ran.stderr)?;
    let table = String::from_utf8_lossy(&ran.stdout);
    let summary = table.lines().rev().find_map(|line| line.strip_prefix(SUMMARY));
    let line =
        format!("{} in {:.0} s; {}", summary.unwrap_or("no table"), ran.time.as_secs_f64(), ran.ending());
    Ok(Verdict { holds: ran.code() == Some(0) && summary.is_some(), line })
}
