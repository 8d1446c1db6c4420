//! What a loop hears.

use epitome_loop::{
    AttemptId, BasisPoints, ContextMeasurement, EventId, RejectionReason, RequestFingerprint, Trigger,
};

use super::{Boundary, Waiter};

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The conversation is to change: it waits while an attempt is there.
    Change(Change),
    /// A request is about to be sent and was measured. This is a boundary too.
    Admit {
        /// Who waits for leave to send it.
        waiter: Waiter,
        /// The id of the attempt, should one be opened.
        attempt: AttemptId,
        /// The size of the complete request.
        measurement: ContextMeasurement,
        /// How full it is by the bytes that the policy allows: full scale exactly when it has more of them, 0 when they are
        /// not counted.
        byte_occupancy: BasisPoints,
    },
    /// Somebody asks for a compaction.
    Compact {
        /// Who.
        waiter: Waiter,
        /// The id of the attempt, should one be opened.
        attempt: AttemptId,
    },
    /// The agent is between two steps or turns.
    Boundary(Boundary),
    /// The summarizer of an attempt is done.
    Summarized {
        /// Which attempt.
        attempt: AttemptId,
        /// Whether there is a proven summary.
        outcome: Result<(), RejectionReason>,
    },
    /// The new request of an attempt was counted.
    Counted {
        /// Which attempt.
        attempt: AttemptId,
        /// Both sizes, or why there are none.
        outcome: Result<Box<Replacement>, RejectionReason>,
    },
    /// What [`Effect::Record`](super::Effect::Record) asked for is durable, for records about an attempt.
    Recorded {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// A record could not be made durable.
    JournalFailed,
    /// An attempt has taken too long.
    DeadlinePassed {
        /// Which attempt.
        attempt: AttemptId,
    },
    /// The user interrupts what goes on.
    Interrupt,
    /// The session ends.
    ShutDown,
    /// The model, its limits or the policy are others from now on.
    SettingsChanged(Trigger),
}

/// A change of the conversation, with the event that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The event.
    pub event: EventId,
    /// What it does.
    pub kind: ChangeKind,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Messages are added.
    Append,
    /// Commits are taken back, or put in force again.
    Rewind(Rewind),
}

/// Which commits are to be in force. It is worked out when it takes effect, so behind an attempt that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rewind {
    /// The newest ones are taken back, so many of them.
    Back(u64),
    /// So many that were taken back are put in force again.
    Forward(u64),
    /// So many are in force from then on.
    To(u64),
}

/// The request that would take the place of another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replacement {
    /// The size of the request as it is.
    pub before: ContextMeasurement,
    /// The size of the request with the summary.
    pub after: ContextMeasurement,
    /// The event of the commit.
    pub event: EventId,
    /// The fingerprint of the same new request in the context that the commit makes.
    pub post_fingerprint: RequestFingerprint,
    /// How full the new request is by the bytes that the policy allows; 0 when they are not counted.
    pub byte_occupancy: BasisPoints,
}
