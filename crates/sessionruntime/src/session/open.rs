//! Opening a session: a new one, or one that the journal knows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{ContextLimitUnknown, FingerprintError, SessionId};
use epitome_loopruntime::decision::{CoreSettings, DecisionCore, MAX_WAITERS};
use epitome_loopruntime::driver::{DriverSettings, drive};
use epitome_rig::BoundLoop;
use thiserror::Error;
use tokio::runtime::Handle;

use super::adapter::SessionAdapter;
use super::binding::Binding;
use super::calibrating::Calibrating;
use super::event::Feed;
use super::frame::{Framed, RequestFrame};
use super::handle::Session;
use super::live::{Live, Shared, bytes_of};
use super::ports::SessionPorts;
use crate::journal::{
    Journal, JournalError, JournalRecord, RecordBody, ReplayError, RestoreError, Restored, SessionOpened,
    WriterLease, encode_record, restore,
};

/// Which session is opened, and within which bounds it runs.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Its identity: of a session that the journal knows, or a new one.
    pub session: SessionId,
    /// What surrounds the conversation in a request, until [`Session::admit`] says otherwise.
    pub frame: RequestFrame,
    /// The bounds.
    pub limits: SessionLimits,
}

/// Within which bounds a session runs. None of them is about the conversation; what is, the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// So many changes may wait for a compaction to end. 1,024 unless said otherwise.
    pub most_held: usize,
    /// So many commands may be on their way to the loop; who sends more waits. 32 unless said otherwise.
    pub inbox: usize,
    /// How long the journal may take; then the session halts. 30 seconds unless said otherwise.
    pub record_timeout: Duration,
    /// How long an attempt may take in all; then it is rejected. Unless said otherwise, as long as the timeouts of the
    /// policy and the hustle allow, both tries of the hustle included.
    pub attempt_timeout: Option<Duration>,
    /// How long a compaction that was asked for waits for the request that is under way; then it begins beside it. One
    /// minute unless said otherwise.
    pub boundary_timeout: Duration,
    /// So many events are kept for a subscriber that is slow. 256 unless said otherwise.
    pub kept_events: usize,
}

impl SessionSettings {
    /// The session with this id, in an empty frame and within the usual bounds.
    #[must_use]
    pub fn of(session: SessionId) -> Self {
        Self { session, frame: RequestFrame::default(), limits: SessionLimits::default() }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            most_held: 1_024,
            inbox: 32,
            record_timeout: Duration::from_secs(30),
            attempt_timeout: None,
            boundary_timeout: Duration::from_secs(60),
            kept_events: 256,
        }
    }
}

