//! Messages by their numbers, without reading the session.
//!
//! Only some records hold messages, and each of these says the number of its first one. So the record with a given
//! message is found by halving the sequence; whatever else stands in between is passed over.

use std::collections::VecDeque;
use std::sync::Arc;

use epitome_loop::{Message, SessionId};

use super::codec::decode_without_media;
use super::{
    Journal, JournalError, JournalRecord, MessageRange, Page, PageLimit, RecordBody, ReplayError,
    ReplayFault, RestoreError, Sequence, StoredRecord, read_record,
};

/// At most so many records are read at once. What is only passed over is read one record first, and four times as many
/// each time.
const MOST_RECORDS: u32 = 256;

/// Reads the messages of these numbers, in the order of the ranges, as the session was behind the record at this place.
/// Of the session, only those records are read that hold them, and a few more for each range to find the first.
///
/// # Errors
/// [`RestoreError`] when the journal fails or a record cannot be read; [`ReplayFault::Retained`] when a message of these
/// numbers is not there.
pub async fn read_messages(
    journal: &dyn Journal,
    session: SessionId,
    last: Sequence,
    ranges: &[MessageRange],
) -> Result<Vec<Message>, RestoreError> {
    let mut search = Search { journal, session, last, held: None };
    let mut found = Vec::new();
    for range in ranges {
        let mut next = range.first;
        while next < range.end {
            let held = search.holding(next, range.end).await?;
            let skipped = usize::try_from(next - held.first).unwrap_or(usize::MAX);
            let wanted = usize::try_from(range.end - next).unwrap_or(usize::MAX);
            found.extend(held.messages.iter().skip(skipped).take(wanted).cloned());
            next = held.end().min(range.end);
        }
    }
    Ok(found)
}

struct Search<'a> {
    journal: &'a dyn Journal,
    session: SessionId,
    last: Sequence,
    /// The record whose messages were given last, and what was read behind it.
    held: Option<Held>,
}

struct Held {
    place: Sequence,
    /// The number of its first message.
    first: u64,
    messages: Arc<[Message]>,
    /// Records behind it that were read with it.
    ahead: VecDeque<StoredRecord>,
}

impl Held {
    fn end(&self) -> u64 {
        self.first.saturating_add(self.messages.len() as u64)
    }
}

impl Search<'_> {
    /// The record that holds this message. `end` is that of what is wanted: so much is read ahead.
    async fn holding(&mut self, number: u64, end: u64) -> Result<&Held, RestoreError> {
        let is_here = |held: &Held| held.first <= number && number < held.end();
        let held = match self.held.take() {
            Some(held) if is_here(&held) => held,
            // What was asked for last ended in this record, and what is asked for now begins with the next one.
            Some(held) if held.end() == number => self.next(held, end).await?,
            Some(held) if held.end() < number => self.find(number, held.place).await?,
            _ => self.find(number, 0).await?,
        };
        Ok(self.held.insert(held))
    }

    fn missing(&self) -> RestoreError {
        ReplayError { sequence: self.last, fault: ReplayFault::Retained }.into()
    }

    /// Finds the record with a message by halving what is behind a place.
    async fn find(&self, number: u64, behind: Sequence) -> Result<Held, RestoreError> {
        // It stands at `low` or behind it, and before `high`.
        let (mut low, mut high) = (behind.saturating_add(1), self.last.saturating_add(1));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.look(middle, high).await? {
                Some((stored, held)) if held.first <= number => {
                    if number < held.end() {
                        // What was looked at so far lacks its media.
                        let record = read_record(self.journal, self.session, &stored).await?;
                        return hold(stored.sequence, record, None)?.ok_or(self.missing());
                    }
                    low = stored.sequence.saturating_add(1);
                }
                _ => high = middle,
            }
        }
        Err(self.missing())
    }

    /// The first record with messages from a place on, and before another.
    async fn look(
        &self,
        from: Sequence,
        before: Sequence,
    ) -> Result<Option<(StoredRecord, Held)>, RestoreError> {
        let (mut next, mut expected, mut records) = (Some(from), from, 1);
        while let Some(from) = next.filter(|from| *from < before) {
            let page = self.read(from, records).await?;
            records = records.saturating_mul(4).min(MOST_RECORDS);
            for stored in page.records {
                follows(stored.sequence, &mut expected)?;
                if stored.sequence >= before {
                    return Ok(None);
                }
                let unreadable = |fault| RestoreError::Record { sequence: stored.sequence, fault };
                let (record, _) = decode_without_media(self.session, &stored).map_err(unreadable)?;
                if let Some(held) = hold(stored.sequence, record, None)? {
                    return Ok(Some((stored, held)));
                }
            }
            next = page.next;
        }
        Ok(None)
    }

    /// The next record with messages; the first of them has the number where the last ones ended.
    async fn next(&self, held: Held, end: u64) -> Result<Held, RestoreError> {
        let (number, mut ahead) = (held.end(), held.ahead);
        let mut expected = held.place.saturating_add(1);
        loop {
            while let Some(stored) = ahead.pop_front() {
                follows(stored.sequence, &mut expected)?;
                if stored.sequence > self.last {
                    return Err(self.missing());
                }
                let record = read_record(self.journal, self.session, &stored).await?;
                if let Some(held) = hold(stored.sequence, record, Some(number))? {
                    return Ok(Held { ahead, ..held });
                }
            }
            if expected > self.last {
                return Err(self.missing());
            }
            // Each message that is wanted stands in one record at most.
            let records = u32::try_from(end.saturating_sub(number)).unwrap_or(u32::MAX).min(MOST_RECORDS);
            let page = self.read(expected, records).await?;
            if page.records.is_empty() {
                return Err(self.missing());
            }
            ahead = page.records.into();
        }
    }

    async fn read(&self, from: Sequence, records: u32) -> Result<Page, JournalError> {
        let limit = PageLimit { records, ..PageLimit::default() };
        self.journal.read(self.session, from, limit).await
    }
}

/// A record, if it holds messages. Where it is known what number comes next, it must be that.
fn hold(place: Sequence, record: JournalRecord, next: Option<u64>) -> Result<Option<Held>, ReplayError> {
    let RecordBody::Appended { first, messages } = record.body else { return Ok(None) };
    let is_next = next.is_none_or(|next| next == first);
    let is_in_bounds = first.checked_add(messages.len() as u64).is_some();
    if messages.is_empty() || !is_next || !is_in_bounds {
        return Err(ReplayError { sequence: place, fault: ReplayFault::MessageNumber });
    }
    Ok(Some(Held { place, first, messages, ahead: VecDeque::new() }))
}

/// Whether a record stands at the place that was expected.
fn follows(sequence: Sequence, expected: &mut Sequence) -> Result<(), ReplayError> {
    if sequence != *expected {
        return Err(ReplayError { sequence, fault: ReplayFault::Gap });
    }
    *expected = sequence.saturating_add(1);
    Ok(())
}
