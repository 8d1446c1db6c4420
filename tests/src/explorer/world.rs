//! A loop and everything around it that can act: a user, an agent, a summarizer, a counter, a journal, a clock.

use epitome_loop::{
    AttemptId, BasisPoints, CommandId, ContextMeasurement, CountQuality, EventId, ModelKey, RejectionReason,
    RequestFingerprint, Timestamp, TokenCount, Trigger,
};
use epitome_loopruntime::decision::{
    Boundary, Change, ChangeKind, CoreSettings, Effect, Input, Record, Replacement, Rewind, Waiter,
};

use super::bugs::{Bug, Machine};
use super::ledger::{Broken, Ledger};

const COMPACT_AT: BasisPoints = BasisPoints(8_000);
const REARM_BELOW: BasisPoints = BasisPoints(6_000);
const TRIGGER: Trigger = Trigger::Automatic { compact_at: COMPACT_AT, rearm_below: REARM_BELOW };
const MOST_WAITERS: usize = 2;
const LIMIT: u64 = 10_000;

/// What a user does with commits: takes one back, puts one in force again, or wants exactly two.
const REWINDS: [Rewind; 3] = [Rewind::Back(1), Rewind::Forward(1), Rewind::To(2)];

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Append,
    Rewind(Rewind),
    /// A request of this size is about to be sent.
    Admit(u16),
    Compact,
    /// A command that waits is given again.
    CompactAgain,
    Boundary,
    Interrupt,
    ShutDown,
    JournalFails,
    SettingsChange,
    /// Ten minutes pass.
    Wait,
    Deadline,
    /// The record of an attempt that was asked for is durable.
    Durable,
    Summarized(Answer),
    Counted(Count),
    /// An answer for an attempt that is over.
    Late,
}

impl Action {
    /// Everything that can happen.
    pub(super) const KINDS: [Self; 24] = [
        Self::Append,
        Self::Rewind(Rewind::Back(1)),
        Self::Rewind(Rewind::Forward(1)),
        Self::Rewind(Rewind::To(2)),
        Self::Admit(5_000),
        Self::Admit(7_000),
        Self::Admit(8_000),
        Self::Admit(10_000),
        Self::Compact,
        Self::CompactAgain,
        Self::Boundary,
        Self::Interrupt,
        Self::SettingsChange,
        Self::Wait,
        Self::Deadline,
        Self::Durable,
        Self::Summarized(Answer::MayPass),
        Self::Summarized(Answer::Stays),
        Self::Counted(Count::Low),
        Self::Counted(Count::High),
        Self::Counted(Count::TooLarge),
        Self::Counted(Count::OfAnotherContext),
        Self::Counted(Count::Failed),
        Self::Late,
    ];

    /// Whether it only brings an attempt on.
    pub(super) fn is_progress(self) -> bool {
        matches!(self, Self::Durable | Self::Summarized(Answer::Proven))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Proven,
    MayPass,
    Stays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Count {
    Low,
    High,
    TooLarge,
    OfAnotherContext,
    Failed,
}

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    appends: u16,
    rewinds: u16,
    commands: u16,
    repeats: u16,
    boundaries: u16,
    interrupts: u16,
    shut_downs: u16,
    failures: u16,
    settings: u16,
    waits: u16,
}

/// The whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    machine: Machine,
    ledger: Ledger,
    left: Left,
    now: u64,
    next_id: u32,
    /// Attempts whose record is not durable yet, in order.
    recording: Vec<AttemptId>,
    summarizing: Option<AttemptId>,
    counting: Option<AttemptId>,
    /// The newest attempt that is over.
    over: Option<AttemptId>,
    /// The newest command that waits.
    waiting: Option<Waiter>,
    /// The attempt that was opened and has no end yet.
    live: Option<AttemptId>,
    occupancy: u16,
    landing: u16,
}

impl World {
    /// A world in which a few of everything happen.
    pub(super) fn new(bug: Option<Bug>) -> Self {
        Self::with(
            bug,
            Left {
                appends: 2,
                rewinds: 2,
                commands: 3,
                repeats: 1,
                boundaries: 2,
                interrupts: 1,
                shut_downs: 1,
                failures: 1,
                settings: 1,
                waits: 1,
            },
        )
    }

    /// A world that goes on.
    pub(super) fn unbounded(bug: Option<Bug>) -> Self {
        let most = u16::MAX;
        Self::with(
            bug,
            Left {
                appends: most,
                rewinds: most,
                commands: most,
                repeats: most,
                boundaries: most,
                interrupts: most,
                shut_downs: 0,
                failures: 0,
                settings: 3,
                waits: most,
            },
        )
    }

