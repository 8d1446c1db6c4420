//! Whether a counter fits the path that requests take.
//!
//! A request is counted before it is sent. When the count happens elsewhere, the request travels twice, and the
//! counter's way must not be worse than the request's own (spec: domain words, counting). The rules and their
//! order are the reference implementation's, proven by its vectors.

use thiserror::Error;

use crate::{CapabilityError, CounterCapability, CounterTransport, InferenceCapability, InferenceTransport};

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
    use crate::{CountQuality, Retention, SecurityIdentity};

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
