//! Counting, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod counting;
mod encoding;
mod scripts;
