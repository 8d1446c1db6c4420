//! What a loop decides about its context: one state machine, without time, ids or waiting of its own.

mod attempt_slot;
mod commit_stack;
mod core;
mod effect;
mod input;
mod latch;
mod tracker;

pub use attempt_slot::{
    Admission, AdmissionError, AtBoundary, Attempt, AttemptReason, AttemptSlot, Boundary, FreezeError,
    MAX_WAITERS, Waiter,
};
pub use commit_stack::CommitStack;
pub use core::{CoreSettings, CoreState, DecisionCore};
pub use effect::{Decision, Effect, Record, Refused, Reply};
pub use input::{Change, ChangeKind, Input, Replacement, Rewind};
pub use latch::{AttemptEnd, Disarmed, Latch, LatchRule, LatchState, Reading, Verdict};
pub use tracker::{NextBasisError, PressureChange, PressureTracker};
