//! What the records of a session add up to: a pure fold, the same whether it happens live or when a session is
//! restored.

use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextBasis, ContextMeasurement, EventId, Message, RejectionReason,
    SharedText, Timestamp, Trigger,
};
use epitome_loopruntime::decision::{
    AttemptEnd, AttemptReason, CommitStack, CoreState, Latch, PressureTracker, Waiter,
};
use epitome_loopruntime::landing_level;
use thiserror::Error;

use super::{
    AttemptStart, Committed, JournalRecord, MessageRange, RecordBody, Sequence, SessionOpened, StableName,
    WaiterOutcome,
};
use crate::is_provider_compaction;

/// A session as its records leave it. It knows messages by number; their content stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    trigger: Trigger,
    last: Sequence,
    opened: Option<SessionOpened>,
    messages: u64,
    /// So many messages at the start are the system's.
    leading: u64,
    /// The number of the provider's newest compaction; what stands before it need not be sent any more.
    compacted_by_provider: Option<u64>,
    /// The number of the first message that came to the context in force, from the model in force.
    added_since: u64,
    commits: Vec<CommitInForce>,
    in_force: usize,
    tracker: PressureTracker,
    latch: Latch,
    last_refusal: Option<RejectionReason>,
    unfinished: Option<UnfinishedAttempt>,
    owed: Vec<WaiterOutcome>,
    unlatched: Option<(AttemptEnd, AttemptReason)>,
}

/// A commit. Two are the same when their records are, whether or not what they made is at hand.
#[derive(Clone, Debug)]
pub struct CommitInForce {
    /// The record of the commit.
    pub event: EventId,
    /// The attempt that it ended.
    pub attempt: AttemptId,
    /// So many messages there were. Later ones follow behind those that it kept.
    pub messages: u64,
    /// The context that it made; `None` where the state is [lean](SessionState::lean) and another commit is in force.
    pub context: Option<Arc<CommitContext>>,
}

/// The context that a commit made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitContext {
    /// The summary.
    pub summary: SharedText,
    /// The messages that it kept.
    pub retained: Arc<[MessageRange]>,
    /// So many of these stand before the summary.
    pub leading: u64,
}

impl PartialEq for CommitInForce {
    fn eq(&self, other: &Self) -> bool {
        let Self { event, attempt, messages, context: _ } = self;
        (event, attempt, messages) == (&other.event, &other.attempt, &other.messages)
    }
}

impl Eq for CommitInForce {}

/// The context that goes out: messages, a summary, and further messages.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LiveContext {
    /// Messages in front of the summary, by number.
    pub leading: Vec<MessageRange>,
    /// The summary; without one, `leading` is empty.
    pub summary: Option<SharedText>,
    /// All other messages, by number.
    pub rest: Vec<MessageRange>,
}

/// An attempt that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedAttempt {
    /// Its identity.
    pub attempt: AttemptId,
    /// Why it was opened.
    pub reason: AttemptReason,
    /// Who waited when it began.
    pub waiters: Arc<[Waiter]>,
}

/// A record does not follow from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("record {sequence}: {fault}")]
pub struct ReplayError {
    /// Its place.
    pub sequence: Sequence,
    /// What is wrong.
    pub fault: ReplayFault,
}

/// What does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ReplayFault {
    /// A record is missing in front of it, or it stands there twice.
    #[error("not the next in the sequence")]
    Gap,
    /// The session has not been opened.
    #[error("the session has not been opened")]
    NotOpened,
    /// Messages with other numbers than the next ones, or none.
    #[error("messages out of number")]
    MessageNumber,
    /// It is about another context than the one in force.
    #[error("another context")]
    Basis,
    /// A measurement that does not say what it is of.
    #[error("an incomplete measurement")]
    Measurement,
    /// An attempt begins while another one runs, or ends that does not run.
    #[error("another attempt, or none")]
    Attempt,
    /// Messages are kept that are not there, or not in order.
    #[error("kept messages that are not there")]
    Retained,
    /// A commit is taken back, or put in force again, that cannot be.
    #[error("no such commit to take back or to put in force")]
    Rewind,
    /// The commit that is in force then is not at hand, since the state is lean.
    #[error("a commit that is not at hand")]
    NotAtHand,
    /// A reply with another id than the one that follows from its command.
    #[error("a reply with another id")]
    Reply,
    /// The context's revisions are used up, or the record has no id.
    #[error("no further context")]
    NoNextBasis,
}

