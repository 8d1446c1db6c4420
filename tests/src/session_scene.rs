//! A live session with everything around it scripted: what summarizes, what counts, what is written down.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    BasisPoints, ByteLimits, Cause, CauseKind, CompactionPolicy, ContextCount, ContextCounter, ContextLimits,
    ContextObservationPolicy, CountError, CountQuality, CounterCapability, CounterPolicy,
    HustleLimitSettings, HustleSettings, IdentityBinding, InferenceCapability, KeepRecent, LaneLimits,
    LoopDefinition, Message, Model, ModelSource, Participation, Request, RetryPolicy, SessionId,
    SummaryRequest, SummarySections, Timestamp, TokenCount, core_json_len,
};
use epitome_rig::{BoundLoop, Rig};
use epitome_sessionruntime::journal::{Journal, MemoryJournal};
use epitome_sessionruntime::{
    HustleWorker, InputForm, LoopPorts, OpenError, RequestFrame, Session, SessionLimits, SessionPorts,
    SessionSettings, StopStyle, WorkAnswer, WorkFailure, WorkInput, WorkOrder, WorkStage, WorkerTraits,
};
use tokio::sync::Semaphore;

/// What the worker does with one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkAct {
    /// It answers with a summary.
    Answers,
    /// It answers with a summary, after so long.
    AnswersAfter(Duration),
    /// It answers once it is let through by [`ScriptedWorker::let_through`].
    Waits,
    /// It answers this.
    Says(String),
    /// It fails.
    Fails,
    /// It never answers.
    Hangs,
    /// It panics.
    Panics,
}

/// A summarizer that does what it is told.
pub struct ScriptedWorker {
    script: Mutex<VecDeque<WorkAct>>,
    /// What it does when the script is over.
    otherwise: Mutex<WorkAct>,
    asked: Mutex<Vec<SummaryRequest>>,
    gate: Semaphore,
}

/// What is done about the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is compacted by itself.
    Automatic,
    /// It is compacted when somebody asks.
    Manual,
    /// It is watched.
    Observed,
    /// It is left to itself.
    Alone,
}

/// A session's surroundings.
pub struct SessionScene {
    /// Where it is written down.
    pub journal: Arc<dyn Journal>,
    /// What summarizes.
    pub worker: Arc<ScriptedWorker>,
    /// What summarizes in its place, if anything does.
    pub instead: Option<Arc<dyn HustleWorker>>,
    /// What summarizes when that gives no summary; the policy names it exactly when it is there.
    pub fallback: Option<Arc<ScriptedWorker>>,
    /// Whether the first one is asked twice.
    pub retry: RetryPolicy,
    /// Which session it is.
    pub id: SessionId,
    /// What is done about its context.
    pub treatment: Treatment,
    /// The model's name.
    pub model: &'static str,
    /// What the counter says of itself.
    pub quality: CountQuality,
    /// The model's window.
    pub window: u64,
    /// What the policy keeps verbatim, in tokens.
    pub kept: u64,
    /// How many bytes a request may have.
    pub max_request_bytes: Option<u64>,
    /// The bounds of the session.
    pub limits: SessionLimits,
    /// The next moment.
    pub clock: Arc<AtomicU64>,
    /// The next id.
    pub ids: Arc<AtomicU64>,
}

/// The hustle that the policy names, and the one that it falls back to.
const FIRST: &str = "context.compact";
const FALLBACK: &str = "context.compact.fallback";

/// The least occupancy at which the scripted policy compacts.
pub const COMPACT_AT: BasisPoints = BasisPoints(8_000);

/// The occupancy below which it is armed again.
pub const REARM_BELOW: BasisPoints = BasisPoints(6_000);

impl Default for SessionScene {
    fn default() -> Self {
        Self::on(Arc::new(MemoryJournal::new()))
    }
}

