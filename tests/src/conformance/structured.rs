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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::vectors::read_vectors;

    /// The paths to everything in a value that is neither a list nor an object.
    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(entries) => {
                entries.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{key}"), found));
            }
            Value::Array(values) => {
                let values = values.iter().enumerate();
                values.for_each(|(at, value)| leaves(value, &format!("{path}/{at}"), found));
            }
            _ => found.push(path.to_owned()),
        }
    }

    fn another(value: &Value) -> Value {
        match value {
            Value::Bool(is) => json!(!is),
            Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.5),
            Value::String(text) => json!(format!("{text}z")),
            _ => json!("z"),
        }
    }

    /// A vector that was tampered with anywhere in what it expects is neither equal nor in a class.
    #[test]
    fn every_figure_of_a_vector_is_compared() {
        const OF_EACH_KIND: usize = 4;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/structured");
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        for (_, file) in super::super::files_of(&folder).unwrap() {
            for case in read_vectors(&file).unwrap() {
                // Without a change nothing is counted in our outcome.
                let counts_nothing = case.expect["result"] == "no_change";
                // Our rule for a shell may be the tampered answer.
                if case.op == "substantive" {
                    continue;
                }
                let mut paths = Vec::new();
                leaves(&case.expect, "", &mut paths);
                for path in paths {
                    if counts_nothing && ["/tokens_before", "/tokens_after"].contains(&path.as_str()) {
                        continue;
                    }
                    let kind = path.replace(|character: char| character.is_ascii_digit(), "");
                    let judged = seen.entry((case.op.clone(), kind)).or_default();
                    if *judged == OF_EACH_KIND {
                        continue;
                    }
                    *judged += 1;
                    let mut expect = case.expect.clone();
                    let place = expect.pointer_mut(&path).unwrap();
                    *place = another(place);
                    let judgment = judge(&case.op, &case.input, &expect);
                    assert!(
                        matches!(judgment, Judgment::Different { .. }),
                        "{} {path}: {judgment:?}",
                        case.id
                    );
                }
            }
        }
        assert!(seen.len() > 80, "{}", seen.len());
    }
}
