//! Runs a [`DecisionCore`](crate::decision::DecisionCore): one task per loop, which owns the loop's state and decides nothing.
//!
//! What the core asks for is done in its order. A record is durable before anything that follows it happens, so nobody
//! is told of what could still be lost. Summaries and counts run beside the loop, so that an interrupt is heard at any
//! time. Every wait has a deadline, and an adapter that panics has failed.

mod adapter;
mod handle;
mod inbox;
mod place;
mod task;
mod trace;
mod waiting;

pub use adapter::{LoopAdapter, RecordFailed};
pub use handle::{DriverClosed, LoopHandle};
pub use place::{Answer, Place};
pub use task::{DriverSettings, drive};