impl SessionScene {
    /// A scene on this journal: a window of 4,000 tokens, of which 300 are kept verbatim.
    #[must_use]
    pub fn on(journal: Arc<dyn Journal>) -> Self {
        Self {
            journal,
            worker: Arc::new(ScriptedWorker::new(WorkAct::Answers)),
            instead: None,
            fallback: None,
            retry: RetryPolicy::None,
            id: SessionId::from_bytes([7; 16]),
            treatment: Treatment::Automatic,
            model: "scripted",
            quality: CountQuality::HeuristicEstimate,
            window: 4_000,
            kept: 300,
            max_request_bytes: None,
            limits: SessionLimits::default(),
            clock: Arc::new(AtomicU64::new(1)),
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    /// The loop, out of a rig.
    ///
    /// # Panics
    /// When the scene is not consistent.
    #[must_use]
    pub fn bound(&self) -> BoundLoop {
        let model = Model {
            provider: "local".into(),
            name: self.model.into(),
            limits: ContextLimits { window: TokenCount(self.window), ..ContextLimits::default() },
            ..Model::default()
        };
        let builder = LoopDefinition::builder("agent", model);
        let measured = |builder: epitome_loop::LoopDefinitionBuilder| {
            let counter = ScriptedCounter(self.quality).capability();
            builder.with_context_counter(counter).with_inference_capability(InferenceCapability::local())
        };
        let builder = match self.treatment {
            Treatment::Alone => builder,
            Treatment::Observed => measured(builder).with_context_observation(ContextObservationPolicy {
                reserved_output: TokenCount(100),
                safety_margin: TokenCount(10),
                count_timeout: Duration::from_secs(1),
            }),
            Treatment::Automatic | Treatment::Manual => measured(builder).with_compaction(self.policy()),
        };
        let mut rig = Rig::builder().with_loop(builder);
        if matches!(self.treatment, Treatment::Automatic | Treatment::Manual) {
            let first = HustleSettings { retry: self.retry, ..hustle(FIRST) };
            rig = rig.with_hustle(first).with_hustle_limits(lanes());
            if self.fallback.is_some() {
                rig = rig.with_hustle(hustle(FALLBACK));
            }
        }
        match rig.build() {
            Ok(rig) => rig.loops().first().cloned().unwrap_or_else(|| unreachable!("it has a loop")),
            Err(error) => unreachable!("the scene is not consistent: {error}"),
        }
    }

    fn policy(&self) -> CompactionPolicy {
        CompactionPolicy {
            automatic: self.treatment == Treatment::Automatic,
            counter_policy: CounterPolicy::AllowConservative,
            compact_at: COMPACT_AT,
            rearm_below: REARM_BELOW,
            reserved_output: TokenCount(100),
            safety_margin: TokenCount(10),
            max_summary_tokens: TokenCount(200),
            count_timeout: Duration::from_secs(1),
            hustle: FIRST.into(),
            keep_recent: Some(KeepRecent { segments: u64::MAX, tokens: TokenCount(self.kept) }),
            max_request_bytes: self.max_request_bytes,
            fallback: self.fallback.as_ref().map(|_| FALLBACK.into()),
            carry_constraints: true,
        }
    }

    /// What the session needs from outside.
    #[must_use]
    pub fn ports(&self) -> SessionPorts {
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        SessionPorts {
            journal: Arc::clone(&self.journal),
            agent_loop: self.loop_ports(),
            clock: Arc::new(move || Timestamp(clock.fetch_add(1, Ordering::Relaxed))),
            ids: Arc::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes()),
        }
    }

    /// What belongs to the loop.
    #[must_use]
    pub fn loop_ports(&self) -> LoopPorts {
        LoopPorts {
            counter: Arc::new(ScriptedCounter(self.quality)),
            estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
            worker: Some(self.instead.clone().unwrap_or_else(|| Arc::clone(&self.worker) as _)),
            fallback: self.fallback.as_ref().map(|worker| Arc::clone(worker) as _),
        }
    }

    /// Opens the session.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(&self) -> Result<Session, OpenError> {
        let settings =
            SessionSettings { session: self.id, frame: RequestFrame::default(), limits: self.limits };
        Session::open(&self.bound(), settings, self.ports()).await
    }
}

/// A request's tokens: a quarter of its bytes.
#[must_use]
pub fn count(request: &Request) -> TokenCount {
    let tools: u64 = request.tools.iter().map(|tool| tool.as_str().len() as u64).sum();
    let messages: u64 = request.messages.iter().map(core_json_len).sum();
    TokenCount((tools + messages) / 4 + request.unseen_tokens.get())
}

/// Counts by [`count`], and says that it is as good as this.
struct ScriptedCounter(CountQuality);

#[async_trait]
impl ContextCounter for ScriptedCounter {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        Ok(ContextCount { model: request.model.clone(), input_tokens: count(request), quality: self.0 })
    }

    fn capability(&self) -> CounterCapability {
        CounterCapability::local("function", self.0)
    }
}

