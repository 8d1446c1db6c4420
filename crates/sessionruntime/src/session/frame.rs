//! What surrounds the conversation in a request.

use std::sync::Arc;

use epitome_loop::{
    ContextBasis, FingerprintError, LoopContext, Message, Model, RawJson, RequestFingerprint,
    RequestFingerprintInput, Sampling, SharedText, TokenCount, runtime_context_revision, system_revision,
    tool_policy_revision,
};

/// What surrounds the conversation in a request. It is part of what is measured and fingerprinted, and no part of the
/// conversation: it is neither recorded nor summarized.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RequestFrame {
    /// The system prompt, in front of everything. System messages of the conversation itself come behind it.
    pub system: Option<SharedText>,
    /// Tool definitions, as the provider's JSON.
    pub tools: Arc<[RawJson]>,
    /// What this request changes in the model's sampling.
    pub sampling: Option<Sampling>,
    /// What the host adds at the end of this request: the time, the state of the workspace.
    pub runtime_tail: Option<Message>,
    /// Tokens of parts that are sent but not known here.
    pub unseen_tokens: TokenCount,
}

/// A frame, with what is worked out of it once.
#[derive(Debug)]
pub(super) struct Framed {
    pub(super) frame: RequestFrame,
    pub(super) front: Arc<[Message]>,
    pub(super) back: Arc<[Message]>,
    system_revision: SharedText,
    tool_policy_revision: SharedText,
    runtime_context_revision: SharedText,
}

impl Framed {
    /// # Errors
    /// [`FingerprintError::Encoding`] when a number of the sampling is not finite.
    pub(super) fn new(frame: RequestFrame) -> Result<Self, FingerprintError> {
        Ok(Self {
            front: frame.system.iter().map(|prompt| Message::system(prompt.clone())).collect(),
            back: frame.runtime_tail.iter().cloned().collect(),
            system_revision: system_revision(frame.system.as_deref().unwrap_or_default()),
            tool_policy_revision: tool_policy_revision(&frame.tools, frame.sampling.as_ref())?,
            runtime_context_revision: runtime_context_revision(frame.runtime_tail.as_ref()),
            frame,
        })
    }

    /// The fingerprint of the request for this context. The conversation is in it by its basis.
    pub(super) fn fingerprint(
        &self,
        model: &Model,
        context: &LoopContext,
        basis: ContextBasis,
    ) -> Result<RequestFingerprint, FingerprintError> {
        let input = RequestFingerprintInput {
            system_revision: self.system_revision.clone(),
            tool_policy_revision: self.tool_policy_revision.clone(),
            model: model.clone(),
            basis,
            runtime_context_revision: self.runtime_context_revision.clone(),
            counter_capability: context.counter().clone(),
            inference_capability: context.inference().clone(),
        };
        input.fingerprint()
    }
}
