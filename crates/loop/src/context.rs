//! Which context is meant: basis, fingerprint, and the measurement of a request.

use std::fmt;

use thiserror::Error;

use crate::{BasisPoints, CountQuality, EventId, ModelKey, TokenCount, occupancy};

/// Counts the contexts of a session; the first is 1, and 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ContextRevision(pub u64);

/// SHA-256 over everything that shapes a request; all zeros means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestFingerprint([u8; 32]);

impl RequestFingerprint {
    /// The fingerprint with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The fingerprint's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether this is the absent fingerprint.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 32]
    }

    /// Reads 64 lower-case hex digits.
    ///
    /// # Errors
    /// [`IdentityError::Fingerprint`] for any other text.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        let digits: [u8; 64] = text.as_bytes().try_into().map_err(|_| IdentityError::Fingerprint)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, IdentityError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(IdentityError::Fingerprint),
    }
}

impl fmt::Display for RequestFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RequestFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not the canonical form of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Not a canonical event id.
    #[error("not a canonical event id")]
    EventId,
    /// Not a canonical id of a session.
    #[error("not a canonical session id")]
    SessionId,
    /// Not a canonical id of an attempt.
    #[error("not a canonical attempt id")]
    AttemptId,
    /// Not a canonical id of a command.
    #[error("not a canonical command id")]
    CommandId,
    /// Not a canonical id of a reply.
    #[error("not a canonical reply id")]
    WaiterReplyId,
    /// Not a canonical fingerprint.
    #[error("not 64 lower-case hex digits")]
    Fingerprint,
}

/// Which context a compaction works on: its revision and the last event it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContextBasis {
    /// The context's revision.
    pub revision: ContextRevision,
    /// The last event it includes.
    pub through_event_id: EventId,
}

impl ContextBasis {
    /// Whether revision and event are both given.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.revision.0 != 0 && !self.through_event_id.is_zero()
    }
}

/// The size of one complete request. A count above the limit is valid evidence, not an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextMeasurement {
    /// The context that was measured.
    pub basis: ContextBasis,
    /// The model it was measured for.
    pub model: ModelKey,
    /// The request that was measured.
    pub request_fingerprint: RequestFingerprint,
    /// What it counted.
    pub input_tokens: TokenCount,
    /// The room it had.
    pub input_limit: TokenCount,
    /// How the count was made.
    pub quality: CountQuality,
}

impl ContextMeasurement {
    /// How full the context is; full when the limit is zero.
    #[must_use]
    pub fn occupancy(&self) -> BasisPoints {
        occupancy(self.input_tokens, self.input_limit).unwrap_or(BasisPoints::FULL_SCALE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_have_one_text_form() {
        let print = "0f".repeat(32);
        assert_eq!(RequestFingerprint::parse(&print).unwrap().to_string(), print);
        assert!(RequestFingerprint::parse(&print.to_uppercase()).is_err());
        assert!(RequestFingerprint::parse("0f").is_err());
    }
}
