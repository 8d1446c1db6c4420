//! A journal's file with damaged bytes: whatever is restored from it must be what was written, or an error must say so.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use epitome_journals::SqliteJournal;
use epitome_loop::{Block, EventId, Image, Message, SessionId, SharedBytes, Timestamp};
use epitome_sessionruntime::journal::{
    CodecError, EncodedRecord, Journal, JournalError, JournalRecord, RecordBody, RestoreError, Restored,
    encode_record, restore, verify_session,
};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::crash_workload::{TRIGGER, append_around, append_of, record, session};

/// So large are messages and summaries.
const BYTES: usize = 200;
/// The longest of the sessions has so many records, which end with a whole append.
const RECORDS: u64 = 43;
/// An image that stands outside its record.
const IMAGE: usize = 6_000;

/// A journal to be damaged, and what is in it.
#[derive(Debug)]
pub struct DamagedJournal {
    folder: TempDir,
    runtime: Runtime,
    file: Vec<u8>,
    sessions: Vec<(SessionId, Restored)>,
}

/// What came of a damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDamage {
    /// Everything is there, and could be written on.
    Whole,
    /// An error said that something is damaged.
    Refused,
    /// Something else than what was written was taken for whole.
    Wrong(String),
}

/// The journal could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DamageError {
    /// The disk.
    #[error("{0}")]
    Disk(#[from] io::Error),
    /// The journal.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// A record.
    #[error("{0}")]
    Record(#[from] CodecError),
    /// What was written is not restored.
    #[error("{0}")]
    Restore(#[from] RestoreError),
}

fn with_image(number: u64) -> Result<EncodedRecord, CodecError> {
    let data = Some(SharedBytes::from(vec![7; IMAGE]));
    let image = Block::Image(Image { media_type: "image/png".into(), url: "".into(), data });
    let message = Message::User { blocks: Arc::from([image]) };
    let body = RecordBody::Appended { first: number - 2, messages: Arc::from([message]) };
    let id = EventId::from_bytes(u128::from(number).to_be_bytes());
    encode_record(&JournalRecord { id, at: Timestamp(number), body })
}

impl DamagedJournal {
    /// Makes a journal of a session that is longer than a page of the file, one with an image, and an empty one.
    ///
    /// # Errors
    /// [`DamageError`].
    pub fn new() -> Result<Self, DamageError> {
        // In memory where that can be had: what is looked at here is not the disk.
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }?;
        let runtime = Builder::new_current_thread().build()?;
        let path = folder.path().join("whole.db");
        let journal = SqliteJournal::open(&path)?;
        let sessions = runtime.block_on(async {
            for number in 0..3 {
                let lease = journal.open(session(number)).await?;
                let mut next = 1;
                while number == 0 && next <= RECORDS {
                    journal.append(&lease, append_of(next, BYTES)?).await?;
                    next = append_around(next).1 + 1;
                }
                if number == 1 {
                    let records = vec![encode_record(&record(1, BYTES))?, with_image(2)?, with_image(3)?];
                    journal.append(&lease, records).await?;
                }
            }
            let mut sessions = Vec::new();
            for number in 0..3 {
                sessions.push((session(number), restore(&journal, session(number), TRIGGER).await?));
            }
            Ok::<_, DamageError>(sessions)
        })?;
        // Closing works the log in, so that the file holds everything.
        drop(journal);
        let file = fs::read(&path)?;
        Ok(Self { folder, runtime, file, sessions })
    }

    /// The whole file.
    #[must_use]
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// What comes of the file with one bit the other way round.
    ///
    /// # Errors
    /// [`DamageError::Disk`] when it cannot be written.
    pub fn flip(&self, at: usize, bit: u32) -> Result<AfterDamage, DamageError> {
        let mut file = self.file.clone();
        if let Some(byte) = file.get_mut(at) {
            *byte ^= 1_u8 << (bit % 8);
        }
        self.judge(&file)
    }

    /// What comes of these bytes in the place of the file.
    ///
    /// # Errors
    /// [`DamageError::Disk`] when they cannot be written.
    pub fn judge(&self, file: &[u8]) -> Result<AfterDamage, DamageError> {
        let place = self.folder.path().join("damaged");
        fs::create_dir_all(&place)?;
        fs::write(place.join("journal.db"), file)?;
        let after = match SqliteJournal::open(&place.join("journal.db")) {
            Err(_) => AfterDamage::Refused,
            Ok(journal) => self.runtime.block_on(self.look(&journal)),
        };
        fs::remove_dir_all(&place)?;
        Ok(after)
    }

    async fn look(&self, journal: &SqliteJournal) -> AfterDamage {
        let mut is_refused = false;
        for (session, whole) in &self.sessions {
            match restore(journal, *session, TRIGGER).await {
                Ok(restored) if restored == *whole => {}
                Ok(restored) => return wrong("restored as another", &restored, whole),
                // A new one would be begun in its place.
                Err(RestoreError::Journal(JournalError::UnknownSession)) => {
                    return AfterDamage::Wrong("a session is not known".to_owned());
                }
                Err(error) => {
                    is_refused = true;
                    if verify_session(journal, *session).await.is_ok_and(|report| report.is_whole()) {
                        return AfterDamage::Wrong(format!("verified as whole, and not restored: {error}"));
                    }
                }
            }
        }
        if is_refused {
            return AfterDamage::Refused;
        }
        for (at, (session, whole)) in self.sessions.iter().enumerate() {
            match self.write_on(journal, *session, at, whole).await {
                AfterDamage::Whole => {}
                other => return other,
            }
        }
        AfterDamage::Whole
    }

    /// What seems whole is written on: what was acknowledged must be there, or an error must say so.
    async fn write_on(
        &self,
        journal: &SqliteJournal,
        session: SessionId,
        at: usize,
        whole: &Restored,
    ) -> AfterDamage {
        let next = whole.state.last() + 1;
        let records = match at {
            1 => with_image(next).map(|record| vec![record]),
            _ => append_of(next, BYTES),
        };
        let Ok(records) = records else { return AfterDamage::Wrong("no record".to_owned()) };
        let Ok(lease) = journal.open(session).await else { return AfterDamage::Refused };
        // What is there already must not be written twice.
        let told = match journal.append(&lease, records.clone()).await {
            Ok(_) => journal.append(&lease, records.clone()).await,
            Err(error) => Err(error),
        };
        let Ok(told) = told else { return AfterDamage::Refused };
        let last = told.last().map_or(0, |told| told.sequence);
        if last != whole.state.last() + records.len() as u64 {
            return AfterDamage::Wrong("acknowledged somewhere else".to_owned());
        }
        match restore(journal, session, TRIGGER).await {
            Ok(restored) if restored.state.last() == last => {}
            Ok(restored) => return wrong("restored as another after an append", &restored, whole),
            Err(RestoreError::Journal(JournalError::UnknownSession)) => {
                return AfterDamage::Wrong("a session is not known after an append".to_owned());
            }
            Err(_) => return AfterDamage::Refused,
        }
        for (other, whole) in self.sessions.iter().skip(at + 1) {
            match restore(journal, *other, TRIGGER).await {
                Ok(restored) if restored == *whole => {}
                Ok(restored) => return wrong("restored as another beside an append", &restored, whole),
                Err(RestoreError::Journal(JournalError::UnknownSession)) => {
                    return AfterDamage::Wrong("a session is not known beside an append".to_owned());
                }
                Err(_) => return AfterDamage::Refused,
            }
        }
        AfterDamage::Whole
    }
}

fn wrong(what: &str, restored: &Restored, whole: &Restored) -> AfterDamage {
    let (found, last) = (restored.state.last(), whole.state.last());
    AfterDamage::Wrong(format!("{what}: {found} of {last} records"))
}
