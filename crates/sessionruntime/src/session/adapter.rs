//! Does what the loop decides: writes records, has summaries made and requests counted, and puts outcomes in place.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{AttemptId, CommandId, ContextBasis, Message, RejectionReason, Timestamp};
use epitome_loopruntime::decision::{
    Attempt, Change, ChangeKind, Decision, Record, Refused, Replacement, Reply,
};
use epitome_loopruntime::driver::{LoopAdapter, RecordFailed};
use tokio::time::Instant;

use super::attempt::{self, AttemptWork};
use super::event::SessionEvent;
use super::live::{Live, Shared};
use super::report::{AttemptReport, RejectionReport};
use crate::journal::{
    Acknowledged, AttemptStart, EncodedRecord, JournalError, JournalRecord, RecordBody, SessionState,
    WaiterOutcome, encode_record, restore,
};
use crate::{AuditFailed, HustleAudit, HustleFaultChange, HustleRecord, is_provider_compaction};

/// The adapter of one session.
pub(super) struct SessionAdapter(pub(super) Arc<Shared>);

/// Records that are to be written together.
struct Batch {
    records: Vec<JournalRecord>,
    /// Whether the context becomes another one than the live one with what is appended, so that its messages must be
    /// fetched.
    rewinds: bool,
}

/// A context that another commit makes than the live one, or none.
struct Rewound {
    messages: Vec<Message>,
    /// What the session came to before, whole.
    whole: SessionState,
}

#[async_trait]
impl LoopAdapter for SessionAdapter {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn record(&self, records: Vec<Record>) -> Result<(), RecordFailed> {
        let written = self.write(records).await;
        if written.is_err() {
            self.0.halt();
        }
        written
    }

    fn attempt_timeout(&self) -> Option<Duration> {
        let live = self.0.live();
        Some(self.0.limits.attempt_timeout.unwrap_or_else(|| live.binding.attempt_timeout()))
    }

    async fn summarize(&self, attempt: AttemptId, basis: ContextBasis) -> Result<(), RejectionReason> {
        attempt::summarize(&self.0, attempt, basis).await
    }

    async fn count(&self, attempt: AttemptId) -> Result<Replacement, RejectionReason> {
        attempt::count(&self.0, attempt).await
    }

    fn apply(&self, attempt: AttemptId, basis: ContextBasis) {
        let mut live = self.0.live();
        let work = live.attempt.as_ref().filter(|work| work.attempt == attempt);
        if let Some(counted) = work.and_then(AttemptWork::counted).cloned() {
            // Into no more room than they take: an idle session keeps it.
            live.put(counted.rebuilt.clone(), basis);
        }
    }

    fn forget(&self, attempt: AttemptId) {
        self.0.live().forget(attempt);
    }

    fn decided(&self, decision: Decision) {
        tracing::debug!(
            target: "epitome::session",
            session = %self.0.session(),
            occupancy = decision.reading.occupancy.get(),
            rule = ?decision.rule,
            "request decided"
        );
        let live = &mut *self.0.live();
        live.feed.tell(live.state.last(), || SessionEvent::Decided(decision));
    }

    fn answered(&self, command: CommandId, reply: &Reply) {
        if *reply == Reply::Halted {
            self.0.halt();
        }
        let mut live = self.0.live();
        live.instructions.remove(&command);
        live.frames.remove(&command);
    }

    fn refused(&self, change: &Change, why: Refused) {
        if why == Refused::Halted {
            self.0.halt();
        }
        self.0.live().appends.remove(&change.event);
    }
}

impl SessionAdapter {
    async fn write(&self, records: Vec<Record>) -> Result<(), RecordFailed> {
        let shared = &self.0;
        let batch = self.batch(records)?;
        if batch.records.is_empty() {
            return Ok(());
        }
        // What goes back in time must be readable before it is written that it did.
        let rewound = if batch.rewinds { Some(self.rewound(&batch.records).await?) } else { None };
        let encoded = batch.records.iter().map(encode_record).collect::<Result<Vec<_>, _>>();
        let encoded = encoded.map_err(|_| RecordFailed)?;
        let acknowledged = self.append(encoded).await.map_err(|error| {
            if matches!(error, JournalError::StaleLease { .. }) {
                shared.taken_over();
            }
            tracing::error!(
                target: "epitome::session", session = %shared.session(), error = %error, "journal failed"
            );
            RecordFailed
        })?;
        self.fold(batch.records, &acknowledged, rewound)
    }

