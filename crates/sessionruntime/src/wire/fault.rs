//! Why a document is not wire v1: a closed reason, a part, and a place. Never any of its content.

use epitome_loop::json_scan::{JsonFault, JsonFaultKind};
use epitome_loop::json_string::{JsonStringFault, JsonStringFaultKind};
use thiserror::Error;

/// A document is refused as wire v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{part}: {fault} (at byte {at})")]
pub struct WireError {
    /// Which part of the document is at fault.
    pub part: WirePart,
    /// What is wrong.
    pub fault: WireFault,
    /// Where, in bytes from the start. For something that is missing, the end of what should hold it; for a
    /// value that is wrong as a whole, its start.
    pub at: usize,
}

/// A part of a document. The names are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WirePart {
    /// The document itself: its JSON, its keys, the types of its values, its version.
    Wire,
    /// The basis is written well, but is none.
    Basis,
    /// The model is written well, but a part of it is empty.
    Model,
    /// The request fingerprint is a string, but no fingerprint.
    RequestFingerprint,
    /// The transcript is JSON, but not a list of messages that can be worked on.
    Transcript,
    /// The summary's budget is zero.
    MaxSummaryTokens,
}

impl WirePart {
    /// The stable name; for every part but the document itself it is the key on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Basis => "basis",
            Self::Model => "model",
            Self::RequestFingerprint => "request_fingerprint",
            Self::Transcript => "transcript",
            Self::MaxSummaryTokens => "max_summary_tokens",
        }
    }
}

impl std::fmt::Display for WirePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum WireFault {
    /// The bytes are not UTF-8.
    #[error("not UTF-8")]
    Utf8,
    /// Not JSON, or something behind the document.
    #[error("not JSON")]
    Syntax,
    /// More levels of objects and arrays than [`epitome_loop::json_scan::MAX_JSON_DEPTH`].
    #[error("nested too deep")]
    Depth,
    /// A key that has no place here.
    #[error("a key that is not known here")]
    UnknownKey,
    /// A key that differs from a known one in upper and lower case alone.
    #[error("a key that differs from a known one in case alone")]
    KeyCase,
    /// The same key twice in one object.
    #[error("a key stands twice")]
    DuplicateKey,
    /// A key that must be there is not.
    #[error("a key is missing")]
    MissingKey,
    /// `null` where a value must stand.
    #[error("null where a value must stand")]
    Null,
    /// A value of another type.
    #[error("a value of another type")]
    WrongType,
    /// A number that is not a whole one from 0 to 2^64 - 1 in plain digits.
    #[error("not a whole number from 0 to 2^64 - 1")]
    Number,
    /// A version that this crate does not read.
    #[error("another version")]
    Version,
    /// A string with half of a surrogate pair, which is no text.
    #[error("half of a surrogate pair")]
    LoneSurrogate,
    /// Not the canonical text of an event id.
    #[error("not a canonical event id")]
    EventId,
    /// Not 64 lower-case hex digits.
    #[error("not 64 lower-case hex digits")]
    Fingerprint,
    /// Not standard base64 with padding and nothing else.
    #[error("not canonical base64")]
    Base64,
    /// A role or a type of block that is not known.
    #[error("an unknown role or block type")]
    UnknownName,
    /// Tool results inside tool results, deeper than [`epitome_loop::MAX_BLOCK_DEPTH`].
    #[error("tool results nest too deep")]
    Nesting,
    /// Zero or empty where an identity, a budget or a message must be.
    #[error("zero or empty")]
    Empty,
}

/// A fault and its place, before it is known which part it counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) what: WireFault,
    pub(crate) at: usize,
}

impl Fault {
    pub(crate) fn new(what: WireFault, at: usize) -> Self {
        Self { what, at }
    }

    /// Whether it makes the whole document unreadable, whatever part it is in.
    pub(crate) fn spoils_the_document(self) -> bool {
        matches!(self.what, WireFault::Utf8 | WireFault::Syntax | WireFault::Depth)
    }

    pub(super) fn of(self, part: WirePart) -> WireError {
        WireError { part, fault: self.what, at: self.at }
    }
}

impl From<JsonStringFault> for Fault {
    fn from(fault: JsonStringFault) -> Self {
        let what = match fault.kind {
            JsonStringFaultKind::Syntax => WireFault::Syntax,
            JsonStringFaultKind::LoneSurrogate => WireFault::LoneSurrogate,
        };
        Self { what, at: fault.at }
    }
}

impl From<JsonFault> for Fault {
    fn from(fault: JsonFault) -> Self {
        let what = match fault.kind {
            JsonFaultKind::Syntax => WireFault::Syntax,
            JsonFaultKind::Depth => WireFault::Depth,
        };
        Self { what, at: fault.at }
    }
}
