//! Contents of the Gemini API, and the session files of the Gemini command line.

mod blocks;
mod encode;
mod pairing;
mod read;
mod records;
mod records_write;
mod reply;
mod snapshot;
mod tools;
mod turn;

pub(crate) use encode::{CallNames, encode, encode_system};
pub(crate) use read::read;
pub(crate) use records::{RecordFile, is_session, read_session};
pub(crate) use records_write::{Between, write_kept};
pub(crate) use reply::{assemble, reply_message};
pub(crate) use tools::{declaration, encode_tools};

/// Whose signatures this format's parts carry.
pub(crate) const SIGNATURE: &str = "gemini";

/// State of an empty [`epitome_loop::Thinking`]: its signature belongs to the block before it, which has no
/// place for one.
const SIGNS_BEFORE: &str = "gemini.signs_before";

/// How the ids of calls begin that have none in the source. They are not written back.
const UNNAMED: &str = "unnamed_call_";

/// Whether a signature or a call's state is one of Gemini; pi names them by the interface that was called.
pub(crate) fn is_ours(format: &str) -> bool {
    matches!(format, SIGNATURE | "google-generative-ai" | "google-gemini-cli" | "google-vertex")
}
