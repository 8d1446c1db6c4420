#![doc = include_str!("../README.md")]

mod breakdown;
mod byte_pairs;
mod cache;
mod content_class;
mod content_cost;
mod encoding;
mod error_band;
mod fit;
mod framing;
mod heuristic;
mod kind_costs;
mod local;
mod media;
mod memo;
mod model_table;
mod models;
mod opaque_json;
mod pieces;
mod pixel_size;
mod play_time;
mod script_shares;
mod sealed;
mod share_tables;
mod text_size;
mod tool_form;

pub use breakdown::Breakdown;
pub use content_class::ContentClass;
pub use encoding::Encoding;
pub use error_band::{CountRange, ErrorBand};
pub use fit::Fit;
pub use heuristic::HeuristicEstimator;
pub use local::LocalCounter;
pub use media::{ImageRule, MediaRules};
pub use models::{Exactness, Family, ModelInfo, known_models, model_info};
pub use pixel_size::PixelSize;
