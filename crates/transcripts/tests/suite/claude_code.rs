//! What Claude Code would send next, and what it would pick up from a compacted session.

mod compaction;
mod log;
mod reading;
mod streams;
mod writing;