    fn with(bug: Option<Bug>, left: Left) -> Self {
        let settings = CoreSettings { trigger: TRIGGER, most_held: 2, most_waiters: MOST_WAITERS };
        let mut world = Self {
            machine: Machine::new(settings, bug),
            ledger: Ledger::new(COMPACT_AT, REARM_BELOW, MOST_WAITERS),
            left,
            now: 1,
            next_id: 0,
            recording: Vec::new(),
            summarizing: None,
            counting: None,
            over: None,
            waiting: None,
            live: None,
            occupancy: 0,
            landing: 0,
        };
        // A loop without any message has nothing to decide about.
        let begun = world.step(Action::Append);
        debug_assert!(begun.is_ok());
        world
    }

    /// Summaries that occupancy asked for, and how many were paid for.
    pub(super) fn account(&self) -> (u64, u64) {
        self.ledger.account()
    }

    /// What can happen now.
    pub(super) fn actions(&self) -> Vec<Action> {
        let left = self.left;
        let mut actions = Vec::new();
        let mut may = |count: u16, action| {
            if count > 0 {
                actions.push(action);
            }
        };
        may(left.appends, Action::Append);
        REWINDS.iter().for_each(|rewind| may(left.rewinds, Action::Rewind(*rewind)));
        for occupancy in [5_000, 7_000, 8_000, 10_000] {
            may(left.commands, Action::Admit(occupancy));
        }
        may(left.commands, Action::Compact);
        may(left.repeats.min(u16::from(self.waiting.is_some())), Action::CompactAgain);
        may(left.boundaries, Action::Boundary);
        may(left.interrupts, Action::Interrupt);
        may(left.shut_downs, Action::ShutDown);
        may(left.failures, Action::JournalFails);
        may(left.settings, Action::SettingsChange);
        may(left.waits, Action::Wait);
        may(u16::from(self.live.is_some()), Action::Deadline);
        may(u16::from(!self.recording.is_empty()), Action::Durable);
        may(u16::from(self.over.is_some()), Action::Late);
        if self.summarizing.is_some() {
            actions.extend([Answer::Proven, Answer::MayPass, Answer::Stays].map(Action::Summarized));
        }
        if self.counting.is_some() {
            let counts = [Count::Low, Count::High, Count::TooLarge, Count::OfAnotherContext, Count::Failed];
            actions.extend(counts.map(Action::Counted));
        }
        actions
    }

    /// Lets something happen.
    ///
    /// # Errors
    /// [`Broken`] when something is not true after it.
    pub(super) fn step(&mut self, action: Action) -> Result<(), Broken> {
        let fails = action == Action::JournalFails && !self.ledger.is_halted();
        let Some(input) = self.input_of(action) else { return Ok(()) };
        let effects = self.machine.handle(input, Timestamp(self.now * 1_000_000_000));
        if fails {
            self.ledger.fail();
        }
        self.ledger.take(&effects, Some(TokenCount(u64::from(self.landing))), fails)?;
        for effect in effects {
            self.follow(effect);
        }
        Ok(())
    }

    /// Lets everything that is under way come to its end, and looks whether it did.
    ///
    /// # Errors
    /// [`Broken`] when something has no end, or no answer.
    pub(super) fn run_out(&mut self) -> Result<(), Broken> {
        self.left.boundaries = u16::MAX;
        for _ in 0..32 {
            let action = match () {
                () if !self.recording.is_empty() => Action::Durable,
                () if self.summarizing.is_some() => Action::Summarized(Answer::Proven),
                () if self.counting.is_some() => Action::Counted(Count::Low),
                () if self.machine.core().blocks_input() && !self.ledger.is_halted() => Action::Boundary,
                () => return self.ledger.at_rest(),
            };
            self.step(action)?;
        }
        Err(Broken::Ends)
    }

