//! Asking the hustles that a policy names for a summary: the first one, and where that gives none, the fallback.

use async_trait::async_trait;
use epitome_loop::{
    AttemptId, CauseKind, HustleName, HustleStage, OutputFault, RejectionReason, RunFailure, Usage,
    ValidPolicy,
};
use thiserror::Error;

use crate::hustles::{
    AdmissionError, FinalizationFailed, HustleController, HustleFinalizer, HustleInput, HustleOutcome,
    HustleRequest, HustleSummary, HustleValue, SummaryTask, together,
};
use crate::journal::StableName;
use crate::outcome::TIMED_OUT;
use crate::planning::MadeSummary;
use crate::{compaction_rejection, translate_failure};

/// A hustle gave no summary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HustleRefusal {
    /// Its run was not admitted.
    #[error("{0}")]
    NotAdmitted(AdmissionError),
    /// Its run failed.
    #[error("{}", words(.0))]
    Failed(RunFailure),
}

impl HustleRefusal {
    /// The reason as records have it.
    #[must_use]
    pub fn rejection(&self) -> RejectionReason {
        match self {
            Self::NotAdmitted(AdmissionError::Closed) => RejectionReason::ShuttingDown,
            // The worker may have come back the next time, and the lane have room.
            Self::NotAdmitted(AdmissionError::Poisoned | AdmissionError::Full) => {
                RejectionReason::ExecutionFailed
            }
            Self::NotAdmitted(_) => RejectionReason::Unavailable,
            Self::Failed(failure) => compaction_rejection(failure),
        }
    }

    /// The finer cause: what was wrong with the summary, what the model's provider did, or how far the run came.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        match self {
            Self::NotAdmitted(error) => match error {
                AdmissionError::Closed => "lanes_closed",
                AdmissionError::UnknownDefinition => "unknown_hustle",
                AdmissionError::InvalidInput => "input_invalid",
                AdmissionError::InputTooLarge { .. } => "input_too_large",
                AdmissionError::Poisoned => "lanes_poisoned",
                AdmissionError::Full => "lane_full",
            },
            Self::Failed(failure) => failure_detail(failure),
        }
    }

    /// Whether nobody waits for a summary any more, so that asking somebody else would be wrong.
    fn is_final(&self) -> bool {
        match self {
            Self::NotAdmitted(error) => *error == AdmissionError::Closed,
            Self::Failed(RunFailure { cause, .. }) => {
                cause.as_ref().is_some_and(|cause| cause.iter().any(|kind| kind == CauseKind::Canceled))
            }
        }
    }
}

fn failure_detail(failure: &RunFailure) -> &'static str {
    let Some(cause) = &failure.cause else { return failure.stage.as_str() };
    if let Some(invalid) = translate_failure(cause) {
        return invalid.reason.as_str();
    }
    let is_window = failure.stage == HustleStage::ModelResolution;
    let found = cause.iter().find_map(|kind| match kind {
        CauseKind::InvalidInput if is_window => Some(WINDOW_TOO_SMALL),
        CauseKind::Deadline => Some(TIMED_OUT),
        CauseKind::Network => Some("network"),
        CauseKind::Api { status: 401 | 403, .. } => Some("not_authorized"),
        CauseKind::Api { status: 429, .. } => Some("rate_limited"),
        CauseKind::Api { .. } => Some("provider_error"),
        CauseKind::Output(Some(OutputFault::Refused)) => Some("refused"),
        _ => None,
    });
    found.unwrap_or(failure.stage.as_str())
}

/// What a failure means to people.
fn words(failure: &RunFailure) -> String {
    let cause = failure.cause.as_ref();
    if let Some(invalid) = cause.and_then(translate_failure) {
        return format!("what the summarizer answered is no valid summary: {}", invalid.reason);
    }
    let found = cause.and_then(|cause| {
        cause.iter().find_map(|kind| match kind {
            CauseKind::InvalidInput if failure.stage == HustleStage::ModelResolution => Some(
                "the window of the summarizing model has no room for the prompt and an answer".to_owned(),
            ),
            CauseKind::Canceled => Some("the summarizer was stopped".to_owned()),
            CauseKind::Deadline => Some("the summarizer took longer than it may".to_owned()),
            CauseKind::Network => Some("the summarizing model was not reached".to_owned()),
            CauseKind::Api { status: ..300, .. } => {
                Some("the provider of the summarizing model reported a failure".to_owned())
            }
            CauseKind::Api { status, .. } => {
                Some(format!("the provider of the summarizing model answered with status {status}"))
            }
            CauseKind::Output(Some(OutputFault::Refused)) => Some("the summarizing model refused".to_owned()),
            _ => None,
        })
    });
    found.unwrap_or_else(|| match failure.stage {
        HustleStage::ModelResolution => "the summarizer could not be started".to_owned(),
        stage => format!("the summarizer failed ({})", stage.as_str()),
    })
}

