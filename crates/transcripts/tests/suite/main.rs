//! Reading, repairing and writing sessions, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod canary;
mod cases;
mod claude_code;
mod detection;
mod gemini;
mod goldens;
mod laws;
mod made;
mod openai_items;
mod pi;
mod usage;
