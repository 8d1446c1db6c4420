#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod summary_xml;

pub use summary_xml::{ConversationSummary, parse_summary};
