//! What SQLite says, as what a journal says. Its texts may quote, so only its codes are kept.

use epitome_sessionruntime::journal::JournalError;
use rusqlite::{Error, ErrorCode};

pub(super) fn fault(error: Error) -> JournalError {
    match &error {
        Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => JournalError::Busy,
            ErrorCode::ReadOnly => JournalError::ReadOnly,
            ErrorCode::DiskFull => JournalError::Full,
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => JournalError::NotAJournal,
            _ => JournalError::Store { code: failure.extended_code },
        },
        // A table or a column with something else in it than we write.
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::QueryReturnedNoRows => JournalError::NotAJournal,
        _ => JournalError::Store { code: 1 },
    }
}

/// What SQLite says when a transaction is to become durable, and it is not known whether it did. None of it is a
/// refusal.
pub(super) fn in_doubt(error: Error) -> JournalError {
    let code = error.sqlite_error().map_or(1, |failure| failure.extended_code);
    match fault(error) {
        known if known.is_refusal() => JournalError::Store { code },
        unknown => unknown,
    }
}

/// Whether everything in a transaction is in doubt, and not only the one thing that was tried.
pub(super) fn spoils_the_group(error: JournalError) -> bool {
    !error.is_refusal() || matches!(error, JournalError::NotAJournal | JournalError::Busy)
}
