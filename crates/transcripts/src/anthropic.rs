//! Anthropic Messages.

mod blocks;
mod encode;
mod read;

pub(crate) use blocks::content;
pub(crate) use encode::{encode, encode_system, encode_tools};
pub(crate) use read::{read, reply_message, usage, user_messages};

/// Whose signatures this format's thinking carries.
pub(crate) const SIGNATURE: &str = "anthropic";

/// State of a call that another tool made (`caller`).
const CALLER: &str = "anthropic.caller";
