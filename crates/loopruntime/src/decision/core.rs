//! The state machine of one loop: what comes in, what is to be done.

use std::collections::VecDeque;

use epitome_loop::{
    AttemptId, BasisPoints, ContextBasis, ContextMeasurement, PressureLevel, RejectionReason, Timestamp,
    Trigger,
};

use super::{
    Admission, AtBoundary, Attempt, AttemptEnd, AttemptReason, AttemptSlot, Boundary, Change, ChangeKind,
    CommitStack, Decision, Effect, Input, Latch, PressureTracker, Reading, Record, Refused, Replacement,
    Reply, Verdict, Waiter,
};
use crate::{Landing, judge_landing, landing_level};

/// What a loop is bounded by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoreSettings {
    /// When to compact.
    pub trigger: Trigger,
    /// So many changes may wait for an attempt to end.
    pub most_held: usize,
    /// So many commands may wait for an attempt; 0 stands for [`super::MAX_WAITERS`].
    pub most_waiters: usize,
}

/// What of a loop outlives its process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct CoreState {
    /// The context, and how full it was when it was last looked at.
    pub tracker: PressureTracker,
    /// Whether occupancy may start an attempt.
    pub latch: Latch,
    /// How many commits make the context.
    pub commits: CommitStack,
    /// Why the last attempt was refused; `None` when it was committed, or there was none.
    pub last_refusal: Option<RejectionReason>,
}

/// How far an attempt has got.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// Its beginning is being written down.
    Starting,
    /// It is being summarized.
    Summarizing,
    /// Its new request is being counted.
    Counting,
    /// Its end is being written down. Nothing can change it any more.
    Ending(End),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum End {
    Commit {
        basis: ContextBasis,
        after: Box<ContextMeasurement>,
        /// How full the new request is, by tokens or by bytes.
        landed: BasisPoints,
        byte_occupancy: BasisPoints,
    },
    Reject(RejectionReason),
}

/// An attempt that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    attempt: Attempt,
    phase: Phase,
    /// Whether the settings changed since it began.
    is_stale: bool,
}

impl Run {
    /// In a box, since most loops have none most of the time.
    fn starting(attempt: Attempt) -> Box<Self> {
        Box::new(Self { attempt, phase: Phase::Starting, is_stale: false })
    }
}

/// Everything that a loop has decided about its context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DecisionCore {
    settings: CoreSettings,
    tracker: PressureTracker,
    latch: Latch,
    commits: CommitStack,
    slot: AttemptSlot,
    run: Option<Box<Run>>,
    held: VecDeque<Change>,
    last_refusal: Option<RejectionReason>,
    /// How full the newest request was by its bytes.
    byte_occupancy: BasisPoints,
    is_halted: bool,
}

impl DecisionCore {
    /// A loop that begins.
    #[must_use]
    pub fn new(settings: CoreSettings) -> Self {
        Self::restore(settings, CoreState::default())
    }

    /// A loop as it stood, without an attempt.
    #[must_use]
    pub fn restore(settings: CoreSettings, state: CoreState) -> Self {
        let CoreState { tracker, latch, commits, last_refusal } = state;
        Self {
            settings,
            tracker,
            latch,
            commits,
            slot: AttemptSlot::with_capacity(settings.most_waiters),
            run: None,
            held: VecDeque::new(),
            last_refusal,
            byte_occupancy: BasisPoints(0),
            is_halted: false,
        }
    }

    /// What of it outlives the process. An attempt that is there does not.
    #[must_use]
    pub fn state(&self) -> CoreState {
        CoreState {
            tracker: self.tracker.clone(),
            latch: self.latch,
            commits: self.commits,
            last_refusal: self.last_refusal,
        }
    }

