#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod candidate;
pub mod decision;
#[cfg(feature = "driver")]
pub mod driver;
mod exchange;
mod history;
mod landing;
mod outline;
mod pairing;
mod pressure;
mod projection;
mod summary_xml;
mod tail;

pub use candidate::{Candidate, CandidateRefused, Unavailable, choose_candidate};
pub use exchange::whole_exchanges;
pub use history::{HistoryError, check_message_graph, check_retained_history};
pub use landing::{Landing, judge_landing, landing_level};
pub use outline::SegmentOutline;
pub use pressure::pressure_level;
pub use projection::{Projection, ProjectionError, TOOL_RESULT_CODE_POINTS, project};
pub use summary_xml::{ConversationSummary, parse_summary, parse_summary_text};
pub use tail::{
    InsideSegment, OpenExchange, TailChoice, TailCut, TailError, open_exchange, retained_tail_fits,
    select_tail,
};
