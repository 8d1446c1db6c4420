//! A session's hustles with everything around them scripted: worker, records, finalizer.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    AttemptId, ByteLimits, CompactionInput, ContextBasis, ContextRevision, EventId, HustleDefinition,
    HustleLimitSettings, HustleLimits, HustleName, HustleSettings, IdentityBinding, LaneLimits, Message,
    ModelKey, ModelSource, Participation, RequestFingerprint, RetryPolicy, RunFailure, TokenCount,
};
use epitome_sessionruntime::{
    AuditFailed, FinalizationFailed, HustleAudit, HustleController, HustleEvent, HustleFault,
    HustleFaultChange, HustleFinalizer, HustleInput, HustleOutcome, HustleRecord, HustleRequest, HustleValue,
    HustleWorker, InputForm, RegisteredHustle, StopStyle, SummaryTask, WorkAnswer, WorkFailure, WorkOrder,
    WorkerTraits,
};
use tokio::runtime::{Builder, Handle, Runtime};

pub(crate) const XML: &str = "<conversation_summary><goal>g</goal><constraints/><decisions/><state>s</state>\
                              <open_items/></conversation_summary>";

/// A runtime whose clock jumps to the next deadline whenever nothing else is left to do.
pub(crate) fn paused() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

pub(crate) type Work = Pin<Box<dyn Future<Output = Result<WorkAnswer, WorkFailure>> + Send>>;

/// A worker made of a function.
pub(crate) struct Scripted<F> {
    pub(crate) traits: WorkerTraits,
    pub(crate) script: F,
}

#[async_trait]
impl<F: Fn(WorkOrder) -> Work + Send + Sync> HustleWorker for Scripted<F> {
    fn traits(&self) -> WorkerTraits {
        self.traits
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        (self.script)(order).await
    }
}

/// A worker on bytes that is dropped when its run ends.
pub(crate) fn scripted(script: impl Fn(WorkOrder) -> Work + Send + Sync + 'static) -> Arc<dyn HustleWorker> {
    let traits = WorkerTraits { input: InputForm::Wire, stop: StopStyle::Dropped };
    Arc::new(Scripted { traits, script })
}

pub(crate) fn answers(output: impl Into<Vec<u8>>) -> Result<WorkAnswer, WorkFailure> {
    let output: Vec<u8> = output.into();
    Ok(WorkAnswer::bare(output))
}

/// What a test wants of the things that the host brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Works,
    Fails,
    Hangs,
    Panics,
}

impl Manner {
    pub(crate) async fn act<E>(self, error: E) -> Result<(), E> {
        match self {
            Self::Works => Ok(()),
            Self::Fails => Err(error),
            Self::Hangs => pending().await,
            Self::Panics => panic!("canary-7291"),
        }
    }
}

/// Keeps records as words, and behaves as it is told for each kind of record.
pub(crate) struct Records {
    pub(crate) kept: Mutex<Vec<String>>,
    pub(crate) on_started: Manner,
    pub(crate) on_completed: Manner,
    pub(crate) on_failed: Manner,
    /// Changes of a fault: the first byte of the run, and whether it is so from now on.
    pub(crate) faults: Mutex<Vec<(u8, bool)>>,
}

impl Records {
    pub(crate) fn working() -> Self {
        Self {
            kept: Mutex::default(),
            on_started: Manner::Works,
            on_completed: Manner::Works,
            on_failed: Manner::Works,
            faults: Mutex::default(),
        }
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.kept.lock().unwrap().clone()
    }
}

#[async_trait]
impl HustleAudit for Records {
    async fn record(&self, record: HustleRecord) -> Result<(), AuditFailed> {
        let (word, manner) = match record.event {
            HustleEvent::Started => ("started".to_owned(), self.on_started),
            HustleEvent::Completed { .. } => ("completed".to_owned(), self.on_completed),
            HustleEvent::Failed(failed) => {
                assert!(epitome_loop::reason_allowed(failed.stage(), failed.reason()));
                (format!("{} {}", failed.stage().as_str(), failed.reason().as_str()), self.on_failed)
            }
            _ => panic!("a record that this test does not know"),
        };
        // What was asked for is kept even where it is refused: a test sees every call.
        self.kept.lock().unwrap().push(word);
        manner.act(AuditFailed).await
    }

    fn fault_changed(&self, change: HustleFaultChange) {
        self.faults.lock().unwrap().push((change.run.as_bytes()[0], change.is_so));
        // Whatever the host does with it, the lanes go on.
        assert_eq!(change.fault, HustleFault::WorkerIgnoredTheEnd);
        panic!("canary-7291");
    }
}

