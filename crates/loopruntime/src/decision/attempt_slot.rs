//! The one attempt that a loop may have, and who waits for it.
//!
//! The rules are the reference implementation's, proven by its vectors (`control`).

use epitome_loop::{AttemptId, CommandId, ContextBasis, RejectionReason, Timestamp};
use thiserror::Error;

/// So many commands may wait for one attempt.
pub const MAX_WAITERS: usize = 64;

/// Why an attempt was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptReason {
    /// Somebody asked.
    Manual,
    /// The threshold of the policy was reached.
    Automatic,
}

/// A command that waits for an attempt. Ordered by creation, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Waiter {
    /// When the command was given.
    pub created_at: Timestamp,
    /// The command.
    pub command: CommandId,
}

/// One attempt to compact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Its identity.
    pub id: AttemptId,
    /// Why it was opened.
    pub reason: AttemptReason,
    /// The context it works on, once that is settled.
    pub basis: Option<ContextBasis>,
    /// When it began, once that is on record.
    pub started_at: Option<Timestamp>,
    /// Who waits, in the order in which they are answered.
    pub waiters: Vec<Waiter>,
    /// Whether it waits for a boundary or runs.
    pub is_running: bool,
}

/// A place in the turn of an agent at which a compaction may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Behind a step: the results of the model's calls are there.
    Step,
    /// Behind a turn: the model has nothing more to say.
    Turn,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It opened this attempt.
    Opened(AttemptId),
    /// It waits for this attempt, which was there.
    Joined(AttemptId),
    /// It waits for this attempt already.
    Duplicate(AttemptId),
    /// Too many wait for this attempt.
    LaneFull(AttemptId),
}

/// A command that cannot be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// It has no id.
    #[error("a command without an id")]
    NoCommand,
    /// It would open an attempt without an id.
    #[error("an attempt without an id")]
    NoAttempt,
}

/// The context of an attempt cannot be settled so: it is not complete, another one is settled, or the attempt is
/// not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the context of an attempt cannot be settled so")]
pub struct FreezeError;

/// What a boundary brings about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtBoundary {
    /// Nothing: no attempt waits for one.
    Nothing,
    /// The attempt begins.
    Start(Attempt),
    /// The attempt is over before it began.
    Reject(Attempt, RejectionReason),
}

/// The slot for one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptSlot {
    /// In a box, since most loops have none most of the time.
    attempt: Option<Box<Attempt>>,
    capacity: usize,
    is_interrupted: bool,
    is_shut_down: bool,
}

impl Default for AttemptSlot {
    fn default() -> Self {
        Self::with_capacity(MAX_WAITERS)
    }
}

