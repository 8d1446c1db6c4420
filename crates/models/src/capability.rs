//! What the clients say about the way that a request takes.

use epitome_loop::{
    CountQuality, CounterCapability, CounterTransport, InferenceCapability, InferenceTransport, Retention,
    SecurityIdentity,
};
use sha2::{Digest, Sha256};

use crate::ModelSettings;
use crate::transport::Transport;

/// The way to a model. What is served on this machine stays there, as far as the address tells.
pub(crate) fn inference(settings: &ModelSettings, transport: &Transport) -> InferenceCapability {
    let local = transport.endpoint().is_local();
    InferenceCapability {
        provider: settings.provider.clone(),
        transport: if local { InferenceTransport::Local } else { InferenceTransport::Tls },
        security_identity: identity(transport),
        retention: settings.retention,
    }
}

/// The way to a provider's counter.
pub(crate) fn counter(
    settings: &ModelSettings,
    transport: &Transport,
    retention: Retention,
    revision: &'static str,
) -> CounterCapability {
    let local = transport.endpoint().is_local();
    CounterCapability {
        provider: settings.provider.clone(),
        transport: if local { CounterTransport::Local } else { CounterTransport::SameEndpoint },
        security_identity: identity(transport),
        retention,
        tokenizer_rev: revision.into(),
        quality: CountQuality::ExactProvider,
    }
}

/// Whose address and key: a digest from which neither can be read. Zero on this machine.
fn identity(transport: &Transport) -> SecurityIdentity {
    if transport.endpoint().is_local() {
        return SecurityIdentity::ZERO;
    }
    let mut digest = Sha256::new();
    digest.update(b"epitome network path 1");
    for part in [transport.endpoint().as_str().as_bytes(), transport.key_bytes()] {
        // The length in front, so that no two pairs read alike.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    SecurityIdentity::from_bytes(digest.finalize().into())
}
