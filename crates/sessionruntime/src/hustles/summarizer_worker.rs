//! The kinds `extractive` and `model`: a summarizer of this program as a worker.

use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{Cause, CauseKind, ModelCallError, Summarizer, SummarizerError, SummaryDraft};
use tokio::runtime::Handle;

use super::{
    HustleWorker, InputForm, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage,
    WorkerTraits,
};

/// Any [`Summarizer`] as the worker of a hustle whose identity is bound by the host.
///
/// It gets the request unprojected, and in a second try the sentence about what was wrong with the first answer. It works
/// on a thread for blocking work, because a summarizer computes, one that asks a model too: the session's tasks go on
/// meanwhile. One that waits for a model is dropped when its run ends. What computes cannot be taken off its thread, so a
/// run that has ended waits for it, and a summarizer that goes on beyond the drain time poisons the controller until it
/// has come back.
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
        let WorkOrder { input, correction, mut end, .. } = order;
        let WorkInput::Request(mut request) = input else {
            return Err(refused(WorkStage::Resolution, CauseKind::InvalidInput));
        };
        request.correction = correction;
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
            Ok(Some(summarized)) => summarized.map_err(failed)?,
            // Nobody waits for the answer.
            Ok(None) => return Err(refused(WorkStage::Inference, CauseKind::Canceled)),
            // Handed on to where panics are contained; the hook that prints panics has seen it already.
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                Err(_) => return Err(refused(WorkStage::Inference, CauseKind::Other)),
            },
        };
        let SummaryDraft { sections, left_out, usage: spent, repairs, carried } = draft;
        let text = sections.render().xml;
        let bare = WorkAnswer::bare(text.as_bytes().to_vec());
        Ok(WorkAnswer { spent, left_out, repairs, carried, ..bare })
    }
}

fn failed(error: SummarizerError) -> WorkFailure {
    let stage = match error {
        SummarizerError::BudgetTooSmall { .. } | SummarizerError::Answer { .. } => WorkStage::Output,
        SummarizerError::Model(ModelCallError { kind, .. }) if kind.was_answered() => WorkStage::Output,
        SummarizerError::WindowTooSmall { .. } => WorkStage::Resolution,
        _ => WorkStage::Inference,
    };
    WorkFailure { stage, cause: error.cause(), diagnostic_bytes: 0, spent: error.usage() }
}

fn refused(stage: WorkStage, kind: CauseKind) -> WorkFailure {
    WorkFailure { stage, cause: Cause::new(kind), diagnostic_bytes: 0, spent: None }
}
