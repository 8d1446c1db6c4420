//! Session files of Claude Code, and the stream that it prints.
//!
//! Both are records on lines, and both write one message of the model on several of them. They differ in how
//! records are linked: those of a session name their parents, those of a stream follow each other.

mod compaction;
mod form;
mod gather;
mod path;
mod read;
mod record;
mod write;

use crate::json::Value;

pub(crate) use read::read;
pub(crate) use record::{ClaudeFile, Flavor};
pub(crate) use write::{write_kept, write_new};

/// How many values are looked at to find a record that tells what the source is: sessions may begin with many
/// that tell nothing.
const LOOKED_AT: usize = 200;

/// Which of the two a source is, if one of them, by the keys of its records.
pub(crate) fn flavor(values: &[Value<'_>]) -> Option<Flavor> {
    match values {
        [list] if list.is_array() => list.elements().take(LOOKED_AT).find_map(record::flavor),
        values => values.iter().take(LOOKED_AT).find_map(|value| record::flavor(*value)),
    }
}
