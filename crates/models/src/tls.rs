//! TLS by rustls with one provider of cryptography, handed over and never looked for: without one installed, the
//! HTTP client would panic.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::SetupError;

/// A configuration that trusts whom the system trusts; one that trusts nobody where no TLS is spoken, so that a
/// system without certificates can talk to a server of its own.
pub(crate) fn configuration(secure: bool) -> Result<ClientConfig, SetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|_| SetupError::Tls)?;
    if !secure {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let builder = builder.with_platform_verifier().map_err(|_| SetupError::Tls)?;
    Ok(builder.with_no_client_auth())
}