    /// Writes, and tries again while somebody else holds the store: records that were written are known by their ids.
    async fn append(&self, records: Vec<EncodedRecord>) -> Result<Vec<Acknowledged>, JournalError> {
        const PAUSE: Duration = Duration::from_millis(100);
        let shared = &self.0;
        let begun = Instant::now();
        loop {
            match shared.journal.append(&shared.lease, records.clone()).await {
                Err(JournalError::Busy) if begun.elapsed() < shared.limits.record_timeout => {
                    tokio::time::sleep(PAUSE).await;
                }
                written => return written,
            }
        }
    }

    /// The records as the journal takes them.
    fn batch(&self, records: Vec<Record>) -> Result<Batch, RecordFailed> {
        let at = self.0.now();
        let mut live = self.0.live();
        let mut batch = Batch { records: Vec::with_capacity(records.len() + 1), rewinds: false };
        let mut next = live.state.messages();
        let mut in_force_before = live.state.in_force();
        for record in records {
            let (id, body) = match record {
                Record::Measured(measurement) => (None, RecordBody::Measured(measurement)),
                Record::Changed(Change { event, kind: ChangeKind::Append }) => {
                    let messages = live.appends.remove(&event).ok_or(RecordFailed)?;
                    // Behind a compaction of the provider the context is another one.
                    batch.rewinds |= messages.iter().any(is_provider_compaction);
                    let first = next;
                    next = next.saturating_add(messages.len() as u64);
                    (Some(event), RecordBody::Appended { first, messages })
                }
                // A rewind is written down as what it comes to.
                Record::Changed(Change { kind: ChangeKind::Rewind(_), .. }) => return Err(RecordFailed),
                Record::Rewound { event, in_force } => {
                    batch.rewinds = true;
                    let is_back = in_force < std::mem::replace(&mut in_force_before, in_force);
                    let undone = RecordBody::Undone { in_force };
                    (Some(event), if is_back { undone } else { RecordBody::Redone { in_force } })
                }
                Record::Started(attempt) => (None, started(&mut live, attempt)?),
                Record::Committed { attempt, basis, landing: _ } => {
                    let work = live.attempt.as_ref().filter(|work| work.attempt == attempt);
                    let counted = work.and_then(AttemptWork::counted).ok_or(RecordFailed)?;
                    let committed = RecordBody::Committed(Box::new(counted.committed(attempt)));
                    (Some(basis.through_event_id), committed)
                }
                Record::Rejected { attempt, reason } => {
                    let work = live.attempt.as_ref().filter(|work| work.attempt == attempt);
                    let detail = work.and_then(|work| work.detail(reason));
                    let usage = work.and_then(AttemptWork::spent);
                    (None, RecordBody::Rejected { attempt, reason, detail, usage })
                }
                Record::Answered { attempt, command, resolved } => {
                    (None, RecordBody::Answered(WaiterOutcome::new(attempt, command, resolved)))
                }
                Record::SettingsChanged => match live.opened.take() {
                    Some(opened) => (None, RecordBody::Opened(opened)),
                    // The line for a change before this one has said it already.
                    None => continue,
                },
                Record::Latched(latch) => (None, RecordBody::Latched(latch)),
            };
            let id = id.unwrap_or_else(|| self.0.event());
            batch.records.push(JournalRecord { id, at, body });
        }
        Ok(batch)
    }

    /// The context that these records lead to.
    async fn rewound(&self, records: &[JournalRecord]) -> Result<Rewound, RecordFailed> {
        let trigger = self.0.live().binding.trigger();
        let mut restored =
            restore(&*self.0.journal, self.0.session(), trigger).await.map_err(|_| RecordFailed)?;
        let whole = restored.state.clone();
        let mut state = whole.clone();
        for record in records {
            let next = state.last().saturating_add(1);
            state = state.apply(next, record).map_err(|_| RecordFailed)?;
            if let RecordBody::Appended { messages: appended, .. } = &record.body {
                restored.messages.extend(appended.iter().cloned());
            }
        }
        Ok(Rewound { messages: restored.context_messages(&state.context()), whole })
    }

