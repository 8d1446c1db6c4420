//! What must be true of every loop, kept as a ledger of what has happened.

use std::collections::BTreeMap;

use epitome_loop::{AttemptId, BasisPoints, CommandId, EventId, RejectionReason, TokenCount};
use epitome_loopruntime::decision::{
    AttemptReason, Change, ChangeKind, Effect, Record, Refused, Reply, Rewind, Verdict,
};

/// Something that must be true and is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Broken {
    /// 1.
    #[error("an attempt has no end, or two")]
    Ends,
    /// 2.
    #[error("a command has no answer, or two, or too many wait")]
    Replies,
    /// 3.
    #[error("the context changed before that was durable, or did not although it was")]
    Applied,
    /// 4.
    #[error("a change was lost, doubled or came out of order")]
    Held,
    /// 5.
    #[error("an interrupt or a shutdown lost against a start or a commit")]
    Interrupted,
    /// 6.
    #[error("a journal that failed did not halt the loop, or an end was made up")]
    Halted,
    /// 7.
    #[error("more summaries were asked for than are paid for")]
    Unpaid,
    /// 8.
    #[error("the outcome of an attempt was told before that was durable, or another one is on record")]
    Answered,
    /// 9.
    #[error("a rewind went where there is no commit, or was refused although there is one")]
    Rewound,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct AttemptLine {
    reason: Option<AttemptReason>,
    ends: u8,
    is_committed: bool,
    is_durable: bool,
    is_end_durable: bool,
    applied: u8,
    canceled: Option<RejectionReason>,
}

/// What is paid for, in the words of the latch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Account {
    compact_at: u16,
    rearm_below: u16,
    last: u16,
    is_below: bool,
    crossings: u64,
    growth: u64,
    waits: u64,
    calls: u64,
}

/// Everything that happened so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    commands: BTreeMap<CommandId, u8>,
    /// What is on record as the outcome for whom.
    answered: BTreeMap<CommandId, (AttemptId, bool)>,
    attempts: BTreeMap<AttemptId, AttemptLine>,
    /// Changes that were handed in and are neither written down nor refused, in order.
    changes: Vec<Change>,
    /// So many commits are in force, and so many could be.
    in_force: u64,
    known: u64,
    account: Account,
    is_halted: bool,
    most_waiters: usize,
    waiting: usize,
}

impl Ledger {
    pub(super) fn new(compact_at: BasisPoints, rearm_below: BasisPoints, most_waiters: usize) -> Self {
        Self {
            commands: BTreeMap::new(),
            answered: BTreeMap::new(),
            attempts: BTreeMap::new(),
            changes: Vec::new(),
            in_force: 0,
            known: 0,
            account: Account {
                compact_at: compact_at.get(),
                rearm_below: rearm_below.get(),
                last: 0,
                is_below: false,
                crossings: 0,
                growth: 0,
                waits: 0,
                calls: 0,
            },
            is_halted: false,
            most_waiters,
            waiting: 0,
        }
    }