    fn input_of(&mut self, action: Action) -> Option<Input> {
        let left = &mut self.left;
        Some(match action {
            Action::Append => {
                left.appends -= 1;
                self.change(ChangeKind::Append)
            }
            Action::Rewind(rewind) => {
                left.rewinds -= 1;
                self.change(ChangeKind::Rewind(rewind))
            }
            Action::Admit(occupancy) => {
                left.commands -= 1;
                self.occupancy = occupancy;
                let (waiter, attempt) = self.command();
                let measurement = self.measured(u64::from(occupancy));
                Input::Admit { waiter, attempt, measurement, byte_occupancy: BasisPoints(0) }
            }
            Action::Compact => {
                left.commands -= 1;
                let (waiter, attempt) = self.command();
                Input::Compact { waiter, attempt }
            }
            Action::CompactAgain => {
                left.repeats -= 1;
                let waiter = self.waiting?;
                Input::Compact { waiter, attempt: AttemptId::from_bytes([255; 16]) }
            }
            Action::Boundary => {
                left.boundaries -= 1;
                Input::Boundary(Boundary::Step)
            }
            Action::Interrupt => {
                left.interrupts -= 1;
                self.ledger.cancel(RejectionReason::Interrupted, self.live);
                Input::Interrupt
            }
            Action::ShutDown => {
                left.shut_downs -= 1;
                self.ledger.cancel(RejectionReason::ShuttingDown, self.live);
                Input::ShutDown
            }
            Action::JournalFails => {
                left.failures -= 1;
                Input::JournalFailed
            }
            Action::SettingsChange => {
                left.settings -= 1;
                self.ledger.settings_changed();
                Input::SettingsChanged(TRIGGER)
            }
            Action::Wait => {
                left.waits -= 1;
                self.now += 600;
                if self.ledger.is_at_limit() {
                    self.ledger.waited_at_limit();
                }
                return None;
            }
            Action::Deadline => Input::DeadlinePassed { attempt: self.live? },
            Action::Durable => {
                let attempt = self.recording.remove(0);
                self.ledger.durable(attempt);
                Input::Recorded { attempt }
            }
            Action::Summarized(answer) => {
                let outcome = match answer {
                    Answer::Proven => Ok(()),
                    Answer::MayPass => Err(RejectionReason::ExecutionFailed),
                    Answer::Stays => Err(RejectionReason::Unavailable),
                };
                Input::Summarized { attempt: self.summarizing.take()?, outcome }
            }
            Action::Counted(count) => {
                let attempt = self.counting.take()?;
                let before = self.occupancy.max(8_000);
                self.landing = match count {
                    Count::Low => 4_000,
                    Count::High => 7_900,
                    Count::TooLarge => before,
                    Count::OfAnotherContext | Count::Failed => 3_000,
                };
                let mut after = self.measured(u64::from(self.landing));
                if count == Count::OfAnotherContext {
                    after.basis.revision.0 += 1;
                }
                let outcome = match count {
                    Count::Failed => Err(RejectionReason::ContextCountFailed),
                    _ => Ok(Box::new(Replacement {
                        before: self.measured(u64::from(before)),
                        post_fingerprint: after.request_fingerprint,
                        byte_occupancy: BasisPoints(0),
                        after,
                        event: EventId::from_bytes(self.id()),
                    })),
                };
                Input::Counted { attempt, outcome }
            }
            Action::Late => Input::Summarized { attempt: self.over?, outcome: Ok(()) },
        })
    }

    /// Does what the core asks for.
    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Record(Record::Started(attempt)) => {
                self.live = Some(attempt.id);
                self.recording.push(attempt.id);
            }
            Effect::Record(Record::Committed { attempt, .. } | Record::Rejected { attempt, .. }) => {
                self.recording.push(attempt);
                (self.live, self.over) = (None, Some(attempt));
                // Nothing is done for it any more.
                self.summarizing.take_if(|other| *other == attempt);
                self.counting.take_if(|other| *other == attempt);
            }
            Effect::Summarize { attempt, .. } => self.summarizing = Some(attempt),
            Effect::Count { attempt } => self.counting = Some(attempt),
            Effect::Reply { command, .. } => {
                self.waiting.take_if(|waiter| waiter.command == command);
            }
            Effect::Halt => {
                self.recording.clear();
                (self.summarizing, self.counting, self.live, self.waiting) = (None, None, None, None);
            }
            _ => {}
        }
    }

    fn change(&mut self, kind: ChangeKind) -> Input {
        let event = EventId::from_bytes(self.id());
        let change = Change { event, kind };
        self.ledger.change(change);
        Input::Change(change)
    }

    fn command(&mut self) -> (Waiter, AttemptId) {
        let id = self.id();
        let waiter = Waiter { created_at: Timestamp(self.now), command: CommandId::from_bytes(id) };
        self.ledger.command(waiter.command);
        self.waiting = Some(waiter);
        (waiter, AttemptId::from_bytes(id))
    }

    fn id(&mut self) -> [u8; 16] {
        self.next_id += 1;
        u128::from(self.next_id).to_be_bytes()
    }

    fn measured(&self, tokens: u64) -> ContextMeasurement {
        ContextMeasurement {
            basis: self.machine.core().basis(),
            model: ModelKey::new("p", "m"),
            request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
            input_tokens: TokenCount(tokens),
            input_limit: TokenCount(LIMIT),
            quality: CountQuality::ExactLocal,
        }
    }
}
