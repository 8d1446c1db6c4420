//! The fingerprint of a request: everything that shapes it, hashed.
//!
//! Counts, compactions and their results belong to one request. The fingerprint is how they are told apart
//! when the conversation, the model, the tools or the way of counting change in between (spec: wire v1, request
//! fingerprint). The hashed bytes are the reference implementation's, proven by its vectors.

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::canonical_json::{
    NotFinite, write_basis, write_counter, write_inference, write_model, write_sampling,
};
use crate::json_text::{JsonBytes, JsonSink};
use crate::{
    CapabilityError, ContextBasis, CounterCapability, InferenceCapability, Message, Model, ModelError,
    RawJson, RequestFingerprint, Sampling, SharedText, core_json,
};

/// Everything that shapes a request, by value or by revision.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFingerprintInput {
    /// Revision of the system prompt: [`system_revision`], or any text that changes whenever the prompt does.
    pub system_revision: SharedText,
    /// Revision of the tools and of how they may be used: [`tool_policy_revision`].
    pub tool_policy_revision: SharedText,
    /// The model.
    pub model: Model,
    /// The context.
    pub basis: ContextBasis,
    /// Revision of what the host adds to each request at its end: [`runtime_context_revision`].
    pub runtime_context_revision: SharedText,
    /// Who counts the request.
    pub counter_capability: CounterCapability,
    /// Where the request goes.
    pub inference_capability: InferenceCapability,
}

/// There is no fingerprint for this input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// The system prompt's revision is missing.
    #[error("request fingerprint: the system revision is missing")]
    SystemRevision,
    /// The tools' revision is missing.
    #[error("request fingerprint: the tool policy revision is missing")]
    ToolPolicyRevision,
    /// The runtime context's revision is missing.
    #[error("request fingerprint: the runtime context revision is missing")]
    RuntimeContextRevision,
    /// The model is not valid.
    #[error("request fingerprint: {0}")]
    Model(ModelError),
    /// The basis has no revision or no event.
    #[error("request fingerprint: the basis is incomplete")]
    Basis,
    /// The counter's capability is not valid.
    #[error("request fingerprint: {0}")]
    CounterCapability(CapabilityError),
    /// The capability of the request's path is not valid.
    #[error("request fingerprint: {0}")]
    InferenceCapability(CapabilityError),
    /// A number of the sampling is not finite.
    #[error("request fingerprint: a sampling value is not a finite number")]
    Encoding,
}

impl FingerprintError {
    /// The field at fault, in the reference's spelling.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self {
            Self::SystemRevision => "SystemRevision",
            Self::ToolPolicyRevision => "ToolPolicyRevision",
            Self::RuntimeContextRevision => "RuntimeContextRevision",
            Self::Model(_) => "Model",
            Self::Basis => "Basis",
            Self::CounterCapability(_) => "CounterCapability",
            Self::InferenceCapability(_) => "InferenceCapability",
            Self::Encoding => "Encoding",
        }
    }
}

impl From<NotFinite> for FingerprintError {
    fn from(_: NotFinite) -> Self {
        Self::Encoding
    }
}

impl RequestFingerprintInput {
    /// The fingerprint: SHA-256 of [`RequestFingerprintInput::canonical_json`].
    ///
    /// # Errors
    /// As [`RequestFingerprintInput::canonical_json`].
    pub fn fingerprint(&self) -> Result<RequestFingerprint, FingerprintError> {
        let bytes = self.canonical_json()?;
        Ok(RequestFingerprint::from_bytes(Sha256::digest(bytes).into()))
    }

    /// The bytes that are hashed.
    ///
    /// # Errors
    /// [`FingerprintError`] with the first fault, in the order: the three revisions, model, basis, counter,
    /// path, encoding.
    pub fn canonical_json(&self) -> Result<Vec<u8>, FingerprintError> {
        let Self {
            system_revision,
            tool_policy_revision,
            model,
            basis,
            runtime_context_revision,
            counter_capability,
            inference_capability,
        } = self;
        let missing = |revision: &SharedText, error| if revision.is_empty() { Err(error) } else { Ok(()) };
        missing(system_revision, FingerprintError::SystemRevision)?;
        missing(tool_policy_revision, FingerprintError::ToolPolicyRevision)?;
        missing(runtime_context_revision, FingerprintError::RuntimeContextRevision)?;
        model.validate().map_err(FingerprintError::Model)?;
        if !basis.is_complete() {
            return Err(FingerprintError::Basis);
        }
        counter_capability.validate().map_err(FingerprintError::CounterCapability)?;
        inference_capability.validate().map_err(FingerprintError::InferenceCapability)?;

        // What there is usually stays below, so that the buffer need not grow.
        let mut out = JsonBytes::with_capacity(2_048);
        out.plain("{\"SystemRevision\":");
        out.string(system_revision);
        out.plain(",\"ToolPolicyRevision\":");
        out.string(tool_policy_revision);
        out.plain(",\"Model\":");
        write_model(&mut out, model)?;
        out.plain(",\"Basis\":");
        write_basis(&mut out, basis);
        out.plain(",\"RuntimeContextRevision\":");
        out.string(runtime_context_revision);
        out.plain(",\"CounterCapability\":");
        write_counter(&mut out, counter_capability);
        out.plain(",\"InferenceCapability\":");
        write_inference(&mut out, inference_capability);
        out.plain("}");
        Ok(out.into_bytes())
    }
}

