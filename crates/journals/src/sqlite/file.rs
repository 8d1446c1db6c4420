//! The file, and connections to it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use epitome_sessionruntime::journal::JournalError;
use rusqlite::{Connection, OpenFlags};

/// Another process may hold the file for this long when it is opened or read. Readers wait only for whoever mends the
/// log.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the file if there is none, for its owner alone; SQLite makes its companions like it. A folder that is there
/// stays as it is.
pub(super) fn make_private(path: &Path) -> Result<(), JournalError> {
    let failed = |error: std::io::Error| JournalError::File { kind: error.kind() };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => require(path),
        Err(error) => Err(failed(error)),
    }
}

/// The header of a database takes so many bytes. SQLite takes a file of one byte for an empty one, and would write over
/// it.
const HEADER: u64 = 100;

/// Whether there is such a file, and not a folder or a device, and it may be a database. It is not opened for that:
/// closing it would drop the locks that this process may hold on it.
pub(super) fn require(path: &Path) -> Result<(), JournalError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && (found.len() == 0 || found.len() >= HEADER) => Ok(()),
        Ok(found) if found.is_dir() => Err(JournalError::File { kind: ErrorKind::IsADirectory }),
        Ok(_) => Err(JournalError::NotAJournal),
        Err(error) => Err(JournalError::File { kind: error.kind() }),
    }
}

pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // The file is there; and a path is a path, not an address with options.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

pub(super) fn for_writing(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // What is purged is overwritten, not only forgotten.
    connection.pragma_update(None, "secure_delete", "ON")?;
    // The log is worked in by the writer when nobody waits for it, not inside a commit.
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}

pub(super) fn for_reading(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "query_only", "ON")?;
    // Closing a reader must not wait for the log to be worked in.
    connection.pragma_update(None, "wal_autocheckpoint", 0)
}
