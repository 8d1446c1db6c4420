//! A live session: an agent loop with its conversation, its journal and its compactions.
//!
//! A host opens a [`Session`] from a [`BoundLoop`](epitome_rig::BoundLoop), appends what is said, and asks
//! [`Session::admit`] before each request to the model. The session measures the complete request, compacts when its
//! policy says so, and answers with the messages to send. What was appended is durable when the call returns, nothing
//! is ever deleted, and each compaction can be taken back. `docs/session.md` tells it to users.
//!
//! The data flows one way: the handle puts commands into the loop's inbox; the loop's
//! [core](epitome_loopruntime::decision) decides; the [driver](epitome_loopruntime::driver) asks the adapter here to
//! write, summarize and count; what is durable is folded into the live state and told to subscribers.

mod adapter;
mod admission;
mod append;
mod attempt;
mod binding;
mod calibrating;
mod command;
mod error;
mod event;
mod frame;
mod handle;
mod live;
mod open;
mod ports;
mod report;
mod rewind;
mod subscription;

pub use admission::Admitted;
pub use append::{Appended, MAX_APPEND_BYTES};
pub use calibrating::SessionCalibration;
pub use error::{AdmitError, CompactError, OverBytes, SessionError};
pub use event::SessionEvent;
pub use frame::RequestFrame;
pub use handle::Session;
pub use open::{OpenError, SessionLimits, SessionSettings};
pub use ports::{Clock, FreshIds, IdSource, LoopPorts, SessionPorts, SystemClock};
pub use report::{CompactionReport, RejectionReport};
pub use subscription::{Delivered, Subscription};
