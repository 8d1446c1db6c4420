//! The host of a case: a live session with everything around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use epitome_loop::{
    AttemptId, ByteLimits, ContextBasis, ContextMeasurement, CountError, EventId, HustleLimitSettings,
    HustleSettings, IdentityBinding, InferenceCapability, LaneLimits, LoopDefinition, Message, Model,
    ModelKey, ModelSource, Participation, RawJson, Request, RequestFingerprint, RetryPolicy, SessionId,
    SharedText, SummarySections, Timestamp, TokenCount, resolve_context_limits,
};
use epitome_loopruntime::decision::AttemptReason;
use epitome_loopruntime::{Landing, parse_summary_text};
use epitome_rig::{BoundLoop, Rig};
use epitome_sessionruntime::journal::{
    AttemptStart, Committed, Journal, JournalRecord, MemoryJournal, MessageRange, PageLimit, RecordBody,
    Restored, encode_record, read_record, restore,
};
use epitome_sessionruntime::{
    HustleWorker, LoopPorts, Ports, RequestFrame, Session, SessionPorts, SessionSettings,
};
use serde_json::Value;

use super::super::CaseError;
use super::super::session_policy::SessionPolicy;
use super::worker::{Answer, CaseWorker};
use crate::scripted::ports_for;

/// The id of the one session that there is.
const SESSION: SessionId = SessionId::from_bytes([7; 16]);

/// A live session with everything around it.
pub(super) struct Host {
    pub(super) session: Session,
    pub(super) worker: Arc<CaseWorker>,
    pub(super) policy: SessionPolicy,
    pub(super) journal: Arc<MemoryJournal>,
    pub(super) frame: RequestFrame,
    /// How many compactions were found in the journal.
    pub(super) stored: usize,
    key: ModelKey,
    bound: BoundLoop,
    ports: SessionPorts,
}

/// There is no session under such a policy.
pub(super) struct NoSession(pub(super) String);

