//! A file that cannot be read: where, and why. Nothing of the file is in it.

use std::borrow::Cow;
use std::fmt;

use epitome_loop::{CompactionPolicyError, HustleNameError, PolicyField};
use thiserror::Error;

use crate::{RigErrorKind, WindowUnknown};

/// A file that defines something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}{}: {problem}", in_place(place))]
pub struct FileError {
    /// Line of the fault, from 1.
    pub line: usize,
    /// Column of the fault in characters, from 1.
    pub column: usize,
    /// The key that is at fault, or the table that holds it. Names that the file's author chose are counted, not
    /// named.
    pub place: FilePlace,
    /// What is wrong there.
    pub problem: FileProblem,
}

fn in_place(place: &FilePlace) -> String {
    if place.0.is_empty() { String::new() } else { format!(", {place}") }
}

/// A path of keys, outermost first; empty for the whole file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FilePlace(pub Vec<PlacePart>);

/// One step of a [`FilePlace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlacePart {
    /// A key that the format defines.
    Key(&'static str),
    /// An entry of a list, or of a table whose keys are names: the how manyth, from 1.
    Entry(usize),
}

impl FilePlace {
    /// The place of these keys.
    #[must_use]
    pub fn of(keys: &[&'static str]) -> Self {
        Self(keys.iter().map(|key| PlacePart::Key(key)).collect())
    }
}

impl fmt::Display for FilePlace {
    /// For example `loops[2].compaction.compact_at`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            match part {
                PlacePart::Key(key) if at == 0 => f.write_str(key)?,
                PlacePart::Key(key) => write!(f, ".{key}")?,
                PlacePart::Entry(entry) => write!(f, "[{entry}]")?,
            }
        }
        Ok(())
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// It is larger than such a file may be.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("this is not UTF-8")]
    NotUtf8,
    /// It is neither TOML nor JSON.
    #[error("this is not valid {format}")]
    Syntax {
        /// As what it was read.
        format: &'static str,
    },
    /// Tables or lists nest too deep.
    #[error("nested deeper than {limit} levels")]
    TooDeep {
        /// The most levels.
        limit: usize,
    },
    /// A key stands twice in one table.
    #[error("this key is given twice")]
    DuplicateKey,
    /// A key without a meaning.
    #[error("unknown key; known here are {}", known.join(", "))]
    UnknownKey {
        /// The keys that have one.
        known: &'static [&'static str],
    },
    /// A key that must be given is not.
    #[error("the key {key} is missing")]
    MissingKey {
        /// Which.
        key: &'static str,
    },
    /// A word without a meaning.
    #[error("unknown word; known here are {}", known.join(", "))]
    UnknownWord {
        /// The words that have one.
        known: &'static [&'static str],
    },
    /// The value is of another kind or out of range.
    #[error("expected {what}")]
    Expected {
        /// What may stand here, in words.
        what: Cow<'static, str>,
    },
    /// The values contradict each other or a rule of compaction policies.
    #[error("{}", broken_rule(*.0))]
    Policy(CompactionPolicyError),
    /// The policy depends on the window of its loop's model.
    #[error("{0}")]
    WindowUnknown(WindowUnknown),
    /// Nothing was found under the name of a prompt's file.
    #[error("this prompt file cannot be read")]
    PromptFile,
    /// The definitions do not make a rig.
    #[error("{0}")]
    Rig(RigErrorKind),
}

/// The rule in the words of the file's keys.
fn broken_rule(error: CompactionPolicyError) -> &'static str {
    match (error.field, error.cause) {
        (_, Some(HustleNameError::Missing)) => "is missing",
        (_, Some(_)) => "is a reserved name",
        (PolicyField::Fallback, _) => "must be another hustle than hustle",
        (PolicyField::SafetyMargin, _) => "must not be zero with a counter that estimates",
        (PolicyField::RearmBelow, _) => "must be above 0 and below compact_at",
        (PolicyField::CompactAt, _) => "must be below 100%",
        (PolicyField::CounterPolicy, _) => "does not admit the counter",
        _ => "must not be zero",
    }
}

impl FileProblem {
    /// The stable name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::NotUtf8 => "not_utf8",
            Self::Syntax { .. } => "syntax",
            Self::TooDeep { .. } => "too_deep",
            Self::DuplicateKey => "duplicate_key",
            Self::UnknownKey { .. } => "unknown_key",
            Self::MissingKey { .. } => "missing_key",
            Self::UnknownWord { .. } => "unknown_word",
            Self::Expected { .. } => "unexpected_value",
            Self::Policy(_) => "policy",
            Self::WindowUnknown(_) => "window_unknown",
            Self::PromptFile => "prompt_file",
            Self::Rig(kind) => kind.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_and_why() {
        let place = FilePlace(vec![
            PlacePart::Key("loops"),
            PlacePart::Entry(2),
            PlacePart::Key("compaction"),
            PlacePart::Key("compact_at"),
        ]);
        let problem = FileProblem::Expected { what: "a share".into() };
        let error = FileError { line: 3, column: 14, place, problem };
        assert_eq!(error.to_string(), "line 3, column 14, loops[2].compaction.compact_at: expected a share");
        let whole =
            FileError { line: 1, column: 1, place: FilePlace::default(), problem: FileProblem::NotUtf8 };
        assert_eq!(whole.to_string(), "line 1, column 1: this is not UTF-8");
        assert_eq!(FilePlace::of(&["a", "b"]).to_string(), "a.b");
    }
}
