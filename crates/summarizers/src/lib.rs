#![doc = include_str!("../README.md")]

mod extractive;
mod folding;
mod normalize;
mod provenance;
pub mod structured;

pub use extractive::Extractive;
pub use normalize::{MAX_ANSWER_BYTES, NormalizedAnswer, Repair, normalize_answer};