    /// Takes in what happened and says what is to be done.
    #[must_use]
    pub fn handle(mut self, input: Input, now: Timestamp) -> (Self, Vec<Effect>) {
        let mut effects = Vec::new();
        if self.is_halted {
            self.turn_away(&input, &mut effects);
            return (self, effects);
        }
        match input {
            Input::Change(change) => self.change(change, &mut effects),
            Input::Admit { waiter, attempt, measurement, byte_occupancy } => {
                self.admit(waiter, attempt, measurement, byte_occupancy, now, &mut effects);
            }
            Input::Compact { waiter, attempt } => {
                self.wait(waiter, AttemptReason::Manual, attempt, &mut effects);
            }
            Input::Boundary(boundary) => self.boundary(boundary, &mut effects),
            Input::Summarized { attempt, outcome } if self.is_in(attempt, &Phase::Summarizing) => {
                match outcome {
                    Ok(()) => self.go_on(Phase::Counting, Effect::Count { attempt }, &mut effects),
                    Err(reason) => self.reject(reason, &mut effects),
                }
            }
            Input::Counted { attempt, outcome } if self.is_in(attempt, &Phase::Counting) => match outcome {
                Ok(replacement) => self.judge(&replacement, &mut effects),
                Err(reason) => self.reject(reason, &mut effects),
            },
            Input::Recorded { attempt } => self.recorded(attempt, now, &mut effects),
            Input::JournalFailed => self.halt(&mut effects),
            Input::DeadlinePassed { attempt } => {
                self.cancel(Some(attempt), RejectionReason::Canceled, &mut effects)
            }
            Input::Interrupt => {
                self.slot = self.slot.interrupt();
                self.cancel(None, RejectionReason::Interrupted, &mut effects);
                // One that waits for a boundary need not wait any longer to learn of it.
                if self.slot.cancel_reason().is_some() {
                    self.boundary(Boundary::Step, &mut effects);
                }
            }
            Input::ShutDown => {
                self.slot = self.slot.shut_down();
                self.cancel(None, RejectionReason::ShuttingDown, &mut effects);
                // No further boundary may come.
                self.boundary(Boundary::Turn, &mut effects);
            }
            Input::SettingsChanged(trigger) => self.change_settings(trigger, &mut effects),
            // Late answers: the attempt is over, or further on.
            Input::Summarized { .. } | Input::Counted { .. } => {}
        }
        (self, effects)
    }

    /// Whether changes must wait.
    #[must_use]
    pub fn blocks_input(&self) -> bool {
        self.slot.blocks_input() || self.run.is_some()
    }

    /// The context that is live.
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

    /// How many commits make the context.
    #[must_use]
    pub fn commits(&self) -> CommitStack {
        self.commits
    }

