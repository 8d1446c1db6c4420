#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod compaction;
mod content;
mod context;
mod core_json;
mod counting;
mod hustle_name;
pub mod json_scan;
pub mod json_text;
mod model;
mod model_definition;
mod policy;
mod raw_json;
mod sections;
mod shared;
mod transcript;
mod usage;

pub use compaction::{
    CompactionInput, CompactionInputError, CompactionOutput, InvalidSummary, InvalidSummaryReason,
    Summarizer, SummarizerError, SummaryDraft, SummaryRequest, SummaryTooLarge, TooLargeDetail,
};
pub use content::{
    Audio, Block, Blocks, Document, Image, MAX_BLOCK_DEPTH, Message, Opaque, Role, Thinking, ToolResult,
    ToolUse,
};
pub use context::{
    ContextBasis, ContextMeasurement, ContextRevision, EventId, IdentityError, RequestFingerprint,
};
pub use core_json::{core_json, core_json_len, tail_estimate};
pub use counting::{
    ContextCount, ContextCounter, CountError, CountQuality, CounterCapability, Request, TextEstimator,
};
pub use hustle_name::{HustleName, HustleNameError};
pub use model::{
    BasisPoints, ContextLimitUnknown, ContextLimits, ContextLimitsError, ContextLimitsField, ModelKey,
    ModelKeyError, ModelKeyField, PressureLevel, ResolvedLimits, ZeroLimit, occupancy,
    resolve_context_limits,
};
pub use model_definition::{Model, ModelCaps, ModelError, Sampling};
pub use policy::{
    CompactionPolicy, CompactionPolicyError, CounterPolicy, KeepRecent, PolicyField, Trigger, ValidPolicy,
};
pub use raw_json::{RawJson, RawJsonError};
pub use sections::{
    RenderedSummary, SUMMARY_FRAME_BYTES, SUMMARY_ROOT, Section, SummarySections, escape_xml_into,
    is_xml_character, rendered_item_len,
};
pub use shared::{SharedBytes, SharedText};
pub use transcript::{TranscriptError, validate_depth, validate_transcript};
pub use usage::{TokenCount, Usage, UsageField, UsageOverflow};
