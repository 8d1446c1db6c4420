#![doc = include_str!("../README.md")]

mod calibration;
mod compaction;
mod cutting;
mod earlier_summary;
mod error_translation;
mod fitting;
mod hustles;
pub mod journal;
mod keeping;
mod lengths;
mod measuring;
mod outcome;
mod pinning;
mod planning;
mod provider_compaction;
mod recording;
mod result;
mod room;
mod session;
mod standing;
mod summarizing;
mod unseen;
mod wire;

pub use calibration::{Calibration, CountScale, CountedReport, ReportVerdict};
pub use compaction::{Demand, HustlePorts, Ports, SessionContext, compact_by_hustles, compact_once};
pub use earlier_summary::{EarlierSummary, leading_system, recognize_earlier_summary};
pub use error_translation::{compaction_rejection, translate_failure};
pub use fitting::{CompactionInputTooLarge, FittedInput, OMITTED_TOOL_RESULT, fit_input};
pub use hustles::{
    AdmissionError, AuditFailed, CommandError, CommandListener, CommandReport, CommandSettings,
    CommandWorker, EndSignal, ExitVerdict, FailedRun, FinalizationFailed, HustleAudit, HustleController,
    HustleEvent, HustleFault, HustleFaultChange, HustleFinalizer, HustleInput, HustleOutcome, HustleRecord,
    HustleRequest, HustleRun, HustleSetupError, HustleSummary, HustleValidator, HustleValue, HustleWorker,
    InputForm, RegisteredHustle, StderrExcerpt, StopStyle, SummarizerWorker, SummaryTask, WorkAnswer,
    WorkFailure, WorkInput, WorkOrder, WorkStage, WorkerTraits, exit_verdict,
};
pub use outcome::{Compaction, CountFailure, Outcome, Refusal, RefusalReason};
pub use provider_compaction::is_provider_compaction;
pub use recording::{CommitTerms, committed_record, rejection_of};
pub use result::{ProvenSummary, ResultTerms, RunIdentity, RunOutput, RunResult, validate_result};
pub use session::{
    AdmitError, Admitted, Appended, Clock, CompactError, CompactionReport, Delivered, FreshIds, IdSource,
    LoopPorts, MAX_APPEND_BYTES, OpenError, OverBytes, RejectionReport, RequestFrame, Session,
    SessionCalibration, SessionError, SessionEvent, SessionLimits, SessionPorts, SessionSettings,
    Subscription, SystemClock,
};
pub use summarizing::HustleRefusal;
pub use unseen::{ReportedContext, unseen_by_report};
pub use wire::{
    SummaryAnswer, WIRE_VERSION, WireError, WireFault, WirePart, decode_input, decode_output, encode_input,
    encoded_len,
};