/// Keeps the outcomes that it is given, and then behaves as it is told.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) outcomes: Arc<Mutex<Vec<HustleOutcome>>>,
    pub(crate) manner: Manner,
}

impl Desk {
    pub(crate) fn new(manner: Manner) -> Self {
        Self { outcomes: Arc::default(), manner }
    }

    pub(crate) fn runs(&self) -> Vec<u8> {
        self.outcomes.lock().unwrap().iter().map(|outcome| outcome.run.as_bytes()[0]).collect()
    }
}

#[async_trait]
impl HustleFinalizer for Desk {
    async fn finalize(self: Box<Self>, outcome: HustleOutcome) -> Result<(), FinalizationFailed> {
        self.outcomes.lock().unwrap().push(outcome);
        self.manner.act(FinalizationFailed).await
    }
}

pub(crate) fn settings(name: &str) -> HustleSettings {
    HustleSettings {
        name: name.into(),
        participation: Participation::Blocking,
        timeout: Duration::from_secs(60),
        limits: ByteLimits { input: 1 << 20, output: 1 << 16 },
        model: ModelSource::Embedded,
        policy_revision: "v1".into(),
        output_schema: None,
        retry: RetryPolicy::None,
        identity: IdentityBinding::Host,
    }
}

pub(crate) fn hustle(settings: HustleSettings, worker: Arc<dyn HustleWorker>) -> RegisteredHustle {
    RegisteredHustle { definition: Arc::new(HustleDefinition::new(settings).unwrap()), worker }
}

pub(crate) fn limits(blocking: (u64, u64), background: (u64, u64)) -> HustleLimits {
    HustleLimits::new(HustleLimitSettings {
        blocking: LaneLimits { concurrent: blocking.0, queued: blocking.1 },
        background: LaneLimits { concurrent: background.0, queued: background.1 },
        audit_timeout: Duration::from_secs(5),
        finalization_timeout: Duration::from_secs(7),
        worker_drain_timeout: Duration::from_secs(3),
    })
    .unwrap()
}

/// Lanes for one run each, whose workers have so long to stop, and everything else has plenty of time.
pub(crate) fn drained_in(worker_drain_timeout: Duration) -> HustleLimits {
    HustleLimits::new(HustleLimitSettings {
        blocking: LaneLimits { concurrent: 1, queued: 0 },
        background: LaneLimits { concurrent: 1, queued: 0 },
        audit_timeout: Duration::from_secs(60),
        finalization_timeout: Duration::from_secs(60),
        worker_drain_timeout,
    })
    .unwrap()
}

/// A controller of the runtime that this is called in.
pub(crate) fn controller(
    limits: HustleLimits,
    hustles: impl IntoIterator<Item = RegisteredHustle>,
    records: &Arc<Records>,
) -> HustleController {
    HustleController::new(Handle::current(), limits, hustles, records.clone()).unwrap()
}

/// A request with bytes, whose run has this number.
pub(crate) fn request(number: u8, name: &str, input: &[u8], desk: &Desk) -> HustleRequest {
    HustleRequest {
        run: AttemptId::from_bytes([number; 16]),
        hustle: HustleName::new(name).unwrap(),
        input: HustleInput::Bytes { input: input.to_vec().into(), instructions: None },
        validator: None,
        finalizer: Box::new(desk.clone()),
    }
}

pub(crate) fn input(revision: u64, messages: impl Into<Arc<[Message]>>) -> CompactionInput {
    let basis =
        ContextBasis { revision: ContextRevision(revision), through_event_id: EventId::from_bytes([1; 16]) };
    let fingerprint = RequestFingerprint::from_bytes([2; 32]);
    CompactionInput::new(basis, ModelKey::new("p", "m"), fingerprint, messages.into(), TokenCount(2_000))
        .unwrap()
}

pub(crate) fn task(input: CompactionInput) -> SummaryTask {
    SummaryTask {
        attempt: (&input).into(),
        input,
        previous: None,
        instructions: None,
        max_bytes: None,
        carry_constraints: true,
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
    }
}

pub(crate) fn compaction(name: &str, task: SummaryTask, desk: &Desk) -> HustleRequest {
    HustleRequest { input: HustleInput::Summary(Box::new(task)), ..request(1, name, b"x", desk) }
}

/// An outcome in words: `ok`, or stage and reason.
pub(crate) fn words(result: &Result<HustleValue, RunFailure>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(failure) => format!("{} {}", failure.stage.as_str(), failure.reason.as_str()),
    }
}

/// Returns when no worker is at large any more.
pub(crate) async fn recovered(controller: &HustleController) {
    while controller.fault().is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Returns when every owned run is finalized.
pub(crate) async fn idle(controller: &HustleController) {
    while controller.owned() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
