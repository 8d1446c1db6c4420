//! A summarizer by a model, whose answer has fixed headings.
//!
//! One pass splits a history into an old part and a tail, asks a model for the old part's summary in at most two
//! calls, and gives a new history back: leading system messages, pins, one message with the summary, whole tool
//! exchanges with durable results, the tail. Whatever goes wrong, the history stays as it is and the reason is
//! typed. [`StructuredSummary::to_sections`] turns an answer into the five sections that a session commits.
//!
//! What it does and where it differs from the reference: `docs/structured-summary.md`.

mod answer;
mod config;
mod durable;
mod estimate;
mod json_answer;
mod line;
mod notes;
mod outcome;
mod pairing;
mod pass;
mod prompt;
mod reader;
mod rendering;
mod section;
mod splitting;
mod telemetry;
mod to_sections;
mod transcript;
mod trimming;

pub use config::StructuredSummaryConfig;
pub use durable::durable_exchanges;
pub use estimate::{CharacterScale, MessageScale, count_messages, estimate_text, message_size};
pub use json_answer::json_answer;
pub use line::{heading_of_line, item_of_line};
pub use notes::{ResultNote, ResultNotes, ResultPlace, Retention};
pub use outcome::{Degradation, NoChange, StructuredFailure, StructuredOutcome};
pub use pairing::Pairing;
pub use pass::{StructuredPass, StructuredSummarizer};
pub use prompt::PROMPT_REVISION;
pub use reader::read_summary;
pub use rendering::render;
pub use section::{MAX_SECTION_ITEMS, StructuredSummary, SummarySection, SummaryTemplate};
pub use splitting::{boundaries, split_by_budget, split_by_count};
pub use transcript::{RenderedTranscript, TranscriptShape, render_transcript};
pub use trimming::{
    TRIMMED_MARK, TrimmedSummary, is_substantive, trim_summary_to_budget, trim_text_to_budget,
};
