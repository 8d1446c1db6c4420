#![doc = include_str!("../README.md")]

mod breakdown;
mod cache;
mod content_cost;
mod encoding;
mod framing;
mod heuristic;
mod local;
mod media;
mod memo;
mod model_table;
mod models;
mod opaque_json;
mod pieces;
mod pixel_size;
mod text_size;

pub use breakdown::Breakdown;
pub use encoding::Encoding;
pub use heuristic::HeuristicEstimator;
pub use local::LocalCounter;
pub use media::{ImageRule, MediaRules};
pub use models::{Exactness, Family, ModelInfo, known_models, model_info};
pub use pixel_size::PixelSize;
