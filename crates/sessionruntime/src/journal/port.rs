//! The port to a journal. It keeps bytes; what they mean is not its business.

use std::fmt;

use async_trait::async_trait;
use epitome_loop::{EventId, SessionId, SharedBytes};
use sha2::{Digest as _, Sha256};

use super::{Blob, BlobDigest, JournalError};

/// The place of a record in its session: 1, 2, 3 and so on, without gaps.
pub type Sequence = u64;

/// A page holds at most this many bytes of records, but at least one record.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// Where the records of sessions are kept.
///
/// Implementations stand in `epitome-journals`; [`super::MemoryJournal`] forgets everything with the process. All of
/// them obey the same laws. Dropping a future loses the answer alone: what it asked for may have been done.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Opens a session for writing, and makes it if it is not there. Whoever wrote to it before has a stale lease
    /// from now on, in this process or any other.
    ///
    /// # Errors
    /// [`JournalError`] when the store fails.
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError>;

    /// Appends records, all or none. They are durable when this returns. A record whose id is in the session already,
    /// or stands before it in the same call, with the same bytes is acknowledged where it stands, and not written again.
    ///
    /// # Errors
    /// [`JournalError`]; where [`JournalError::is_refusal`] says so, nothing was written.
    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError>;

    /// Reads records from a place in the sequence on, as they were stored: nothing is checked.
    ///
    /// # Errors
    /// [`JournalError::UnknownSession`] and faults of the store.
    async fn read(&self, session: SessionId, from: Sequence, limit: PageLimit) -> Result<Page, JournalError>;

    /// Where the record with this id stands, if it is there: whether something was durable that was not acknowledged.
    ///
    /// # Errors
    /// [`JournalError::UnknownSession`] and faults of the store.
    async fn find(&self, session: SessionId, id: EventId) -> Result<Option<Sequence>, JournalError>;

    /// Reads media that records of the session refer to, in the order of the digests; nothing is checked.
    ///
    /// # Errors
    /// [`JournalError::MissingBlob`] when the session does not refer to one of them.
    async fn blobs(
        &self,
        session: SessionId,
        digests: Vec<BlobDigest>,
    ) -> Result<Vec<SharedBytes>, JournalError>;

    /// The sessions behind this one, ordered by their ids' bytes, at most `most`.
    ///
    /// # Errors
    /// [`JournalError`] when the store fails.
    async fn sessions(&self, behind: Option<SessionId>, most: u32)
    -> Result<Vec<SessionEntry>, JournalError>;

    /// Removes a session: its records, and those media that no other session refers to. Leases of it are stale from
    /// now on. A session that is not there is no fault.
    ///
    /// # Errors
    /// [`JournalError`] when the store fails.
    async fn purge(&self, session: SessionId) -> Result<Purged, JournalError>;
}

/// Leave to write to a session, until somebody else opens it for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriterLease {
    /// Which session.
    pub session: SessionId,
    /// The fencing token: higher than any before it, in this journal.
    pub token: u64,
}

/// A record as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRecord {
    /// Its id.
    pub id: EventId,
    /// Its bytes.
    pub body: SharedBytes,
    /// The media that it refers to, each once, in the order of their first mention.
    pub blobs: Vec<Blob>,
}

/// A record as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its place.
    pub sequence: Sequence,
    /// Its id.
    pub id: EventId,
    /// Its bytes.
    pub body: SharedBytes,
    /// What [`checksum`] gave when it was written.
    pub checksum: Checksum,
}

/// A record is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Acknowledged {
    /// Where it stands.
    pub sequence: Sequence,
    /// Whether it was there before.
    pub was_there: bool,
}

/// How much a page may hold. At least one record is given where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageLimit {
    /// So many records, at least 1.
    pub records: u32,
    /// So many bytes of records, at most [`MAX_PAGE_BYTES`].
    pub bytes: usize,
}

impl Default for PageLimit {
    fn default() -> Self {
        Self { records: 1_024, bytes: 1 << 20 }
    }
}

impl PageLimit {
    /// The limits as they are kept to.
    #[must_use]
    pub fn within_bounds(self) -> Self {
        Self { records: self.records.max(1), bytes: self.bytes.min(MAX_PAGE_BYTES) }
    }
}

/// Some records of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The records, in order.
    pub records: Vec<StoredRecord>,
    /// From where to read on; `None` when there was nothing more.
    pub next: Option<Sequence>,
}

/// A session that a journal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionEntry {
    /// Which.
    pub session: SessionId,
    /// The place of its last record; 0 when it has none.
    pub last: Sequence,
}

/// What a purge removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Purged {
    /// So many records.
    pub records: u64,
    /// So many media.
    pub blobs: u64,
}

/// The first half of a SHA-256. It finds damage; it is no signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum([u8; 16]);

impl Checksum {
    /// The checksum with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The checksum's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The checksum of a record. It covers the place as well, so that a record in the wrong place or session is found.
#[must_use]
pub fn checksum(session: SessionId, sequence: Sequence, id: EventId, body: &[u8]) -> Checksum {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(session.as_bytes())
        .chain_update(sequence.to_be_bytes())
        .chain_update(id.as_bytes())
        .chain_update(body)
        .finalize()
        .into();
    Checksum(digest.first_chunk().copied().unwrap_or_default())
}