/// Adds records up, from the first one of a session on.
///
/// # Errors
/// [`ReplayError`] for the first record that does not follow from those before it.
pub fn replay<'a>(
    trigger: Trigger,
    records: impl IntoIterator<Item = (Sequence, &'a JournalRecord)>,
) -> Result<SessionState, ReplayError> {
    let add = |state: SessionState, (sequence, record)| state.apply(sequence, record);
    records.into_iter().try_fold(SessionState::new(trigger), add)
}

impl SessionState {
    /// A session without records, under a policy with this trigger.
    #[must_use]
    pub fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            last: 0,
            opened: None,
            messages: 0,
            leading: 0,
            compacted_by_provider: None,
            added_since: 0,
            commits: Vec::new(),
            in_force: 0,
            tracker: PressureTracker::default(),
            latch: Latch::default(),
            last_refusal: None,
            unfinished: None,
            owed: Vec::new(),
            unlatched: None,
        }
    }

    /// The same without what the commits made that are not in force, for whoever can read it again. A state like this
    /// takes little room, and goes on with every record but one that takes a commit back or puts one in force again.
    #[must_use]
    pub fn lean(mut self) -> Self {
        let in_force = self.in_force.checked_sub(1);
        let others = self.commits.iter_mut().enumerate().filter(|(at, _)| Some(*at) != in_force);
        others.for_each(|(_, commit)| commit.context = None);
        self.commits.shrink_to_fit();
        self
    }

    /// Learns again what the commits made, from a whole state of the same session.
    pub(crate) fn recall(&mut self, whole: &Self) {
        for (commit, known) in self.commits.iter_mut().zip(&whole.commits).filter(|(one, other)| one == other)
        {
            commit.context.clone_from(&known.context);
        }
    }

    /// The same session under a policy with this trigger, from the next `opened` record on.
    #[must_use]
    pub fn under(self, trigger: Trigger) -> Self {
        Self { trigger, ..self }
    }

    /// The state after one more record.
    ///
    /// # Errors
    /// [`ReplayError`] when the record does not follow.
    pub fn apply(mut self, sequence: Sequence, record: &JournalRecord) -> Result<Self, ReplayError> {
        match self.add(sequence, record) {
            Ok(()) => Ok(self),
            Err(fault) => Err(ReplayError { sequence, fault }),
        }
    }

    fn add(&mut self, sequence: Sequence, record: &JournalRecord) -> Result<(), ReplayFault> {
        if self.last.checked_add(1) != Some(sequence) {
            return Err(ReplayFault::Gap);
        }
        self.last = sequence;
        if self.opened.is_none() && !matches!(record.body, RecordBody::Opened(_)) {
            return Err(ReplayFault::NotOpened);
        }
        // What follows the end of an attempt was written with the latch, if that changed.
        if !matches!(record.body, RecordBody::Opened(_)) {
            self.unlatched = None;
        }
        match &record.body {
            RecordBody::Opened(opened) => {
                // Under another policy the newest measurement stands for what it is by itself.
                self.tracker = std::mem::take(&mut self.tracker).under(self.trigger);
                if self.opened.as_ref().is_some_and(|before| before.model != opened.model) {
                    self.added_since = self.messages;
                }
                self.opened = Some(opened.clone());
            }
            // Where messages came from changes nothing about them.
            RecordBody::Imported(_) => {}
            RecordBody::Appended { first, messages } => {
                let end = self.messages.checked_add(messages.len() as u64);
                if *first != self.messages || messages.is_empty() {
                    return Err(ReplayFault::MessageNumber);
                }
                self.note_messages(*first, messages);
                self.messages = end.ok_or(ReplayFault::MessageNumber)?;
                self.move_on(record.id)?;
            }
            RecordBody::Measured(measurement) => {
                self.require_basis(measurement.basis)?;
                let tracker = std::mem::take(&mut self.tracker);
                let applied = tracker.apply(measurement.clone(), self.trigger);
                self.tracker = applied.map_err(|_| ReplayFault::Measurement)?.0;
            }
            RecordBody::Started(start) => self.start(start)?,
            RecordBody::Committed(committed) => self.commit(record.id, committed)?,
            RecordBody::Rejected { attempt, reason, .. } => {
                // One that was rejected at a boundary has not begun.
                if self.unfinished.as_ref().is_some_and(|unfinished| unfinished.attempt != *attempt) {
                    return Err(ReplayFault::Attempt);
                }
                self.last_refusal = Some(*reason);
                self.end(AttemptEnd::Refused(*reason, self.occupancy()));
            }
            RecordBody::Answered(outcome) => {
                // Whoever joined while the attempt ran is not named where it began, and is answered all the same.
                if *outcome != WaiterOutcome::new(outcome.attempt, outcome.command, outcome.resolved) {
                    return Err(ReplayFault::Reply);
                }
                self.owed.retain(|owed| owed.command != outcome.command);
            }
            RecordBody::Undone { in_force } => self.rewind(*in_force, record.id, |now, then| then < now)?,
            RecordBody::Redone { in_force } => self.rewind(*in_force, record.id, |now, then| then > now)?,
            RecordBody::Latched(latch) => self.latch = *latch,
        }
        Ok(())
    }

    /// Notes what further messages mean for where the context begins.
    fn note_messages(&mut self, first: u64, messages: &[Message]) {
        if self.leading == first {
            let is_system = |message: &&Message| {
                matches!(message, Message::System { .. }) && !is_provider_compaction(message)
            };
            self.leading += messages.iter().take_while(is_system).count() as u64;
        }
        if let Some(newest) = messages.iter().rposition(is_provider_compaction) {
            let number = first.saturating_add(newest as u64);
            self.compacted_by_provider = Some(number);
            // What was reported with the item itself is about what was before.
            self.added_since = number.saturating_add(1);
        }
    }

    fn start(&mut self, start: &AttemptStart) -> Result<(), ReplayFault> {
        let AttemptStart { attempt, reason, basis, waiters } = start;
        if self.unfinished.is_some() {
            return Err(ReplayFault::Attempt);
        }
        self.require_basis(*basis)?;
        self.owed.clear();
        self.unfinished =
            Some(UnfinishedAttempt { attempt: *attempt, reason: *reason, waiters: waiters.clone() });
        Ok(())
    }

    fn commit(&mut self, event: EventId, committed: &Committed) -> Result<(), ReplayFault> {
        let Committed { attempt, basis, post, summary, retained, leading, after, .. } = committed;
        if self.unfinished.as_ref().is_none_or(|unfinished| unfinished.attempt != *attempt) {
            return Err(ReplayFault::Attempt);
        }
        self.require_basis(*basis)?;
        let mut behind = 0;
        for range in retained.iter() {
            // A range that begins where the one before it ends would be the same range.
            let is_apart = behind == 0 || range.first > behind;
            if !is_apart || range.first >= range.end || range.end > self.messages {
                return Err(ReplayFault::Retained);
            }
            behind = range.end;
        }
        if *leading > retained.iter().map(MessageRange::count).sum() {
            return Err(ReplayFault::Retained);
        }
        self.move_on(event)?;
        self.require_basis(*post)?;
        let landed = AttemptEnd::Landed(after.occupancy());
        let measured = ContextMeasurement { basis: *post, ..after.clone() };
        if let Ok((tracker, _)) = self.tracker.clone().apply(measured, self.trigger) {
            self.tracker = tracker;
        }
        // What was taken back before cannot be put in force behind this one.
        self.commits.truncate(self.in_force);
        self.commits.push(CommitInForce {
            event,
            attempt: *attempt,
            messages: self.messages,
            context: Some(Arc::new(CommitContext {
                summary: summary.clone(),
                retained: retained.clone(),
                leading: *leading,
            })),
        });
        self.in_force = self.commits.len();
        self.added_since = self.messages;
        self.last_refusal = None;
        self.end(landed);
        Ok(())
    }

    /// The attempt is over: the latch learns of it, and whoever waited is owed an answer.
    fn end(&mut self, end: AttemptEnd) {
        if let Some(UnfinishedAttempt { attempt, reason, waiters }) = self.unfinished.take() {
            self.unlatched = Some((end, reason));
            let resolved = matches!(end, AttemptEnd::Landed(_));
            let owed = |waiter: &Waiter| WaiterOutcome::new(attempt, waiter.command, resolved);
            self.owed = waiters.iter().map(owed).collect();
        }
    }

    fn rewind(
        &mut self,
        in_force: u64,
        event: EventId,
        is_right: impl FnOnce(usize, usize) -> bool,
    ) -> Result<(), ReplayFault> {
        let then = usize::try_from(in_force).map_err(|_| ReplayFault::Rewind)?;
        if then > self.commits.len() || !is_right(self.in_force, then) {
            return Err(ReplayFault::Rewind);
        }
        let commit = then.checked_sub(1).and_then(|at| self.commits.get(at));
        if commit.is_some_and(|commit| commit.context.is_none()) {
            return Err(ReplayFault::NotAtHand);
        }
        self.in_force = then;
        self.added_since = self.messages;
        self.move_on(event)
    }

    /// How full the context was when it was last looked at.
    fn occupancy(&self) -> BasisPoints {
        self.tracker.measurement().map_or(BasisPoints(0), ContextMeasurement::occupancy)
    }

    fn move_on(&mut self, event: EventId) -> Result<(), ReplayFault> {
        let basis = self.tracker.next_basis(event).map_err(|_| ReplayFault::NoNextBasis)?;
        self.tracker = std::mem::take(&mut self.tracker).at(basis);
        Ok(())
    }

    fn require_basis(&self, basis: ContextBasis) -> Result<(), ReplayFault> {
        if basis == self.tracker.basis() { Ok(()) } else { Err(ReplayFault::Basis) }
    }

    /// The records that end what a crash left open: an attempt that had not ended is rejected as an internal fault
    /// with the detail `crashed`, the latch learns how it ended, and whoever waited is answered. `id` gives each
    /// record its identity. Nothing when nothing was left open.
    ///
    /// A loop writes the latch and the answers behind the end of an attempt, so the process may die in between. Who
    /// joined an attempt while it ran is not on record before the answers, and is forgotten with the process.
    #[must_use]
    pub fn closing_records(&self, at: Timestamp, mut id: impl FnMut() -> EventId) -> Vec<JournalRecord> {
        let mut records = Vec::new();
        let mut write = |body| records.push(JournalRecord { id: id(), at, body });
        let owed = |outcome: &WaiterOutcome| RecordBody::Answered(*outcome);
        let mut ended = self.unlatched;
        if let Some(UnfinishedAttempt { attempt, reason, .. }) = &self.unfinished {
            let rejection = RejectionReason::Internal;
            write(RecordBody::Rejected {
                attempt: *attempt,
                reason: rejection,
                detail: Some(StableName::CRASHED),
                usage: None,
            });
            ended = Some((AttemptEnd::Refused(rejection, self.occupancy()), *reason));
        }
        if let Some((end, reason)) = ended {
            let latch = self.latch.ended(end, reason, landing_level(self.trigger), at);
            if latch != self.latch {
                write(RecordBody::Latched(latch));
            }
        }
        match &self.unfinished {
            Some(UnfinishedAttempt { attempt, waiters, .. }) => waiters
                .iter()
                .map(|waiter| owed(&WaiterOutcome::new(*attempt, waiter.command, false)))
                .for_each(write),
            None => self.owed.iter().map(owed).for_each(write),
        }
        records
    }

    /// The context in force, by the numbers of its messages. It begins with the system's messages at the start; behind
    /// them with the newest compaction: ours, or an item of the provider's
    /// ([`is_provider_compaction`](crate::is_provider_compaction)).
    #[must_use]
    pub fn context(&self) -> LiveContext {
        let commit = self.commit_in_force();
        let Some((commit, made)) = commit.and_then(|commit| Some((commit, commit.context.as_ref()?))) else {
            let leading = MessageRange { first: 0, end: self.leading };
            let first = self.compacted_by_provider.unwrap_or(self.leading);
            let leading = behind_one_another(&[], leading);
            let rest = behind_one_another(&leading, MessageRange { first, end: self.messages });
            return LiveContext { rest, ..LiveContext::default() };
        };
        let CommitContext { summary, retained, leading } = &**made;
        let (leading, rest) = split(retained, *leading);
        let later = MessageRange { first: commit.messages, end: self.messages };
        LiveContext { leading, summary: Some(summary.clone()), rest: behind_one_another(&rest, later) }
    }

    /// The commit that makes the context; `None` when no summary is in force, or when the provider has compacted since
    /// then: what the commit stands for is not sent any more.
    #[must_use]
    pub fn commit_in_force(&self) -> Option<&CommitInForce> {
        let commit = self.commits.get(self.in_force.checked_sub(1)?)?;
        let is_before = |item: u64| commit.messages <= item;
        (!self.compacted_by_provider.is_some_and(is_before)).then_some(commit)
    }

    /// How many commits are in force.
    #[must_use]
    pub fn in_force(&self) -> u64 {
        self.in_force as u64
    }

    /// The commits that are in force, oldest first, and behind them those that were taken back and can be put in force
    /// again.
    #[must_use]
    pub fn commits(&self) -> &[CommitInForce] {
        &self.commits
    }

    /// The place of the last record; 0 without one.
    #[must_use]
    pub fn last(&self) -> Sequence {
        self.last
    }

    /// What the session was last opened with.
    #[must_use]
    pub fn opened(&self) -> Option<&SessionOpened> {
        self.opened.as_ref()
    }

    /// How many messages were ever appended: the number of the next one.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The number of the first message that was added to the context in force, under the model in force: behind the
    /// newest compaction, ours or the provider's, that was made, taken back or put in force again, and behind the
    /// newest change of the model. What a provider reported with an earlier one is about another context, or is
    /// another model's figure.
    #[must_use]
    pub fn added_since(&self) -> u64 {
        self.added_since
    }

    /// The context in force.
    #[must_use]
    pub fn basis(&self) -> ContextBasis {
        self.tracker.basis()
    }

    /// How full it was when it was last looked at.
    #[must_use]
    pub fn tracker(&self) -> &PressureTracker {
        &self.tracker
    }

    /// Whether occupancy may start an attempt.
    #[must_use]
    pub fn latch(&self) -> Latch {
        self.latch
    }

    /// What a decision core goes on with: exactly what it had when the last record was written, if no attempt was
    /// under way then.
    #[must_use]
    pub fn core_state(&self) -> CoreState {
        CoreState {
            tracker: self.tracker.clone(),
            latch: self.latch,
            commits: CommitStack { in_force: self.in_force(), known: self.commits.len() as u64 },
            last_refusal: self.last_refusal,
        }
    }

    /// The attempt that has begun and not ended. There is one only while it runs, or when the process crashed in it.
    #[must_use]
    pub fn unfinished(&self) -> Option<&UnfinishedAttempt> {
        self.unfinished.as_ref()
    }

    /// The commands that waited for the last attempt, which has ended, and that are not on record as answered.
    pub fn owed(&self) -> impl Iterator<Item = CommandId> + '_ {
        self.owed.iter().map(|outcome| outcome.command)
    }
}

/// Ranges and one more, as few as it takes.
fn behind_one_another(ranges: &[MessageRange], last: MessageRange) -> Vec<MessageRange> {
    let mut joined = ranges.to_vec();
    match joined.last_mut() {
        _ if last.count() == 0 => {}
        Some(range) if range.end == last.first => range.end = last.end,
        _ => joined.push(last),
    }
    joined
}

/// Parts ranges behind so many messages.
fn split(ranges: &[MessageRange], mut leading: u64) -> (Vec<MessageRange>, Vec<MessageRange>) {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for range in ranges {
        let cut = range.first.saturating_add(leading.min(range.count()));
        leading = leading.saturating_sub(range.count());
        for (part, to) in [
            (MessageRange { first: range.first, end: cut }, &mut before),
            (MessageRange { first: cut, end: range.end }, &mut behind),
        ] {
            if part.count() > 0 {
                to.push(part);
            }
        }
    }
    (before, behind)
}
