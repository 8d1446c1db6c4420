//! The command `epitome` as people and scripts use it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod commands;
mod growing;
mod policy;
mod rig;
mod sessions;
mod terminal;
