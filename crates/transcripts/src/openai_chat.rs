//! OpenAI chat completions.

mod blocks;
mod encode;
mod read;

pub(crate) use encode::{arguments_text, encode, encode_tools};
pub(crate) use read::{arguments, read, reply_message};

/// State of a call whose input is free text. The Responses API has such calls too.
pub(crate) const CUSTOM_CALL: &str = "openai_chat.custom_call";
