//! The hustles of one session: two lanes, and the ownership of every run in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_loop::{AttemptId, HustleDefinition, HustleLimits, HustleName, Participation};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::admission::prepare;
use super::at_large::AtLarge;
use super::contained::{AbortOnDrop, contained_call, forget_panic};
use super::lane::{Entry, Lane, Ticket};
use super::run::{OwnedRun, supervise};
use super::{
    AdmissionError, HustleAudit, HustleFaultChange, HustleRequest, HustleRun, HustleWorker, WorkerTraits,
};

/// A hustle with what does its work.
#[derive(Clone)]
pub struct RegisteredHustle {
    /// The definition.
    pub definition: Arc<HustleDefinition>,
    /// What works for it.
    pub worker: Arc<dyn HustleWorker>,
}

/// A controller cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HustleSetupError {
    /// Two hustles have one name; the number is the place of the second.
    #[error("hustle {at} has the name of an earlier one")]
    DuplicateName {
        /// The place of the second one, from 0.
        at: usize,
    },
}

/// Why a controller admits nothing although nobody closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum HustleFault {
    /// A worker was told to stop and did not, within the drain time of the lanes. It is still at work, so nothing that
    /// it could disturb is started until it has come back.
    #[error("a worker did not stop within the drain time")]
    WorkerIgnoredTheEnd,
}

/// Runs the hustles of one session.
///
/// A clone is another handle. When the last one is dropped, the controller closes as with
/// [`close`](Self::close). Runs are tasks of the runtime that the controller was built with; that runtime needs
/// its timer, and where programs are started its input and output as well. If the runtime itself is shut down
/// in the middle of a run, nobody is left to finalize it.
#[derive(Clone)]
pub struct HustleController {
    shared: Arc<Shared>,
    _close: Arc<CloseWithTheLast>,
}

pub(super) struct Shared {
    pub(super) limits: HustleLimits,
    pub(super) audit: Arc<dyn HustleAudit>,
    hustles: BTreeMap<HustleName, Hustle>,
    runtime: Handle,
    state: Mutex<State>,
    /// How many runs are owned.
    owned: watch::Sender<usize>,
}

struct Hustle {
    registered: RegisteredHustle,
    traits: WorkerTraits,
}

struct State {
    is_closed: bool,
    at_large: AtLarge,
    next_ticket: Ticket,
    blocking: Lane<oneshot::Sender<()>>,
    background: Lane<oneshot::Sender<()>>,
    /// Every owned run, and how to end it.
    ends: BTreeMap<Ticket, watch::Sender<RunEnd>>,
}

/// Whether somebody wants a run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// Nobody does.
    None,
    /// The controller is poisoned: what waits is not started.
    NotStarted,
    /// It is canceled, wherever it is.
    Canceled,
}

impl HustleController {
    /// A controller for these hustles.
    ///
    /// # Errors
    /// [`HustleSetupError`] when two hustles have one name.
    pub fn new(
        runtime: Handle,
        limits: HustleLimits,
        hustles: impl IntoIterator<Item = RegisteredHustle>,
        audit: Arc<dyn HustleAudit>,
    ) -> Result<Self, HustleSetupError> {
        let mut named = BTreeMap::new();
        for (at, registered) in hustles.into_iter().enumerate() {
            let name = registered.definition.name().clone();
            let traits = registered.worker.traits();
            if named.insert(name, Hustle { registered, traits }).is_some() {
                return Err(HustleSetupError::DuplicateName { at });
            }
        }
        let state = State {
            is_closed: false,
            at_large: AtLarge::default(),
            next_ticket: 0,
            blocking: Lane::new(limits.lane(Participation::Blocking)),
            background: Lane::new(limits.lane(Participation::Background)),
            ends: BTreeMap::new(),
        };
        let shared = Arc::new(Shared {
            limits,
            audit,
            hustles: named,
            runtime,
            state: Mutex::new(state),
            owned: watch::Sender::new(0),
        });
        Ok(Self { _close: Arc::new(CloseWithTheLast(shared.clone())), shared })
    }

    /// Asks for a run. On return it is owned: whatever happens, its finalizer is called once.
    ///
    /// A request for a compaction is brought into its worker's form here, in time linear in its size.
    ///
    /// # Errors
    /// [`AdmissionError`]; nothing was owned then, and the finalizer is dropped without a call.
    pub fn submit(&self, request: HustleRequest) -> Result<HustleRun, AdmissionError> {
        let HustleRequest { run, hustle, input, validator, finalizer } = request;
        self.shared.lock().admits_at_all()?;
        let found = self.shared.hustles.get(&hustle).ok_or(AdmissionError::UnknownDefinition)?;
        let RegisteredHustle { definition, worker } = found.registered.clone();
        let participation = definition.participation();
        // Full lanes are refused before the work of preparing an input, and looked at again when that is done.
        if !self.shared.lock().lane(participation).has_room() {
            return Err(AdmissionError::Full);
        }
        let input = prepare(&definition, found.traits.input, input)?;

        let (start, turn) = oneshot::channel();
        let (end, wanted_end) = watch::channel(RunEnd::None);
        let (report, outcome) = oneshot::channel();
        let ticket = {
            let mut state = self.shared.lock();
            state.admits_at_all()?;
            let ticket = state.next_ticket;
            match state.lane(participation).enter(ticket, start) {
                Entry::Full => return Err(AdmissionError::Full),
                Entry::Waits => {}
                // The receiver is a few lines above.
                Entry::Runs(start) => drop(start.send(())),
            }
            state.next_ticket += 1;
            state.ends.insert(ticket, end.clone());
            // Under the lock: whoever closes after this waits for this run too.
            self.shared.owned.send_modify(|owned| *owned += 1);
            ticket
        };
        let handle = HustleRun::new(run, hustle, participation, outcome, end);
        let owned = OwnedRun {
            place: Place { shared: self.shared.clone(), participation, ticket },
            run,
            definition,
            worker,
            stop: found.traits.stop,
            input,
            validator,
            wanted_end,
        };
        self.shared.runtime.spawn(supervise(owned, turn, finalizer, report));
        Ok(handle)
    }

