//! What a session writes down, as values.

use std::sync::Arc;

use epitome_loop::{
    AttemptId, CommandId, ContextBasis, ContextLimits, ContextMeasurement, EventId, Message, ModelKey,
    RawJson, RejectionReason, SharedBytes, SharedText, Timestamp, TokenCount, Usage, WaiterReplyId,
    waiter_reply_id,
};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Latch, Waiter};

use super::StableName;

/// One entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// Its identity, chosen by whoever writes it. The context that it makes, if it makes one, goes through this event.
    /// A record that is written again under the same id is acknowledged and not written twice.
    pub id: EventId,
    /// When it was written.
    pub at: Timestamp,
    /// What it says.
    pub body: RecordBody,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordBody {
    /// The session was opened, for the first time or again. The first record of a session, and of each process.
    Opened(SessionOpened),
    /// The messages in front of this record, or right behind it, came from a file. It moves no context.
    Imported(Imported),
    /// Messages were added. They take the next numbers; the first message of a session has number 0.
    Appended {
        /// The number of the first of them.
        first: u64,
        /// The messages, at least one.
        messages: Arc<[Message]>,
    },
    /// A request was measured.
    Measured(ContextMeasurement),
    /// An attempt to compact began.
    Started(AttemptStart),
    /// An attempt ended with a new context.
    Committed(Box<Committed>),
    /// An attempt ended, and nothing else changed.
    Rejected {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        reason: RejectionReason,
        /// The finer cause, where one reason covers several.
        detail: Option<StableName>,
        /// What providers reported for answers that came to nothing: they are paid for all the same.
        usage: Option<Usage>,
    },
    /// A command that waited for an attempt was answered.
    Answered(WaiterOutcome),
    /// Commits were taken back.
    Undone {
        /// So many stay in force.
        in_force: u64,
    },
    /// Commits that were taken back are in force again.
    Redone {
        /// So many are in force now.
        in_force: u64,
    },
    /// The latch is this one from now on.
    Latched(Latch),
}

/// What a session is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOpened {
    /// The model.
    pub model: ModelKey,
    /// Its limits.
    pub limits: ContextLimits,
    /// The digest of the policy.
    pub policy_revision: SharedText,
    /// Tool definitions, as the provider's JSON.
    pub tools: Arc<[RawJson]>,
}

/// A file that messages came from. They are what a reader of its format makes of its bytes, repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// How the file was read; the name of its format, with underscores for hyphens.
    pub format: StableName,
    /// Which of the file's conversations it was, counted from 0, where somebody had to choose.
    pub conversation: Option<u64>,
    /// The file's name, where it has one. It is the user's own word, not to be trusted.
    pub name: Option<SharedText>,
    /// The file, byte for byte. It stands outside the record and is stored once, whatever its size.
    pub source: SharedBytes,
    /// How many repairs made its messages legal; 0 when they are as they were read.
    pub repairs: u64,
}

/// The beginning of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    /// Its identity.
    pub attempt: AttemptId,
    /// Why it was opened.
    pub reason: AttemptReason,
    /// The context that it works on.
    pub basis: ContextBasis,
    /// Who waits for it, in the order in which they are answered.
    pub waiters: Arc<[Waiter]>,
}

/// Messages by number: from `first` on, up to but without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageRange {
    /// The number of the first.
    pub first: u64,
    /// The number behind the last.
    pub end: u64,
}

/// A summary took the place of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Which attempt.
    pub attempt: AttemptId,
    /// The context that it worked on.
    pub basis: ContextBasis,
    /// The context from now on: one revision further, through this record.
    pub post: ContextBasis,
    /// The summary, as the strict parser accepted it.
    pub summary: SharedText,
    /// The messages that stay, by number, ascending and apart.
    pub retained: Arc<[MessageRange]>,
    /// So many of the messages that stay stand before the summary: system messages at the start.
    pub leading: u64,
    /// The whole request before.
    pub before: ContextMeasurement,
    /// The whole request after, in the context from now on.
    pub after: ContextMeasurement,
    /// What the summary takes.
    pub summary_tokens: TokenCount,
    /// Whether it landed low enough for another attempt to be worth it.
    pub landing: Landing,
    /// What providers reported, when models were asked: for the summary, and for every answer before it that came to
    /// nothing.
    pub usage: Option<Usage>,
    /// What that cost, in millionths of a US dollar, when the host knows.
    pub cost_micro_usd: Option<u64>,
    /// What was repaired in the answer before the strict parser saw it, in order.
    pub repairs: Arc<[StableName]>,
    /// Why a weaker summary than the policy's first choice was taken.
    pub degraded: Option<StableName>,
}

/// The answer to a command that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterOutcome {
    /// For which attempt it waited.
    pub attempt: AttemptId,
    /// The command.
    pub command: CommandId,
    /// Whether it got what it waited for.
    pub resolved: bool,
    /// The id of the reply: the same whenever it is worked out.
    pub reply: WaiterReplyId,
}

impl RecordBody {
    /// The stable name of the kind, as it stands in the journal.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Opened(_) => "opened",
            Self::Imported(_) => "imported",
            Self::Appended { .. } => "appended",
            Self::Measured(_) => "measured",
            Self::Started(_) => "started",
            Self::Committed(_) => "committed",
            Self::Rejected { .. } => "rejected",
            Self::Answered(_) => "answered",
            Self::Undone { .. } => "undone",
            Self::Redone { .. } => "redone",
            Self::Latched(_) => "latched",
        }
    }
}

impl WaiterOutcome {
    /// The outcome, with the id of its reply.
    #[must_use]
    pub fn new(attempt: AttemptId, command: CommandId, resolved: bool) -> Self {
        Self { attempt, command, resolved, reply: waiter_reply_id(attempt, command, resolved) }
    }
}

impl MessageRange {
    /// How many messages there are in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }

    /// Numbers that ascend, as ranges: space for a thousand messages that stand side by side is that for one.
    #[must_use]
    pub fn of_numbers(numbers: impl IntoIterator<Item = u64>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some(range) if range.end == number => range.end = number.saturating_add(1),
                _ => ranges.push(Self { first: number, end: number.saturating_add(1) }),
            }
        }
        ranges
    }
}
