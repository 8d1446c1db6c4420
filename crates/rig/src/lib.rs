#![doc = include_str!("../README.md")]
#![deny(clippy::disallowed_methods)]

mod bound_loop;
mod document;
mod file_error;
mod policy_file;
mod policy_wire;
mod rig;
mod rig_builder;
mod rig_error;
mod rig_file;
mod rig_wire;
mod share;

pub use bound_loop::{BoundCompaction, BoundLoop};
pub use document::{FileFormat, MAX_FILE_BYTES, MAX_FILE_DEPTH};
pub use file_error::{FileError, FilePlace, FileProblem, PlacePart};
pub use policy_file::{Amount, KeepRecentAmount, PolicyFile, RearmLevel, WindowUnknown, read_policy_file};
pub use rig::Rig;
pub use rig_builder::RigBuilder;
pub use rig_error::{Incompatibility, RigError, RigErrorKind, RigPart};
pub use rig_file::{read_rig_file, read_rig_file_with};
pub use share::Share;
