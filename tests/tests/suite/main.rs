//! What holds across the crates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod commands;
mod conformance;
mod crash;
mod driver;
mod explorer;
mod fuzz_corpus;
mod http_models;
mod http_served_models;
mod journal_damage;
mod journal_messages;
mod journal_records;
mod journal_replay;
mod journals;
mod no_leak;
mod no_leak_session;
mod policy_docs;
mod redacted_question;
mod rig_docs;
mod session_calibration;
mod session_edges;
mod session_fallback;
mod session_laws;
mod session_live;
mod session_random;
mod session_recovers;
mod summary_corpus;
mod summary_laws;
mod wire_document;
mod wire_laws;
