//! The boundary and one whole compaction, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compact_once;
mod smallest_payloads;
mod wire_decode;
