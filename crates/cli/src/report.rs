//! How results are shown: to people with words, numbers and bars, to machines as JSON.

use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};
use epitome_counters::ErrorBand;
use epitome_loop::{ContextMeasurement, CountQuality, PressureLevel};
use epitome_rig::FileError;
use serde::Serialize;

use crate::failure::Failure;

/// Version of every JSON report.
pub(crate) const VERSION: u32 = 1;

/// One measurement.
#[derive(Serialize)]
pub(crate) struct MeasurementReport {
    pub(crate) tokens: u64,
    pub(crate) limit: u64,
    pub(crate) occupancy_basis_points: u16,
    pub(crate) quality: &'static str,
}

/// Around a count, where the true count is to be expected.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct BandReport {
    pub(crate) below_percent: u8,
    pub(crate) above_percent: u8,
}

impl From<ErrorBand> for BandReport {
    fn from(band: ErrorBand) -> Self {
        Self { below_percent: band.below_percent, above_percent: band.above_percent }
    }
}

impl fmt::Display for BandReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-{}..+{} %", self.below_percent, self.above_percent)
    }
}

impl From<&ContextMeasurement> for MeasurementReport {
    fn from(measurement: &ContextMeasurement) -> Self {
        Self {
            tokens: measurement.input_tokens.get(),
            limit: measurement.input_limit.get(),
            occupancy_basis_points: measurement.occupancy().get(),
            quality: measurement.quality.as_str(),
        }
    }
}

impl MeasurementReport {
    /// The share of the limit. Basis points stop at full; a person wants to know how far beyond it is.
    pub(crate) fn percent(&self) -> f64 {
        100.0 * self.tokens as f64 / self.limit.max(1) as f64
    }
}

impl fmt::Display for MeasurementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.percent();
        let about = if self.quality == CountQuality::HeuristicEstimate.as_str() { "about " } else { "" };
        let text = format!("{about}{} of {} tokens, {share:.1} %", tokens(self.tokens), tokens(self.limit));
        write!(f, "{text:<44} {}", bar(self.tokens, self.limit, pressure_color(share)))
    }
}

/// A definition file that is not valid.
#[derive(Serialize)]
pub(crate) struct FaultReport {
    report: u32,
    outcome: &'static str,
    problem: &'static str,
    line: usize,
    column: usize,
    place: String,
    message: String,
}

impl From<&FileError> for FaultReport {
    fn from(fault: &FileError) -> Self {
        Self {
            report: VERSION,
            outcome: "invalid",
            problem: fault.problem.kind(),
            line: fault.line,
            column: fault.column,
            place: fault.place.to_string(),
            message: fault.to_string(),
        }
    }
}

/// The stable name of a level.
pub(crate) fn level_name(level: PressureLevel) -> &'static str {
    match level {
        PressureLevel::Unknown => "unknown",
        PressureLevel::Normal => "normal",
        PressureLevel::Compact => "compact",
        PressureLevel::HardLimit => "hard_limit",
    }
}

fn pressure_color(share: f64) -> AnsiColor {
    match share {
        ..60.0 => AnsiColor::Green,
        ..85.0 => AnsiColor::Yellow,
        _ => AnsiColor::Red,
    }
}

/// Width of a full bar, in characters.
const BAR_WIDTH: u64 = 30;

/// A bar of `part` in `whole`, by eighths of a character.
pub(crate) fn bar(part: u64, whole: u64, color: AnsiColor) -> String {
    bar_of_width(BAR_WIDTH, part, whole, color)
}

/// A short bar for a measurement in a list.
pub(crate) fn pressure_bar(measurement: &MeasurementReport) -> String {
    const SHORT: u64 = 10;
    let color = pressure_color(measurement.percent());
    bar_of_width(SHORT, measurement.tokens, measurement.limit, color)
}

