//! What counters and inference paths say of themselves (spec: domain words, counting). The rules and their order
//! are the reference implementation's, proven by its vectors.

use std::fmt;

use thiserror::Error;

use crate::{CountQuality, SharedText};

/// How a request gets to the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterTransport {
    /// It stays in this process.
    Local,
    /// The way that the request itself takes.
    SameEndpoint,
    /// Another way, secured by TLS.
    SeparateEndpoint,
}

/// How a request gets to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InferenceTransport {
    /// It stays on this machine.
    Local,
    /// Over TLS.
    Tls,
    /// Over TLS to a machine that proves what it runs.
    AttestedTls,
    /// Encrypted up to the model.
    EndToEndEncrypted,
}

/// What the other side keeps of a request, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retention {
    /// Nothing.
    None,
    /// As long as it works on it.
    Ephemeral,
    /// It is logged.
    Logged,
}

/// Whose endpoint and credentials a path uses, as a SHA-256 digest; all zeros for a path that leaves nothing
/// to identify.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SecurityIdentity([u8; 32]);

impl SecurityIdentity {
    /// The identity of a path inside this process.
    pub const ZERO: Self = Self([0; 32]);

    /// The identity with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The identity's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether this is the absent identity.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Debug for SecurityIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a counter is, as far as the trust in its counts and the path of its data go.
///
/// Check it with [`CounterCapability::validate`]. Numbers of other programs are read by
/// [`NumericCapability::counter`](crate::NumericCapability::counter).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CounterCapability {
    /// For whose models it counts; empty for a counter in this process that counts for anybody's.
    pub provider: SharedText,
    /// How the request gets there.
    pub transport: CounterTransport,
    /// Whose endpoint and credentials are used; zero exactly for a local counter.
    pub security_identity: SecurityIdentity,
    /// What the counting side keeps of the request.
    pub retention: Retention,
    /// Version of the tokenizer and framing.
    pub tokenizer_rev: SharedText,
    /// How good its counts are.
    pub quality: CountQuality,
}

/// What the path of a request to its model is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InferenceCapability {
    /// Who serves the model.
    pub provider: SharedText,
    /// How the request gets there.
    pub transport: InferenceTransport,
    /// Whose endpoint and credentials are used; zero exactly for a local model.
    pub security_identity: SecurityIdentity,
    /// What the provider keeps of the request; `None` when it does not say.
    pub retention: Option<Retention>,
}

/// Which of the two capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapabilityKind {
    /// [`CounterCapability`].
    Counter,
    /// [`InferenceCapability`].
    Inference,
}

/// A field of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapabilityField {
    /// `provider`.
    Provider,
    /// `transport`.
    Transport,
    /// `security_identity`.
    SecurityIdentity,
    /// `retention`.
    Retention,
    /// `tokenizer_rev`.
    TokenizerRev,
    /// `quality`.
    Quality,
}

/// What is wrong with a field of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapabilityReason {
    /// A number that stands for "not known".
    Unknown,
    /// A number without a meaning.
    OutOfRange,
    /// It is absent.
    MustNotBeEmpty,
    /// It is given where there is nothing to identify.
    MustBeZero,
}

/// A capability is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{} capability: {field} {reason}", capability.as_str())]
pub struct CapabilityError {
    /// Which capability.
    pub capability: CapabilityKind,
    /// The first field that is wrong.
    pub field: CapabilityField,
    /// What is wrong with it.
    pub reason: CapabilityReason,
}

impl CapabilityKind {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Inference => "inference",
        }
    }
}

impl CapabilityField {
    /// The stable name, in the reference's spelling.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "Provider",
            Self::Transport => "Transport",
            Self::SecurityIdentity => "SecurityIdentity",
            Self::Retention => "Retention",
            Self::TokenizerRev => "TokenizerRev",
            Self::Quality => "Quality",
        }
    }
}

impl CapabilityReason {
    /// The stable text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::OutOfRange => "out of range",
            Self::MustNotBeEmpty => "must not be empty",
            Self::MustBeZero => "must be zero",
        }
    }
}

impl fmt::Display for CapabilityField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for CapabilityReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl CounterCapability {
    /// What a counter in this process says of itself: it counts for any provider, nothing leaves the process,
    /// nothing is kept.
    #[must_use]
    pub fn local(tokenizer_rev: impl Into<SharedText>, quality: CountQuality) -> Self {
        Self {
            provider: SharedText::default(),
            transport: CounterTransport::Local,
            security_identity: SecurityIdentity::ZERO,
            retention: Retention::None,
            tokenizer_rev: tokenizer_rev.into(),
            quality,
        }
    }

    /// Checks that the parts agree.
    ///
    /// # Errors
    /// [`CapabilityError`] with the first fault: the tokenizer's revision is missing; a local counter has an
    /// identity; any other lacks a provider or an identity.
    pub fn validate(&self) -> Result<(), CapabilityError> {
        const KIND: CapabilityKind = CapabilityKind::Counter;
        if self.tokenizer_rev.is_empty() {
            return Err(KIND.fault(CapabilityField::TokenizerRev, CapabilityReason::MustNotBeEmpty));
        }
        KIND.check_path(self.transport == CounterTransport::Local, &self.provider, &self.security_identity)
    }

    /// A counter that belongs to nobody and shows nothing to anybody.
    pub(crate) fn is_neutral(&self) -> bool {
        self.transport == CounterTransport::Local
            && self.provider.is_empty()
            && self.retention == Retention::None
    }
}

impl InferenceCapability {
    /// The path to a model on this machine, or of work that asks no model at all.
    #[must_use]
    pub fn local() -> Self {
        Self {
            provider: SharedText::default(),
            transport: InferenceTransport::Local,
            security_identity: SecurityIdentity::ZERO,
            retention: Some(Retention::None),
        }
    }

    /// Checks that the parts agree.
    ///
    /// # Errors
    /// [`CapabilityError`] with the first fault: a local path has an identity; any other lacks a provider or an
    /// identity.
    pub fn validate(&self) -> Result<(), CapabilityError> {
        let local = self.transport == InferenceTransport::Local;
        CapabilityKind::Inference.check_path(local, &self.provider, &self.security_identity)
    }
}

impl CapabilityKind {
    pub(crate) fn fault(self, field: CapabilityField, reason: CapabilityReason) -> CapabilityError {
        CapabilityError { capability: self, field, reason }
    }

    /// What holds for both: a local path identifies nobody, any other says who is at its end.
    fn check_path(
        self,
        local: bool,
        provider: &str,
        identity: &SecurityIdentity,
    ) -> Result<(), CapabilityError> {
        if local {
            if !identity.is_zero() {
                return Err(self.fault(CapabilityField::SecurityIdentity, CapabilityReason::MustBeZero));
            }
            return Ok(());
        }
        if provider.is_empty() {
            return Err(self.fault(CapabilityField::Provider, CapabilityReason::MustNotBeEmpty));
        }
        if identity.is_zero() {
            return Err(self.fault(CapabilityField::SecurityIdentity, CapabilityReason::MustNotBeEmpty));
        }
        Ok(())
    }
}
