//! Epitome JSON: our own form, which holds everything that a message can hold.

mod encode;
mod read;

pub(crate) use encode::{encode, encode_document};
pub(crate) use read::read;

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;
