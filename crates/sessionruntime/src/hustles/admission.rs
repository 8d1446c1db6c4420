//! What is asked of a controller, and what it refuses before it owns anything.

use std::sync::Arc;

use epitome_loop::{
    AttemptId, CompactionInput, HustleDefinition, HustleName, Message, SharedBytes, SharedText,
    SummaryRequest, SummarySections, TextEstimator,
};
use epitome_loopruntime::{Projection, project};
use thiserror::Error;

use super::{HustleFinalizer, HustleValidator, InputForm, WorkInput};
use crate::{RunIdentity, fit_input};

/// One run that is asked for.
pub struct HustleRequest {
    /// The id of the run, given by the host.
    pub run: AttemptId,
    /// Which hustle.
    pub hustle: HustleName,
    /// What it works on.
    pub input: HustleInput,
    /// The host's own check of the outcome, after the checks that every summary goes through.
    pub validator: Option<Arc<dyn HustleValidator>>,
    /// Takes the outcome. Not called when the run is refused.
    pub finalizer: Box<dyn HustleFinalizer>,
}

/// What a hustle works on.
#[derive(Clone)]
pub enum HustleInput {
    /// A compaction: the answer is a summary, and is proven to be one.
    Summary(Box<SummaryTask>),
    /// Anything else; the answer is bytes, and only the host knows what they mean. Not empty.
    Bytes {
        /// The input as the worker gets it.
        input: SharedBytes,
        /// The host's instructions for this one run.
        instructions: Option<SharedText>,
    },
}

/// A compaction that a hustle is to summarize.
#[derive(Clone)]
pub struct SummaryTask {
    /// For which context, model and request a summary is wanted: what the answer is held against.
    pub attempt: RunIdentity,
    /// The messages to summarize, unprojected, and what the run is bound to.
    pub input: CompactionInput,
    /// The earlier summary of the same conversation, typed by the host that committed it; its message is not
    /// in the input.
    pub previous: Option<SummarySections>,
    /// The host's instructions for this one summary.
    pub instructions: Option<SharedText>,
    /// How many bytes the request has left for the summary, where they are counted.
    pub max_bytes: Option<usize>,
    /// Whether the user's rules that a model's summary lacks are put into it.
    pub carry_constraints: bool,
    /// The loop's own counter, which sizes summaries whose producer reports no usage.
    pub estimator: Arc<dyn TextEstimator>,
}

/// A run is refused. Nothing of it was owned, so nothing is recorded and no finalizer is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmissionError {
    /// A worker did not stop when it had to ([`super::HustleFault`]). It may be over the next time.
    #[error("the hustle controller is poisoned and admits nothing")]
    Poisoned,
    /// The session ends.
    #[error("the hustle controller is closed")]
    Closed,
    /// No hustle of this name is registered.
    #[error("no hustle of this name is registered")]
    UnknownDefinition,
    /// The input is empty, or is bytes where the worker takes requests for summaries alone.
    #[error("the input of the hustle is not valid")]
    InvalidInput,
    /// The encoded input is over the hustle's limit, whatever tool results are left out.
    #[error("the input of the hustle takes {size} bytes at least; the limit is {limit}")]
    InputTooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The smallest size that was reached.
        size: u64,
    },
    /// The lane holds as many runs as it may.
    #[error("the lane of the hustle is full")]
    Full,
}

/// An input in the form that its worker takes, and what an answer will be judged by.
pub(super) struct PreparedInput {
    pub(super) work: WorkInput,
    pub(super) instructions: Option<SharedText>,
    /// `None` when the answer is bytes of the host's own.
    pub(super) task: Option<Box<SummaryTask>>,
}

/// Brings an input into the form that its worker takes.
pub(super) fn prepare(
    definition: &HustleDefinition,
    form: InputForm,
    input: HustleInput,
) -> Result<PreparedInput, AdmissionError> {
    let limits = definition.limits();
    match input {
        HustleInput::Bytes { input, instructions } => {
            let size = input.len() as u64;
            if size == 0 || form == InputForm::Request {
                return Err(AdmissionError::InvalidInput);
            }
            if size > limits.input {
                return Err(AdmissionError::InputTooLarge { limit: limits.input, size });
            }
            Ok(PreparedInput { work: WorkInput::Bytes(input), instructions, task: None })
        }
        HustleInput::Summary(task) => {
            let work = match form {
                InputForm::Wire => WorkInput::Bytes(wire_of(&task, limits.input)?),
                InputForm::Request => WorkInput::Request(Box::new(request_of(&task, limits.output))),
            };
            Ok(PreparedInput { work, instructions: task.instructions.clone(), task: Some(task) })
        }
    }
}

/// The projected input on the wire. An earlier summary goes in front as the user message that it is in the
/// conversation: the wire has no other place for it, and what it says must not be lost.
fn wire_of(task: &SummaryTask, limit: u64) -> Result<SharedBytes, AdmissionError> {
    let projected = project(task.input.transcript(), Projection::WithReferences)
        .map_err(|_| AdmissionError::InvalidInput)?;
    let previous = task.previous.as_ref().map(|sections| Message::user(sections.render().xml));
    let input = CompactionInput::new(
        task.input.basis(),
        task.input.model().clone(),
        task.input.request_fingerprint(),
        previous.into_iter().chain(projected).collect(),
        task.input.max_summary_tokens(),
    )
    .map_err(|_| AdmissionError::InvalidInput)?;
    let fitted = fit_input(&input, limit).map_err(|too_large| AdmissionError::InputTooLarge {
        limit: too_large.limit,
        size: too_large.size,
    })?;
    Ok(fitted.bytes.into())
}

fn request_of(task: &SummaryTask, output_limit: u64) -> SummaryRequest {
    let output_limit = usize::try_from(output_limit).unwrap_or(usize::MAX);
    SummaryRequest {
        transcript: task.input.transcript().clone(),
        previous: task.previous.clone(),
        instructions: task.instructions.clone(),
        max_tokens: task.input.max_summary_tokens(),
        max_bytes: Some(task.max_bytes.map_or(output_limit, |limit| limit.min(output_limit))),
        estimator: task.estimator.clone(),
        correction: None,
        carry_constraints: task.carry_constraints,
    }
}
