#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod anthropic;
mod assembly;
mod call_arguments;
mod call_id;
mod claude_code;
mod codex;
mod container;
mod conversation;
mod detect;
mod epitome_json;
mod error;
mod event_stream;
mod faults;
mod format;
mod gemini;
mod json;
mod loss;
mod made;
mod media;
mod model;
mod note;
mod openai_chat;
mod openai_parts;
mod openai_responses;
mod pi;
mod read;
mod repair;
mod session;
mod source_id;
mod timestamp;
mod write;

pub use error::{ReadError, WriteError};
pub use format::{ForeignFormat, Format, FormatNameError};
pub use loss::{Loss, LossKind};
pub use note::Note;
pub use read::{ReadOptions, read};
pub use repair::{ANCHOR, NO_RESULT, Repair, repair};
pub use session::{ReportedUsage, Session};
pub use write::{Replacement, WriteReport, write};
