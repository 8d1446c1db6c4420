//! The summarizers, from the outside of the crate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod extractive_laws;
mod extractive_rules;
mod extractive_standing;
mod model_laws;
mod model_question;
mod model_scene;
mod model_summary;
mod structured_laws;
mod structured_pass;
mod structured_scene;