/// The finer cause of a model that could not be asked for want of room.
const WINDOW_TOO_SMALL: &str = "window_too_small";

/// There is no summary.
#[derive(Debug)]
pub(crate) struct NoSummary {
    pub(crate) refusal: HustleRefusal,
    /// What providers reported for everything that was asked.
    pub(crate) spent: Option<Usage>,
}

/// What a hustle came to, and what providers reported for it.
struct Ran {
    result: Result<HustleSummary, HustleRefusal>,
    spent: Option<Usage>,
}

/// Asks for a summary. `second` is the id of the run of the fallback, should there be one.
///
/// A refusal is that of the first hustle, whatever the fallback came to: it is the one that the user chose. What both
/// cost is told either way.
pub(crate) async fn ask_hustles(
    lanes: &HustleController,
    policy: &ValidPolicy,
    task: SummaryTask,
    first: AttemptId,
    second: impl FnOnce() -> AttemptId,
) -> Result<MadeSummary, NoSummary> {
    let estimator = task.estimator.clone();
    let made = |made: HustleSummary, usage, degraded: Option<StableName>| {
        let HustleSummary { proven, usage: _, is_estimated: _, left_out, repairs, carried } = made;
        MadeSummary {
            tokens: estimator.estimate(proven.summary.raw()),
            summary: proven.summary,
            left_out,
            // What XML forbids has left the text before anybody here saw it.
            dropped_characters: 0,
            usage,
            repairs: repairs.into_iter().filter_map(|name| StableName::new(name).ok()).collect(),
            carried,
            degraded,
        }
    };
    let Ran { result, spent } = run(lanes, policy.hustle(), task.clone(), first).await;
    let refusal = match result {
        Ok(summary) => return Ok(made(summary, spent, None)),
        Err(refusal) => refusal,
    };
    let Some(fallback) = policy.fallback().filter(|_| !refusal.is_final()) else {
        return Err(NoSummary { refusal, spent });
    };
    let Ran { result, spent: more } = run(lanes, fallback, task, second()).await;
    let spent = together(spent, more);
    match result {
        Ok(summary) => Ok(made(summary, spent, StableName::new(refusal.detail()).ok())),
        Err(second) if second.is_final() => Err(NoSummary { refusal: second, spent }),
        Err(_) => Err(NoSummary { refusal, spent }),
    }
}

async fn run(lanes: &HustleController, hustle: &HustleName, task: SummaryTask, run: AttemptId) -> Ran {
    let request = HustleRequest {
        run,
        hustle: hustle.clone(),
        input: HustleInput::Summary(Box::new(task)),
        validator: None,
        finalizer: Box::new(Awaited),
    };
    let run = match lanes.submit(request) {
        Ok(run) => run,
        Err(error) => return Ran { result: Err(HustleRefusal::NotAdmitted(error)), spent: None },
    };
    let HustleOutcome { result, spent, .. } = run.outcome().await;
    let result = match result {
        Ok(HustleValue::Summary(summary)) => Ok(*summary),
        // A run for a summary comes to nothing else.
        Ok(HustleValue::Bytes(_)) => Err(HustleRefusal::NotAdmitted(AdmissionError::InvalidInput)),
        Err(failure) => Err(HustleRefusal::Failed(failure)),
    };
    Ran { result, spent }
}

/// Whoever asked waits for the outcome itself, and what it does with it is its own business.
struct Awaited;

#[async_trait]
impl HustleFinalizer for Awaited {
    async fn finalize(self: Box<Self>, _outcome: HustleOutcome) -> Result<(), FinalizationFailed> {
        Ok(())
    }
}