impl Host {
    /// Opens a session.
    pub(super) async fn open(
        model: &str,
        policy: SessionPolicy,
        case_policy: &Value,
        tools: Arc<[RawJson]>,
        otherwise: Option<Answer>,
    ) -> Result<Result<Self, NoSession>, CaseError> {
        let (key, Ports { counter, estimator, .. }) = ports_for(model, None).ok_or(CaseError::Model)?;
        // A model has a window for what it summarizes; a summarizer without a model has none.
        let window = case_policy["summarizer_limit"].as_u64();
        let reads_wire = window.is_some() || case_policy["summarizer_model"].is_string();
        let worker = Arc::new(CaseWorker::new(reads_wire, otherwise, Arc::clone(&estimator)));
        let definition = LoopDefinition::builder(
            "agent",
            Model {
                provider: key.provider.clone(),
                name: key.model.clone(),
                limits: policy.limits,
                ..Model::default()
            },
        )
        .with_context_counter(counter.capability())
        .with_inference_capability(InferenceCapability::local())
        .with_compaction(policy.settings.clone());
        let rig =
            Rig::builder().with_loop(definition).with_hustle(hustle(window)).with_hustle_limits(lanes());
        let bound = match rig.build() {
            Ok(rig) => rig.loops().first().cloned().ok_or(CaseError::Part("policy"))?,
            Err(error) => return Ok(Err(NoSession(error.to_string()))),
        };
        let journal = Arc::new(MemoryJournal::new());
        let (clock, ids) = (AtomicU64::new(1), AtomicU64::new(1));
        let ports = SessionPorts {
            journal: Arc::clone(&journal) as Arc<dyn Journal>,
            agent_loop: LoopPorts {
                counter,
                estimator,
                worker: Some(Arc::clone(&worker) as Arc<dyn HustleWorker>),
                fallback: None,
            },
            clock: Arc::new(move || Timestamp(clock.fetch_add(1, Ordering::Relaxed))),
            ids: Arc::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes()),
        };
        let frame = RequestFrame { tools, ..RequestFrame::default() };
        let settings = SessionSettings { frame: frame.clone(), ..SessionSettings::of(SESSION) };
        let session = match Session::open(&bound, settings, ports.clone()).await {
            Ok(session) => session,
            Err(error) => return Ok(Err(NoSession(error.to_string()))),
        };
        Ok(Ok(Self { session, worker, policy, journal, frame, stored: 0, key, bound, ports }))
    }

    /// The session is closed and opened again, as by another process.
    pub(super) async fn reload(&mut self) -> Result<(), CaseError> {
        self.session.shut_down().await;
        let settings = SessionSettings { frame: self.frame.clone(), ..SessionSettings::of(SESSION) };
        let opened = Session::open(&self.bound, settings, self.ports.clone()).await;
        self.session = opened.map_err(|_| CaseError::Part("session"))?;
        Ok(())
    }

    /// What the journal holds.
    pub(super) async fn restored(&self) -> Result<Restored, CaseError> {
        let restored = restore(&*self.journal, SESSION, self.policy.policy.trigger()).await;
        restored.map_err(|_| CaseError::Part("session"))
    }

    /// What stands in the journal, record by record.
    pub(super) async fn records(&self) -> Result<Vec<JournalRecord>, CaseError> {
        let unreadable = CaseError::Part("session");
        let (mut records, mut from) = (Vec::new(), Some(1));
        while let Some(start) = from {
            let page = self.journal.read(SESSION, start, PageLimit::default()).await;
            let page = page.map_err(|_| unreadable.clone())?;
            for stored in &page.records {
                let record = read_record(&*self.journal, SESSION, stored).await;
                records.push(record.map_err(|_| unreadable.clone())?);
            }
            from = page.next;
        }
        Ok(records)
    }

    /// A compaction is found in the journal that this process did not make: a summary, and the messages from one number
    /// on that it kept.
    pub(super) async fn store_compaction(&mut self, summary: &str, first_kept: u64) -> Result<(), CaseError> {
        let unusable = CaseError::Part("stored compaction");
        let Restored { state, messages, .. } = self.restored().await?;
        let leading = messages.iter().take_while(|message| matches!(message, Message::System { .. })).count();
        let mut kept: Vec<u64> = (0..leading as u64).collect();
        kept.extend(first_kept.max(leading as u64)..state.messages());
        let summary = in_our_grammar(summary);
        let at_kept = |number: &u64| messages.get(usize::try_from(*number).ok()?).cloned();
        let mut context: Vec<Message> = kept.iter().filter_map(at_kept).collect();
        context.insert(leading, Message::user(summary.clone()));
        let before = self.measured(state.basis(), &messages).await.map_err(|_| unusable.clone())?;
        let after = self.measured(state.basis(), &context).await.map_err(|_| unusable.clone())?;
        let fresh = || self.ports.ids.fresh();
        let (attempt, event) = (AttemptId::from_bytes(fresh()), EventId::from_bytes(fresh()));
        let post = state.tracker().next_basis(event).map_err(|_| unusable.clone())?;
        let start =
            AttemptStart { attempt, reason: AttemptReason::Manual, basis: state.basis(), waiters: [].into() };
        let committed = Committed {
            attempt,
            basis: state.basis(),
            post,
            summary_tokens: self.ports.agent_loop.estimator.estimate(&summary),
            summary,
            retained: MessageRange::of_numbers(kept).into(),
            leading: leading as u64,
            before,
            after,
            landing: Landing::Low,
            usage: None,
            cost_micro_usd: None,
            repairs: [].into(),
            degraded: None,
        };
        let at = self.ports.clock.now();
        let records = [
            JournalRecord { id: EventId::from_bytes(fresh()), at, body: RecordBody::Started(start) },
            JournalRecord { id: event, at, body: RecordBody::Committed(Box::new(committed)) },
        ];
        self.session.shut_down().await;
        let encoded = records.iter().map(encode_record).collect::<Result<Vec<_>, _>>();
        let lease = self.journal.open(SESSION).await.map_err(|_| unusable.clone())?;
        let written = self.journal.append(&lease, encoded.map_err(|_| unusable.clone())?).await;
        written.map_err(|_| unusable)?;
        self.stored += 1;
        self.reload().await
    }

    async fn measured(
        &self,
        basis: ContextBasis,
        messages: &[Message],
    ) -> Result<ContextMeasurement, CountError> {
        let request = Request {
            model: self.key.clone(),
            tools: Arc::clone(&self.frame.tools),
            messages: messages.into(),
            unseen_tokens: self.frame.unseen_tokens,
        };
        let count = self.ports.agent_loop.counter.count(&request).await?;
        let policy = &self.policy.policy;
        let (output, margin) = (policy.reserved_output(), policy.safety_margin());
        let limits = resolve_context_limits(&self.key, &self.policy.limits, output, margin);
        Ok(ContextMeasurement {
            basis,
            model: count.model,
            request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
            input_tokens: count.input_tokens,
            input_limit: limits.map_or(TokenCount(1), |limits| limits.input_limit),
            quality: count.quality,
        })
    }
}

/// A summary of another program says what it says in ours.
pub(super) fn in_our_grammar(summary: &str) -> SharedText {
    let text = SharedText::from(summary);
    if parse_summary_text(text.clone()).is_ok() {
        return text;
    }
    let sections = SummarySections {
        goal: vec![text],
        state: vec!["As the goal says.".into()],
        ..SummarySections::default()
    };
    sections.render().xml
}

/// The window of a model that summarizes is a limit of the bytes that are sent to it: four for a token.
fn hustle(window: Option<u64>) -> HustleSettings {
    let input = window.map_or(1 << 24, |tokens| tokens.saturating_mul(4));
    HustleSettings {
        name: "context.compact".into(),
        participation: Participation::Blocking,
        timeout: Duration::from_secs(3_600),
        limits: ByteLimits { input, output: 1 << 16 },
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
