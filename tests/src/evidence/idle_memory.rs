//! What a loop takes while it has nothing to do, without the conversation that its host keeps.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    AttemptId, CommandId, ContextBasis, ContextMeasurement, ContextRevision, CountQuality, EventId, ModelKey,
    RejectionReason, RequestFingerprint, Timestamp, TokenCount,
};
use epitome_loopruntime::decision::{
    Change, ChangeKind, CoreSettings, DecisionCore, Record, Replacement, Reply, Waiter,
};
use epitome_loopruntime::driver::{DriverSettings, LoopAdapter, LoopHandle, RecordFailed, drive};

use crate::driven::{LIMIT, TRIGGER};

/// So many requests of a loop fill what it keeps of its decisions.
const REQUESTS: u8 = 40;

/// What the resident memory grows by for each loop, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleMemory {
    /// Before anything happened in it.
    pub(super) fresh: u64,
    /// After a message and as many requests as fill the trace of decisions.
    pub(super) lived: u64,
}

/// Surroundings in which nothing is kept, so that only the loop is measured.
struct Quiet;

#[async_trait]
impl LoopAdapter for Quiet {
    fn now(&self) -> Timestamp {
        Timestamp(1)
    }

    async fn record(&self, _: Vec<Record>) -> Result<(), RecordFailed> {
        Ok(())
    }

    async fn summarize(&self, _: AttemptId, _: ContextBasis) -> Result<(), RejectionReason> {
        Err(RejectionReason::Unavailable)
    }

    async fn count(&self, _: AttemptId) -> Result<Replacement, RejectionReason> {
        Err(RejectionReason::Unavailable)
    }

    fn apply(&self, _: AttemptId, _: ContextBasis) {}

    fn forget(&self, _: AttemptId) {}
}

/// Measures so many loops at once; `None` where that cannot be told, or when a loop did not do as it should.
pub(super) async fn measure(loops: u64) -> Option<IdleMemory> {
    let adapter: Arc<dyn LoopAdapter> = Arc::new(Quiet);
    let settings = DriverSettings {
        record_timeout: Duration::from_secs(60),
        attempt_timeout: Duration::from_secs(60),
        inbox: 64,
    };
    let core = CoreSettings { trigger: TRIGGER, most_held: 64, most_waiters: 0 };
    let mut running = Vec::with_capacity(usize::try_from(loops).ok()?);
    let before = resident()?;
    for _ in 0..loops {
        running.push(drive(DecisionCore::new(core), Arc::clone(&adapter), settings));
    }
    for (handle, _) in &running {
        handle.decision_trace().await.ok()?;
    }
    let fresh = resident()?.saturating_sub(before) / loops;
    for (handle, _) in &running {
        live(handle).await?;
    }
    let lived = resident()?.saturating_sub(before) / loops;
    for (handle, task) in running {
        drop(handle);
        task.await.ok()?;
    }
    Some(IdleMemory { fresh, lived })
}

/// A message, and requests that go out as they are.
async fn live(handle: &LoopHandle) -> Option<()> {
    let event = EventId::from_bytes([1; 16]);
    handle.change(Change { event, kind: ChangeKind::Append }).await.ok()?.ok()?;
    for request in 1..=REQUESTS {
        let waiter = Waiter { created_at: Timestamp(1), command: CommandId::from_bytes([request; 16]) };
        let measurement = ContextMeasurement {
            basis: ContextBasis { revision: ContextRevision(1), through_event_id: event },
            model: ModelKey::new("a provider", "a model of it"),
            request_fingerprint: RequestFingerprint::from_bytes([request; 32]),
            input_tokens: TokenCount(LIMIT / 2 + u64::from(request)),
            input_limit: TokenCount(LIMIT),
            quality: CountQuality::ExactLocal,
        };
        let attempt = AttemptId::from_bytes([request; 16]);
        let reply = handle.admit(waiter, attempt, measurement, epitome_loop::BasisPoints(0)).await.ok()?;
        if reply != Reply::Send {
            return None;
        }
    }
    (handle.decision_trace().await.ok()?.len() >= 32).then_some(())
}

/// Resident memory of this process in bytes, by the second figure of `/proc/self/statm`.
pub(super) fn resident() -> Option<u64> {
    const PAGE: u64 = 4_096;
    let figures = std::fs::read_to_string("/proc/self/statm").ok()?;
    figures.split(' ').nth(1)?.parse::<u64>().ok().map(|pages| pages * PAGE)
}
