//! Prints how fast the hot paths are against their rivals; fails when a promise is not kept.
#![allow(clippy::print_stdout, reason = "the table is the program's output")]

use std::process::ExitCode;

use epitome_benches::speed_report;

fn main() -> ExitCode {
    if cfg!(debug_assertions) {
        println!("built without optimization, so the figures mean nothing: use --release");
    }
    let rows = speed_report();
    println!("{:62} {:>11} {:>11} {:>9} {:>7}", "", "ours", "rival", "ratio", "target");
    for row in &rows {
        let (ours, rival) = (format!("{:.2?}", row.ours), format!("{:.2?}", row.rival));
        let verdict = if row.is_met() { "" } else { "  MISSED" };
        println!("{:62} {ours:>11} {rival:>11} {:>8.1}x {:>6.0}x{verdict}", row.name, row.ratio, row.target);
    }
    if rows.iter().all(|row| row.is_met()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