    /// A command is given, for the first time.
    pub(super) fn command(&mut self, command: CommandId) {
        self.commands.insert(command, 0);
        self.waiting += 1;
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(super) fn waited_at_limit(&mut self) {
        self.account.waits += 1;
    }

    /// What was learned about the latch is void; the next attempt is paid for by the change.
    pub(super) fn settings_changed(&mut self) {
        self.account.crossings += 1;
    }

    /// The user interrupts, or the session ends: what runs and is not yet being committed must not be any more.
    pub(super) fn cancel(&mut self, reason: RejectionReason, live: Option<AttemptId>) {
        if let Some(line) = live.map(|id| self.attempts.entry(id).or_default())
            && !line.is_committed
            && line.ends == 0
        {
            // A shutdown outranks an interrupt.
            if line.canceled.is_none() || reason == RejectionReason::ShuttingDown {
                line.canceled = Some(reason);
            }
        }
    }

    /// The records of an attempt are durable up to now.
    pub(super) fn durable(&mut self, attempt: AttemptId) {
        let line = self.attempts.entry(attempt).or_default();
        line.is_durable = line.is_committed;
        line.is_end_durable = line.ends > 0;
    }

    /// Takes in what the core wants done, in order. `fails` says that the journal failed just now.
    pub(super) fn take(
        &mut self,
        effects: &[Effect],
        landed: Option<TokenCount>,
        fails: bool,
    ) -> Result<(), Broken> {
        for effect in effects {
            self.take_one(effect, landed)?;
        }
        if fails && !effects.contains(&Effect::Halt) {
            return Err(Broken::Halted);
        }
        let (paid, account) = (self.account.paid(), &self.account);
        if account.calls > paid {
            return Err(Broken::Unpaid);
        }
        if self.waiting > self.most_waiters || self.is_answer_kept_back(effects) {
            return Err(Broken::Replies);
        }
        let is_lost = |line: &AttemptLine| line.is_durable && line.applied != 1;
        if !self.is_halted && self.attempts.values().any(is_lost) {
            return Err(Broken::Applied);
        }
        Ok(())
    }

    fn take_one(&mut self, effect: &Effect, landed: Option<TokenCount>) -> Result<(), Broken> {
        match effect {
            Effect::Record(_) if self.is_halted => Err(Broken::Halted),
            Effect::Record(Record::Started(attempt)) => {
                let line = self.attempts.entry(attempt.id).or_default();
                line.reason = Some(attempt.reason);
                if line.canceled.is_some() { Err(Broken::Interrupted) } else { Ok(()) }
            }
            Effect::Record(Record::Committed { attempt, .. }) => {
                let line = self.attempts.entry(*attempt).or_default();
                line.ends += 1;
                line.is_committed = true;
                match line {
                    AttemptLine { canceled: Some(_), .. } => Err(Broken::Interrupted),
                    AttemptLine { ends: 1, .. } => Ok(()),
                    _ => Err(Broken::Ends),
                }
            }
            Effect::Record(Record::Rejected { attempt, reason }) => {
                let line = self.attempts.entry(*attempt).or_default();
                line.ends += 1;
                match line {
                    AttemptLine { ends: 1, canceled: Some(canceled), .. } if canceled != reason => {
                        Err(Broken::Interrupted)
                    }
                    AttemptLine { ends: 1, .. } => Ok(()),
                    _ => Err(Broken::Ends),
                }
            }
            Effect::Record(Record::Changed(change)) => match self.let_go(change.event)? {
                ChangeKind::Append => Ok(()),
                ChangeKind::Rewind(_) => Err(Broken::Rewound),
            },
            Effect::Record(Record::Rewound { event, in_force }) => {
                let kind = self.let_go(*event)?;
                if self.rewound(kind) != Some(*in_force) {
                    return Err(Broken::Rewound);
                }
                self.in_force = *in_force;
                Ok(())
            }
            Effect::Record(Record::Answered { attempt, command, resolved }) => {
                let line = self.attempts.entry(*attempt).or_default();
                let is_so = line.is_end_durable && line.is_committed == *resolved;
                let is_first = self.answered.insert(*command, (*attempt, *resolved)).is_none();
                let is_told = self.commands.get(command).is_none_or(|replies| *replies > 0);
                if is_so && is_first && !is_told { Ok(()) } else { Err(Broken::Answered) }
            }
            Effect::Refuse { change, why } => {
                let at = self.changes.iter().position(|other| other == change).ok_or(Broken::Held)?;
                self.changes.remove(at);
                // Only one that is not held back is judged.
                let is_right =
                    *why != Refused::NoSuchCommit || at == 0 && self.rewound(change.kind).is_none();
                if is_right { Ok(()) } else { Err(Broken::Rewound) }
            }
            Effect::Record(Record::Measured(_) | Record::SettingsChanged | Record::Latched(_))
            | Effect::Count { .. }
            | Effect::Cancel { .. } => Ok(()),
            Effect::Summarize { attempt, .. } => {
                let line = self.attempts.entry(*attempt).or_default();
                self.account.calls += u64::from(line.reason == Some(AttemptReason::Automatic));
                Ok(())
            }
            Effect::Apply { attempt, .. } => {
                let line = self.attempts.entry(*attempt).or_default();
                line.applied += 1;
                self.in_force += 1;
                self.known = self.in_force;
                if let Some(TokenCount(landed)) = landed {
                    self.account.reading(u16::try_from(landed).unwrap_or(u16::MAX));
                }
                if line.is_durable && line.applied == 1 { Ok(()) } else { Err(Broken::Applied) }
            }
            Effect::Reply { command, reply } => {
                if self.is_halted && *reply != Reply::Halted {
                    return Err(Broken::Halted);
                }
                let replies = self.commands.get_mut(command).ok_or(Broken::Replies)?;
                *replies += 1;
                let outcome = match *reply {
                    Reply::Committed(attempt) => Some((attempt, true)),
                    Reply::Rejected(attempt, _) => Some((attempt, false)),
                    // The journal failed, and what it holds is not known.
                    Reply::Halted => self.answered.get(command).copied(),
                    Reply::Send | Reply::NotAdmitted(_) | Reply::ContextLimit { .. } => None,
                };
                if self.answered.get(command).copied() != outcome {
                    return Err(Broken::Answered);
                }
                self.waiting = self.waiting.saturating_sub(1);
                if *replies == 1 { Ok(()) } else { Err(Broken::Replies) }
            }
            Effect::Decided(decision) => {
                self.account.reading(decision.reading.occupancy.get());
                let is_attempt = decision.verdict == Verdict::Attempt;
                let is_low = decision.reading.occupancy.get() < self.account.compact_at;
                if is_attempt && is_low { Err(Broken::Unpaid) } else { Ok(()) }
            }
            Effect::Halt => {
                self.is_halted = true;
                Ok(())
            }
        }
    }

    /// Whether somebody is not told what is on record for him.
    fn is_answer_kept_back(&self, effects: &[Effect]) -> bool {
        effects.iter().any(|effect| match effect {
            Effect::Record(Record::Answered { command, .. }) => self.commands.get(command) == Some(&0),
            _ => false,
        })
    }

    /// Held changes come out first in, first out.
    fn let_go(&mut self, event: EventId) -> Result<ChangeKind, Broken> {
        match self.changes.first() {
            Some(first) if first.event == event => Ok(self.changes.remove(0).kind),
            _ => Err(Broken::Held),
        }
    }

    /// How many commits are in force after a change of this kind, now; `None` when it is no rewind or cannot be.
    fn rewound(&self, kind: ChangeKind) -> Option<u64> {
        let now = i128::from(self.in_force);
        let then = match kind {
            ChangeKind::Append => return None,
            ChangeKind::Rewind(Rewind::Back(by)) => now - i128::from(by),
            ChangeKind::Rewind(Rewind::Forward(by)) => now + i128::from(by),
            ChangeKind::Rewind(Rewind::To(then)) => i128::from(then),
        };
        let is_there = then != now && (0..=i128::from(self.known)).contains(&then);
        u64::try_from(then).ok().filter(|_| is_there)
    }

    /// The journal failed: from here on nothing may be made up.
    pub(super) fn fail(&mut self) {
        self.is_halted = true;
    }

    pub(super) fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Whether the last reading was at the hard limit.
    pub(super) fn is_at_limit(&self) -> bool {
        self.account.last >= BasisPoints::FULL_SCALE.get()
    }

    /// Summaries that occupancy asked for, and how many were paid for.
    pub(super) fn account(&self) -> (u64, u64) {
        (self.account.calls, self.account.paid())
    }

    /// What must be true when nothing is under way.
    pub(super) fn at_rest(&self) -> Result<(), Broken> {
        if self.commands.values().any(|replies| *replies != 1) {
            return Err(Broken::Replies);
        }
        if !self.changes.is_empty() {
            return Err(Broken::Held);
        }
        if !self.is_halted && self.attempts.values().any(|line| line.ends != 1) {
            return Err(Broken::Ends);
        }
        Ok(())
    }
}

impl Account {
    fn reading(&mut self, occupancy: u16) {
        self.growth += u64::from(occupancy.saturating_sub(self.last));
        self.last = occupancy;
        if occupancy < self.rearm_below {
            self.is_below = true;
        } else if occupancy >= self.compact_at && std::mem::take(&mut self.is_below) {
            self.crossings += 1;
        }
    }

    fn paid(&self) -> u64 {
        let step = u64::from(BasisPoints::FULL_SCALE.get() - self.compact_at);
        2 * (self.crossings + 1) + self.growth / step + self.waits
    }
}
