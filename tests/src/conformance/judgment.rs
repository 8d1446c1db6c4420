//! What is said about one case.

use serde_json::Value;

use crate::reference_form::ReadError;

/// What is said about one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgment {
    /// Our answer is the reference's.
    Equal,
    /// We refuse what the reference accepts, for a reason with a name.
    Stricter(&'static str),
    /// We accept what the reference refuses, because a rule of ours with this name says so.
    Looser(&'static str),
    /// Our answer is a better one, by a rule of ours with this name.
    Better(&'static str),
    /// Our types cannot hold the input.
    Skipped(ReadError),
    /// Our answer is another one. Kinds of answers only, no content.
    Different {
        /// The reference's answer.
        expected: String,
        /// Ours.
        got: String,
    },
}

impl Judgment {
    /// Compares two short answers.
    pub(crate) fn of(expected: impl Into<String>, got: impl Into<String>) -> Self {
        let (expected, got) = (expected.into(), got.into());
        if expected == got { Self::Equal } else { Self::Different { expected, got } }
    }

    /// Compares our complete answer with the reference's, both as the vector file spells them.
    pub(crate) fn of_answers(expect: &Value, got: &Value) -> Self {
        if expect == got {
            return Self::Equal;
        }
        let (mut expected, mut got) = (answer_kind(expect), answer_kind(got));
        if expected == got {
            expected.push_str(" (one value)");
            got.push_str(" (another value)");
        }
        Self::Different { expected, got }
    }

    /// For an input that our types cannot hold: when the reference refuses it for this very fault, the type
    /// system and the reference agree.
    pub(crate) fn unreadable(error: ReadError, refused_for_it: bool) -> Self {
        match error {
            ReadError::Malformed => {
                Self::Different { expected: "a readable vector".to_owned(), got: error.to_string() }
            }
            _ if refused_for_it => Self::Equal,
            _ => Self::Skipped(error),
        }
    }
}

/// The kind of an answer: `ok`, or what is refused, without any content.
pub(crate) fn answer_kind(expect: &Value) -> String {
    if expect["ok"] == Value::Bool(true) {
        return "ok".to_owned();
    }
    let parts = ["error", "reason", "kind", "reject", "field"].iter().filter_map(|key| match &expect[key] {
        Value::Null => None,
        Value::String(name) => Some(name.clone()),
        other => Some(format!("{key} {other}")),
    });
    let kind = parts.collect::<Vec<_>>().join(" ");
    if kind.is_empty() { expect.to_string() } else { kind }
}
