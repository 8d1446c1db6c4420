//! What a session holds in memory: what its records add up to, and the messages of the context in force.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_loop::{
    AttemptId, CommandId, ContextBasis, EventId, Message, SessionId, SharedText, Timestamp, core_json_len,
};
use epitome_loopruntime::parse_summary_text;

use super::attempt::AttemptWork;
use super::binding::Binding;
use super::calibrating::Calibrating;
use super::error::SessionError;
use super::event::Feed;
use super::frame::Framed;
use super::open::SessionLimits;
use super::ports::{Clock, IdSource, SessionPorts};
use super::report::AttemptReport;
use crate::journal::{Journal, LiveContext, SessionOpened, SessionState, WriterLease};
use crate::{EarlierSummary, HustleController, recognize_earlier_summary};

/// What the handles of a session and its loop share.
pub(super) struct Shared {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) lease: WriterLease,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) limits: SessionLimits,
    /// Whether the journal failed, and whether for a lease that is stale.
    is_halted: AtomicBool,
    is_taken_over: AtomicBool,
    live: Mutex<Live>,
}

/// The part that changes.
pub(super) struct Live {
    /// Lean: what is not in force is read again when it is needed.
    pub(super) state: SessionState,
    /// The messages of the context in force, the summary included.
    pub(super) messages: Vec<Message>,
    /// What they take in core form.
    pub(super) bytes: u64,
    /// The context that `messages` are. A commit is in `state` a moment before it is here.
    pub(super) basis: ContextBasis,
    pub(super) binding: Arc<Binding>,
    pub(super) framed: Arc<Framed>,
    /// To be written down with whatever is written next.
    pub(super) opened: Option<SessionOpened>,
    /// What is to be appended, by the event that stands for it.
    pub(super) appends: HashMap<EventId, Arc<[Message]>>,
    /// What was asked for along with a compaction.
    pub(super) instructions: BTreeMap<CommandId, SharedText>,
    /// What surrounds the requests that wait for an answer.
    pub(super) frames: BTreeMap<CommandId, Arc<Framed>>,
    pub(super) attempt: Option<AttemptWork>,
    pub(super) newest_attempt: Option<AttemptReport>,
    /// Whether the host was given leave to send a request and has appended nothing since.
    pub(super) is_request_under_way: bool,
    /// The lanes; made when they are needed.
    pub(super) lanes: Option<HustleController>,
    /// What reports of providers taught about counts.
    pub(super) calibrating: Calibrating,
    pub(super) feed: Feed,
}

/// The context as it stands, to be worked on while the session goes on.
#[derive(Clone)]
pub(super) struct Snapshot {
    pub(super) messages: Arc<[Message]>,
    /// What they take in core form.
    pub(super) bytes: u64,
    pub(super) basis: ContextBasis,
    pub(super) binding: Arc<Binding>,
    pub(super) framed: Arc<Framed>,
}

impl Shared {
    pub(super) fn new(
        ports: SessionPorts,
        lease: WriterLease,
        runtime: tokio::runtime::Handle,
        limits: SessionLimits,
        live: Live,
    ) -> Self {
        let SessionPorts { journal, agent_loop: _, clock, ids } = ports;
        Self {
            journal,
            clock,
            ids,
            lease,
            runtime,
            limits,
            is_halted: AtomicBool::new(false),
            is_taken_over: AtomicBool::new(false),
            live: Mutex::new(live),
        }
    }

