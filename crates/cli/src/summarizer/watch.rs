//! What is seen of a summarizer while it works: how often it was asked, what that cost, and why it failed. Nothing of
//! what was said.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use epitome_loop::{ModelAnswer, ModelCall, ModelCallError, ModelClient, Usage};
use epitome_models::{NetworkModel, Redacting, RedactionReport};
use epitome_sessionruntime::{CommandReport, HustleWorker, WorkAnswer, WorkFailure, WorkOrder, WorkerTraits};

/// What was seen. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Seen>>);

/// What was seen up to now.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// How often it was asked for a summary.
    pub(super) tries: u32,
    /// How often the model was asked.
    pub(super) calls: u32,
    /// What the model's provider reported, over all calls.
    pub(super) usage: Option<Usage>,
    /// What the last call came to, if that was no answer.
    pub(super) error: Option<ModelCallError>,
    /// How the last start of the program went.
    pub(super) program: Option<CommandReport>,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // A panic elsewhere cannot leave numbers half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    pub(super) fn program_ended(&self, report: CommandReport) {
        self.lock().program = Some(report);
    }
}

/// A worker that is watched.
pub(super) struct WatchedWorker {
    pub(super) worker: Arc<dyn HustleWorker>,
    pub(super) watch: Watch,
}

#[async_trait]
impl HustleWorker for WatchedWorker {
    fn traits(&self) -> WorkerTraits {
        self.worker.traits()
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        {
            let mut seen = self.watch.lock();
            seen.tries = seen.tries.saturating_add(1);
        }
        self.worker.work(order).await
    }
}

/// A model that is watched.
#[derive(Clone)]
pub(super) struct WatchedModel {
    pub(super) server: Server,
    pub(super) watch: Watch,
}

/// Who answers for a model.
#[derive(Clone)]
pub(super) enum Server {
    Reached(Box<NetworkModel>),
    /// It was asked what it serves and did not answer, so that not even the model's window is known.
    NotReached(ModelCallError),
}

#[async_trait]
impl ModelClient for WatchedModel {
    async fn call(&self, call: ModelCall) -> Result<ModelAnswer, ModelCallError> {
        let answered = match &self.server {
            Server::Reached(model) => model.call(call).await,
            Server::NotReached(error) => Err(*error),
        };
        let mut seen = self.watch.lock();
        seen.calls = seen.calls.saturating_add(1);
        seen.error = answered.as_ref().err().copied();
        if let Some(usage) = answered.as_ref().ok().and_then(|answer| answer.usage) {
            seen.usage = Some([seen.usage.unwrap_or_default(), usage].into_iter().sum());
        }
        answered
    }
}

/// A model as the summarizer asks it: with its secrets replaced, or as they are.
#[derive(Clone)]
pub(super) enum AskedClient {
    Redacting(Redacting<WatchedModel>),
    AsItIs(WatchedModel),
}

impl AskedClient {
    pub(super) fn client(&self) -> Arc<dyn ModelClient> {
        match self {
            Self::Redacting(client) => Arc::new(client.clone()),
            Self::AsItIs(client) => Arc::new(client.clone()),
        }
    }

    /// What was replaced; `None` where nothing is.
    pub(super) fn redactions(&self) -> Option<RedactionReport> {
        match self {
            Self::Redacting(client) => Some(client.report()),
            Self::AsItIs(_) => None,
        }
    }
}
