//! The boundary, one whole compaction, and the hustles of a session, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compact_by_hustles;
mod compact_damaged;
mod compact_once;
mod compaction_scene;
// Looks into /proc to see who is dead.
#[cfg(target_os = "linux")]
mod hustle_command;
mod hustle_identity;
mod hustle_lanes;
mod hustle_paths;
mod hustle_retry;
mod hustle_scene;
mod hustle_storm;
mod hustle_summarizer;
mod smallest_payloads;
mod wire_decode;
