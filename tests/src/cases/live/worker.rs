//! The summarizer of a case: it answers by script, or without a model where the case says nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use epitome_loop::{
    Cause, CauseKind, SharedBytes, SummaryRequest, SummarySections, TextEstimator, core_json_len,
};
use epitome_sessionruntime::{
    HustleWorker, InputForm, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage,
    WorkerTraits, decode_input,
};
use epitome_summarizers::Extractive;
use tokio::sync::oneshot;

/// What a model answers: a text, or an error of its provider by its name or status.
pub(super) type Answer = Result<String, String>;

/// The summarizer of a case.
pub(super) struct CaseWorker {
    form: InputForm,
    estimator: Arc<dyn TextEstimator>,
    /// What it answers when the time line does not say.
    otherwise: Option<Answer>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Answers that the time line gives, one for each order.
    replies: VecDeque<oneshot::Receiver<Answer>>,
    /// What it was asked, in a form that can be compared.
    asked: Vec<String>,
    /// The size of each, in bytes.
    sizes: Vec<u64>,
}

impl CaseWorker {
    /// A worker with this standing answer. Where it `reads_wire`, it gets what is sent to a model, within the limit of
    /// that; else the request itself.
    pub(super) fn new(
        reads_wire: bool,
        otherwise: Option<Answer>,
        estimator: Arc<dyn TextEstimator>,
    ) -> Self {
        let form = if reads_wire { InputForm::Wire } else { InputForm::Request };
        Self { form, estimator, otherwise, seen: Mutex::default() }
    }

    /// The next order is answered with what comes from here.
    pub(super) fn expect(&self) -> oneshot::Sender<Answer> {
        let (reply, answer) = oneshot::channel();
        self.seen().replies.push_back(answer);
        reply
    }

    /// Whether it was ever asked the very same again.
    pub(super) fn was_asked_twice(&self) -> bool {
        let seen = self.seen();
        let mut asked: Vec<&String> = seen.asked.iter().collect();
        asked.sort_unstable();
        asked.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
    }

    /// The largest request, in bytes.
    pub(super) fn largest(&self) -> u64 {
        self.seen().sizes.iter().copied().max().unwrap_or(0)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, input: WorkInput) -> Result<SummaryRequest, WorkFailure> {
        match input {
            WorkInput::Request(request) => Ok(*request),
            WorkInput::Bytes(bytes) => self.request_of(&bytes),
        }
    }

    fn request_of(&self, wire: &SharedBytes) -> Result<SummaryRequest, WorkFailure> {
        let input = decode_input(wire).map_err(|_| failed(CauseKind::InvalidInput))?;
        Ok(SummaryRequest {
            transcript: input.transcript().clone(),
            previous: None::<SummarySections>,
            instructions: None,
            max_tokens: input.max_summary_tokens(),
            max_bytes: None,
            estimator: Arc::clone(&self.estimator),
            correction: None,
            carry_constraints: true,
        })
    }
}

#[async_trait]
impl HustleWorker for CaseWorker {
    fn traits(&self) -> WorkerTraits {
        WorkerTraits { input: self.form, stop: StopStyle::Dropped }
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        let size_on_wire = match &order.input {
            WorkInput::Bytes(bytes) => Some(bytes.len() as u64),
            WorkInput::Request(_) => None,
        };
        let request = self.request(order.input)?;
        let reply = {
            let mut seen = self.seen();
            seen.asked.push(format!("{:?} {:?}", request.transcript, request.instructions));
            let size = request.transcript.iter().map(core_json_len).sum();
            seen.sizes.push(size_on_wire.unwrap_or(size));
            seen.replies.pop_front()
        };
        let answer = match reply {
            // A time line that ends without an answer is over.
            Some(reply) => match reply.await {
                Ok(answer) => Some(answer),
                Err(_) => std::future::pending().await,
            },
            None => self.otherwise.clone(),
        };
        let output = match answer {
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                let kind = match error.parse() {
                    Ok(status) => CauseKind::Api { status, retry_after: None },
                    Err(_) => CauseKind::Network,
                };
                return Err(failed(kind));
            }
            None => {
                let draft = Extractive::new().summarize_now(&request);
                draft.map_err(|_| failed(CauseKind::Other))?.sections.render().xml.to_string()
            }
        };
        Ok(WorkAnswer::bare(output.into_bytes()))
    }
}

fn failed(kind: CauseKind) -> WorkFailure {
    WorkFailure { stage: WorkStage::Inference, cause: Cause::new(kind), diagnostic_bytes: 0, spent: None }
}
