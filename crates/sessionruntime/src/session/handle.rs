//! The way to a session that runs.

use std::sync::Arc;

use epitome_loop::{ContextBasis, Message, SessionId};
use epitome_loopruntime::decision::{Boundary, Decision, DecisionCore, Refused};
use epitome_loopruntime::driver::{DriverClosed, LoopHandle};
use epitome_rig::BoundLoop;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::binding::Binding;
use super::error::SessionError;
use super::live::Shared;
use super::open::{OpenError, SessionLimits};
use super::ports::LoopPorts;
use super::subscription::Subscription;
use crate::HustleFault;
use crate::journal::SessionState;

/// Reaches a session that runs. Cheap to clone; the session shuts down when the last one is dropped.
///
/// Every method may be dropped while it waits: what was asked for happens all the same, or does not, and the session
/// goes on.
#[derive(Clone)]
pub struct Session {
    pub(super) agent_loop: LoopHandle,
    pub(super) shared: Arc<Shared>,
    task: Arc<Mutex<Option<JoinHandle<DecisionCore>>>>,
    pub(super) limits: SessionLimits,
}

impl Session {
    pub(super) fn new(
        agent_loop: LoopHandle,
        shared: Arc<Shared>,
        task: JoinHandle<DecisionCore>,
        limits: SessionLimits,
    ) -> Self {
        Self { agent_loop, shared, task: Arc::new(Mutex::new(Some(task))), limits }
    }

    /// Its identity.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.shared.session()
    }

    /// The messages of the context in force: the summary, where there is one, and what stands beside it.
    #[must_use]
    pub fn messages(&self) -> Arc<[Message]> {
        self.shared.live().snapshot().messages
    }

    /// The context in force.
    #[must_use]
    pub fn basis(&self) -> ContextBasis {
        self.shared.live().basis
    }

    /// What its records add up to: the same as [`restore`](crate::journal::restore) gives.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.shared.live().state.clone()
    }

    /// Interrupts the compaction that waits or runs. The context stays what it is; a commit that is being written is
    /// not stopped any more.
    ///
    /// # Errors
    /// [`SessionError::Ended`].
    pub fn interrupt(&self) -> Result<(), SessionError> {
        self.shared.live().is_request_under_way = false;
        self.agent_loop.interrupt().map_err(|DriverClosed| self.shared.end())
    }

    /// The agent is between two steps or turns. [`Session::admit`] and [`Session::append`] say so as well; this is for
    /// hosts whose agent stops without either.
    ///
    /// # Errors
    /// [`SessionError::Ended`].
    pub async fn boundary(&self, boundary: Boundary) -> Result<(), SessionError> {
        self.shared.live().is_request_under_way = false;
        self.agent_loop.boundary(boundary).await.map_err(|DriverClosed| self.shared.end())
    }

    /// The loop is another one from now on: another model, other limits, another policy. A compaction that is under way
    /// is rejected as stale.
    ///
    /// # Errors
    /// [`OpenError`] when a session could not be opened so; the loop is what it was. Nothing happens to a session that
    /// has ended.
    pub fn rebind(&self, bound: &BoundLoop, ports: LoopPorts) -> Result<(), OpenError> {
        let binding = Arc::new(Binding::new(bound.clone(), ports)?);
        let trigger = binding.trigger();
        {
            let mut live = self.shared.live();
            live.opened = Some(binding.opened(&live.framed));
            if live.binding.model != binding.model {
                live.calibrating.void_reports();
            }
            live.binding = binding;
            // Runs of the lanes before end with them.
            live.lanes = None;
        }
        // Whoever has ended has no settings.
        let _ended = self.agent_loop.settings_changed(trigger);
        Ok(())
    }

    /// How the newest requests were decided about, oldest first, with the numbers and the rule.
    ///
    /// # Errors
    /// [`SessionError::Ended`].
    pub async fn decision_trace(&self) -> Result<Vec<Decision>, SessionError> {
        self.agent_loop.decision_trace().await.map_err(|DriverClosed| self.shared.end())
    }

    /// Why no summary can be made although the session goes on, if a worker is to blame: for as long as it is at work.
    #[must_use]
    pub fn fault(&self) -> Option<HustleFault> {
        self.shared.live().lanes.as_ref()?.fault()
    }

    /// Tells what happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        let mut live = self.shared.live();
        let seen = live.state.last();
        let receiver = live.feed.listen(self.limits.kept_events);
        Subscription::new(receiver, Arc::clone(&self.shared.journal), self.id(), seen)
    }

    /// Ends the session: what runs is rejected or committed and written down, and everybody who waits is answered.
    /// Returns when nothing of it runs any more. Sessions that have ended are ended.
    pub async fn shut_down(&self) {
        // Its end may have come already.
        let _ended = self.agent_loop.shut_down();
        {
            // Whoever else ends it waits here; dropped, this leaves the task to the next one.
            let mut task = self.task.lock().await;
            if let Some(running) = task.as_mut() {
                // A loop does not panic; if it did, it has ended.
                let _ended = running.await;
            }
            *task = None;
        }
        let lanes = {
            let mut live = self.shared.live();
            live.feed.close();
            live.lanes.take()
        };
        if let Some(lanes) = lanes {
            lanes.close().await;
        }
    }
}

impl Shared {
    pub(super) fn refused(&self, why: Refused) -> SessionError {
        match why {
            Refused::HeldFull => SessionError::HeldFull,
            Refused::ShuttingDown => SessionError::Ended,
            Refused::Halted => self.halted(),
            Refused::NoSuchCommit => SessionError::NoSuchCompaction,
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id()).finish_non_exhaustive()
    }
}
