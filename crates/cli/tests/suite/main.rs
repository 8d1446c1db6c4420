//! The command `epitome` as people and scripts use it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod commands;
mod growing;
mod journal;
mod journal_folder;
mod journal_hostile;
mod journal_live;
mod journal_log;
mod model_server;
mod models;
mod policy;
mod rig;
mod session_docs;
mod sessions;
mod summarizer;
mod summarizer_sessions;
mod terminal;
