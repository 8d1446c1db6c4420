//! The structured summarizer against the reference's vectors.
//!
//! An answer is equal, or it belongs to a class by a rule on the case itself: the rule says why the reference's answer
//! is not wanted, and a check says what must hold of ours. `docs/structured-summary.md` explains each class.

mod classes;
mod log;
mod passes;
mod prompts;
mod reading;
mod reference_pass;
mod reference_reader;
mod scene;
mod sizes;
mod trimming;

use serde_json::Value;

use super::Judgment;

pub use classes::{BETTER_CLASSES, BetterClass};

/// Judges one case.
type Judge = fn(&Value, &Value) -> Judgment;

/// Every operation.
const OPERATIONS: &[(&str, Judge)] = &[
    ("boundaries", sizes::boundaries),
    ("bullet", reading::bullet),
    ("compact", passes::compact),
    ("config", sizes::config),
    ("durable", sizes::durable),
    ("estimate_text", sizes::estimate),
    ("extract_json", reading::extract_json),
    ("heading", reading::heading),
    ("parse", reading::parse),
    ("render", trimming::render),
    ("round_trip", trimming::round_trip),
    ("split", sizes::split),
    ("substantive", trimming::substantive),
    ("tokens", sizes::tokens),
    ("transcript", prompts::transcript),
    ("trim", trimming::trim),
];

/// Whether there is such an operation.
pub(super) fn is_known(op: &str) -> bool {
    OPERATIONS.iter().any(|(name, _)| *name == op)
}

/// Judges a case by its operation.
pub(super) fn judge(op: &str, input: &Value, expect: &Value) -> Judgment {
    match OPERATIONS.iter().find(|(name, _)| *name == op) {
        Some((_, judge)) => judge(input, expect),
        None => Judgment::of("a known operation", "an unknown one"),
    }
}

/// Equal, or better in a class whose rule and check hold, or different.
fn equal_or(is_equal: bool, what: &str, class: &'static str, rule: bool, check: bool) -> Judgment {
    if is_equal {
        Judgment::Equal
    } else if rule && check {
        Judgment::Better(class)
    } else {
        let got = if rule { "an answer that breaks the rule of its class" } else { "another answer" };
        Judgment::of(what, format!("{got} ({class})"))
    }
}
