//! What a reader noticed and the user should know.

use std::fmt;

/// Something that a reader noticed. A note has numbers and nothing of the content; message indexes are those
/// of [`crate::Session::messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Note {
    /// Bytes that are no JSON value were passed over.
    Damaged {
        /// Line on which the stretch begins, from 1.
        line: u64,
        /// Offset of its first byte, from 0.
        offset: u64,
        /// How many bytes it takes.
        bytes: u64,
    },
    /// The last record is not whole: another program is still writing it, or was stopped. What stands before it
    /// was read.
    UnfinishedTail {
        /// Offset of its first byte, from 0.
        offset: u64,
        /// How many bytes of it there are.
        bytes: u64,
    },
    /// Halves of surrogate pairs were replaced by U+FFFD; the message is re-encoded when it is written.
    LoneSurrogates {
        /// Index of the message.
        message: usize,
        /// How many were replaced.
        count: u64,
    },
    /// Text was not UTF-8 and was repaired with U+FFFD; the message is re-encoded when it is written.
    InvalidUtf8 {
        /// Index of the message.
        message: usize,
        /// How many strings were repaired.
        count: u64,
    },
    /// A key occurs twice in one object; the last value counts.
    DuplicateKeys {
        /// Index of the message.
        message: usize,
    },
    /// An image, a recording or a file is not valid base64 and is kept as an opaque item.
    InvalidBase64 {
        /// Index of the message.
        message: usize,
    },
    /// Records that are never sent to the model: settings, labels, events.
    SideRecords {
        /// How many.
        count: u64,
    },
    /// JSON values that are no records of this format.
    StrayValues {
        /// How many.
        count: u64,
    },
    /// Turns that were aborted before the model said anything; they are not sent.
    AbortedMessages {
        /// How many.
        count: u64,
    },
    /// Records on branches that were left.
    OtherBranches {
        /// How many records.
        count: u64,
    },
    /// Records of other agents, which the conversation started and whose messages it does not send.
    SubAgentRecords {
        /// How many.
        count: u64,
    },
    /// Messages that the program wrote in the model's name, such as errors; they are not sent.
    SyntheticMessages {
        /// How many.
        count: u64,
    },
    /// Attachments that the program turns into text when it sends them. That text is not in the file, so it is
    /// not counted.
    Attachments {
        /// How many.
        count: u64,
        /// The size of what the file holds of them.
        bytes: u64,
    },
    /// Records that name a parent that is not in the file; each continues the record before it.
    MissingParents {
        /// How many.
        count: u64,
    },
    /// Records that stand more than once in the file; the last one of each counts.
    RepeatedRecords {
        /// How many were passed over.
        count: u64,
    },
    /// An earlier compaction left no summary in the file, so what is sent is more than what was read.
    SummaryNotInFile,
    /// Messages that an earlier compaction replaced; they are not sent any more.
    BeforeCompaction {
        /// How many messages.
        count: u64,
    },
    /// A log in which every request repeats the history; the last request counts.
    RepeatedHistory {
        /// How many requests the conversation has in the log.
        requests: u64,
    },
    /// The last request's reply is in a form that cannot be read; the conversation ends before it.
    ReplyNotRead,
    /// Items that only refer to what the provider keeps; how large that is cannot be known.
    OnServer {
        /// How many.
        count: u64,
    },
    /// Turns that the user took back; they are not sent any more.
    RolledBack {
        /// How many records.
        count: u64,
    },
    /// Items of a kind that is not known; they are kept as they are.
    UnknownItems {
        /// How many.
        count: u64,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { line, offset, bytes } => {
                write!(f, "line {line}, byte {offset}: {bytes} bytes are damaged and were passed over")
            }
            Self::UnfinishedTail { offset, bytes } => write!(
                f,
                "byte {offset}: the last record is unfinished ({bytes} bytes) and was not read; another program \
                 may still be writing it"
            ),
            Self::LoneSurrogates { message, count } => {
                write!(f, "message {message}: {count} halves of surrogate pairs were replaced")
            }
            Self::InvalidUtf8 { message, count } => {
                write!(f, "message {message}: {count} strings were not UTF-8 and were repaired")
            }
            Self::DuplicateKeys { message } => {
                write!(f, "message {message}: a key occurs twice; the last value counts")
            }
            Self::InvalidBase64 { message } => {
                write!(f, "message {message}: an attachment is not valid base64 and is kept as it is")
            }
            Self::SideRecords { count } => write!(f, "{count} records are not part of what is sent"),
            Self::StrayValues { count } => write!(f, "{count} JSON values are no records"),
            Self::AbortedMessages { count } => {
                write!(f, "{count} aborted turns without content are not sent")
            }
            Self::OtherBranches { count } => write!(f, "{count} records are on branches that were left"),
            Self::SubAgentRecords { count } => {
                write!(f, "{count} records of other agents are not part of this conversation")
            }
            Self::SyntheticMessages { count } => {
                write!(f, "{count} messages that the program wrote in the model's name are not sent")
            }
            Self::Attachments { count, bytes } => write!(
                f,
                "{count} attachments ({bytes} bytes in the file) are sent in a form that is not in the file, and \
                 are not counted"
            ),
            Self::MissingParents { count } => write!(
                f,
                "{count} records name a parent that is not in the file; each continues the record before it"
            ),
            Self::RepeatedRecords { count } => {
                write!(f, "{count} records stand in the file again; the last one of each counts")
            }
            Self::SummaryNotInFile => {
                f.write_str("the summary of an earlier compaction is not in the file, and is not counted")
            }
            Self::BeforeCompaction { count } => {
                write!(f, "{count} messages were replaced by an earlier compaction")
            }
            Self::RepeatedHistory { requests } => {
                write!(f, "{requests} requests repeat the history; the last one counts")
            }
            Self::ReplyNotRead => f.write_str("the last reply is in a form that cannot be read"),
            Self::OnServer { count } => {
                write!(f, "{count} items are kept by the provider; their size is not known")
            }
            Self::RolledBack { count } => write!(f, "{count} records belong to turns that were taken back"),
            Self::UnknownItems { count } => {
                write!(f, "{count} items of a kind that is not known are kept as they are")
            }
        }
    }
}