    /// Whether the journal failed.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    fn change(&mut self, change: Change, effects: &mut Vec<Effect>) {
        let why = match () {
            () if self.slot.is_shut_down() => Refused::ShuttingDown,
            () if !self.blocks_input() => return self.take(change, effects),
            () if self.held.len() >= self.settings.most_held => Refused::HeldFull,
            () => return self.held.push_back(change),
        };
        effects.push(Effect::Refuse { change, why });
    }

    /// Lets a change happen, if it can.
    fn take(&mut self, change: Change, effects: &mut Vec<Effect>) {
        let mut refuse = |why| effects.push(Effect::Refuse { change, why });
        // One that was held in front of it may have halted the loop.
        if self.is_halted {
            return refuse(Refused::Halted);
        }
        let commits = match change.kind {
            ChangeKind::Append => self.commits,
            ChangeKind::Rewind(rewind) => match self.commits.rewound(rewind) {
                Some(commits) => commits,
                None => return refuse(Refused::NoSuchCommit),
            },
        };
        // Without an event, or with the revisions used up, there is no context to go on with.
        let Ok(basis) = self.tracker.next_basis(change.event) else {
            refuse(Refused::Halted);
            return self.halt(effects);
        };
        self.tracker = std::mem::take(&mut self.tracker).at(basis);
        let before = std::mem::replace(&mut self.commits, commits);
        match change.kind {
            ChangeKind::Append => effects.push(Effect::Record(Record::Changed(change))),
            ChangeKind::Rewind(_) => {
                let record = Record::Rewound { event: change.event, in_force: commits.in_force };
                effects.push(Effect::Record(record));
                let is_back = commits.in_force < before.in_force;
                let latch = if is_back { self.latch.undone() } else { self.latch.redone() };
                self.set_latch(latch, effects);
            }
        }
    }

    fn admit(
        &mut self,
        waiter: Waiter,
        attempt: AttemptId,
        measurement: ContextMeasurement,
        byte_occupancy: BasisPoints,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) {
        if self.slot.is_shut_down() {
            let reply = Reply::NotAdmitted(RejectionReason::ShuttingDown);
            return effects.push(Effect::Reply { command: waiter.command, reply });
        }
        // Whoever asked before is served first; this request waits for it.
        if self.blocks_input() {
            self.wait(waiter, AttemptReason::Automatic, attempt, effects);
            return self.boundary(Boundary::Step, effects);
        }
        if measurement.basis != self.basis() {
            let reply = Reply::NotAdmitted(RejectionReason::StaleBasis);
            return effects.push(Effect::Reply { command: waiter.command, reply });
        }
        let basis = measurement.basis;
        let Ok((tracker, change)) = self.tracker.clone().apply(measurement.clone(), self.settings.trigger)
        else {
            let reply = Reply::NotAdmitted(RejectionReason::Internal);
            return effects.push(Effect::Reply { command: waiter.command, reply });
        };
        self.tracker = tracker;
        if change.is_new_measurement {
            effects.push(Effect::Record(Record::Measured(measurement)));
        }
        self.byte_occupancy = byte_occupancy;
        let is_over_bytes = byte_occupancy >= BasisPoints::FULL_SCALE;
        let reading = Reading {
            basis,
            occupancy: change.occupancy.max(byte_occupancy),
            level: if is_over_bytes { PressureLevel::HardLimit } else { change.current },
        };
        let (latch, verdict, rule) = self.latch.observe(reading, self.settings.trigger, now);
        self.set_latch(latch, effects);
        effects.push(Effect::Decided(Decision { command: waiter.command, reading, verdict, rule }));
        let reply = match verdict {
            Verdict::Proceed => Reply::Send,
            Verdict::ContextLimit { exhausted, retry_after } => {
                Reply::ContextLimit { exhausted, retry_after, refused: self.last_refusal }
            }
            Verdict::Attempt => {
                self.wait(waiter, AttemptReason::Automatic, attempt, effects);
                return self.boundary(Boundary::Step, effects);
            }
        };
        effects.push(Effect::Reply { command: waiter.command, reply });
    }

    /// Lets a command wait for the attempt that is there, or for a new one.
    fn wait(&mut self, waiter: Waiter, reason: AttemptReason, new_id: AttemptId, effects: &mut Vec<Effect>) {
        let is_there =
            |attempt: &Attempt| attempt.waiters.iter().any(|other| other.command == waiter.command);
        let in_slot = self.slot.attempt();
        let running = self.run.as_ref().map(|run| &run.attempt);
        if in_slot.is_some_and(is_there) || running.is_some_and(is_there) {
            // It waits already, and is answered once.
            return;
        }
        let mut turn_away = |reason| {
            let reply = Reply::NotAdmitted(reason);
            effects.push(Effect::Reply { command: waiter.command, reply });
        };
        if self.slot.is_shut_down() {
            return turn_away(RejectionReason::ShuttingDown);
        }
        // An attempt that was rejected at a boundary has left the slot, and its end is being written down.
        if running.is_some_and(|running| in_slot.is_none_or(|attempt| attempt.id != running.id)) {
            return turn_away(RejectionReason::Interrupted);
        }
        match self.slot.clone().admit(waiter, reason, new_id) {
            Err(_) => turn_away(RejectionReason::Internal),
            Ok((_, Admission::LaneFull(_))) => turn_away(RejectionReason::ControlLaneFull),
            Ok((slot, _)) => self.slot = slot,
        }
    }

    fn boundary(&mut self, boundary: Boundary, effects: &mut Vec<Effect>) {
        if self.run.is_some() {
            return;
        }
        let (slot, reached) = std::mem::take(&mut self.slot).boundary(boundary);
        self.slot = slot;
        match reached {
            AtBoundary::Nothing => {}
            AtBoundary::Reject(attempt, reason) => {
                self.run = Some(Run::starting(attempt));
                self.reject(reason, effects);
            }
            AtBoundary::Start(attempt) => {
                let (slot, frozen) = std::mem::take(&mut self.slot).freeze(attempt.id, self.basis());
                self.slot = slot;
                let attempt = self.slot.attempt().cloned().unwrap_or(attempt);
                self.run = Some(Run::starting(attempt.clone()));
                match frozen {
                    Ok(()) => effects.push(Effect::Record(Record::Started(attempt))),
                    // There is nothing yet that could be compacted.
                    Err(_) => self.reject(RejectionReason::Unavailable, effects),
                }
            }
        }
    }

    /// A record about the attempt is durable.
    fn recorded(&mut self, id: AttemptId, now: Timestamp, effects: &mut Vec<Effect>) {
        let Some(run) = self.run.take_if(|run| run.attempt.id == id) else { return };
        match run.phase {
            Phase::Starting => {
                let (slot, _) = std::mem::take(&mut self.slot).started(id, now);
                self.slot = slot;
                let basis = self.basis();
                self.run = Some(run);
                match self.slot.cancel_reason() {
                    Some(reason) => self.reject(reason, effects),
                    None => self.go_on(Phase::Summarizing, Effect::Summarize { attempt: id, basis }, effects),
                }
            }
            Phase::Ending(end) => self.end(&run.attempt, end, now, effects),
            Phase::Summarizing | Phase::Counting => self.run = Some(run),
        }
    }

    /// The end of an attempt is durable: only now it takes effect.
    fn end(&mut self, attempt: &Attempt, end: End, now: Timestamp, effects: &mut Vec<Effect>) {
        let (latch_end, reply) = match end {
            End::Commit { basis, after, landed, byte_occupancy } => {
                effects.push(Effect::Apply { attempt: attempt.id, basis });
                self.byte_occupancy = byte_occupancy;
                let tracker = std::mem::take(&mut self.tracker).at(basis);
                self.tracker = match tracker.clone().apply(*after, self.settings.trigger) {
                    Ok((tracker, _)) => tracker,
                    Err(_) => tracker,
                };
                self.last_refusal = None;
                self.commits = self.commits.committed();
                (AttemptEnd::Landed(landed), Reply::Committed(attempt.id))
            }
            End::Reject(reason) => {
                self.last_refusal = Some(reason);
                let measured = self.tracker.measurement().map(ContextMeasurement::occupancy);
                let occupancy = measured.unwrap_or(BasisPoints(0)).max(self.byte_occupancy);
                (AttemptEnd::Refused(reason, occupancy), Reply::Rejected(attempt.id, reason))
            }
        };
        let level = landing_level(self.settings.trigger);
        self.set_latch(self.latch.ended(latch_end, attempt.reason, level, now), effects);
        let (slot, in_slot) = std::mem::take(&mut self.slot).complete(attempt.id);
        self.slot = slot;
        // Those who came while it ran wait for it too.
        let waiters = in_slot.map_or_else(|| attempt.waiters.clone(), |attempt| attempt.waiters);
        // Whoever is told once is told the same after a crash: the answers are durable before the first is given.
        let resolved = matches!(reply, Reply::Committed(_));
        for Waiter { command, .. } in &waiters {
            let record = Record::Answered { attempt: attempt.id, command: *command, resolved };
            effects.push(Effect::Record(record));
        }
        for Waiter { command, .. } in waiters {
            effects.push(Effect::Reply { command, reply });
        }
        for change in std::mem::take(&mut self.held) {
            self.take(change, effects);
        }
    }

    /// Judges the new request against the one that it would replace.
    fn judge(&mut self, replacement: &Replacement, effects: &mut Vec<Effect>) {
        let Some(run) = &self.run else { return };
        let Replacement { before, after, event, post_fingerprint, byte_occupancy } = replacement;
        let is_of_now = |measurement: &ContextMeasurement| {
            Some(measurement.basis) == run.attempt.basis && measurement.basis == self.basis()
        };
        if run.is_stale || !is_of_now(before) || !is_of_now(after) || before.model != after.model {
            return self.reject(RejectionReason::StaleBasis, effects);
        }
        let Ok(landing) = judge_landing(before, after, self.settings.trigger) else {
            return self.reject(RejectionReason::SummaryTooLarge, effects);
        };
        if *byte_occupancy >= BasisPoints::FULL_SCALE {
            return self.reject(RejectionReason::SummaryTooLarge, effects);
        }
        let landed = after.occupancy().max(*byte_occupancy);
        let is_high = landed >= landing_level(self.settings.trigger);
        let landing = if is_high { Landing::High } else { landing };
        let Ok(basis) = self.tracker.next_basis(*event) else {
            return self.reject(RejectionReason::Internal, effects);
        };
        let record = Record::Committed { attempt: run.attempt.id, basis, landing };
        let request_fingerprint = *post_fingerprint;
        let after = ContextMeasurement { basis, request_fingerprint, ..after.clone() };
        let end = End::Commit { basis, after: Box::new(after), landed, byte_occupancy: *byte_occupancy };
        self.go_on(Phase::Ending(end), Effect::Record(record), effects);
    }

    /// Begins the end of the attempt that runs: its refusal is written down.
    fn reject(&mut self, reason: RejectionReason, effects: &mut Vec<Effect>) {
        let Some(run) = &self.run else { return };
        let record = Record::Rejected { attempt: run.attempt.id, reason };
        self.go_on(Phase::Ending(End::Reject(reason)), Effect::Record(record), effects);
    }

    /// Stops an attempt while that can still be done; `id` says which, where it matters.
    fn cancel(&mut self, id: Option<AttemptId>, reason: RejectionReason, effects: &mut Vec<Effect>) {
        let Some(run) = &self.run else { return };
        let attempt = run.attempt.id;
        let is_meant = id.is_none_or(|id| id == attempt);
        if is_meant && matches!(run.phase, Phase::Summarizing | Phase::Counting) {
            effects.push(Effect::Cancel { attempt });
            self.reject(reason, effects);
        }
    }

    fn change_settings(&mut self, trigger: Trigger, effects: &mut Vec<Effect>) {
        self.settings.trigger = trigger;
        self.tracker = std::mem::take(&mut self.tracker).under(trigger);
        effects.push(Effect::Record(Record::SettingsChanged));
        self.set_latch(self.latch.settings_changed(), effects);
        if let Some(run) = &mut self.run {
            run.is_stale = true;
        }
    }

    /// The latch outlives the process, so each change of it is written down.
    fn set_latch(&mut self, latch: Latch, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.latch, latch) != latch {
            effects.push(Effect::Record(Record::Latched(latch)));
        }
    }

    /// The journal failed: whoever waits is told, and what was held has left no trace.
    fn halt(&mut self, effects: &mut Vec<Effect>) {
        self.is_halted = true;
        let in_slot = self.slot.attempt().cloned().or_else(|| self.run.take().map(|run| run.attempt));
        for waiter in in_slot.into_iter().flat_map(|attempt| attempt.waiters) {
            effects.push(Effect::Reply { command: waiter.command, reply: Reply::Halted });
        }
        for change in std::mem::take(&mut self.held) {
            effects.push(Effect::Refuse { change, why: Refused::Halted });
        }
        effects.push(Effect::Halt);
    }

    /// Answers what comes in after the journal failed.
    fn turn_away(&self, input: &Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Change(change) => effects.push(Effect::Refuse { change: *change, why: Refused::Halted }),
            Input::Admit { waiter, .. } | Input::Compact { waiter, .. } => {
                effects.push(Effect::Reply { command: waiter.command, reply: Reply::Halted });
            }
            _ => {}
        }
    }

    fn go_on(&mut self, phase: Phase, effect: Effect, effects: &mut Vec<Effect>) {
        if let Some(run) = &mut self.run {
            run.phase = phase;
            effects.push(effect);
        }
    }

    fn is_in(&self, attempt: AttemptId, phase: &Phase) -> bool {
        self.run.as_ref().is_some_and(|run| run.attempt.id == attempt && run.phase == *phase)
    }
}
