//! Writing: atomically, never over the input.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::input::is_stdio;

/// Where a session goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// Where the result of `input` goes: where the user says, else beside it, else to standard output.
    pub(crate) fn of(input: &Path, out: Option<&Path>) -> Result<Self, Failure> {
        match out {
            Some(out) if is_stdio(out) => Ok(Self::Stdout),
            Some(out) if same_file(input, out) => Err(Failure::OverInput),
            Some(out) => Ok(Self::File(out.to_owned())),
            None if is_stdio(input) => Ok(Self::Stdout),
            None => Ok(Self::File(beside(input))),
        }
    }

    /// Writes everything or nothing: into a file beside the target that then takes its name.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
                written.map_err(Failure::io("standard output"))
            }
            Self::File(path) => write_atomically(path, bytes).map_err(Failure::io(path)),
        }
    }
}

fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|refused| refused.error)
}

/// `session.jsonl` becomes `session.compacted.jsonl`.
fn beside(input: &Path) -> PathBuf {
    let mut name = input.file_stem().unwrap_or(input.as_os_str()).to_owned();
    name.push(".compacted");
    if let Some(extension) = input.extension() {
        name.push(".");
        name.push(extension);
    }
    input.with_file_name(name)
}

/// Whether two paths lead to one file, through links and all.
fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other || same_inode(&one, &other),
        _ => false,
    }
}

#[cfg(unix)]
fn same_inode(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.dev() == other.dev() && one.ino() == other.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_inode(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_lie_beside_their_input() {
        assert_eq!(beside(Path::new("a/session.jsonl")), Path::new("a/session.compacted.jsonl"));
        assert_eq!(beside(Path::new("session")), Path::new("session.compacted"));
        assert_eq!(Destination::of(Path::new("-"), None).unwrap(), Destination::Stdout);
    }

    #[test]
    fn the_input_is_never_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("s.json");
        fs::write(&input, "[]").unwrap();
        let detour = folder.path().join(".").join("s.json");
        assert!(matches!(Destination::of(&input, Some(&detour)), Err(Failure::OverInput)));
        let link = folder.path().join("link.json");
        fs::hard_link(&input, &link).unwrap();
        assert!(matches!(Destination::of(&input, Some(&link)), Err(Failure::OverInput)));
    }
}
