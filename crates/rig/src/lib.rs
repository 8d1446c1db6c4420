#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod document;
mod file_error;
mod policy_file;
mod policy_wire;
mod share;

pub use document::{FileFormat, MAX_FILE_BYTES, MAX_FILE_DEPTH};
pub use file_error::{FileError, FilePlace, FileProblem, PlacePart};
pub use policy_file::{Amount, KeepRecentAmount, PolicyFile, RearmLevel, WindowUnknown, read_policy_file};
pub use share::Share;
