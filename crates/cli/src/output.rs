//! Writing: whole or not at all, and never over the input.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use epitome_transcripts::Format;

use crate::failure::Failure;
use crate::input::is_stdio;

/// Where a session goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Stdout,
    File {
        path: PathBuf,
        /// What a new file may be read by: what the input may be.
        permissions: Option<Permissions>,
    },
}

impl Destination {
    /// Where the result of `input` goes: where the user says, else beside it under a name that is free, else,
    /// when the input is a stream, to standard output.
    pub(crate) fn of(input: &Path, out: Option<&Path>, to: Option<Format>) -> Result<Self, Failure> {
        // A redirected file has no name here, but it is the same file.
        let source = if is_stdio(input) { Path::new("/dev/stdin") } else { input };
        // `/dev/stdin` may be a file, but nothing belongs beside it.
        let is_stream = is_stdio(input) || input.starts_with("/dev") || !input.is_file();
        let permissions =
            fs::metadata(source).ok().filter(fs::Metadata::is_file).map(|meta| meta.permissions());
        let to_stdout = match out {
            Some(out) => is_stdio(out),
            None => is_stream,
        };
        match out {
            // Standard output may have been redirected into the input.
            _ if to_stdout && same_file(source, Path::new("/dev/stdout")) => Err(Failure::OverInput),
            _ if to_stdout => Ok(Self::Stdout),
            Some(out) if same_file(source, out) => Err(Failure::OverInput),
            Some(out) => Ok(Self::File { path: out.to_owned(), permissions }),
            None => Ok(Self::File { path: free_name_beside(input, to), permissions }),
        }
    }

    /// A file of this name, which its owner alone may read if it is made; `-` is standard output.
    pub(crate) fn private(out: &Path) -> Self {
        if is_stdio(out) { Self::Stdout } else { Self::File { path: out.to_owned(), permissions: None } }
    }

    /// As [`Destination::of`], but what would lie beside the input lies in `folder`.
    pub(crate) fn in_folder(
        folder: &Path,
        input: &Path,
        out: Option<&Path>,
        to: Option<Format>,
    ) -> Result<Self, Failure> {
        Ok(match Self::of(input, out, to)? {
            Self::File { permissions, .. } if out.is_none() => {
                let name = input.file_name().unwrap_or(input.as_os_str());
                Self::File { path: free_name_beside(&folder.join(name), to), permissions }
            }
            other => other,
        })
    }

    /// Checks that the result does not go into the journal, whose files are the one of this path and those beside it.
    pub(crate) fn is_apart_from(&self, journal: &Path) -> Result<(), Failure> {
        let target = match self {
            Self::Stdout => Path::new("/dev/stdout"),
            Self::File { path, .. } => path,
        };
        // The store keeps its log beside the file that a link leads to.
        let resolved = fs::canonicalize(journal).ok();
        let is_target = |ending: &&str| {
            [Some(journal), resolved.as_deref()].into_iter().flatten().any(|journal| {
                let mut name = journal.as_os_str().to_owned();
                name.push(ending);
                let file = Path::new(&name);
                // One of them that is not there may be made at any moment.
                same_file(file, target) || same_place(file, target)
            })
        };
        if ["", "-wal", "-shm"].iter().any(is_target) { Err(Failure::OverJournal) } else { Ok(()) }
    }

    /// Checks what can be known before there is anything to write: a summary that was paid for should find its place.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self::File { path, .. } = self else { return Ok(()) };
        let fault = if path.is_dir() {
            io::Error::new(io::ErrorKind::IsADirectory, "it is a folder")
        } else if fs::symlink_metadata(path).is_err() && !folder_of(path).is_dir() {
            io::Error::new(io::ErrorKind::NotFound, "its folder is not there")
        } else {
            return Ok(());
        };
        Err(Failure::io(path)(fault))
    }

    /// Writes everything or nothing: into a file beside the target that then takes its name. What is no
    /// regular file, such as a pipe or a device, is written into.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
                written.map_err(Failure::io("standard output"))
            }
            Self::File { path, permissions } => {
                write_file(path, permissions.as_ref(), bytes).map_err(Failure::io(path))
            }
        }
    }
}

fn write_file(path: &Path, permissions: Option<&Permissions>, bytes: &[u8]) -> io::Result<()> {
    write_through(path, permissions, bytes, MOST_LINKS)
}

/// So many links may lead from one to the next, as systems have it.
const MOST_LINKS: u8 = 40;

