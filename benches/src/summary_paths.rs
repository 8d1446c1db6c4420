//! The strict parser of summaries.

use std::time::Duration;

use epitome_loop::SharedText;
use epitome_loopruntime::{parse_summary, parse_summary_text};

use crate::documents::{hostile_summaries, valid_summary};
use crate::path::{HotPath, Measured, Target};
use crate::rivals::roxmltree_accepts;
use crate::stopwatch::{duel, solo};

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "summary_xml",
        name: "strict summary, 2 KB",
        target: Target::TimesFaster(10.0, "roxmltree"),
        reason: None,
        measure: || summary(2 << 10),
    },
    HotPath {
        group: "summary_xml",
        name: "strict summary, 64 KB",
        target: Target::TimesFaster(30.0, "roxmltree"),
        reason: None,
        measure: || summary(64 << 10),
    },
    HotPath {
        group: "summary_xml",
        name: "worst of the hostile megabytes",
        target: Target::Within(Duration::from_millis(1)),
        reason: None,
        measure: hostile_summary,
    },
];

fn summary(bytes: usize) -> Measured {
    let text = valid_summary(bytes);
    // Both get text that is known to be UTF-8, as a renderer hands it over.
    let shared = SharedText::from(text.as_str());
    let runs = 2_000_000 / bytes;
    let duel = duel(
        15,
        |_| (0..runs).all(|_| parse_summary_text(shared.clone()).is_ok()),
        |_| (0..runs).all(|_| roxmltree_accepts(&text)),
    );
    duel.each(runs).on(text.len())
}

/// The slowest of several kinds of hostile megabyte.
fn hostile_summary() -> Measured {
    let times = hostile_summaries().into_iter().map(|(_, text)| solo(15, || parse_summary(text.as_bytes())));
    Measured::alone(times.max().unwrap_or(Duration::MAX), 1 << 20)
}
