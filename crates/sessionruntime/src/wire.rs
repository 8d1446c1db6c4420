//! Wire v1: a compaction input as the JSON that a summarizing hustle reads, and the JSON that it answers.
//!
//! The bytes equal the reference implementation's; `docs/wire-v1.md` describes them, what the decoder
//! refuses, and where it is stricter than the reference.

mod block;
mod decode;
mod encode;
mod fault;
mod header;
mod message;
mod reader;

pub use decode::{SummaryAnswer, decode_input, decode_output};
pub use encode::{encode_input, encoded_len};
pub(crate) use encode::{encode_messages, frame_len, joined_len, message_len};
pub(crate) use fault::Fault;
pub use fault::{WireError, WireFault, WirePart};
pub(crate) use reader::{Keys, Read, Reader};

/// The version of the wire that this crate writes and reads.
pub const WIRE_VERSION: u64 = 1;
