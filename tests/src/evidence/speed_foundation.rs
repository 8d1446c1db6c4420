//! The speed suite prints its own table and decides by its exit code.

use std::io::Write;

use super::program::{cargo, must_run};
use super::{EvidenceError, Places, Verdict};

pub(super) fn run(places: &Places, out: &mut dyn Write) -> Result<Verdict, EvidenceError> {
    out.flush()?;
    let mut speed =
        cargo(places, &["run", "--quiet", "--release", "-p", "epitome-benches", "--bin", "speed"]);
    match must_run(&mut speed) {
        Ok(time) => {
            Ok(Verdict { holds: true, line: format!("every target met, {:.0} s", time.as_secs_f64()) })
        }
        Err(EvidenceError::Failed { code, .. }) => {
            Ok(Verdict { holds: false, line: format!("the speed suite ended with {code}") })
        }
        Err(other) => Err(other),
    }
}
