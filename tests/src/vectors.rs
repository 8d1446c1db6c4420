//! Reading vector files: one JSON object a line, nested up to hundreds of levels.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

/// Enough for recursion over every vector, also in an unoptimized build.
const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;

/// One line of a vector file.
#[derive(Clone, Debug, Deserialize)]
pub struct VectorCase {
    /// `file/category/number`.
    pub id: String,
    /// Which operation is tested, in files that hold several.
    #[serde(default)]
    pub op: String,
    /// What the function is given.
    pub input: Value,
    /// What it must answer.
    pub expect: Value,
}

/// A vector file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The file cannot be opened.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a vector.
    #[error("{} line {line}: not a vector", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// There is no thread to work on.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The work panicked.
    #[error("the work on the vectors panicked")]
    Panicked,
}

/// Reads a vector file. Call it inside [`with_deep_stack`].
///
/// # Errors
/// [`VectorError`] when the file cannot be read or a line is not a vector.
pub fn read_vectors(path: &Path) -> Result<Vec<VectorCase>, VectorError> {
    let text =
        fs::read_to_string(path).map_err(|source| VectorError::Read { path: path.to_path_buf(), source })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let mut reader = serde_json::Deserializer::from_str(line);
            reader.disable_recursion_limit();
            VectorCase::deserialize(&mut reader)
                .map_err(|_| VectorError::Line { path: path.to_path_buf(), line: at + 1 })
        })
        .collect()
}

/// Does the work on a thread whose stack is large enough for the deepest vectors.
///
/// # Errors
/// [`VectorError`] when there is no such thread or the work panics.
pub fn with_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, VectorError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(DEEP_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(VectorError::Thread)?;
        worker.join().map_err(|_| VectorError::Panicked)
    })
}
