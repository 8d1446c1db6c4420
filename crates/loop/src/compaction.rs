//! What goes into a compaction and what comes out of it.

use std::sync::Arc;

use thiserror::Error;

use crate::{
    Block, ContextBasis, ContextMeasurement, Message, ModelKey, RequestFingerprint, SharedText, TokenCount,
    transcript::TranscriptError, validate_transcript,
};

/// A checked compaction input: the part of a conversation that is to be summarized, bound to its identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionInput {
    basis: ContextBasis,
    model: ModelKey,
    request_fingerprint: RequestFingerprint,
    transcript: Arc<[Message]>,
    max_summary_tokens: TokenCount,
}

/// A compaction input is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompactionInputError {
    /// Revision or event of the basis is missing.
    #[error("compaction input: the basis is incomplete")]
    Basis,
    /// A part of the model key is missing.
    #[error("compaction input: the model is incomplete")]
    Model,
    /// The fingerprint is missing.
    #[error("compaction input: the request fingerprint is missing")]
    RequestFingerprint,
    /// The transcript cannot be worked on.
    #[error("compaction input: {0}")]
    Transcript(TranscriptError),
    /// The summary's budget is zero.
    #[error("compaction input: the summary budget is zero")]
    MaxSummaryTokens,
}

impl CompactionInput {
    /// Checks and takes the parts, in the order basis, model, fingerprint, transcript, budget.
    ///
    /// # Errors
    /// [`CompactionInputError`] with the first wrong part.
    pub fn new(
        basis: ContextBasis,
        model: ModelKey,
        request_fingerprint: RequestFingerprint,
        transcript: Arc<[Message]>,
        max_summary_tokens: TokenCount,
    ) -> Result<Self, CompactionInputError> {
        if !basis.is_complete() {
            return Err(CompactionInputError::Basis);
        }
        model.validate().map_err(|_| CompactionInputError::Model)?;
        if request_fingerprint.is_zero() {
            return Err(CompactionInputError::RequestFingerprint);
        }
        validate_transcript(&transcript).map_err(CompactionInputError::Transcript)?;
        if max_summary_tokens == TokenCount::ZERO {
            return Err(CompactionInputError::MaxSummaryTokens);
        }
        Ok(Self { basis, model, request_fingerprint, transcript, max_summary_tokens })
    }

    /// Which context is summarized.
    #[must_use]
    pub fn basis(&self) -> ContextBasis {
        self.basis
    }
    /// Which model the context is for.
    #[must_use]
    pub fn model(&self) -> &ModelKey {
        &self.model
    }
    /// Which request the context belongs to.
    #[must_use]
    pub fn request_fingerprint(&self) -> RequestFingerprint {
        self.request_fingerprint
    }
    /// The messages to summarize.
    #[must_use]
    pub fn transcript(&self) -> &Arc<[Message]> {
        &self.transcript
    }
    /// The summary's budget.
    #[must_use]
    pub fn max_summary_tokens(&self) -> TokenCount {
        self.max_summary_tokens
    }
}

/// A checked compaction output: a summary bound to the identity of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionOutput {
    basis: ContextBasis,
    model: ModelKey,
    request_fingerprint: RequestFingerprint,
    summary: SharedText,
}

impl CompactionOutput {
    /// Checks and takes the parts: identity first, then that the summary is one user message with exactly
    /// one text block that is not blank.
    ///
    /// The reference accepts blank text here and refuses it at the commit; this refuses it in both places.
    ///
    /// # Errors
    /// [`InvalidSummary`] with reason [`InvalidSummaryReason::Identity`] or
    /// [`InvalidSummaryReason::OutputShape`].
    pub fn new(
        basis: ContextBasis,
        model: ModelKey,
        request_fingerprint: RequestFingerprint,
        summary: Option<&Message>,
    ) -> Result<Self, InvalidSummary> {
        if !basis.is_complete() || model.validate().is_err() || request_fingerprint.is_zero() {
            return Err(InvalidSummaryReason::Identity.into());
        }
        match summary {
            Some(Message::User { blocks }) => match &**blocks {
                [Block::Text { text }] if !text.trim().is_empty() => {
                    Ok(Self { basis, model, request_fingerprint, summary: text.clone() })
                }
                _ => Err(InvalidSummaryReason::OutputShape.into()),
            },
            _ => Err(InvalidSummaryReason::OutputShape.into()),
        }
    }

    /// Which context was summarized.
    #[must_use]
    pub fn basis(&self) -> ContextBasis {
        self.basis
    }
    /// Which model the context is for.
    #[must_use]
    pub fn model(&self) -> &ModelKey {
        &self.model
    }
    /// Which request the context belongs to.
    #[must_use]
    pub fn request_fingerprint(&self) -> RequestFingerprint {
        self.request_fingerprint
    }
    /// The summary's text, raw.
    #[must_use]
    pub fn summary(&self) -> &SharedText {
        &self.summary
    }
}

/// Why a summary is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvalidSummaryReason {
    /// Not the output wire.
    Wire,
    /// Not for this context, model or request.
    Identity,
    /// Not one user message with one text block that is not blank.
    OutputShape,
    /// Over the byte limit.
    ByteLimit,
    /// Token usage missing or zero.
    TokenUsage,
    /// Over the token budget.
    TokenLimit,
    /// Not well-formed XML, or not UTF-8.
    XmlSyntax,
    /// Another root element, or none.
    XmlRoot,
    /// Not the five sections in order, or something that the grammar has no place for.
    XmlStructure,
    /// Goal or state says nothing.
    XmlContent,
}

impl InvalidSummaryReason {
    /// Every reason, in the order of the seed.
    pub const ALL: [Self; 10] = [
        Self::Wire,
        Self::Identity,
        Self::OutputShape,
        Self::ByteLimit,
        Self::TokenUsage,
        Self::TokenLimit,
        Self::XmlSyntax,
        Self::XmlRoot,
        Self::XmlStructure,
        Self::XmlContent,
    ];

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Identity => "identity",
            Self::OutputShape => "output_shape",
            Self::ByteLimit => "byte_limit",
            Self::TokenUsage => "token_usage",
            Self::TokenLimit => "token_limit",
            Self::XmlSyntax => "xml_syntax",
            Self::XmlRoot => "xml_root",
            Self::XmlStructure => "xml_structure",
            Self::XmlContent => "xml_content",
        }
    }
}

impl std::fmt::Display for InvalidSummaryReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A summary is refused. Nothing of the summary is in the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("invalid summary: {reason}")]
pub struct InvalidSummary {
    /// Why.
    pub reason: InvalidSummaryReason,
}

impl From<InvalidSummaryReason> for InvalidSummary {
    fn from(reason: InvalidSummaryReason) -> Self {
        Self { reason }
    }
}

/// The complete new request still does not fit, or did not shrink.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the compacted request counts {} tokens of {} ({})",
    measurement.input_tokens, measurement.input_limit, detail.as_str()
)]
pub struct SummaryTooLarge {
    /// The complete new request.
    pub measurement: ContextMeasurement,
    /// In which way it is too large.
    pub detail: TooLargeDetail,
}

/// In which way a compacted request is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TooLargeDetail {
    /// It counts as much as the limit or more, so the model has no room to answer.
    AtLimit,
    /// It has more bytes than the policy allows, so it cannot be sent.
    OverBytes,
    /// It is not smaller than before.
    NotSmaller,
}

impl TooLargeDetail {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtLimit => "at_limit",
            Self::OverBytes => "over_bytes",
            Self::NotSmaller => "not_smaller",
        }
    }
}