fn bar_of_width(width: u64, part: u64, whole: u64, color: AnsiColor) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(part.min(whole)) * u128::from(width) * 8 / u128::from(whole.max(1));
    let full = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    let rest = EIGHTHS.get(usize::try_from(eighths % 8).unwrap_or(0)).copied().unwrap_or_default();
    let style = color.on_default();
    format!("{style}{full}{rest}{style:#}")
}

/// How many lines of one kind a person gets to see.
const LISTED: usize = 10;

/// The first lines of a list, and how many more there are.
pub(crate) fn listed(lines: &[String]) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    let more = lines.len().saturating_sub(LISTED);
    let rest = (more > 0).then(|| format!("and {} more like these", tokens(more as u64)));
    lines.iter().take(LISTED).map(|line| line.as_str().into()).chain(rest.map(Into::into))
}

/// Text of a session or a path as it may be shown: short, and with nothing that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 200;
    let short = text.char_indices().nth(LONGEST).and_then(|(end, _)| text.get(..end));
    match short {
        Some(short) => harmless(short) + "…",
        None => harmless(text),
    }
}

/// The whole text, with nothing that a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|at| if is_obeyed(at) { char::REPLACEMENT_CHARACTER } else { at }).collect()
}

/// Whether a character does something to a terminal or to the order of what it shows, or cannot be seen at all.
fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}')
}

/// A number with its thousands set apart.
pub(crate) fn tokens(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Text that stands out at a terminal.
pub(crate) fn emphasis(text: impl fmt::Display) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// Prints a JSON report on standard output.
pub(crate) fn print_json(report: &impl Serialize) -> Result<(), Failure> {
    write_json(&mut std::io::stdout().lock(), report).map_err(Failure::io("standard output"))
}

/// Writes a JSON report and a line break.
pub(crate) fn write_json(out: &mut impl std::io::Write, report: &impl Serialize) -> std::io::Result<()> {
    write_escaped(out, &serde_json::to_string_pretty(report)?)
}

/// Writes a JSON report on one line.
pub(crate) fn write_json_line(out: &mut impl std::io::Write, report: &impl Serialize) -> std::io::Result<()> {
    write_escaped(out, &serde_json::to_string(report)?)
}

fn write_escaped(out: &mut impl std::io::Write, json: &str) -> std::io::Result<()> {
    // What a terminal would obey stands in strings alone, where it can be escaped.
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() || !is_obeyed(character) {
            escaped.push(character);
        } else {
            let _infallible = write!(escaped, "\\u{:04x}", u32::from(character));
        }
    }
    writeln!(out, "{escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bars_are_readable() {
        assert_eq!(tokens(0), "0");
        assert_eq!(tokens(999), "999");
        assert_eq!(tokens(1_234_567), "1,234,567");
        let plain =
            |part, whole| anstream::adapter::strip_str(&bar(part, whole, AnsiColor::Green)).to_string();
        assert_eq!(plain(1, 2), "█".repeat(15));
        assert_eq!(plain(9, 3), "█".repeat(30));
        assert_eq!(plain(0, 0), "");
        assert_eq!(printable("gpt\u{1b}]0;x\u{7}\n"), "gpt\u{fffd}]0;x\u{fffd}\u{fffd}");
        assert_eq!(printable(&"x".repeat(500)).chars().count(), 201);
        assert_eq!(printable("a\u{202e}b\u{2028}c\u{200b}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(printable("שלום \u{1f469}\u{200d}\u{1f680}"), "שלום \u{1f469}\u{200d}\u{1f680}");
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_would_obey() {
        let text = "é \u{9b}2J \u{202e} \u{1f680}\n";
        let mut json = Vec::new();
        write_json(&mut json, &text).unwrap();
        assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        assert_eq!(String::from_utf8(json).unwrap(), "\"é \\u009b2J \\u202e \u{1f680}\\n\"\n");
        let notes: Vec<String> = (0..25).map(|at| at.to_string()).collect();
        assert_eq!(listed(&notes).last().as_deref(), Some("and 15 more like these"));
    }
}