    /// Takes what is durable into the live state, and tells it.
    fn fold(
        &self,
        records: Vec<JournalRecord>,
        acknowledged: &[Acknowledged],
        rewound: Option<Rewound>,
    ) -> Result<(), RecordFailed> {
        if acknowledged.len() != records.len() {
            return Err(RecordFailed);
        }
        let mut live = self.0.live();
        if let Some(Rewound { whole, .. }) = &rewound {
            live.state.recall(whole);
        }
        for (record, Acknowledged { sequence, .. }) in records.into_iter().zip(acknowledged) {
            let level = live.state.tracker().level();
            let trigger = live.binding.trigger();
            let state = std::mem::replace(&mut live.state, SessionState::new(trigger));
            // A loop that is another one goes on under its own policy.
            let is_opened = matches!(record.body, RecordBody::Opened(_));
            let state = if is_opened { state.under(trigger) } else { state };
            live.state = state.apply(*sequence, &record).map_err(|error| {
                tracing::error!(
                    target: "epitome::session", session = %self.0.session(), error = %error, "record does not follow"
                );
                RecordFailed
            })?;
            self.take_in(&mut live, &record);
            tracing::info!(
                target: "epitome::session",
                session = %self.0.session(),
                sequence = *sequence,
                kind = record.body.kind(),
                revision = live.state.basis().revision.0,
                "recorded"
            );
            let record = Arc::new(record);
            live.feed.tell(*sequence, || SessionEvent::Recorded { sequence: *sequence, record });
            let current = live.state.tracker().level();
            if current != level {
                let measurement = live.state.tracker().measurement();
                let occupancy = measurement.map_or_else(Default::default, |measured| measured.occupancy());
                live.feed.tell(*sequence, || SessionEvent::LevelChanged {
                    previous: level,
                    current,
                    occupancy,
                });
            }
        }
        if let Some(Rewound { messages, whole: _ }) = rewound {
            let trigger = live.binding.trigger();
            live.state = std::mem::replace(&mut live.state, SessionState::new(trigger)).lean();
            let basis = live.state.basis();
            live.put(messages, basis);
        }
        Ok(())
    }

    fn take_in(&self, live: &mut Live, record: &JournalRecord) {
        match &record.body {
            RecordBody::Appended { first, messages } => {
                let basis = live.state.basis();
                live.add(messages, basis);
                live.calibrating.added(*first, messages);
            }
            RecordBody::Committed(committed) => {
                let trigger = live.binding.trigger();
                live.state = std::mem::replace(&mut live.state, SessionState::new(trigger)).lean();
                let counted = live.attempt.as_ref().and_then(AttemptWork::counted).cloned();
                let report = counted.map(|counted| counted.report(committed));
                live.newest_attempt = report.map(Box::new).map(AttemptReport::Committed);
            }
            RecordBody::Rejected { attempt, reason, detail, usage } => {
                let detail = detail.clone();
                let report = RejectionReport { attempt: *attempt, reason: *reason, detail, usage: *usage };
                live.newest_attempt = Some(AttemptReport::Rejected(report));
            }
            _ => {}
        }
    }
}

fn started(live: &mut Live, attempt: Attempt) -> Result<RecordBody, RecordFailed> {
    let Attempt { id, reason, basis, waiters, .. } = attempt;
    let basis = basis.ok_or(RecordFailed)?;
    live.attempt = Some(AttemptWork::new(id, waiters.clone()));
    Ok(RecordBody::Started(AttemptStart { attempt: id, reason, basis, waiters: waiters.into() }))
}

/// Passes the records of hustles on to the subscribers. What they say about the conversation is in the journal already.
pub(super) struct Audit(pub(super) Weak<Shared>);

#[async_trait]
impl HustleAudit for Audit {
    async fn record(&self, record: HustleRecord) -> Result<(), AuditFailed> {
        if let Some(shared) = self.0.upgrade() {
            tracing::debug!(
                target: "epitome::session",
                session = %shared.session(),
                run = %record.run,
                event = ?record.event,
                "hustle"
            );
            let live = &mut *shared.live();
            live.feed.tell(live.state.last(), || SessionEvent::Hustle(record));
        }
        Ok(())
    }

    fn fault_changed(&self, change: HustleFaultChange) {
        if let Some(shared) = self.0.upgrade() {
            let HustleFaultChange { run, fault, is_so } = change;
            tracing::warn!(
                target: "epitome::session",
                session = %shared.session(),
                run = %run,
                fault = %fault,
                is_so,
                "hustle fault"
            );
            let live = &mut *shared.live();
            live.feed.tell(live.state.last(), || SessionEvent::HustleFault(change));
        }
    }
}
