//! A journal that forgets everything with the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use epitome_loop::{EventId, SessionId, SharedBytes};

use super::{
    Acknowledged, BlobDigest, EncodedRecord, Journal, JournalError, Page, PageLimit, Purged, Sequence,
    SessionEntry, StoredRecord, WriterLease, checksum,
};

/// A journal in memory, for tests and for sessions that may be lost: **nothing of it is durable**. Clones of an `Arc`
/// around it are the same journal.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The token given last. It outlives purges, so that no token is given twice.
    token: u64,
    sessions: BTreeMap<SessionId, Session>,
    /// Media, with how many sessions refer to each.
    blobs: BTreeMap<BlobDigest, (SharedBytes, u64)>,
}

#[derive(Debug, Default)]
struct Session {
    token: u64,
    records: Vec<StoredRecord>,
    places: BTreeMap<EventId, usize>,
    blobs: BTreeMap<BlobDigest, ()>,
}

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        // Everything below is checked before it changes anything, so what a panic leaves is whole.
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn session(&self, session: SessionId) -> Result<&Session, JournalError> {
        self.sessions.get(&session).ok_or(JournalError::UnknownSession)
    }

    fn append(
        &mut self,
        lease: WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        let stale = JournalError::StaleLease { held: lease.token };
        let session = self.sessions.get_mut(&lease.session).filter(|session| session.token == lease.token);
        let session = session.ok_or(stale)?;
        let mut fresh: BTreeMap<EventId, (Sequence, EncodedRecord)> = BTreeMap::new();
        let mut acknowledged = Vec::with_capacity(records.len());
        for record in records {
            if record.id.is_zero() {
                return Err(JournalError::NoId);
            }
            let there = session.places.get(&record.id).and_then(|at| session.records.get(*at));
            let there = there.map(|stored| (stored.sequence, &stored.body));
            let there =
                there.or_else(|| fresh.get(&record.id).map(|(sequence, record)| (*sequence, &record.body)));
            match there {
                Some((sequence, body)) if *body == record.body => {
                    acknowledged.push(Acknowledged { sequence, was_there: true });
                }
                Some((sequence, _)) => return Err(JournalError::IdReused { sequence }),
                None => {
                    let sequence = (session.records.len() + fresh.len()) as u64 + 1;
                    fresh.insert(record.id, (sequence, record));
                    acknowledged.push(Acknowledged { sequence, was_there: false });
                }
            }
        }
        let mut fresh: Vec<_> = fresh.into_values().collect();
        fresh.sort_by_key(|(sequence, _)| *sequence);
        for (sequence, EncodedRecord { id, body, blobs }) in fresh {
            for blob in blobs {
                if session.blobs.insert(blob.digest(), ()).is_none() {
                    self.blobs.entry(blob.digest()).or_insert_with(|| (blob.bytes().clone(), 0)).1 += 1;
                }
            }
            session.places.insert(id, session.records.len());
            let checksum = checksum(lease.session, sequence, id, &body);
            session.records.push(StoredRecord { sequence, id, body, checksum });
        }
        Ok(acknowledged)
    }

    fn purge(&mut self, session: SessionId) -> Purged {
        let Some(session) = self.sessions.remove(&session) else { return Purged::default() };
        let mut blobs = 0;
        for digest in session.blobs.into_keys() {
            if let Some((_, referred)) = self.blobs.get_mut(&digest) {
                *referred -= 1;
                if *referred == 0 {
                    self.blobs.remove(&digest);
                    blobs += 1;
                }
            }
        }
        Purged { records: session.records.len() as u64, blobs }
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn open(&self, session: SessionId) -> Result<WriterLease, JournalError> {
        Ok(self.with(|kept| {
            kept.token += 1;
            kept.sessions.entry(session).or_default().token = kept.token;
            WriterLease { session, token: kept.token }
        }))
    }

    async fn append(
        &self,
        lease: &WriterLease,
        records: Vec<EncodedRecord>,
    ) -> Result<Vec<Acknowledged>, JournalError> {
        self.with(|kept| kept.append(*lease, records))
    }

    async fn read(&self, session: SessionId, from: Sequence, limit: PageLimit) -> Result<Page, JournalError> {
        let limit = limit.within_bounds();
        self.with(|kept| {
            let all = &kept.session(session)?.records;
            let start = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
            let rest = all.get(start..).unwrap_or_default();
            let mut bytes = 0;
            let fits = |(at, record): &(usize, &StoredRecord)| {
                bytes += record.body.len();
                *at == 0 || (bytes <= limit.bytes && *at < limit.records as usize)
            };
            let records: Vec<_> =
                rest.iter().enumerate().take_while(fits).map(|(_, record)| record.clone()).collect();
            let next = (records.len() < rest.len()).then(|| from.max(1) + records.len() as u64);
            Ok(Page { records, next })
        })
    }

    async fn find(&self, session: SessionId, id: EventId) -> Result<Option<Sequence>, JournalError> {
        self.with(|kept| Ok(kept.session(session)?.places.get(&id).map(|at| *at as u64 + 1)))
    }

    async fn blobs(
        &self,
        session: SessionId,
        digests: Vec<BlobDigest>,
    ) -> Result<Vec<SharedBytes>, JournalError> {
        self.with(|kept| {
            let referred = &kept.session(session)?.blobs;
            let get = |digest: BlobDigest| {
                let blob = kept.blobs.get(&digest).filter(|_| referred.contains_key(&digest));
                blob.map(|(bytes, _)| bytes.clone()).ok_or(JournalError::MissingBlob)
            };
            digests.into_iter().map(get).collect()
        })
    }

    async fn sessions(
        &self,
        behind: Option<SessionId>,
        most: u32,
    ) -> Result<Vec<SessionEntry>, JournalError> {
        Ok(self.with(|kept| {
            let listed = kept.sessions.iter().filter(|(id, _)| behind.is_none_or(|behind| **id > behind));
            let entry = |(session, kept): (&SessionId, &Session)| SessionEntry {
                session: *session,
                last: kept.records.len() as u64,
            };
            listed.map(entry).take(most as usize).collect()
        }))
    }

    async fn purge(&self, session: SessionId) -> Result<Purged, JournalError> {
        Ok(self.with(|kept| kept.purge(session)))
    }
}
