#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod base_url;
mod byte_mask;
mod canonical_json;
mod capability;
mod capability_numbers;
mod compaction;
mod content;
mod context;
mod core_json;
mod counter_fit;
mod counting;
mod fingerprint;
mod floor;
mod hustle;
mod hustle_name;
mod identifier;
pub mod json_scan;
pub mod json_string;
pub mod json_text;
mod loop_definition;
mod measurement;
mod model;
mod model_client;
mod model_definition;
mod observation;
mod policy;
mod policy_revision;
mod provider_loop;
mod raw_json;
mod rejection;
mod sections;
mod shared;
mod summarizer;
mod timestamp;
mod transcript;
mod usage;
mod waiter_reply;

pub use capability::{
    CapabilityError, CapabilityField, CapabilityKind, CapabilityReason, CounterCapability, CounterTransport,
    InferenceCapability, InferenceTransport, Retention, SecurityIdentity,
};
pub use capability_numbers::NumericCapability;
pub use compaction::{
    CompactionInput, CompactionInputError, CompactionOutput, InvalidSummary, InvalidSummaryReason,
    SummaryTooLarge, TooLargeDetail,
};
pub use content::{
    Audio, Block, Blocks, Document, Image, MAX_BLOCK_DEPTH, Message, Opaque, Role, Thinking, ToolResult,
    ToolUse,
};
pub use context::{ContextBasis, ContextMeasurement, ContextRevision, IdentityError, RequestFingerprint};
pub use core_json::{core_json, core_json_len, tail_estimate};
pub use counter_fit::{CounterIncompatible, compatible_counter};
pub use counting::{ContextCount, ContextCounter, CountError, CountQuality, Request, TextEstimator};
pub use fingerprint::{
    FingerprintError, RequestFingerprintInput, runtime_context_revision, system_revision,
    tool_policy_revision,
};
pub use floor::{FixedPart, Floor, FloorAboveCompact, FloorAboveRearm, check_floor};
pub use hustle::{
    ByteLimits, Cause, CauseKind, EMBEDDED_PROMPT_REVISION, HustleDefinition, HustleDefinitionError,
    HustleDescriptor, HustleDescriptorParts, HustleLimitSettings, HustleLimits, HustleLimitsError,
    HustleReason, HustleRevision, HustleSettings, HustleStage, IdentityBinding, LaneLimits,
    MAX_PAYLOAD_BYTES, MAX_QUEUED, ModelDescriptor, ModelSource, OutputFault, OutputSchema,
    OutputSchemaDescriptor, Participation, PayloadKind, RetryClass, RetryDecision, RetryPolicy,
    RetryQuestion, RunFailure, SMALLEST_ECHO_BYTES, SMALLEST_INPUT_BYTES, SMALLEST_SUMMARY_BYTES,
    SystemPrompt, ToolResponseFault, decide_retry, malformed_answer, reason_allowed, retry_class,
    retry_correction, smallest_output,
};
pub use hustle_name::{HustleName, HustleNameError};
pub use identifier::{AttemptId, CommandId, EventId, SessionId, WaiterReplyId};
pub use loop_definition::{
    LoopContext, LoopDefinition, LoopDefinitionBuilder, LoopDefinitionError, LoopField,
};
pub use measurement::{InvalidMeasurement, MeasurementField};
pub use model::{
    BasisPoints, ContextLimitUnknown, ContextLimits, ContextLimitsError, ContextLimitsField, ModelKey,
    ModelKeyError, ModelKeyField, PressureLevel, ResolvedLimits, ZeroLimit, occupancy,
    resolve_context_limits,
};
pub use model_client::{
    AnswerForm, FinishReason, ModelAnswer, ModelCall, ModelCallError, ModelCallErrorKind, ModelClient,
};
pub use model_definition::{Model, ModelCaps, ModelError, Sampling};
pub use observation::{ContextObservationError, ContextObservationPolicy};
pub use policy::{
    CompactionPolicy, CompactionPolicyError, CounterPolicy, KeepRecent, PolicyField, Trigger, ValidPolicy,
};
pub use provider_loop::ran_provider_tools;
pub use raw_json::{RawJson, RawJsonError};
pub use rejection::{RejectionReason, rejection_reason};
pub use sections::{
    RenderedSummary, SUMMARY_FRAME_BYTES, SUMMARY_ROOT, Section, SummarySections, escape_xml_into,
    is_xml_character, rendered_item_len,
};
pub use shared::{SharedBytes, SharedText};
pub use summarizer::{AnswerFault, Summarizer, SummarizerError, SummaryDraft, SummaryRequest};
pub use timestamp::Timestamp;
pub use transcript::{TranscriptError, validate_depth, validate_transcript};
pub use usage::{TokenCount, Usage, UsageField, UsageOverflow};
pub use waiter_reply::waiter_reply_id;
