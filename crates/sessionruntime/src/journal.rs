//! What a session writes down so that nothing is lost: the port to a journal, its records, and what they add up to.
//!
//! A journal keeps, for each session, records in a sequence without gaps. It knows a record as an id, bytes and the
//! media that the bytes refer to; [`encode_record`] and [`decode_record`] give the bytes their meaning, and
//! [`SessionState`] adds the meanings up. `docs/journal.md` describes all of it.

mod blob;
mod codec;
mod error;
mod memory;
mod message_search;
mod port;
mod record;
mod restore;
mod stable_name;
mod state;
mod verify;

pub use blob::{Blob, BlobDigest, LARGEST_INLINE_MEDIA};
pub use codec::{
    CodecError, CodecFault, RECORD_VERSION, decode_record, decode_without_media, encode_record,
    referred_blobs,
};
pub use error::JournalError;
pub use memory::MemoryJournal;
pub use message_search::read_messages;
pub use port::{
    Acknowledged, Checksum, EncodedRecord, Journal, MAX_PAGE_BYTES, Page, PageLimit, Purged, Sequence,
    SessionEntry, StoredRecord, WriterLease, checksum,
};
pub use record::{
    AttemptStart, Committed, Imported, JournalRecord, MessageRange, RecordBody, SessionOpened, WaiterOutcome,
};
pub use restore::{RestoreError, Restored, read_record, restore, restore_through};
pub use stable_name::{StableName, StableNameError};
pub use state::{
    CommitContext, CommitInForce, LiveContext, ReplayError, ReplayFault, SessionState, UnfinishedAttempt,
    replay,
};
pub use verify::{Finding, FindingKind, VerifyReport, verify_session};
