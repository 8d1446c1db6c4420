//! Why a session did not do what it was asked to.

use std::time::Duration;

use epitome_loop::{ContextMeasurement, FingerprintError, RejectionReason, TranscriptError};
use thiserror::Error;

use super::report::RejectionReport;
use crate::CountFailure;
use crate::journal::StableName;

/// A session did not do what it was asked to. The conversation is what it was, except where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// The journal failed, and it is not known whether this is durable. Opening the session again finds out.
    #[error("the journal failed, and it is not known whether this is durable")]
    Halted,
    /// Somebody else has opened the session since, in this process or another one. What was to be appended or taken back
    /// was not written; opening the session again takes it over in turn.
    #[error("somebody else has opened the session, and this handle writes no more")]
    TakenOver,
    /// Too much input waits for a compaction to end.
    #[error("too much input waits for a compaction to end")]
    HeldFull,
    /// There is no compaction to take back or to put in force again.
    #[error("there is no such compaction to take back or to put in force again")]
    NoSuchCompaction,
    /// There is no message in what is to be appended, or one that nests too deep.
    #[error("{0}")]
    Messages(TranscriptError),
    /// What is to be appended is too large for one record.
    #[error("the messages take {bytes} bytes; at most {limit} can be appended at once")]
    TooLarge {
        /// What it takes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// A request may not be sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The request does not fit, and no compaction makes it fit.
    #[error("the request takes {}, and no compaction makes it fit{}", taken(measurement, *over_bytes),
        because(refused.as_ref(), detail.as_ref()))]
    ContextLimit {
        /// The request.
        measurement: Box<ContextMeasurement>,
        /// Its bytes, when it is they that do not fit.
        over_bytes: Option<OverBytes>,
        /// Whether no compaction will be tried until the context has become smaller or the user acts.
        exhausted: bool,
        /// After how long another one would be tried.
        retry_after: Option<Duration>,
        /// Why the last one was refused.
        refused: Option<RejectionReason>,
        /// The finer cause of that, where it is known and the session was not opened again since.
        detail: Option<StableName>,
    },
    /// The request could not be counted.
    #[error("the request could not be counted: {0}")]
    Count(CountFailure),
    /// The request cannot be identified.
    #[error("{0}")]
    Fingerprint(FingerprintError),
    /// What the host adds at the end of the request nests too deep.
    #[error("the end of the request: {0}")]
    RuntimeTail(TranscriptError),
    /// There is nothing to send: nothing was ever appended.
    #[error("nothing was appended yet")]
    Empty,
    /// The request did not get to wait for the compaction that is under way.
    #[error("the request cannot wait for a compaction: {0}")]
    NotAdmitted(RejectionReason),
    /// The conversation changed each time that the request was measured.
    #[error("the conversation changed {rounds} times while the request was measured")]
    Unsettled {
        /// How often it was measured.
        rounds: u32,
    },
    /// The session has ended, or its journal failed.
    #[error("{0}")]
    Session(SessionError),
}

/// A request with more bytes than the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBytes {
    /// What it has, in core form.
    pub bytes: u64,
    /// What the policy allows.
    pub limit: u64,
}

fn taken(measurement: &ContextMeasurement, over_bytes: Option<OverBytes>) -> String {
    let ContextMeasurement { input_tokens, input_limit, .. } = measurement;
    match over_bytes {
        Some(OverBytes { bytes, limit }) => format!("{bytes} bytes where {limit} are allowed"),
        None => format!("{input_tokens} of {input_limit} tokens"),
    }
}

fn because(refused: Option<&RejectionReason>, detail: Option<&StableName>) -> String {
    let Some(reason) = refused else { return String::new() };
    let detail = detail.map_or_else(String::new, |detail| format!(", {detail}"));
    format!(" (the last one was refused: {reason}{detail})")
}

/// There was no compaction. The context is what it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompactError {
    /// The attempt was refused.
    #[error("the compaction was refused: {}{}", .0.reason, detail(.0))]
    Rejected(RejectionReport),
    /// The command did not get to wait for an attempt.
    #[error("no compaction could be asked for: {0}")]
    NotAdmitted(RejectionReason),
    /// The session has ended, or its journal failed.
    #[error("{0}")]
    Session(SessionError),
}

fn detail(report: &RejectionReport) -> String {
    report.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"))
}

impl From<SessionError> for AdmitError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<SessionError> for CompactError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}
