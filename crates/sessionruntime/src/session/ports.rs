//! What a session needs from outside.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use epitome_loop::{ContextCounter, TextEstimator, Timestamp};
use uuid::Uuid;

use crate::HustleWorker;
use crate::journal::Journal;

/// What a session needs from outside.
#[derive(Clone)]
pub struct SessionPorts {
    /// Keeps what must not be lost.
    pub journal: Arc<dyn Journal>,
    /// What belongs to the loop.
    pub agent_loop: LoopPorts,
    /// Tells the time: [`SystemClock`], or a function.
    pub clock: Arc<dyn Clock>,
    /// Gives ids: [`FreshIds`], or a function.
    pub ids: Arc<dyn IdSource>,
}

/// What belongs to a loop, as its definition declares it.
#[derive(Clone)]
pub struct LoopPorts {
    /// Counts whole requests. Its capability must be the one that the loop declares.
    pub counter: Arc<dyn ContextCounter>,
    /// Sizes text while a summary is made.
    pub estimator: Arc<dyn TextEstimator>,
    /// Works for the hustle that compacts. Needed exactly when the loop compacts.
    pub worker: Option<Arc<dyn HustleWorker>>,
    /// Works for the fallback of the policy. Needed exactly when the policy names one.
    pub fallback: Option<Arc<dyn HustleWorker>>,
}

impl SessionPorts {
    /// These, with the system's clock and fresh ids.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>, agent_loop: LoopPorts) -> Self {
        Self { journal, agent_loop, clock: Arc::new(SystemClock), ids: Arc::new(FreshIds) }
    }
}

/// Tells the time.
pub trait Clock: Send + Sync {
    /// What time it is. Should it go back, waits that were measured by it begin anew.
    fn now(&self) -> Timestamp;
}

impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Gives 16 bytes that nobody has been given before.
pub trait IdSource: Send + Sync {
    /// The next id; never all zeros.
    fn fresh(&self) -> [u8; 16];
}

impl<F: Fn() -> [u8; 16] + Send + Sync> IdSource for F {
    fn fresh(&self) -> [u8; 16] {
        self()
    }
}

/// UUIDs of version 7: random, and in the order of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct FreshIds;

impl IdSource for FreshIds {
    fn fresh(&self) -> [u8; 16] {
        Uuid::now_v7().into_bytes()
    }
}