fn hustle(name: &str) -> HustleSettings {
    HustleSettings {
        name: name.into(),
        participation: Participation::Blocking,
        timeout: Duration::from_secs(10),
        limits: ByteLimits { input: 1 << 20, output: 1 << 16 },
        model: ModelSource::Embedded,
        policy_revision: "1".into(),
        output_schema: None,
        retry: RetryPolicy::None,
        identity: IdentityBinding::Host,
    }
}

fn lanes() -> HustleLimitSettings {
    let lane = LaneLimits { concurrent: 1, queued: 1 };
    HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: Duration::from_secs(1),
        finalization_timeout: Duration::from_secs(1),
        worker_drain_timeout: Duration::from_secs(1),
    }
}

/// A turn: the user asks, the model calls a tool, and says something about its result. About `tokens` in all.
#[must_use]
pub fn turn(at: u64, tokens: u64) -> Vec<Message> {
    use epitome_loop::{Block, ToolUse};
    let id = format!("call-{at}");
    let call = Block::ToolUse(ToolUse::new(id.as_str(), "run", None, None));
    let text = "x".repeat(usize::try_from(tokens * 4).unwrap_or(0).saturating_sub(300));
    vec![
        Message::user(format!("Step {at}.")),
        Message::Assistant { blocks: [call].into(), usage: None },
        Message::tool_result(id.as_str(), text, false),
        Message::assistant(format!("Step {at} is done.")),
    ]
}

impl ScriptedWorker {
    /// A worker that always does this.
    #[must_use]
    pub fn new(act: WorkAct) -> Self {
        Self {
            script: Mutex::default(),
            otherwise: Mutex::new(act),
            asked: Mutex::default(),
            gate: Semaphore::new(0),
        }
    }

    /// What it does from now on: these acts, one for each order, and then the last of them.
    pub fn play(&self, acts: impl IntoIterator<Item = WorkAct>) {
        let mut script: VecDeque<WorkAct> = acts.into_iter().collect();
        if let Some(last) = script.pop_back() {
            *locked(&self.otherwise) = last;
        }
        *locked(&self.script) = script;
    }

    /// Lets an order through that waits, or the next one that will.
    pub fn let_through(&self) {
        self.gate.add_permits(1);
    }

    /// What it was asked for, oldest first.
    #[must_use]
    pub fn asked(&self) -> Vec<SummaryRequest> {
        locked(&self.asked).clone()
    }

    /// Waits until it was asked so many times.
    pub async fn was_asked(&self, times: usize) {
        while locked(&self.asked).len() < times {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[async_trait]
impl HustleWorker for ScriptedWorker {
    fn traits(&self) -> WorkerTraits {
        WorkerTraits { input: InputForm::Request, stop: StopStyle::Dropped }
    }

    async fn work(&self, order: WorkOrder) -> Result<WorkAnswer, WorkFailure> {
        let WorkInput::Request(request) = order.input else { return Err(failure()) };
        let summary = summary_of(&request);
        locked(&self.asked).push(*request);
        let act = locked(&self.script).pop_front();
        let act = act.unwrap_or_else(|| locked(&self.otherwise).clone());
        let text = match act {
            WorkAct::Answers => summary,
            WorkAct::AnswersAfter(time) => {
                tokio::time::sleep(time).await;
                summary
            }
            WorkAct::Waits => {
                if let Ok(permit) = self.gate.acquire().await {
                    permit.forget();
                }
                summary
            }
            WorkAct::Says(text) => text,
            WorkAct::Fails => return Err(failure()),
            WorkAct::Hangs => std::future::pending().await,
            WorkAct::Panics => std::panic::resume_unwind(Box::new("as the script has it")),
        };
        Ok(WorkAnswer::bare(text.into_bytes()))
    }
}

fn failure() -> WorkFailure {
    WorkFailure {
        stage: WorkStage::Inference,
        cause: Cause::new(CauseKind::Other),
        diagnostic_bytes: 0,
        spent: None,
    }
}

/// A summary that says how much it stands for, its forerunners included.
fn summary_of(request: &SummaryRequest) -> String {
    let before = request.previous.as_ref().and_then(|sections| sections.state.first());
    let before: u64 = before.and_then(|state| state.split(' ').next()?.parse().ok()).unwrap_or(0);
    let sections = SummarySections {
        goal: vec!["See the steps through.".into()],
        state: vec![format!("{} messages are summarized.", before + request.transcript.len() as u64).into()],
        ..SummarySections::default()
    };
    sections.render().xml.to_string()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
