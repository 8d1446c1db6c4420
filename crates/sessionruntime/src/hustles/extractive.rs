//! The kind `extractive`: a summarizer of this program as a worker.

use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{
    Cause, CauseKind, InvalidSummaryReason, Summarizer, SummarizerError, SummaryDraft, malformed_answer,
};
use tokio::runtime::Handle;

use super::{
    HustleWorker, InputForm, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage,
    WorkerTraits,
};

/// Any [`Summarizer`] as the worker of a hustle whose identity is bound by the host.
///
/// It gets the request unprojected. It works on a thread for blocking work, because a summarizer without a model
/// computes: the session's tasks go on meanwhile. What computes cannot be taken off its thread, so a run that
/// has ended waits for it, and a summarizer that goes on beyond the drain time poisons the controller until it has
/// come back.
#[derive(Clone)]
pub struct SummarizerWorker {
    summarizer: Arc<dyn Summarizer>,
}

impl SummarizerWorker {
    /// A worker that asks this summarizer.
    #[must_use]
    pub fn new(summarizer: Arc<dyn Summarizer>) -> Self {
        Self { summarizer }
    }
}

#[async_trait]
impl HustleWorker for SummarizerWorker {
    fn traits(&self) -> WorkerTraits {
        WorkerTraits { input: InputForm::Request, stop: StopStyle::Watches }
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        let WorkOrder { input, mut end, .. } = order;
        let WorkInput::Request(request) = input else {
            return Err(refused(WorkStage::Resolution, CauseKind::InvalidInput));
        };
        let summarizer = self.summarizer.clone();
        let runtime = Handle::current();
        let working = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    summarized = summarizer.summarize(*request) => Some(summarized),
                    () = end.ended() => None,
                }
            })
        });
        let draft = match working.await {
            Ok(Some(summarized)) => summarized.map_err(|error| failed(&error))?,
            // Nobody waits for the answer.
            Ok(None) => return Err(refused(WorkStage::Inference, CauseKind::Canceled)),
            // Handed on to where panics are contained; the hook that prints panics has seen it already.
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                Err(_) => return Err(refused(WorkStage::Inference, CauseKind::Other)),
            },
        };
        let SummaryDraft { sections, left_out, usage } = draft;
        let text = sections.render().xml;
        Ok(WorkAnswer { output: text.as_bytes().to_vec().into(), usage, left_out })
    }
}

fn failed(error: &SummarizerError) -> WorkFailure {
    match error {
        // No summary can be small enough, so none was made.
        SummarizerError::BudgetTooSmall { .. } => WorkFailure {
            stage: WorkStage::Output,
            cause: malformed_answer(InvalidSummaryReason::TokenLimit),
            diagnostic_bytes: 0,
        },
        SummarizerError::Transcript(_) => refused(WorkStage::Inference, CauseKind::InvalidInput),
        _ => refused(WorkStage::Inference, CauseKind::Other),
    }
}

fn refused(stage: WorkStage, kind: CauseKind) -> WorkFailure {
    WorkFailure { stage, cause: Cause::new(kind), diagnostic_bytes: 0 }
}
