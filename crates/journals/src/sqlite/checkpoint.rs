//! Working the log into the file. Most of it is done by a thread of its own while commits go on; the writer does what
//! is left, which is little, so that the log begins anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use epitome_sessionruntime::journal::JournalError;
use rusqlite::Connection;

use super::read;
use super::worker::Worker;

/// The log is worked in when it has grown by so many bytes.
const ENOUGH: usize = 4 << 20;

pub(super) struct LogKeeper {
    helper: Worker<read::Job>,
    is_helping: Arc<AtomicBool>,
    phase: Phase,
    /// So many bytes were written since the log began anew, as far as is known.
    grown: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Growing,
    Helped,
}

impl LogKeeper {
    /// What an earlier process left in the log is worked in soon.
    pub(super) fn start(connection: Connection) -> Result<Self, JournalError> {
        let helper = Worker::start("epitome-journal-checkpoint", connection, read::answer)?;
        Ok(Self { helper, is_helping: Arc::default(), phase: Phase::Growing, grown: ENOUGH })
    }

    /// The log has grown by so many bytes, and whoever waited for them has an answer.
    pub(super) fn has_grown(&mut self, bytes: usize, writer: &Connection) {
        self.grown = self.grown.saturating_add(bytes);
        match self.phase {
            _ if self.is_helping.load(Ordering::Acquire) => {}
            Phase::Growing if self.grown < ENOUGH => {}
            Phase::Growing => {
                let is_helping = Arc::clone(&self.is_helping);
                is_helping.store(true, Ordering::Release);
                let is_posted = self.helper.post(Box::new(move |connection| {
                    work_in(connection);
                    is_helping.store(false, Ordering::Release);
                }));
                if is_posted {
                    self.phase = Phase::Helped;
                }
            }
            Phase::Helped => {
                work_in(writer);
                (self.phase, self.grown) = (Phase::Growing, 0);
            }
        }
    }
}

/// Waits for nobody. What readers or other processes hold up now is worked in another time.
fn work_in(connection: &Connection) {
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
}
