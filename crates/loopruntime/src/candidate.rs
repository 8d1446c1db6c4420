//! The candidate of a compaction: the head that would be summarized, chosen and projected.

use epitome_loop::{KeepRecent, Message};
use thiserror::Error;

use crate::projection::{Projection, ProjectionError, project};
use crate::tail::{TailError, select_tail};

/// A head that is ready for a summarizer, and how much stays behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How many messages are kept.
    pub retained: usize,
    /// The projected head.
    pub transcript: Vec<Message>,
}

/// There is no candidate: compaction is unavailable for this transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("compaction is unavailable: {reason}")]
pub struct CandidateRefused {
    /// Why.
    pub reason: Unavailable,
    /// How many messages would have been kept; 0 when no tail could be chosen.
    pub retained: usize,
}

/// Why compaction is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The tail cannot be chosen.
    #[error("{0}")]
    Tail(TailError),
    /// Everything is kept, or only an earlier summary would be summarized.
    #[error("there is nothing to summarize")]
    NothingToCompact,
    /// The head cannot be projected.
    #[error("{0}")]
    Projection(ProjectionError),
}

/// Chooses the tail and projects the head, with reference marks.
///
/// # Errors
/// [`CandidateRefused`] when the tail cannot be chosen, nothing is left to summarize, or the head cannot be
/// projected.
pub fn choose_candidate(
    transcript: &[Message],
    derived_prefix: usize,
    keep: KeepRecent,
) -> Result<Candidate, CandidateRefused> {
    let choice = select_tail(transcript, derived_prefix, keep)
        .map_err(|fault| CandidateRefused { reason: Unavailable::Tail(fault), retained: 0 })?;
    let retained = transcript.len() - choice.head;
    if choice.head <= derived_prefix {
        return Err(CandidateRefused { reason: Unavailable::NothingToCompact, retained });
    }
    let head = transcript.get(..choice.head).unwrap_or_default();
    match project(head, Projection::Reference) {
        Ok(transcript) => Ok(Candidate { retained, transcript }),
        Err(fault) => Err(CandidateRefused { reason: Unavailable::Projection(fault), retained }),
    }
}