/// The revision of a system prompt: lower-case hex SHA-256 of its bytes.
#[must_use]
pub fn system_revision(prompt: &str) -> SharedText {
    revision(prompt.as_bytes())
}

/// The revision of the tools that a request offers and of what the call changes in the model's sampling:
/// lower-case hex SHA-256 of `{"Tools":[...],"SamplingOverride":...}`, the definitions compacted and otherwise
/// verbatim, in their order.
///
/// # Errors
/// [`FingerprintError::Encoding`] when a number of the override is not finite.
pub fn tool_policy_revision(
    tools: &[RawJson],
    sampling_override: Option<&Sampling>,
) -> Result<SharedText, FingerprintError> {
    let mut out = JsonBytes::default();
    out.plain("{\"Tools\":[");
    for (at, tool) in tools.iter().enumerate() {
        out.plain(if at > 0 { "," } else { "" });
        out.raw(tool);
    }
    out.plain("],\"SamplingOverride\":");
    match sampling_override {
        None => out.plain("null"),
        Some(sampling) => write_sampling(&mut out, sampling)?,
    }
    out.plain("}");
    Ok(revision(&out.into_bytes()))
}

/// The revision of the message that the host adds at the end of each request: lower-case hex SHA-256 of its
/// core JSON; of nothing when there is none.
#[must_use]
pub fn runtime_context_revision(message: Option<&Message>) -> SharedText {
    revision(&message.map(core_json).unwrap_or_default())
}

/// Lower-case hex SHA-256.
pub(crate) fn revision(bytes: &[u8]) -> SharedText {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContextRevision, CountQuality, EventId};

    fn input() -> RequestFingerprintInput {
        RequestFingerprintInput {
            system_revision: system_revision("Be brief."),
            tool_policy_revision: tool_policy_revision(&[], None).unwrap(),
            model: Model { provider: "p".into(), name: "m".into(), ..Model::default() },
            basis: ContextBasis {
                revision: ContextRevision(1),
                through_event_id: EventId::from_bytes([1; 16]),
            },
            runtime_context_revision: runtime_context_revision(None),
            counter_capability: CounterCapability::local("t", CountQuality::ExactLocal),
            inference_capability: InferenceCapability::local(),
        }
    }

    #[test]
    fn revisions_are_hashes_of_what_they_stand_for() {
        // SHA-256 of nothing and of "abc", as everybody knows them.
        const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(runtime_context_revision(None), NOTHING);
        assert_eq!(system_revision("abc"), ABC);
        let tool = RawJson::parse("{ \"name\": \"read\" }").unwrap();
        let same = RawJson::parse("{\"name\":\"read\"}").unwrap();
        let other = RawJson::parse("{\"name\":\"write\"}").unwrap();
        let of = |tools: &[RawJson]| tool_policy_revision(tools, None).unwrap();
        assert_eq!(of(std::slice::from_ref(&tool)), of(&[same]), "white space means nothing");
        assert_ne!(of(&[tool.clone(), other.clone()]), of(&[other, tool.clone()]), "order means something");
        let hot = Sampling { temperature: Some(1.0), ..Sampling::default() };
        assert_ne!(of(std::slice::from_ref(&tool)), tool_policy_revision(&[tool], Some(&hot)).unwrap());
        let bad = Sampling { top_p: Some(f64::NAN), ..Sampling::default() };
        assert_eq!(tool_policy_revision(&[], Some(&bad)), Err(FingerprintError::Encoding));
    }

    #[test]
    fn everything_that_shapes_a_request_changes_its_fingerprint() {
        let print = |input: RequestFingerprintInput| input.fingerprint().unwrap();
        let same = print(input());
        let changed = [
            RequestFingerprintInput { system_revision: "x".into(), ..input() },
            RequestFingerprintInput { tool_policy_revision: "x".into(), ..input() },
            RequestFingerprintInput { runtime_context_revision: "x".into(), ..input() },
            RequestFingerprintInput { model: Model { origin: 1, ..input().model }, ..input() },
            RequestFingerprintInput {
                basis: ContextBasis { revision: ContextRevision(2), ..input().basis },
                ..input()
            },
            RequestFingerprintInput {
                counter_capability: CounterCapability::local("u", CountQuality::ExactLocal),
                ..input()
            },
            RequestFingerprintInput {
                inference_capability: InferenceCapability { retention: None, ..InferenceCapability::local() },
                ..input()
            },
        ];
        assert_eq!(print(input()), same);
        for changed in changed {
            assert_ne!(print(changed), same);
        }
    }

    #[test]
    fn the_first_fault_is_named() {
        let field = |input: RequestFingerprintInput| input.fingerprint().unwrap_err().field();
        let nan = Sampling { temperature: Some(f64::NAN), ..Sampling::default() };
        let broken = RequestFingerprintInput {
            model: Model { sampling: nan, ..input().model },
            basis: ContextBasis::default(),
            ..input()
        };
        assert_eq!(field(broken.clone()), "Basis");
        assert_eq!(field(RequestFingerprintInput { basis: input().basis, ..broken.clone() }), "Encoding");
        let nameless = Model { name: "".into(), ..input().model };
        assert_eq!(field(RequestFingerprintInput { model: nameless, ..broken.clone() }), "Model");
        let no_context = RequestFingerprintInput { runtime_context_revision: "".into(), ..broken };
        assert_eq!(field(no_context), "RuntimeContextRevision");
    }
}
