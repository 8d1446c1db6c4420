//! Whether a session in a journal is whole.

use epitome_loop::{SessionId, Trigger};
use thiserror::Error;

use super::codec::decode_without_media;
use super::restore::whole_blobs;
use super::{
    CodecFault, Journal, JournalError, PageLimit, ReplayFault, Sequence, SessionState, StoredRecord,
};

/// More findings than this are counted alone.
const MOST_FINDINGS: usize = 100;

/// What was found in a session.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// So many records were looked at.
    pub records: u64,
    /// They take so many bytes.
    pub bytes: u64,
    /// They refer to media so many times.
    pub blobs: u64,
    /// What is wrong, in order; at most the first 100.
    pub findings: Vec<Finding>,
    /// How many findings there are.
    pub found: u64,
}

/// Something is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("record {sequence}: {kind}")]
pub struct Finding {
    /// Its place.
    pub sequence: Sequence,
    /// What is wrong.
    pub kind: FindingKind,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum FindingKind {
    /// Records are missing in front of it; so many.
    #[error("{0} records are missing in front of it")]
    Gap(u64),
    /// The session should go on here and does not, or goes on beyond its end: part of the store is lost.
    #[error("the session should have {recorded} records, and {found} are found")]
    Incomplete {
        /// So many were written, as the store knows it.
        recorded: u64,
        /// So many are found.
        found: u64,
    },
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(CodecFault),
    /// Media that it refers to, or the file of an import, are not there, or are not what their digest says.
    #[error("media or a file that it refers to are missing or damaged")]
    Media,
    /// It does not follow from those before it. What stands behind it is not judged in this respect.
    #[error("{0}")]
    Replay(ReplayFault),
}

impl VerifyReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.found == 0
    }

    fn note(&mut self, sequence: Sequence, kind: FindingKind) {
        self.found += 1;
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(Finding { sequence, kind });
        }
    }
}

/// Looks at every record of a session: places, checksums, versions, content, media, and whether each follows from those
/// before it. Memory is bounded by a page.
///
/// # Errors
/// [`JournalError`] when the journal fails; what is wrong with records is in the report.
pub async fn verify_session(journal: &dyn Journal, session: SessionId) -> Result<VerifyReport, JournalError> {
    let mut report = VerifyReport::default();
    // Levels do not matter here, so any trigger will do.
    let mut state = Some(SessionState::new(Trigger::Manual));
    let (mut next, mut expected) = (Some(1), 1);
    while let Some(from) = next {
        let page = match journal.read(session, from, PageLimit::default()).await {
            Ok(page) => page,
            // Everything that can be read was looked at before.
            Err(JournalError::Incomplete { recorded, found }) => {
                report.note(expected, FindingKind::Incomplete { recorded, found });
                return Ok(report);
            }
            Err(error) => return Err(error),
        };
        for stored in &page.records {
            let StoredRecord { sequence, body, .. } = stored;
            if *sequence != expected {
                report.note(*sequence, FindingKind::Gap(sequence.saturating_sub(expected)));
                state = None;
            }
            expected = sequence.saturating_add(1);
            report.records += 1;
            report.bytes += body.len() as u64;
            match decode_without_media(session, stored) {
                Err(error) => {
                    report.note(*sequence, FindingKind::Unreadable(error.fault));
                    state = None;
                }
                Ok((record, digests)) => {
                    report.blobs += digests.len() as u64;
                    if !digests.is_empty() && !are_whole(journal, session, digests).await? {
                        report.note(*sequence, FindingKind::Media);
                    }
                    state = match state.map(|state| state.apply(*sequence, &record)) {
                        Some(Ok(state)) => Some(state),
                        Some(Err(error)) => {
                            report.note(*sequence, FindingKind::Replay(error.fault));
                            None
                        }
                        None => None,
                    };
                }
            }
        }
        next = page.next;
    }
    Ok(report)
}

async fn are_whole(
    journal: &dyn Journal,
    session: SessionId,
    digests: Vec<super::BlobDigest>,
) -> Result<bool, JournalError> {
    match whole_blobs(journal, session, digests).await {
        Ok(blobs) => Ok(blobs.is_some()),
        Err(JournalError::MissingBlob) => Ok(false),
        Err(error) => Err(error),
    }
}
