//! Why a definition of a hustle is refused.

use thiserror::Error;

use super::{MAX_PAYLOAD_BYTES, PayloadKind};
use crate::HustleNameError;

/// A definition of a hustle is not valid. Nothing of the definition is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HustleDefinitionError {
    /// The name is not usable.
    #[error("{0}")]
    Name(HustleNameError),
    /// The timeout is zero.
    #[error("the timeout must not be zero")]
    Timeout,
    /// A byte limit is out of range.
    #[error("the {0} limit must be from 1 to {MAX_PAYLOAD_BYTES} bytes")]
    ByteLimit(PayloadKind),
    /// The prompt's revision is blank, or an embedded hustle has another than the fixed one.
    #[error("the prompt revision is blank, or is not the fixed one of an embedded hustle")]
    PromptRevision,
    /// The system prompt is blank, or its digest is missing, or an embedded hustle has one.
    #[error("the system prompt is blank, or an embedded hustle has one")]
    SystemPrompt,
    /// The author's revision of the policy is blank.
    #[error("the policy revision is blank")]
    PolicyRevision,
    /// The schema's name is not one that providers take.
    #[error("the output schema's name must be 1 to 64 letters, digits, _ and -, first a letter or _")]
    OutputSchemaName,
    /// The schema's digest is missing.
    #[error("the output schema's digest is missing")]
    OutputSchemaDigest,
    /// The schema's revision is blank or too long.
    #[error("the output schema's revision is blank or longer than 128 bytes")]
    OutputSchemaRevision,
    /// A part of a named model's key is empty.
    #[error("the named model's provider or name is empty")]
    NamedModelKey,
    /// The revision of a named model's settings is blank.
    #[error("the named model's revision is blank")]
    NamedModelRevision,
    /// The name of the client that reaches a named model is blank.
    #[error("the named model's client is blank")]
    NamedModelClient,
}

impl HustleDefinitionError {
    /// The kind of fault, as the reference implementation calls it.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Name(HustleNameError::Reserved) => "reserved_name",
            Self::Name(_) => "missing_name",
            Self::Timeout => "invalid_timeout",
            Self::ByteLimit(_) => "invalid_limits",
            Self::PromptRevision => "invalid_prompt_revision",
            Self::SystemPrompt => "invalid_system_prompt",
            Self::PolicyRevision => "invalid_policy_revision",
            Self::OutputSchemaName | Self::OutputSchemaDigest | Self::OutputSchemaRevision => {
                "invalid_output_schema"
            }
            Self::NamedModelKey | Self::NamedModelRevision | Self::NamedModelClient => "invalid_model",
        }
    }

    /// The field at fault, as the reference implementation's descriptor calls it.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::Name(_) => "name",
            Self::Timeout => "timeout",
            Self::ByteLimit(_) => "limits",
            Self::PromptRevision => "prompt_revision",
            Self::SystemPrompt => "prompt_sha256",
            Self::PolicyRevision => "policy_revision",
            Self::OutputSchemaName => "output_schema_name",
            Self::OutputSchemaDigest => "output_schema_sha256",
            Self::OutputSchemaRevision => "structured_output_revision",
            Self::NamedModelKey => "named_model_key",
            Self::NamedModelRevision => "named_model_policy_revision",
            Self::NamedModelClient => "named_model_client",
        }
    }
}
