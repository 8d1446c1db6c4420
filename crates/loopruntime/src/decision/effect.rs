//! What a loop wants done.

use std::time::Duration;

use epitome_loop::{AttemptId, CommandId, ContextBasis, ContextMeasurement, EventId, RejectionReason};

use super::{Attempt, Change, Latch, LatchRule, Reading, Verdict};
use crate::Landing;

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Write this down. Records about an attempt are answered by [`Input::Recorded`](super::Input::Recorded) once they are durable.
    Record(Record),
    /// Summarize what this attempt replaces.
    Summarize {
        /// Which attempt.
        attempt: AttemptId,
        /// The context that it works on.
        basis: ContextBasis,
    },
    /// Count the request as the attempt would leave it.
    Count {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// Stop what is done for an attempt; an answer is ignored.
    Cancel {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The commit is durable: the context is this one from now on.
    Apply {
        /// Which attempt.
        attempt: AttemptId,
        /// The new context.
        basis: ContextBasis,
    },
    /// Answer a command, once and for all.
    Reply {
        /// Which.
        command: CommandId,
        /// What.
        reply: Reply,
    },
    /// A change does not happen. It has left no trace.
    Refuse {
        /// The change.
        change: Change,
        /// Why.
        why: Refused,
    },
    /// How a request was decided about.
    Decided(Decision),
    /// Nothing is done any more: what is durable is not known. The session can be opened again.
    Halt,
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// A request was measured.
    Measured(ContextMeasurement),
    /// Messages were added.
    Changed(Change),
    /// Commits were taken back or put in force again.
    Rewound {
        /// The event that stands for it.
        event: EventId,
        /// So many commits are in force from now on. Another number than before.
        in_force: u64,
    },
    /// An attempt began.
    Started(Attempt),
    /// An attempt ended with this context.
    Committed {
        /// The attempt.
        attempt: AttemptId,
        /// The context from now on.
        basis: ContextBasis,
        /// Whether it landed low enough to be armed again.
        landing: Landing,
    },
    /// An attempt ended, and nothing else changed.
    Rejected {
        /// The attempt.
        attempt: AttemptId,
        /// Why.
        reason: RejectionReason,
    },
    /// The settings are others from now on.
    SettingsChanged,
    /// The latch is this one from now on.
    Latched(Latch),
    /// A command that waited for an attempt is about to be answered. The answer is given once this is durable.
    Answered {
        /// The attempt, which has ended.
        attempt: AttemptId,
        /// The command.
        command: CommandId,
        /// Whether it was committed.
        resolved: bool,
    },
}

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The request may be sent as it was measured.
    Send,
    /// The attempt that the command waited for was committed. A request must be built and measured again.
    Committed(AttemptId),
    /// The attempt was refused, and the context is what it was. A request must be measured again, since input that
    /// waited may have been added.
    Rejected(AttemptId, RejectionReason),
    /// The command did not get to wait for an attempt.
    NotAdmitted(RejectionReason),
    /// The request cannot be sent.
    ContextLimit {
        /// Whether no attempt will be made until the context has become smaller or the user acts.
        exhausted: bool,
        /// After how long another attempt would be made.
        retry_after: Option<Duration>,
        /// Why the last attempt was refused.
        refused: Option<RejectionReason>,
    },
    /// The journal failed; what is durable is not known.
    Halted,
}

/// Why a change does not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// So many wait already.
    HeldFull,
    /// The session has ended.
    ShuttingDown,
    /// The journal failed.
    Halted,
    /// There is no such commit to take back or to put in force again, or nothing would change.
    NoSuchCommit,
}

/// How a request was decided about, with the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The command that asked.
    pub command: CommandId,
    /// What was known.
    pub reading: Reading,
    /// What was decided.
    pub verdict: Verdict,
    /// By which rule.
    pub rule: LatchRule,
}