fn write_through(path: &Path, permissions: Option<&Permissions>, bytes: &[u8], links: u8) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_file() => {
            // Through a link, so that the link stays one.
            replace(&fs::canonicalize(path)?, Some(&there.permissions()), bytes)
        }
        Ok(_) => {
            let mut target: File = OpenOptions::new().write(true).open(path)?;
            target.write_all(bytes)
        }
        // What a link leads to may not be there yet; then it is made, and the link stays one.
        Err(_) => match (fs::read_link(path), links.checked_sub(1)) {
            (Ok(target), Some(links)) => {
                let target = path.parent().unwrap_or(Path::new("")).join(target);
                write_through(&target, permissions, bytes, links)
            }
            (Ok(_), None) => Err(io::Error::other("too many links lead from one to the next")),
            (Err(_), _) => replace(path, permissions, bytes),
        },
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(path: &Path, permissions: Option<&Permissions>, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "its folder is not there"));
    }
    // The error would name the file beside the target, which means nothing to the user.
    let plain = |fault: io::Error| io::Error::from(fault.kind());
    let mut file = tempfile::Builder::new().prefix(".epitome-").tempfile_in(folder).map_err(plain)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions.clone())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|refused| plain(refused.error))
}

/// `session.jsonl` becomes `session.compacted.jsonl`, or, where that is taken, `session.compacted-2.jsonl`.
fn free_name_beside(input: &Path, to: Option<Format>) -> PathBuf {
    let extension = match to {
        Some(format) => Some(format.extension().as_ref()),
        None => input.extension(),
    };
    let named = |number: u32| {
        let mut name = input.file_stem().unwrap_or(input.as_os_str()).to_owned();
        name.push(".compacted");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        if let Some(extension) = extension {
            name.push(".");
            name.push(extension);
        }
        input.with_file_name(name)
    };
    let taken = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    (1..10_000).map(named).find(|path| !taken(path)).unwrap_or_else(|| named(10_000))
}

/// Whether two paths lead to one file, through links and all.
fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) if one == other && one.is_file() => true,
        _ => same_inode(one, other),
    }
}

/// Whether two paths name one entry of one folder, there or not.
fn same_place(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::canonicalize(parent).ok()
    };
    one.file_name().is_some() && one.file_name() == other.file_name() && folder(one) == folder(other)
}

#[cfg(unix)]
fn same_inode(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && one.dev() == other.dev() && one.ino() == other.ino(),
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
    fn results_lie_beside_their_input_under_a_free_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("s.jsonl"), "x").unwrap();
        let next = |to| match Destination::of(&at("s.jsonl"), None, to) {
            Ok(Destination::File { path, .. }) => path.file_name().unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(next(None), "s.compacted.jsonl");
        fs::write(at("s.compacted.jsonl"), "mine").unwrap();
        assert_eq!(next(None), "s.compacted-2.jsonl");
        assert_eq!(next(Some(Format::OpenAiChat)), "s.compacted.json");
        assert_eq!(next(Some(Format::ClaudeCode)), "s.compacted-2.jsonl");
        for stream in ["-", "/dev/stdin", "/dev/fd/0"] {
            assert_eq!(Destination::of(Path::new(stream), None, None).unwrap(), Destination::Stdout);
        }
    }

    #[test]
    fn the_input_is_never_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("s.json");
        fs::write(&input, "[]").unwrap();
        let detour = folder.path().join(".").join("s.json");
        assert!(matches!(Destination::of(&input, Some(&detour), None), Err(Failure::OverInput)));
        let link = folder.path().join("link.json");
        fs::hard_link(&input, &link).unwrap();
        assert!(matches!(Destination::of(&input, Some(&link), None), Err(Failure::OverInput)));
    }

    #[test]
    fn a_journal_is_never_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("s.db");
        fs::write(&journal, "x").unwrap();
        for name in ["s.db", "s.db-wal", "./s.db-shm"] {
            let target = Destination::private(&folder.path().join(name));
            assert!(matches!(target.is_apart_from(&journal), Err(Failure::OverJournal)), "{name}");
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("link.db");
            std::os::unix::fs::symlink(&journal, &link).unwrap();
            let target = Destination::private(&folder.path().join("s.db-wal"));
            assert!(matches!(target.is_apart_from(&link), Err(Failure::OverJournal)), "its log is beside it");
        }
        for name in ["s.db.json", "other/s.db-wal"] {
            Destination::private(&folder.path().join(name)).is_apart_from(&journal).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (input, target, link) =
            (folder.path().join("in"), folder.path().join("target"), folder.path().join("link"));
        fs::write(&input, "x").unwrap();
        fs::set_permissions(&input, Permissions::from_mode(0o640)).unwrap();
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
        symlink(&target, &link).unwrap();
        Destination::of(&input, Some(&link), None).unwrap().write(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&target), 0o644);
        let fresh = folder.path().join("fresh");
        Destination::of(&input, Some(&fresh), None).unwrap().write(b"new").unwrap();
        assert_eq!(mode(&fresh), 0o640);
        Destination::of(&input, Some(Path::new("/dev/null")), None).unwrap().write(b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
