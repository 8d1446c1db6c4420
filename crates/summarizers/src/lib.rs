#![doc = include_str!("../README.md")]

mod declining;
mod defusing;
mod extractive;
mod folding;
mod model;
mod normalize;
mod provenance;
pub mod structured;

pub use extractive::Extractive;
pub use model::{
    MODEL_PROMPT, MODEL_PROMPT_REVISION, ModelSummarizer, ModelSummarizerError, ModelSummarizerSettings,
    SummaryForm,
};
pub use normalize::{MAX_ANSWER_BYTES, NormalizedAnswer, Repair, normalize_answer};
