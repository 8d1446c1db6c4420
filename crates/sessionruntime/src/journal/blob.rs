//! Media of messages, stored once by what they are.

use std::fmt;

use epitome_loop::{RequestFingerprint, SharedBytes};
use sha2::{Digest as _, Sha256};

/// Media up to this many bytes stand in their record; larger ones are stored once, whatever refers to them.
pub const LARGEST_INLINE_MEDIA: usize = 4_096;

/// SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

/// Bytes with their digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    digest: BlobDigest,
    bytes: SharedBytes,
}

impl BlobDigest {
    /// The digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hex digits.
    pub(super) fn read(text: &str) -> Option<Self> {
        // The same form as that of a fingerprint.
        RequestFingerprint::parse(text).ok().map(|print| Self(*print.as_bytes()))
    }

    /// The digest of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Blob {
    /// The blob of some bytes.
    #[must_use]
    pub fn new(bytes: SharedBytes) -> Self {
        Self { digest: BlobDigest::of(&bytes), bytes }
    }

    /// The blob of bytes whose digest is known.
    pub(super) fn named(digest: BlobDigest, bytes: SharedBytes) -> Self {
        Self { digest, bytes }
    }

    /// What it is called.
    #[must_use]
    pub fn digest(&self) -> BlobDigest {
        self.digest
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &SharedBytes {
        &self.bytes
    }
}
