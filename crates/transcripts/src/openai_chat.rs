//! OpenAI chat completions.

mod blocks;
mod encode;
mod read;

pub(crate) use encode::{encode, encode_tools};
pub(crate) use read::{read, reply_message};

/// Whose thinking and state this format's own extensions hold.
const CUSTOM_CALL: &str = "openai_chat.custom_call";
