//! What Claude Code would send next, and what it would pick up from a compacted session.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compaction;
mod log;
mod reading;
mod streams;
mod writing;