    /// Why nothing is admitted, if a worker is to blame for it. It lasts as long as the worker is at work; for good, if
    /// the controller is closed meanwhile.
    #[must_use]
    pub fn fault(&self) -> Option<HustleFault> {
        self.shared.lock().at_large.fault()
    }

    /// The newest fault, also when it is over.
    #[must_use]
    pub fn last_fault(&self) -> Option<HustleFault> {
        self.shared.lock().at_large.last_fault()
    }

    /// How many runs are owned: admitted and not yet finalized.
    #[must_use]
    pub fn owned(&self) -> usize {
        *self.shared.owned.borrow()
    }

    /// Ends the controller: admits nothing more and cancels every run, at once; the future waits until each is
    /// finalized, which takes no longer than the timeouts of the lanes allow. Dropping it drops the waiting alone.
    pub fn close(&self) -> impl Future<Output = ()> + Send + use<> {
        self.shared.begin_close();
        let shared = self.shared.clone();
        async move {
            let mut owned = shared.owned.subscribe();
            // The sender is in `shared`, so there is always an answer.
            let _ = owned.wait_for(|owned| *owned == 0).await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can be left half done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin_close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.end_all(RunEnd::Canceled);
        state.at_large.abort_all();
    }

    /// A worker is out of control: nothing new is admitted and nothing that waits is started until it has ended.
    pub(super) fn poison<T: Send + 'static>(
        self: &Arc<Self>,
        run: AttemptId,
        fault: HustleFault,
        worker: AbortOnDrop<T>,
    ) {
        let number = {
            let mut state = self.lock();
            let number = state.at_large.enter(fault, worker.0.abort_handle());
            state.end_all(RunEnd::NotStarted);
            if state.is_closed {
                state.at_large.abort_all();
            }
            number
        };
        self.tell(HustleFaultChange { run, fault, is_so: true });
        let shared = Arc::downgrade(self);
        self.runtime.spawn(async move {
            let mut worker = worker;
            // Nobody waits for what it comes to.
            if let Err(error) = (&mut worker.0).await {
                forget_panic(error);
            }
            if let Some(shared) = shared.upgrade() {
                shared.is_back(number, HustleFaultChange { run, fault, is_so: false });
            }
        });
    }

    /// A worker has ended after all. One that the closing let go may have left something at work, and nothing is
    /// admitted then anyway.
    fn is_back(&self, number: u64, change: HustleFaultChange) {
        {
            let mut state = self.lock();
            if state.is_closed {
                return;
            }
            state.at_large.leave(number);
        }
        self.tell(change);
    }

    fn tell(&self, change: HustleFaultChange) {
        // What the host does with it must not end the lanes.
        let _panicked = contained_call(|| self.audit.fault_changed(change));
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.lock().at_large.fault().is_some()
    }
}

impl State {
    fn admits_at_all(&self) -> Result<(), AdmissionError> {
        match (self.at_large.fault(), self.is_closed) {
            (Some(_), _) => Err(AdmissionError::Poisoned),
            (None, true) => Err(AdmissionError::Closed),
            (None, false) => Ok(()),
        }
    }

    fn lane(&mut self, participation: Participation) -> &mut Lane<oneshot::Sender<()>> {
        match participation {
            Participation::Blocking => &mut self.blocking,
            Participation::Background => &mut self.background,
        }
    }

    fn end_all(&self, end: RunEnd) {
        for wanted in self.ends.values() {
            want_end(wanted, end);
        }
    }
}

/// Wants an end. A cancellation is never taken back.
pub(super) fn want_end(wanted: &watch::Sender<RunEnd>, end: RunEnd) {
    wanted.send_if_modified(|wanted| {
        let changes = *wanted != end && *wanted != RunEnd::Canceled;
        if changes {
            *wanted = end;
        }
        changes
    });
}

/// The place of a run in its lane. Dropping it is the end of the ownership, and lets the next one start.
pub(super) struct Place {
    pub(super) shared: Arc<Shared>,
    participation: Participation,
    ticket: Ticket,
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.ends.remove(&self.ticket);
            for start in state.lane(self.participation).leave(self.ticket) {
                // A run that is giving up just now leaves its place as well.
                let _ = start.send(());
            }
        }
        self.shared.owned.send_modify(|owned| *owned = owned.saturating_sub(1));
    }
}

/// Closes the controller when nobody can reach it any more.
struct CloseWithTheLast(Arc<Shared>);

impl Drop for CloseWithTheLast {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}
