//! Rigs and their files, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod policy_file;
mod rig_laws;