    /// The live part. Never held while anything is awaited.
    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        // Whoever panicked with it has left every field whole: each is changed in one step.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn halt(&self) {
        self.is_halted.store(true, Ordering::Release);
        // Nothing comes any more, and whoever listens is to know.
        self.live().feed.close();
    }

    /// Somebody else writes to the session now.
    pub(super) fn taken_over(&self) {
        self.is_taken_over.store(true, Ordering::Release);
    }

    /// Why nothing is done any more in a session whose journal failed.
    pub(super) fn halted(&self) -> SessionError {
        let is_taken_over = self.is_taken_over.load(Ordering::Acquire);
        if is_taken_over { SessionError::TakenOver } else { SessionError::Halted }
    }

    /// Why the loop hears nothing any more.
    pub(super) fn end(&self) -> SessionError {
        if self.is_halted.load(Ordering::Acquire) { self.halted() } else { SessionError::Ended }
    }

    pub(super) fn session(&self) -> SessionId {
        self.lease.session
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn event(&self) -> EventId {
        EventId::from_bytes(self.ids.fresh())
    }

    pub(super) fn command(&self) -> CommandId {
        CommandId::from_bytes(self.ids.fresh())
    }

    pub(super) fn attempt(&self) -> AttemptId {
        AttemptId::from_bytes(self.ids.fresh())
    }
}

impl Live {
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            messages: self.messages.iter().cloned().collect(),
            bytes: self.bytes,
            basis: self.basis,
            binding: Arc::clone(&self.binding),
            framed: Arc::clone(&self.framed),
        }
    }

    /// The complete request in this frame: what goes out around the conversation is among its messages, and not among
    /// its bytes. `None` when there is nothing to send.
    pub(super) fn request(&self, framed: &Arc<Framed>) -> Option<Snapshot> {
        let Framed { front, back, .. } = &**framed;
        let messages = front.iter().chain(&self.messages).chain(back.iter()).cloned().collect();
        (!self.messages.is_empty()).then(|| Snapshot {
            messages,
            bytes: self.bytes,
            basis: self.basis,
            binding: Arc::clone(&self.binding),
            framed: Arc::clone(framed),
        })
    }

    /// The context becomes another one.
    pub(super) fn put(&mut self, messages: Vec<Message>, basis: ContextBasis) {
        self.bytes = bytes_of(&messages);
        self.messages = messages;
        self.basis = basis;
        self.calibrating.context_changed();
    }

    /// Messages come behind the others.
    pub(super) fn add(&mut self, messages: &[Message], basis: ContextBasis) {
        self.bytes = self.bytes.saturating_add(bytes_of(messages));
        self.messages.extend_from_slice(messages);
        self.basis = basis;
    }

    /// What an earlier compaction left in the context: our own, or one that an imported conversation begins with.
    pub(super) fn earlier(&self) -> Option<EarlierSummary> {
        let Some(commit) = self.state.commit_in_force() else {
            return recognize_earlier_summary(&self.messages);
        };
        let made = commit.context.as_ref();
        let summary = made.and_then(|made| parse_summary_text(made.summary.clone()).ok());
        let sections = summary.map(|summary| summary.sections());
        Some(EarlierSummary { messages: 1, sections })
    }

    /// Gives back what is not needed while nothing happens. Lanes with a fault stay, to tell of it.
    pub(super) fn rest(&mut self) {
        let is_idle = self.attempt.is_none();
        if is_idle {
            self.calibrating.rest();
        }
        self.lanes.take_if(|lanes| is_idle && lanes.owned() == 0 && lanes.fault().is_none());
    }

    /// Drops what was kept for an attempt that is over.
    pub(super) fn forget(&mut self, attempt: AttemptId) {
        self.attempt.take_if(|work| work.attempt == attempt);
    }
}

pub(super) fn bytes_of(messages: &[Message]) -> u64 {
    messages.iter().map(core_json_len).fold(0, u64::saturating_add)
}

/// The number of each message of a context; the summary has none.
pub(super) fn numbers(context: &LiveContext) -> Vec<Option<u64>> {
    let LiveContext { leading, summary, rest } = context;
    let numbers = |ranges: &[crate::journal::MessageRange]| {
        ranges.iter().flat_map(|range| range.first..range.end).map(Some).collect::<Vec<_>>()
    };
    let mut all = numbers(leading);
    all.extend(summary.iter().map(|_| None));
    all.extend(numbers(rest));
    all
}
