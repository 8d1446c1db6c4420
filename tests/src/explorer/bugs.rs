//! A decision core with a planted bug, to see whether it would be found.

use epitome_loop::{RejectionReason, Timestamp};
use epitome_loopruntime::decision::{
    Change, ChangeKind, CoreSettings, CoreState, DecisionCore, Effect, Input, Latch, Record, Refused, Reply,
    Rewind,
};

use super::ledger::Broken;

/// One bug for each thing that must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// The end of an attempt is written twice.
    TwoEnds,
    /// One of several waiters gets no answer.
    LostReply,
    /// The context is replaced before that is durable.
    EarlyApply,
    /// What was held is let go in another order.
    HeldOutOfOrder,
    /// An interrupt is not heard.
    DeafToInterrupt,
    /// A journal that fails makes a refusal.
    InventedEnd,
    /// A commit arms the latch, wherever it landed.
    ForgetfulLatch,
    /// An answer is given before it is durable.
    EarlyAnswer,
    /// A rewind beyond the ends goes as far as it can.
    BeyondTheEnds,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Self; 9] = [
        Self::TwoEnds,
        Self::LostReply,
        Self::EarlyApply,
        Self::HeldOutOfOrder,
        Self::DeafToInterrupt,
        Self::InventedEnd,
        Self::ForgetfulLatch,
        Self::EarlyAnswer,
        Self::BeyondTheEnds,
    ];
}

impl Bug {
    /// What is not true of a core with this bug.
    #[must_use]
    pub fn breaks(self) -> Broken {
        match self {
            Self::TwoEnds => Broken::Ends,
            Self::LostReply => Broken::Replies,
            Self::EarlyApply => Broken::Applied,
            Self::HeldOutOfOrder => Broken::Held,
            Self::DeafToInterrupt => Broken::Interrupted,
            Self::InventedEnd => Broken::Halted,
            Self::ForgetfulLatch => Broken::Unpaid,
            Self::EarlyAnswer => Broken::Answered,
            Self::BeyondTheEnds => Broken::Rewound,
        }
    }
}

/// A core, perhaps with a bug.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    settings: CoreSettings,
    core: DecisionCore,
    bug: Option<Bug>,
}

impl Machine {
    pub(super) fn new(settings: CoreSettings, bug: Option<Bug>) -> Self {
        Self { settings, core: DecisionCore::new(settings), bug }
    }

    pub(super) fn core(&self) -> &DecisionCore {
        &self.core
    }

    pub(super) fn handle(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        if self.bug == Some(Bug::DeafToInterrupt) && input == Input::Interrupt {
            return Vec::new();
        }
        let is_failure = input == Input::JournalFailed;
        let core = std::mem::replace(&mut self.core, DecisionCore::new(self.settings));
        let (core, mut effects) = core.handle(input, now);
        self.core = core;
        match self.bug {
            Some(Bug::TwoEnds) => {
                let end =
                    effects.iter().find(|effect| matches!(effect, Effect::Record(Record::Rejected { .. })));
                effects.extend(end.cloned());
            }
            Some(Bug::LostReply) => {
                let is_reply = |effect: &Effect| matches!(effect, Effect::Reply { .. });
                if effects.iter().filter(|effect| is_reply(effect)).count() > 1 {
                    let last = effects.iter().rposition(is_reply);
                    last.map(|at| effects.remove(at));
                }
            }
            Some(Bug::EarlyApply) => {
                if let Some(Effect::Record(Record::Committed { attempt, basis, .. })) =
                    effects.iter().find(|effect| matches!(effect, Effect::Record(Record::Committed { .. })))
                {
                    effects.push(Effect::Apply { attempt: *attempt, basis: *basis });
                }
            }
            Some(Bug::HeldOutOfOrder) => {
                let is_change = |effect: &Effect| matches!(effect, Effect::Record(Record::Changed(_)));
                let first = effects.iter().position(is_change);
                let last = effects.iter().rposition(is_change);
                if let (Some(first), Some(last)) = (first, last) {
                    effects.swap(first, last);
                }
            }
            Some(Bug::InventedEnd) if is_failure => {
                for effect in &mut effects {
                    if let Effect::Reply { reply, .. } = effect {
                        *reply = Reply::NotAdmitted(RejectionReason::Internal);
                    }
                }
            }
            Some(Bug::ForgetfulLatch)
                if effects.iter().any(|effect| matches!(effect, Effect::Apply { .. })) =>
            {
                let state = CoreState { latch: Latch::default(), ..self.core.state() };
                self.core = DecisionCore::restore(self.settings, state);
            }
            Some(Bug::EarlyAnswer) => {
                let is_answer = |effect: &Effect| matches!(effect, Effect::Record(Record::Answered { .. }));
                let (answers, others): (Vec<_>, Vec<_>) = effects.into_iter().partition(is_answer);
                effects = others.into_iter().chain(answers).collect();
            }
            Some(Bug::BeyondTheEnds) => {
                let commits = self.core.commits();
                for effect in &mut effects {
                    if let Effect::Refuse { change, why: Refused::NoSuchCommit } = *effect {
                        let Change { event, kind: ChangeKind::Rewind(rewind) } = change else { continue };
                        let in_force = match rewind {
                            Rewind::Back(by) => commits.in_force.saturating_sub(by),
                            Rewind::Forward(by) => commits.in_force + by,
                            Rewind::To(in_force) => in_force,
                        };
                        *effect = Effect::Record(Record::Rewound { event, in_force });
                    }
                }
            }
            _ => {}
        }
        effects
    }
}
