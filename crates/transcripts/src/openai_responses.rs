//! Input of the OpenAI Responses API: a list of items, of which messages are one kind.

mod blocks;
mod calls;
mod encode;
mod grouping;
mod items;
mod log;
mod read;
mod tools;
mod write;

pub(crate) use calls::{CallKinds, Calls};
pub(crate) use encode::{encode, encode_message};
pub(crate) use grouping::{Grouping, Part};
pub(crate) use items::{Mapped, is_item_kind, map, string_message};
pub(crate) use log::{holds_items, is_log};
pub(crate) use read::{openai_usage, read};
pub(crate) use tools::encode_tools;
pub(crate) use write::{NewItem, NewList, ResponsesList, is_item_format, text_of, write_kept, write_new};

/// Whose reasoning is sealed and whose calls carry more than a name and arguments.
pub(crate) const SIGNATURE: &str = "openai";

/// State of a call: the whole item, for kinds of calls that have fields of their own.
pub(crate) const ITEM: &str = "openai_responses.item";

/// State of a function call: the fields that say where the function comes from.
pub(crate) const NAMESPACE: &str = "openai_responses.namespace";
