//! Why a transcript cannot be read or written. Nothing of its content is in an error.

use thiserror::Error;

use crate::{ForeignFormat, Format};

/// A transcript cannot be read. Message indexes count from 0 within the list of messages in the file; for
/// session files they count records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is nothing but white space.
    #[error("the input is empty")]
    Empty,
    /// The input is not JSON, and no whole record could be recovered from it.
    #[error("not valid JSON at line {line}, byte {offset}")]
    Syntax {
        /// Line of the first byte that cannot be read, from 1.
        line: u64,
        /// Its offset, from 0.
        offset: u64,
    },
    /// Tool results nest deeper than [`epitome_loop::MAX_BLOCK_DEPTH`].
    #[error("message {message}: tool results nest too deep")]
    TooDeep {
        /// Index of the message.
        message: usize,
    },
    /// The input is JSON, but no known transcript.
    #[error("the format is not known")]
    UnknownFormat,
    /// The input is a known transcript that cannot be read yet.
    #[error("this is recognized as {format}, which is not supported yet")]
    NotSupportedYet {
        /// What it is.
        format: ForeignFormat,
    },
    /// The input does not have the shape of the format that was asked for.
    #[error("the input does not have the shape of {format}")]
    NotThisFormat {
        /// What was asked for.
        format: Format,
    },
    /// The input holds several conversations, and none was chosen.
    #[error("the input holds {count} conversations; choose one")]
    Conversations {
        /// How many there are.
        count: usize,
    },
    /// The chosen conversation does not exist.
    #[error("there is no conversation {index}; the input holds {count}, counted from 0")]
    NoSuchConversation {
        /// What was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A message has a role that the format does not know. A guess could put words into the wrong mouth.
    #[error("message {message}: the role is not known")]
    UnknownRole {
        /// Index of the message.
        message: usize,
    },
    /// An element of the list of messages is not a message, or a part of it has a wrong type.
    #[error("message {message}: not a message of this format")]
    NotAMessage {
        /// Index of the message.
        message: usize,
    },
    /// The request holds only what is new: the rest of the conversation is kept by the provider, so that neither
    /// its size nor a summary of it can be told from the file.
    #[error(
        "the request continues a conversation that the provider keeps; the file holds its newest part only"
    )]
    HistoryOnServer,
    /// An Epitome JSON of a version that this release does not know.
    #[error("Epitome JSON version {version}; this release reads version 1")]
    UnknownVersion {
        /// The version in the file.
        version: u64,
    },
}

/// A transcript cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The kept indexes do not ascend, or one is not that of a message.
    #[error("kept index number {position} does not ascend or is out of range")]
    Kept {
        /// Position in the list of kept indexes.
        position: usize,
    },
    /// The summary says nothing.
    #[error("the summary is blank")]
    BlankSummary,
}
