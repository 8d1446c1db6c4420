#![doc = include_str!("../README.md")]

mod sqlite;

pub use sqlite::{SCHEMA_VERSION, SqliteJournal};
