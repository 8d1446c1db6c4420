//! A definition file as a tree of values, each with its place in the text.
//!
//! TOML and JSON become the same tree, so that one set of structs reads both, and every fault has a line and a
//! column. The tree is never shown: it holds what the author wrote.

mod decode;
mod json;
mod toml;

use serde::de::DeserializeOwned;

use crate::{FileError, FilePlace, FileProblem, PlacePart};

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The deepest nesting of tables and lists that is read.
pub const MAX_FILE_DEPTH: usize = 32;

/// Some editors put it before a file in UTF-8. One is skipped, in either format, and counts for no column: nobody
/// sees it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// How a definition is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// TOML 1.
    Toml,
    /// JSON, without comments.
    Json,
}

impl FileFormat {
    /// What the bytes are meant to be: a definition in JSON starts with a brace, one in TOML cannot. A byte-order
    /// mark before it says nothing about the format.
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes);
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => Self::Json,
            _ => Self::Toml,
        }
    }

    /// The format's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Json => "JSON",
        }
    }
}

/// A parsed file.
pub(crate) struct Document<'a> {
    text: &'a str,
    root: Node,
}

/// A value and where it starts, in bytes.
pub(crate) struct Node {
    at: usize,
    value: Value,
}

/// A value.
pub(crate) enum Value {
    Null,
    Flag(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; no key stands twice.
    Table(Vec<Entry>),
    /// A date or a time, which no definition has.
    Other,
}

/// A key of a table with its value.
pub(crate) struct Entry {
    /// Where the key starts, in bytes.
    at: usize,
    key: String,
    value: Node,
}

/// A fault on its way out of the tree.
pub(crate) struct Fault {
    /// Where, in bytes; unknown until the fault passes something that has a place.
    at: Option<usize>,
    /// Innermost first.
    place: Vec<PlacePart>,
    problem: FileProblem,
}

impl Fault {
    fn at(at: usize, problem: FileProblem) -> Self {
        Self { at: Some(at), place: Vec::new(), problem }
    }
}

impl<'a> Document<'a> {
    /// Parses a file.
    pub(crate) fn parse(bytes: &'a [u8], format: FileFormat) -> Result<Self, FileError> {
        if bytes.len() > MAX_FILE_BYTES {
            let problem = FileProblem::TooLarge { limit: MAX_FILE_BYTES };
            return Err(FileError { line: 1, column: 1, place: FilePlace::default(), problem });
        }
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(fault) => {
                let (valid, _) = bytes.split_at(fault.valid_up_to());
                let before = String::from_utf8_lossy(valid);
                return Err(located(&before, Fault::at(before.len(), FileProblem::NotUtf8)));
            }
        };
        let root = match format {
            FileFormat::Toml => toml::parse(text),
            FileFormat::Json => json::parse(text),
        };
        root.map(|root| Self { text, root }).map_err(|fault| located(text, fault))
    }

    /// Reads the whole file as one definition.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        T::deserialize(&self.root).map_err(|fault| located(self.text, fault))
    }

    /// A fault that is found after decoding, at the value of a place; where there is no such value, at the
    /// innermost table around it.
    pub(crate) fn fault(&self, place: FilePlace, problem: FileProblem) -> FileError {
        let mut node = &self.root;
        for part in &place.0 {
            let inner = match (&node.value, part) {
                (Value::Table(entries), PlacePart::Key(key)) => {
                    entries.iter().find(|entry| entry.key == **key).map(|entry| &entry.value)
                }
                (Value::Table(entries), PlacePart::Entry(entry)) => {
                    entry.checked_sub(1).and_then(|at| entries.get(at)).map(|entry| &entry.value)
                }
                (Value::List(values), PlacePart::Entry(entry)) => {
                    entry.checked_sub(1).and_then(|at| values.get(at))
                }
                _ => None,
            };
            match inner {
                Some(inner) => node = inner,
                None => break,
            }
        }
        let (line, column) = position(self.text, node.at);
        FileError { line, column, place, problem }
    }
}

fn located(text: &str, fault: Fault) -> FileError {
    let Fault { at, mut place, problem } = fault;
    place.reverse();
    let (line, column) = position(text, at.unwrap_or(0));
    FileError { line, column, place: FilePlace(place), problem }
}

/// Line and column of a byte, from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let (mut line, mut column) = (1, 1);
    for (_, character) in text.char_indices().take_while(|(start, _)| *start < at) {
        if character == '\n' {
            line += 1;
            column = 1;
        } else {
            column += 1;
        }
    }
    (line, column)
}

#[cfg(test)]
mod tests;
