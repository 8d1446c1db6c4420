//! Hustles: bounded, one-shot side tasks of a loop, such as summarizing for a compaction.
//!
//! Here stand their definitions and every decision about a run that is a function of values: which records
//! are possible, whether to try again, and what a failure means for the compaction that waits for it. Running
//! them is the business of the layer that owns bytes.

mod cause;
mod definition;
mod definition_error;
mod descriptor;
mod lanes;
mod model_source;
mod output_schema;
mod retry;
mod smallest;
mod stage;

pub use cause::{Cause, CauseKind, OutputFault, ToolResponseFault};
pub use definition::{
    ByteLimits, HustleDefinition, HustleSettings, IdentityBinding, MAX_PAYLOAD_BYTES, Participation,
    PayloadKind,
};
pub use definition_error::HustleDefinitionError;
pub use descriptor::{HustleDescriptor, HustleDescriptorParts, HustleRevision, ModelDescriptor};
pub use lanes::{HustleLimitSettings, HustleLimits, HustleLimitsError, LaneLimits, MAX_QUEUED};
pub use model_source::{EMBEDDED_PROMPT_REVISION, ModelSource, SystemPrompt};
pub use output_schema::{OutputSchema, OutputSchemaDescriptor};
pub use retry::{
    RetryClass, RetryDecision, RetryPolicy, RetryQuestion, RunFailure, decide_retry, malformed_answer,
    retry_class, retry_correction,
};
pub use smallest::{SMALLEST_ECHO_BYTES, SMALLEST_INPUT_BYTES, SMALLEST_SUMMARY_BYTES, smallest_output};
pub use stage::{HustleReason, HustleStage, reason_allowed};