/// A session cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The counter is not the one that the loop declares.
    #[error("the counter is not the one that the loop declares")]
    OtherCounter,
    /// The loop compacts, and there is nothing that works for its hustle.
    #[error("the loop compacts, and there is no worker for its hustle")]
    NoWorker,
    /// The model's limits are not known, so that no request could be measured against them.
    #[error("{0}")]
    Limit(ContextLimitUnknown),
    /// A request in this frame could not be identified.
    #[error("{0}")]
    Frame(FingerprintError),
    /// There is no tokio runtime here.
    #[error("there is no tokio runtime here")]
    NoRuntime,
    /// The runtime has no timer: build it with `enable_time`.
    #[error("the tokio runtime has no timer")]
    NoTimer,
    /// The journal failed.
    #[error("{0}")]
    Journal(#[from] JournalError),
    /// What the journal holds cannot be restored.
    #[error("{0}")]
    Restore(#[from] RestoreError),
}

impl Session {
    /// Opens a session: the one that the journal knows by this id, exactly as it was left, or a new one. Whoever had it
    /// open before can write no more.
    ///
    /// An attempt that a crash has cut off is closed as rejected; the context is what it was before it. The session runs
    /// as a task of the tokio runtime at hand, which needs its timer.
    ///
    /// # Errors
    /// [`OpenError`]; the conversation is as it was.
    pub async fn open(
        bound: &BoundLoop,
        settings: SessionSettings,
        ports: SessionPorts,
    ) -> Result<Self, OpenError> {
        let SessionSettings { session, frame, limits } = settings;
        let runtime = runtime()?;
        let binding = Arc::new(Binding::new(bound.clone(), ports.agent_loop.clone())?);
        let framed = Arc::new(Framed::new(frame).map_err(OpenError::Frame)?);
        // What cannot be restored is not taken away from whoever has it open.
        let mut restored = match restore(&*ports.journal, session, binding.trigger()).await {
            Err(RestoreError::Journal(JournalError::UnknownSession)) => Restored::new(binding.trigger()),
            restored => restored?,
        };
        let lease = ports.journal.open(session).await?;
        restored.catch_up(&*ports.journal, session).await?;

        let opened = binding.opened(&framed);
        let at = ports.clock.now();
        let mut id = || epitome_loop::EventId::from_bytes(ports.ids.fresh());
        let mut records = restored.state.closing_records(at, &mut id);
        // A line for each process would say nothing new.
        if restored.state.opened() != Some(&opened) {
            let is_another = restored.state.opened().is_some_and(|before| !is_same_loop(before, &opened));
            records.push(JournalRecord { id: id(), at, body: RecordBody::Opened(opened) });
            let latch = restored.state.latch().settings_changed();
            if is_another && restored.state.latch() != latch {
                records.push(JournalRecord { id: id(), at, body: RecordBody::Latched(latch) });
            }
        }
        write(&*ports.journal, &lease, records, &mut restored).await?;

        let state = restored.state.core_state();
        let core_settings = CoreSettings {
            trigger: binding.trigger(),
            most_held: limits.most_held,
            most_waiters: MAX_WAITERS,
        };
        let core = DecisionCore::restore(core_settings, state);
        let driver = DriverSettings {
            record_timeout: limits.record_timeout,
            attempt_timeout: binding.attempt_timeout(),
            inbox: limits.inbox,
        };
        let mut calibrating = Calibrating::default();
        let added_since = restored.state.added_since();
        let added = restored.messages.get(usize::try_from(added_since).unwrap_or(usize::MAX)..);
        calibrating.added(added_since, added.unwrap_or_default());
        let messages = restored.context_messages(&restored.state.context());
        let live = Live {
            bytes: bytes_of(&messages),
            messages,
            basis: restored.state.basis(),
            state: restored.state.lean(),
            binding,
            framed,
            opened: None,
            appends: HashMap::new(),
            instructions: BTreeMap::new(),
            frames: BTreeMap::new(),
            attempt: None,
            newest_attempt: None,
            is_request_under_way: false,
            lanes: None,
            calibrating,
            feed: Feed::default(),
        };
        let shared = Arc::new(Shared::new(ports, lease, runtime, limits, live));
        let (handle, task) = drive(core, Arc::new(SessionAdapter(Arc::clone(&shared))), driver);
        tracing::info!(target: "epitome::session", session = %session, "opened");
        Ok(Self::new(handle, shared, task, limits))
    }
}

/// Whether model, limits and policy are the same: what a latch has learned applies to them.
fn is_same_loop(before: &SessionOpened, now: &SessionOpened) -> bool {
    let SessionOpened { model, limits, policy_revision, tools: _ } = before;
    (model, limits, policy_revision) == (&now.model, &now.limits, &now.policy_revision)
}

/// The runtime at hand, if it can do what a session needs.
fn runtime() -> Result<Handle, OpenError> {
    let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
    // There is no way to ask a runtime whether it has a timer but to take one.
    let timer = std::panic::catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO)));
    timer.map(|()| runtime).map_err(|_| OpenError::NoTimer)
}

/// Writes what must stand in the journal before the loop goes on.
async fn write(
    journal: &dyn Journal,
    lease: &WriterLease,
    records: Vec<JournalRecord>,
    restored: &mut Restored,
) -> Result<(), OpenError> {
    if records.is_empty() {
        return Ok(());
    }
    let encoded = records.iter().map(encode_record).collect::<Result<Vec<_>, _>>();
    let unreadable = |fault| RestoreError::Record { sequence: 0, fault };
    let acknowledged = journal.append(lease, encoded.map_err(unreadable)?).await?;
    for (record, written) in records.iter().zip(acknowledged) {
        let state = restored.state.clone().apply(written.sequence, record);
        restored.state = state.map_err(|error: ReplayError| OpenError::Restore(error.into()))?;
    }
    Ok(())
}