impl AttemptSlot {
    /// An empty slot in which so many commands may wait; 0 stands for [`MAX_WAITERS`].
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = if capacity == 0 { MAX_WAITERS } else { capacity };
        Self { attempt: None, capacity, is_interrupted: false, is_shut_down: false }
    }

    /// A command asks for a compaction: it waits for the attempt that is there, or opens one with this id.
    ///
    /// # Errors
    /// [`AdmissionError`] when an id that is needed is absent.
    pub fn admit(
        mut self,
        waiter: Waiter,
        reason: AttemptReason,
        new_id: AttemptId,
    ) -> Result<(Self, Admission), AdmissionError> {
        if waiter.command.is_zero() {
            return Err(AdmissionError::NoCommand);
        }
        let admission = match &mut self.attempt {
            Some(attempt) if attempt.waiters.iter().any(|other| other.command == waiter.command) => {
                Admission::Duplicate(attempt.id)
            }
            Some(attempt) if attempt.waiters.len() >= self.capacity => Admission::LaneFull(attempt.id),
            Some(attempt) => {
                let at = attempt.waiters.partition_point(|other| *other < waiter);
                attempt.waiters.insert(at, waiter);
                Admission::Joined(attempt.id)
            }
            None if new_id.is_zero() => return Err(AdmissionError::NoAttempt),
            None => {
                self.attempt = Some(Box::new(Attempt {
                    id: new_id,
                    reason,
                    basis: None,
                    started_at: None,
                    waiters: vec![waiter],
                    is_running: false,
                }));
                Admission::Opened(new_id)
            }
        };
        Ok((self, admission))
    }

    /// A boundary was reached. Shutdown and interrupt win over starting.
    #[must_use]
    pub fn boundary(mut self, _: Boundary) -> (Self, AtBoundary) {
        let cancel = self.cancel_reason();
        match (self.attempt.take(), cancel) {
            (Some(attempt), Some(reason)) if !attempt.is_running => {
                self.is_interrupted = false;
                (self, AtBoundary::Reject(*attempt, reason))
            }
            (Some(mut attempt), None) if !attempt.is_running => {
                attempt.is_running = true;
                let begun = (*attempt).clone();
                self.attempt = Some(attempt);
                (self, AtBoundary::Start(begun))
            }
            (attempt, _) => {
                self.attempt = attempt;
                (self, AtBoundary::Nothing)
            }
        }
    }

    /// Settles the context that the attempt works on, once; the same one again is no change.
    ///
    /// # Errors
    /// [`FreezeError`] beside the slot as it was.
    pub fn freeze(mut self, id: AttemptId, basis: ContextBasis) -> (Self, Result<(), FreezeError>) {
        let settles = |attempt: &&mut Box<Attempt>| {
            attempt.id == id && basis.is_complete() && attempt.basis.is_none_or(|settled| settled == basis)
        };
        let settled = match self.attempt.as_mut().filter(settles) {
            Some(attempt) => {
                attempt.basis = Some(basis);
                Ok(())
            }
            None => Err(FreezeError),
        };
        (self, settled)
    }

    /// The beginning of the attempt is on record. The attempt as it is now, or `None` when it is not there, does not
    /// run, has no settled context, or began before.
    #[must_use]
    pub fn started(mut self, id: AttemptId, at: Timestamp) -> (Self, Option<Attempt>) {
        let begins = |attempt: &&mut Box<Attempt>| {
            attempt.id == id
                && attempt.is_running
                && attempt.basis.is_some()
                && attempt.started_at.is_none()
                && at != Timestamp::default()
        };
        let attempt = self.attempt.as_mut().filter(begins).map(|attempt| {
            attempt.started_at = Some(at);
            (**attempt).clone()
        });
        (self, attempt)
    }

    /// The attempt is over. What it was, or `None` when it is not there.
    #[must_use]
    pub fn complete(mut self, id: AttemptId) -> (Self, Option<Attempt>) {
        let attempt = self.attempt.take_if(|attempt| attempt.id == id);
        self.is_interrupted &= attempt.is_none();
        (self, attempt.map(|attempt| *attempt))
    }

    /// The user interrupts. It is about the attempt that is there; without one it means nothing here.
    #[must_use]
    pub fn interrupt(mut self) -> Self {
        self.is_interrupted |= self.attempt.is_some();
        self
    }

    /// The session is shutting down, for good.
    #[must_use]
    pub fn shut_down(mut self) -> Self {
        self.is_shut_down = true;
        self
    }

    /// The attempt that waits or runs.
    #[must_use]
    pub fn attempt(&self) -> Option<&Attempt> {
        self.attempt.as_deref()
    }

    /// Whether input must wait.
    #[must_use]
    pub fn blocks_input(&self) -> bool {
        self.attempt.is_some()
    }

    /// Whether the session is shutting down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.is_shut_down
    }

    /// Why an attempt would be rejected now: shutdown goes before interrupt.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<RejectionReason> {
        match (self.is_shut_down, self.is_interrupted) {
            (true, _) => Some(RejectionReason::ShuttingDown),
            (false, true) => Some(RejectionReason::Interrupted),
            (false, false) => None,
        }
    }
}
