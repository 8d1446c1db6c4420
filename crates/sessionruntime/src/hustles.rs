//! Hustles: bounded, one-shot side tasks of a session, such as summarizing for a compaction.
//!
//! A [`HustleController`] has two lanes, one for runs that the session waits for and one for those that go on
//! beside it. A run is owned from the moment it is admitted: it is recorded, worked on under the timeout of its
//! definition, judged, recorded again, and handed to its finalizer exactly once, on every path. What the host
//! brings (worker, validator, records, finalizer) may fail, hang or panic; the run then fails with a stage and a
//! reason, and the session goes on. `docs/hustles.md` tells it to users.

mod admission;
mod at_large;
mod command;
mod contained;
mod controller;
mod execution;
mod finish;
mod judging;
mod lane;
mod record;
mod run;
mod summarizer_worker;
mod worker;

pub use admission::{AdmissionError, HustleInput, HustleRequest, SummaryTask};
pub use at_large::HustleFaultChange;
pub use command::{
    CommandError, CommandListener, CommandReport, CommandSettings, CommandWorker, ExitVerdict, StderrExcerpt,
    exit_verdict,
};
pub use controller::{HustleController, HustleFault, HustleSetupError, RegisteredHustle};
pub(crate) use execution::together;
pub use finish::{FinalizationFailed, HustleFinalizer, HustleOutcome, HustleSummary, HustleValue};
pub use judging::HustleValidator;
pub use record::{AuditFailed, FailedRun, HustleAudit, HustleEvent, HustleRecord};
pub use run::HustleRun;
pub use summarizer_worker::SummarizerWorker;
pub use worker::{
    EndSignal, HustleWorker, InputForm, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage,
    WorkerTraits,
};
