//! What the writer writes that is killed: the n-th record of a session is always the same, so that whoever opens the
//! journal afterwards knows what must be there.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use epitome_journals::SqliteJournal;
use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextLimits, ContextMeasurement, ContextRevision,
    CountQuality, EventId, Message, ModelKey, RequestFingerprint, SessionId, Timestamp, TokenCount, Trigger,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Latch, Waiter};
use epitome_sessionruntime::journal::{
    AttemptStart, CodecError, Committed, EncodedRecord, Journal, JournalError, JournalRecord, MessageRange,
    RecordBody, SessionOpened, WaiterOutcome, encode_record,
};

/// So many sessions are written to at once.
pub const SESSIONS: u8 = 4;

/// A round is a message, a measurement, the start of an attempt, and a commit with what belongs to it.
const ROUND: u64 = 6;

/// Under what policy it all is.
pub const TRIGGER: Trigger =
    Trigger::Automatic { compact_at: BasisPoints(8_000), rearm_below: BasisPoints(6_000) };

/// A writer cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriterError {
    /// The journal failed.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// A record cannot be written.
    #[error("{0}")]
    Record(#[from] CodecError),
    /// Nobody listens.
    #[error("{0}")]
    Output(#[from] io::Error),
}

/// The id of a session.
#[must_use]
pub fn session(number: u8) -> SessionId {
    SessionId::from_bytes([number + 1; 16])
}

fn event(number: u64) -> EventId {
    // In no order, as ids come.
    let spread = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    EventId::from_bytes(spread.to_be_bytes())
}

/// The first of the records that are appended together with the one at this place, and the last.
#[must_use]
pub fn append_around(sequence: u64) -> (u64, u64) {
    match sequence.checked_sub(2).map(|behind_opening| behind_opening % ROUND) {
        Some(at @ 3..) => (sequence - (at - 3), sequence + (5 - at)),
        _ => (sequence, sequence),
    }
}

/// The record at this place, from 1 on. `size` is that of a message and of a summary, in bytes.
#[must_use]
pub fn record(sequence: u64, size: usize) -> JournalRecord {
    let body = match sequence.checked_sub(2) {
        None => RecordBody::Opened(SessionOpened {
            model: ModelKey::new("p", "m"),
            limits: ContextLimits::default(),
            policy_revision: "r".into(),
            tools: Arc::from([]),
        }),
        Some(behind_opening) => of_round(behind_opening / ROUND, behind_opening % ROUND, size),
    };
    JournalRecord { id: event(sequence), at: Timestamp(sequence), body }
}

fn of_round(round: u64, at: u64, size: usize) -> RecordBody {
    let first = 2 + round * ROUND;
    let appended = ContextBasis { revision: ContextRevision(2 * round + 1), through_event_id: event(first) };
    let post = ContextBasis { revision: ContextRevision(2 * round + 2), through_event_id: event(first + 3) };
    let attempt = AttemptId::from_bytes((u128::from(round) + 1).to_be_bytes());
    let command = CommandId::from_bytes((u128::from(round) + 1).to_be_bytes());
    let measured = |tokens| ContextMeasurement {
        basis: appended,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([4; 32]),
        input_tokens: TokenCount(tokens),
        input_limit: TokenCount(10_000),
        quality: CountQuality::ExactLocal,
    };
    match at {
        0 => RecordBody::Appended { first: round, messages: Arc::from([Message::user("m".repeat(size))]) },
        1 => RecordBody::Measured(measured(9_000)),
        2 => RecordBody::Started(AttemptStart {
            attempt,
            reason: AttemptReason::Automatic,
            basis: appended,
            waiters: Arc::from([Waiter { created_at: Timestamp(1), command }]),
        }),
        3 => RecordBody::Committed(Box::new(Committed {
            attempt,
            basis: appended,
            post,
            summary: "s".repeat(size).into(),
            retained: Arc::from([MessageRange { first: round, end: round + 1 }]),
            leading: 0,
            before: measured(9_000),
            after: measured(1_000),
            summary_tokens: TokenCount(500),
            landing: Landing::Low,
            usage: None,
            cost_micro_usd: None,
            repairs: Arc::from([]),
            degraded: None,
        })),
        4 => RecordBody::Latched(Latch { attempted: Some(appended), ..Latch::default() }),
        _ => RecordBody::Answered(WaiterOutcome::new(attempt, command, true)),
    }
}

/// The records of the append that the record at this place belongs to.
///
/// # Errors
/// [`CodecError`] never, as long as records can be written.
pub fn append_of(sequence: u64, size: usize) -> Result<Vec<EncodedRecord>, CodecError> {
    let (first, last) = append_around(sequence);
    (first..=last).map(|sequence| encode_record(&record(sequence, size))).collect()
}

/// Writes to every session at once, from where it stands on, and prints `SESSION SEQUENCE` for each append once it is
/// acknowledged. It ends after so many records of each session, or when it is killed.
///
/// # Errors
/// [`WriterError`].
pub fn write(path: &Path, most: u64, size: usize) -> Result<(), WriterError> {
    let journal = SqliteJournal::open(path)?;
    let journal = &journal;
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..SESSIONS).map(|number| scope.spawn(move || write_one(journal, number, most, size))).collect();
        let ended = |writer: std::thread::ScopedJoinHandle<'_, Result<(), WriterError>>| {
            writer.join().unwrap_or(Err(WriterError::Journal(JournalError::Closed)))
        };
        writers.into_iter().try_for_each(ended)
    })
}

fn write_one(journal: &SqliteJournal, number: u8, most: u64, size: usize) -> Result<(), WriterError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let lease = journal.open(session(number)).await?;
        let listed = journal.sessions(None, u32::from(SESSIONS)).await?;
        let here = listed.iter().find(|entry| entry.session == session(number));
        let mut next = here.map_or(0, |entry| entry.last) + 1;
        while next <= most {
            let (_, last) = append_around(next);
            journal.append(&lease, append_of(next, size)?).await?;
            // One write for each line, so that none is lost half way in a buffer.
            io::stdout().lock().write_all(format!("{number} {last}\n").as_bytes())?;
            next = last + 1;
        }
        Ok(())
    })
}
