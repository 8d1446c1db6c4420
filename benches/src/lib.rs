//! What the hot paths are measured on, and the promises about their speed.
//!
//! `cargo bench -p epitome-benches` measures with criterion; `cargo run --release -p epitome-benches --bin
//! speed` measures each path against its rival in the same run and fails when a promise is not kept.

mod agent_text;
mod documents;
mod promises;
mod rivals;
mod stopwatch;

pub use agent_text::{agent_session, chat_session, new_message, plain_text};
pub use documents::{hostile_summaries, valid_summary};
pub use promises::{SpeedRow, chat_request, speed_report, summary_request};
pub use rivals::{recount_chat, roxmltree_accepts};
