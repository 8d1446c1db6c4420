//! A rig in a file: loops, hustles and the limits of their lanes, in TOML or JSON.
//!
//! Everything is read strictly, and whatever is amiss is said with its place: unreadable text, unknown keys,
//! values that break a rule, and definitions that do not fit each other. `docs/rig-file.md` explains each key.

mod hustles;
mod loops;
mod places;

use epitome_loop::SharedText;

use crate::document::Document;
use crate::rig_wire::RigWire;
use crate::{FileError, FileFormat, FilePlace, FileProblem, PlacePart, Rig, RigBuilder};

/// Reads a rig file whose prompts all stand in it. Any bytes may be given.
///
/// # Errors
/// [`FileError`] with the first fault and its place; [`FileProblem::PromptFile`] for a prompt that stands in a
/// file of its own.
pub fn read_rig_file(bytes: &[u8]) -> Result<Rig, FileError> {
    read_rig_file_with(bytes, |_| None)
}

/// Reads a rig file. `prompt_file` is asked for the text of each prompt that stands in a file of its own, by the
/// name that the rig file gives it, and answers `None` when there is no such text. This crate opens nothing.
///
/// # Errors
/// [`FileError`] with the first fault and its place: the text, then keys and values, then the rig's own checks
/// in the order of [`RigBuilder::build`].
pub fn read_rig_file_with(
    bytes: &[u8],
    mut prompt_file: impl FnMut(&str) -> Option<SharedText>,
) -> Result<Rig, FileError> {
    let document = Document::parse(bytes, FileFormat::detect(bytes))?;
    let RigWire { hustle_limits, hustles, loops } = document.decode()?;
    let mut builder = Rig::builder();
    if let Some(limits) = hustle_limits {
        builder = builder.with_hustle_limits(hustles::limits(limits));
    }
    for (at, hustle) in hustles.into_iter().enumerate() {
        let table = Table { document: &document, list: "hustles", at };
        builder = builder.with_hustle(hustles::settings(hustle, &table, &mut prompt_file)?);
    }
    for (at, agent_loop) in loops.into_iter().enumerate() {
        let table = Table { document: &document, list: "loops", at };
        builder = builder.with_loop(loops::builder(agent_loop, &table)?);
    }
    build(builder, &document)
}

fn build(builder: RigBuilder, document: &Document<'_>) -> Result<Rig, FileError> {
    builder.build().map_err(|error| places::located(&error, document))
}

/// The table of one loop or hustle, to say where a fault is.
struct Table<'a> {
    document: &'a Document<'a>,
    list: &'static str,
    /// From 0.
    at: usize,
}

impl Table<'_> {
    fn place(&self, keys: &[&'static str]) -> FilePlace {
        let table = [PlacePart::Key(self.list), PlacePart::Entry(self.at.saturating_add(1))];
        let keys = keys.iter().map(|key| PlacePart::Key(key));
        FilePlace(table.into_iter().chain(keys).collect())
    }

    fn fault(&self, keys: &[&'static str], problem: FileProblem) -> FileError {
        self.document.fault(self.place(keys), problem)
    }

    fn expected(&self, keys: &[&'static str], what: &'static str) -> FileError {
        self.fault(keys, FileProblem::Expected { what: what.into() })
    }

    /// The value of a key that must be given here.
    fn needed<T>(&self, value: Option<T>, keys: &[&'static str], key: &'static str) -> Result<T, FileError> {
        value.ok_or_else(|| self.fault(keys, FileProblem::MissingKey { key }))
    }
}

#[cfg(test)]
mod tests;
