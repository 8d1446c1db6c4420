//! Session files of the coding agent pi.

mod blocks;
mod encode;
mod path;
mod read;
mod write;

pub(crate) use path::PiFile;
pub(crate) use read::read;
pub(crate) use write::{write_kept, write_new};
