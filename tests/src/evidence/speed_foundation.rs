//! The speed suite prints its own table, marks what it missed, and decides by its exit code.

use std::io::Write;
use std::time::Duration;

use super::program::{capture, cargo, must_run};
use super::{EvidenceError, Places, Verdict};

/// How the suite marks a target that was not reached.
const MISSED: &str = "MISSED";

/// The suite is not waited for longer than this.
const LONGEST: Duration = Duration::from_secs(1_800);

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    let suite = ["--quiet", "--release", "-p", "epitome-benches", "--bin", "speed"];
    // Built first, so that no compiler runs beside the measurements.
    must_run(cargo(places, &["build"]).args(suite))?;
    let ran = capture(cargo(places, &["run"]).args(suite), LONGEST)?;
    out.write_all(&ran.stdout)?;
    out.write_all(&ran.stderr)?;
    let table = String::from_utf8_lossy(&ran.stdout);
    let missed = table.lines().filter(|row| row.trim_end().ends_with(MISSED)).count();
    // The first line names the columns.
    let rows = table.lines().skip(1).filter(|row| !row.trim().is_empty()).count();
    let line =
        format!("{missed} of {rows} targets missed in {:.0} s; {}", ran.time.as_secs_f64(), ran.ending());
    Ok(Verdict { holds: ran.code() == Some(0) && missed == 0 && rows > 0, line })
}
