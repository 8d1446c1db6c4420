//! What counters and inference paths say of themselves, and whether a counter fits a path.
//!
//! A request is counted before it is sent. When the count happens elsewhere, the request travels twice, and the
//! counter's way must not be worse than the request's own (spec: domain words, counting). The rules and their
//! order are the reference implementation's, proven by its vectors.

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
    fn is_neutral(&self) -> bool {
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

/// A counter may not be used for requests that take this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CounterIncompatible {
    /// The path's capability is not valid.
    #[error("invalid inference capability: {0}")]
    InvalidInference(CapabilityError),
    /// The counter's capability is not valid.
    #[error("invalid counter capability: {0}")]
    InvalidCounter(CapabilityError),
    /// The request would leave the machine, or a better secured channel, only to be counted.
    #[error("transport downgrade: the counter's way is less protected than the request's")]
    Transport,
    /// The counter is not for this provider.
    #[error("provider mismatch: the counter is for another provider")]
    Provider,
    /// The counter claims the request's own way with another identity.
    #[error("security identity mismatch: the counter uses another endpoint or other credentials")]
    SecurityIdentity,
    /// The counting side keeps more than the provider does.
    #[error("retention downgrade: the counter keeps more of the request than the provider")]
    Retention,
}

impl CounterIncompatible {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInference(_) => "invalid inference capability",
            Self::InvalidCounter(_) => "invalid counter capability",
            Self::Transport => "transport downgrade",
            Self::Provider => "provider mismatch",
            Self::SecurityIdentity => "security identity mismatch",
            Self::Retention => "retention downgrade",
        }
    }
}

/// Checks that a counter does not weaken the transport, identity or retention of the path that the request
/// itself takes.
///
/// A local counter weakens no transport; one that is for any provider and keeps nothing fits every path. A
/// counter on the request's own way must be at the same endpoint with the same credentials. One behind its own
/// TLS endpoint fits plain TLS only. A path that does not say what it keeps is taken to keep nothing.
///
/// # Errors
/// [`CounterIncompatible`] with the first reason, in the order: the two capabilities, transport, provider,
/// identity, retention.
pub fn compatible_counter(
    inference: &InferenceCapability,
    counter: &CounterCapability,
) -> Result<(), CounterIncompatible> {
    inference.validate().map_err(CounterIncompatible::InvalidInference)?;
    counter.validate().map_err(CounterIncompatible::InvalidCounter)?;
    let transport_holds = match counter.transport {
        CounterTransport::Local => true,
        CounterTransport::SameEndpoint => inference.transport != InferenceTransport::Local,
        CounterTransport::SeparateEndpoint => inference.transport == InferenceTransport::Tls,
    };
    if !transport_holds {
        return Err(CounterIncompatible::Transport);
    }
    if counter.is_neutral() {
        return Ok(());
    }
    if counter.provider != inference.provider {
        return Err(CounterIncompatible::Provider);
    }
    if counter.transport == CounterTransport::SameEndpoint
        && counter.security_identity != inference.security_identity
    {
        return Err(CounterIncompatible::SecurityIdentity);
    }
    if inference.retention.is_none_or(|kept| counter.retention > kept) {
        return Err(CounterIncompatible::Retention);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: SecurityIdentity = SecurityIdentity::from_bytes([5; 32]);

    fn tls() -> InferenceCapability {
        InferenceCapability {
            provider: "p".into(),
            transport: InferenceTransport::Tls,
            security_identity: IDENTITY,
            retention: Some(Retention::Ephemeral),
        }
    }

    fn beside_it() -> CounterCapability {
        CounterCapability {
            provider: "p".into(),
            transport: CounterTransport::SameEndpoint,
            security_identity: IDENTITY,
            retention: Retention::Ephemeral,
            tokenizer_rev: "t".into(),
            quality: CountQuality::ExactProvider,
        }
    }

    #[test]
    fn a_neutral_local_counter_fits_every_path() {
        let counter = CounterCapability::local("t", CountQuality::HeuristicEstimate);
        for transport in
            [InferenceTransport::Tls, InferenceTransport::AttestedTls, InferenceTransport::EndToEndEncrypted]
        {
            let path = InferenceCapability { transport, retention: None, ..tls() };
            assert_eq!(compatible_counter(&path, &counter), Ok(()));
        }
        assert_eq!(compatible_counter(&InferenceCapability::local(), &counter), Ok(()));
    }

    #[test]
    fn each_weakening_has_its_name() {
        let verdict = |path: &InferenceCapability, counter: &CounterCapability| {
            compatible_counter(path, counter).map_err(CounterIncompatible::as_str)
        };
        assert_eq!(verdict(&tls(), &beside_it()), Ok(()));
        assert_eq!(verdict(&InferenceCapability::local(), &beside_it()), Err("transport downgrade"));
        let apart = CounterCapability { transport: CounterTransport::SeparateEndpoint, ..beside_it() };
        let attested = InferenceCapability { transport: InferenceTransport::AttestedTls, ..tls() };
        assert_eq!(verdict(&tls(), &apart), Ok(()));
        assert_eq!(verdict(&attested, &apart), Err("transport downgrade"));
        let other = CounterCapability { provider: "q".into(), ..beside_it() };
        assert_eq!(verdict(&tls(), &other), Err("provider mismatch"));
        let stranger = SecurityIdentity::from_bytes([6; 32]);
        let other = CounterCapability { security_identity: stranger, ..beside_it() };
        assert_eq!(verdict(&tls(), &other), Err("security identity mismatch"));
        let logging = CounterCapability { retention: Retention::Logged, ..beside_it() };
        assert_eq!(verdict(&tls(), &logging), Err("retention downgrade"));
        let silent = InferenceCapability { retention: None, ..tls() };
        assert_eq!(verdict(&silent, &beside_it()), Err("retention downgrade"));
    }

    #[test]
    fn the_inference_path_is_judged_before_the_counter() {
        let path = InferenceCapability { provider: "".into(), ..tls() };
        let counter = CounterCapability { tokenizer_rev: "".into(), ..beside_it() };
        let refused = compatible_counter(&path, &counter).unwrap_err();
        assert_eq!(refused.as_str(), "invalid inference capability");
        let refused = compatible_counter(&tls(), &counter).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "invalid counter capability: counter capability: TokenizerRev must not be empty"
        );
    }
}
