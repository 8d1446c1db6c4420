//! What the hot paths are measured on, their rivals, and the targets that they must reach.
//!
//! `cargo xtask bench` measures every path in turns with its rival and prints what was reached; `cargo bench -p
//! epitome-benches` looks at some of them with criterion.

mod agent_text;
mod answer_paths;
mod compaction_paths;
mod counter_paths;
mod documents;
mod extractive_paths;
mod fresh_process;
mod hostile_text;
mod journal_paths;
mod loopctl_rival;
mod path;
mod rivals;
mod session_paths;
mod stopwatch;
mod summary_paths;
mod table;
mod wire;
mod wire_paths;
mod wire_rivals;

pub use agent_text::{agent_session, chat_session, new_message, plain_text, reading_session};
pub use compaction_paths::peak_of_a_compaction;
pub use counter_paths::{chat_request, time_of_the_first_count};
pub use documents::{hostile_summaries, valid_summary};
pub use extractive_paths::summary_request;
pub use path::{HotPath, MOST_MISSED, Measured, Target, Unit, Verdict};
pub use rivals::{FeasibilityScan, recount_chat, roxmltree_accepts};
pub use table::{heading, row};
pub use wire::wire_input;
pub use wire_rivals::InputShape;

/// Every hot path, by group.
pub const GROUPS: &[&[HotPath]] = &[
    summary_paths::PATHS,
    wire_paths::PATHS,
    session_paths::PATHS,
    counter_paths::PATHS,
    extractive_paths::PATHS,
    answer_paths::PATHS,
    compaction_paths::PATHS,
    journal_paths::PATHS,
];
