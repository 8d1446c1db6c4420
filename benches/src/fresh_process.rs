//! What only a fresh process shows: the time of what is done once, and how much memory some work takes beyond what was
//! taken before.

use std::process::Command;

/// The flag with which the program tells the peak of one compaction.
pub(crate) const PEAK: &str = "--peak-of-a-compaction";

/// The flag with which the program tells how long its first count took.
pub(crate) const START: &str = "--time-of-the-first-count";

/// The two numbers that a fresh process of this program prints for a flag. In it, nothing was done yet, and nothing
/// was freed that could be used again.
pub(crate) fn in_a_fresh_process(flag: &str) -> Option<(f64, f64)> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new(program).arg(flag).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    let (ours, whole) = printed.trim().split_once(' ')?;
    Some((ours.parse().ok()?, whole.parse().ok()?))
}

/// The peak of this process in bytes during some work, beyond what it holds at its start; `None` where the system
/// does not tell.
pub(crate) fn peak_beyond<A>(work: impl FnOnce() -> A) -> Option<(u64, A)> {
    // Sets the peak back to what is held now.
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    let before = kilobytes("VmHWM:")?;
    let done = work();
    let peak = kilobytes("VmHWM:")?;
    Some((1_024 * peak.saturating_sub(before), done))
}

fn kilobytes(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}
