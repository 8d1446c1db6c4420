//! The table that `cargo xtask bench` prints.

use crate::path::{HotPath, Measured, Target, Unit, Verdict};

/// The names of the columns.
#[must_use]
pub fn heading() -> String {
    line("path", "ours", "rival", "reached", "target", "")
}

/// One line for what a run showed, with the reason below it where one is stated and needed.
#[must_use]
pub fn row(path: &HotPath, measured: &Measured) -> String {
    let verdict = path.target.verdict(measured);
    let word = match verdict {
        Verdict::Met => "met",
        Verdict::Near => "near",
        Verdict::Missed => "MISSED",
        Verdict::Wrong => "WRONG ANSWER",
    };
    let rival = match measured.rival {
        0.0 => String::new(),
        rival => quantity(rival, measured.unit),
    };
    let ours = quantity(measured.ours, measured.unit);
    let name = format!("{}: {}", path.group, path.name);
    let mut row = line(&name, &ours, &rival, &reached(path.target, measured), &wanted(path.target), word);
    if let Some(reason) = path.reason
        && verdict != Verdict::Met
    {
        row.push_str("\n    because ");
        row.push_str(reason);
    }
    row
}

fn line(name: &str, ours: &str, rival: &str, reached: &str, target: &str, verdict: &str) -> String {
    format!("{name:58} {ours:>9} {rival:>9} {reached:>10}  {target:32} {verdict}").trim_end().to_owned()
}

fn quantity(amount: f64, unit: Unit) -> String {
    let (scales, names): ([f64; 4], [&str; 4]) = match unit {
        Unit::Seconds => ([1.0, 1e-3, 1e-6, 1e-9], ["s", "ms", "us", "ns"]),
        Unit::Bytes => ([1e9, 1e6, 1e3, 1.0], ["GB", "MB", "KB", "B"]),
    };
    let fitting = scales.iter().zip(names).find(|(scale, _)| amount >= **scale);
    let (scale, name) = fitting.unwrap_or((&scales[3], names[3]));
    let shown = amount / scale;
    if shown < 10.0 { format!("{shown:.2} {name}") } else { format!("{shown:.0} {name}") }
}

fn reached(target: Target, measured: &Measured) -> String {
    let ours = measured.ours.max(1e-9);
    match target {
        Target::TimesFaster(..) => times(measured.rival / ours),
        Target::AtMost(..) => times(ours / measured.rival.max(1e-9)),
        Target::Megabytes(_) => rate(measured.bytes as f64 / 1e6 / ours),
        Target::Within(_) => quantity(ours, Unit::Seconds),
    }
}

fn wanted(target: Target) -> String {
    match target {
        Target::TimesFaster(least, rival) => format!(">= {}x {rival}", plain(least)),
        Target::AtMost(most, rival) => format!("<= {}x {rival}", plain(most)),
        Target::Megabytes(least) => format!(">= {}", rate(least)),
        Target::Within(most) => format!("<= {}", quantity(most.as_secs_f64(), Unit::Seconds)),
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        small if small < 10.0 => format!("{small:.2}x"),
        large => format!("{large:.0}x"),
    }
}

/// Without zeros behind the point.
fn plain(number: f64) -> String {
    number.to_string()
}

fn rate(megabytes: f64) -> String {
    if megabytes < 1_000.0 { format!("{megabytes:.0} MB/s") } else { format!("{:.1} GB/s", megabytes / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn path(target: Target, reason: Option<&'static str>) -> HotPath {
        let measure = || Measured::alone(Duration::ZERO, 0);
        HotPath { group: "g", name: "n", target, reason, measure }
    }

    #[test]
    fn a_row_says_what_was_reached_and_what_was_wanted() {
        let measured =
            Measured { ours: 4.4e-7, rival: 3.56e-5, unit: Unit::Seconds, bytes: 2_000, agreed: true };
        let words = |row: String| row.split_whitespace().collect::<Vec<_>>().join(" ");
        let row_of = |target| words(row(&path(target, None), &measured));
        assert_eq!(
            row_of(Target::TimesFaster(10.0, "roxmltree")),
            "g: n 440 ns 36 us 81x >= 10x roxmltree met"
        );
        assert_eq!(row_of(Target::AtMost(0.5, "x")), "g: n 440 ns 36 us 0.01x <= 0.5x x met");
        assert_eq!(row_of(Target::Megabytes(5_000.0)), "g: n 440 ns 36 us 4.5 GB/s >= 5.0 GB/s near");
        let within = Target::Within(Duration::from_nanos(100));
        assert_eq!(row_of(within), "g: n 440 ns 36 us 440 ns <= 100 ns MISSED");
        let excused = row(&path(within, Some("of the moon")), &measured);
        assert!(excused.ends_with("MISSED\n    because of the moon"), "{excused}");
    }
}
