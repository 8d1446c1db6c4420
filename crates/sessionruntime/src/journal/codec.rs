//! Records as bytes: JSON that says its version and its kind first.
//!
//! `{"version":4,"kind":"...","at":NANOSECONDS,"body":{...}}`. Whatever a session can hold comes back equal: raw JSON
//! stands in strings, byte for byte, and large media are named by their digest. It is written and read by hand, as
//! the wire is: a derived reader stops at 128 levels, and messages may have more.

mod content_read;
mod content_write;
mod read;
mod write;

use std::collections::BTreeMap;

use epitome_loop::{SessionId, SharedBytes};
use thiserror::Error;

use self::content_read::Media;
use super::{BlobDigest, EncodedRecord, JournalRecord, StoredRecord, checksum};
use crate::wire::{Fault, WireFault};

/// The version of the records that are written. Every version from 1 to this one is read.
pub const RECORD_VERSION: u64 = 4;

/// A record cannot be written or read. Nothing of its content is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{fault} (at byte {at})")]
pub struct CodecError {
    /// What is wrong.
    pub fault: CodecFault,
    /// Where, in bytes from the start of the record; 0 when it is about the whole.
    pub at: usize,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum CodecFault {
    /// It was written by a newer version of this software. Its meaning is not guessed.
    #[error("record version {found}, and this software knows up to {RECORD_VERSION}")]
    NewerVersion {
        /// Its version.
        found: u64,
    },
    /// It says that it has version 0, or none.
    #[error("no record version")]
    NoVersion,
    /// Its bytes, its id, its place or its session are not those that were written.
    #[error("the checksum does not fit")]
    Checksum,
    /// Media that it refers to were not given, or are not what their digest says.
    #[error("media that it refers to are not there")]
    MissingBlob,
    /// It is of a kind that is not known in its version.
    #[error("a kind of record or block that is not known")]
    UnknownKind,
    /// It is not written as records are.
    #[error("{0}")]
    Json(WireFault),
}

/// Writes a record.
///
/// # Errors
/// [`CodecError`] when blocks nest deeper than [`epitome_loop::MAX_BLOCK_DEPTH`], or are of a kind that is not known.
pub fn encode_record(record: &JournalRecord) -> Result<EncodedRecord, CodecError> {
    write::record(record)
}

/// Reads a record of this session, with the media that it refers to.
///
/// # Errors
/// [`CodecError`].
pub fn decode_record(
    session: SessionId,
    stored: &StoredRecord,
    blobs: &BTreeMap<BlobDigest, SharedBytes>,
) -> Result<JournalRecord, CodecError> {
    check(session, stored)?;
    let mut media = Media::new(blobs);
    let record = read::record(stored, &mut media)?;
    if media.missing.is_empty() { Ok(record) } else { Err(CodecFault::MissingBlob.at(0)) }
}

/// The media that a record refers to, each once, in the order of their first mention.
///
/// # Errors
/// [`CodecError`].
pub fn referred_blobs(session: SessionId, stored: &StoredRecord) -> Result<Vec<BlobDigest>, CodecError> {
    decode_without_media(session, stored).map(|(_, digests)| digests)
}

/// Reads a record without what stands outside it: media that it refers to are empty, and so is the file of an
/// import. With it come the digests of what is missing, each once, in the order of their first mention.
///
/// # Errors
/// [`CodecError`].
pub fn decode_without_media(
    session: SessionId,
    stored: &StoredRecord,
) -> Result<(JournalRecord, Vec<BlobDigest>), CodecError> {
    check(session, stored)?;
    let none = BTreeMap::new();
    let mut media = Media::new(&none);
    let record = read::record(stored, &mut media)?;
    Ok((record, media.missing))
}

fn check(session: SessionId, stored: &StoredRecord) -> Result<(), CodecError> {
    if checksum(session, stored.sequence, stored.id, &stored.body) == stored.checksum {
        Ok(())
    } else {
        Err(CodecFault::Checksum.at(0))
    }
}

impl CodecFault {
    fn at(self, at: usize) -> CodecError {
        CodecError { fault: self, at }
    }
}

impl From<Fault> for CodecError {
    fn from(fault: Fault) -> Self {
        CodecFault::Json(fault.what).at(fault.at)
    }
}
