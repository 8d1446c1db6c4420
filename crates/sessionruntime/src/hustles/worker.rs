//! The port behind which a hustle does its work: a summarizer of this program, an external one, a model.

use async_trait::async_trait;
use epitome_loop::{Cause, HustleReason, HustleStage, SharedBytes, SharedText, SummaryRequest, Usage};
use tokio::sync::watch;

/// In which form a worker takes the input of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputForm {
    /// Wire v1: projected, with an earlier summary in front, fitted into the hustle's input limit. For models
    /// and for programs.
    Wire,
    /// The request itself: unprojected, and never encoded, so the input limit does not apply to it.
    Request,
}

/// How a worker stops when its run is canceled or out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopStyle {
    /// Its future is dropped. Right for everything that waits for a network.
    Dropped,
    /// It watches [`WorkOrder::end`] and comes back by itself, because it has something to put in order. It is dropped
    /// only when the controller closes and the drain time is over.
    Watches,
}

/// What a worker is like. Asked once, when it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorkerTraits {
    /// In which form it takes the input of a compaction.
    pub input: InputForm,
    /// How it stops.
    pub stop: StopStyle,
}

/// What a worker works on.
#[derive(Clone)]
pub enum WorkInput {
    /// Wire v1 of a compaction input, or the bytes that a host's own hustle was given.
    Bytes(SharedBytes),
    /// A request for a summary.
    Request(Box<SummaryRequest>),
}

/// One try of a run, as its worker sees it.
#[derive(Clone)]
pub struct WorkOrder {
    /// What to work on.
    pub input: WorkInput,
    /// The host's instructions for this one run. A request for a summary holds them as well.
    pub instructions: Option<SharedText>,
    /// In a second try after a malformed answer: a fixed sentence about what was wrong. Nothing of the first
    /// answer is in it.
    pub correction: Option<&'static str>,
    /// The answer may take this many bytes.
    pub output_bytes: u64,
    /// Tells when the run is canceled or out of time.
    pub end: EndSignal,
}

/// What a worker answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkAnswer {
    /// Its output: wire v1 with the identity in it, or the bare summary, as the hustle's identity binding says;
    /// for a host's own hustle whatever the host takes.
    pub output: SharedBytes,
    /// What the provider reported for this very output: the summary's budget is held against it.
    pub usage: Option<Usage>,
    /// What the provider reported for a model's answer that the output was made of. It may hold reasoning and forms that
    /// are not in the output, so it is recorded, and the budget is held against the loop's own count.
    pub spent: Option<Usage>,
    /// How many items of each section did not fit, when the worker knows.
    pub left_out: [u64; 5],
    /// What was repaired in a model's answer, by stable names.
    pub repairs: Vec<&'static str>,
    /// The user's rules that the answer lacked and that were put into the output.
    pub carried: Vec<SharedText>,
}

impl WorkAnswer {
    /// An output of which no more is known.
    #[must_use]
    pub fn bare(output: impl Into<SharedBytes>) -> Self {
        Self {
            output: output.into(),
            usage: None,
            spent: None,
            left_out: [0; 5],
            repairs: Vec::new(),
            carried: Vec::new(),
        }
    }
}

/// A worker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFailure {
    /// Where: finding what to ask, asking it, or taking the output out of the answer.
    pub stage: WorkStage,
    /// What went wrong, in closed words.
    pub cause: Cause,
    /// How many bytes of diagnostics the worker left behind. What they say is shown to the host alone.
    pub diagnostic_bytes: u64,
    /// What the provider reported for an answer that came to nothing: it is paid for all the same.
    pub spent: Option<Usage>,
}

/// The part of a run in which a worker fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkStage {
    /// What should answer was not found or not started.
    Resolution,
    /// It was asked and did not answer.
    Inference,
    /// It answered, and the answer is no output.
    Output,
}

impl WorkStage {
    /// The stage of the run.
    #[must_use]
    pub fn stage(self) -> HustleStage {
        match self {
            Self::Resolution => HustleStage::ModelResolution,
            Self::Inference => HustleStage::Inference,
            Self::Output => HustleStage::Output,
        }
    }

    /// The reason that goes with the stage.
    #[must_use]
    pub fn reason(self) -> HustleReason {
        match self {
            Self::Resolution => HustleReason::ModelResolution,
            Self::Inference => HustleReason::Inference,
            Self::Output => HustleReason::InvalidOutput,
        }
    }
}

/// Does the work of a hustle.
///
/// A run calls it once, and a second time where the hustle's retry policy allows it. It may panic: that ends
/// the run and nothing else. It must be gone within the drain time after its run has ended, in the way that its
/// [`StopStyle`] says; a worker that goes on beyond that poisons the controller for as long as it does. What it has
/// begun elsewhere, on a thread of its own for example, it must wait for: it counts as gone when this future is.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot work for a hustle",
    note = "implement `HustleWorker`, or wrap a summarizer in `SummarizerWorker`"
)]
pub trait HustleWorker: Send + Sync {
    /// What this worker is like.
    fn traits(&self) -> WorkerTraits;

    /// Does the work.
    ///
    /// # Errors
    /// [`WorkFailure`] when there is no answer.
    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure>;
}

/// Tells a worker that nobody waits for its answer any more.
#[derive(Clone, Debug)]
pub struct EndSignal(watch::Receiver<bool>);

impl EndSignal {
    /// A signal and what gives it. Giving it up gives it too.
    pub(super) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Returns when the run has ended. May be dropped and called again.
    pub async fn ended(&mut self) {
        // An error says that the run is gone altogether.
        let _ = self.0.wait_for(|ended| *ended).await;
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}
