//! Rollout files of Codex.

mod history;
mod read;
mod record;
mod write;

pub(crate) use read::read;
pub(crate) use record::is_rollout;
pub(crate) use write::{CodexFile, write_kept, write_new};
