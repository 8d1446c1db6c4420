//! The work of one attempt: plan, summarize, rebuild, count.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_loop::{
    AttemptId, BasisPoints, ContextBasis, ContextMeasurement, EventId, Message, RejectionReason,
    RequestFingerprint, SharedText, Usage,
};
use epitome_loopruntime::decision::{Replacement, Waiter};

use super::calibrating;
use super::frame::Framed;
use super::live::{Live, Shared, Snapshot, numbers};
use super::report::CompactionReport;
use crate::calibration::CountScale;
use crate::journal::{Committed, StableName};
use crate::measuring::Measuring;
use crate::outcome::{Compaction, CountFailure, RefusalReason};
use crate::planning::{MadeSummary, Plan, Planning};
use crate::recording::{CommitTerms, committed_record};
use crate::summarizing::{NoSummary, ask_hustles};
use crate::{HustleAudit, HustleController, HustleWorker, RegisteredHustle, SummaryTask};

/// What is kept for an attempt while it runs.
pub(super) struct AttemptWork {
    pub(super) attempt: AttemptId,
    waiters: Vec<Waiter>,
    summarized: Option<Arc<Summarized>>,
    counted: Option<Arc<Counted>>,
    refusal: Option<AttemptRefused>,
}

/// An attempt comes to nothing.
#[derive(Clone, Debug)]
pub(super) struct AttemptRefused {
    pub(super) reason: RejectionReason,
    pub(super) detail: Option<StableName>,
    /// What providers reported for answers that came to nothing.
    pub(super) usage: Option<Usage>,
}

/// A summary that is proven, and what it was made of.
struct Summarized {
    context: Snapshot,
    numbers: Vec<Option<u64>>,
    measuring: Measuring,
    before: ContextMeasurement,
    plan: Plan,
    made: MadeSummary,
}

/// A compaction that may be committed.
pub(super) struct Counted {
    pub(super) rebuilt: Vec<Message>,
    event: EventId,
    post_fingerprint: RequestFingerprint,
    byte_occupancy: BasisPoints,
    compaction: Compaction,
    summarized: Arc<Summarized>,
}

impl AttemptWork {
    pub(super) fn new(attempt: AttemptId, waiters: Vec<Waiter>) -> Self {
        Self { attempt, waiters, summarized: None, counted: None, refusal: None }
    }

    pub(super) fn counted(&self) -> Option<&Arc<Counted>> {
        self.counted.as_ref()
    }

    /// The finer cause of its refusal, if it is refused for this reason.
    pub(super) fn detail(&self, reason: RejectionReason) -> Option<StableName> {
        self.refusal.as_ref().filter(|refusal| refusal.reason == reason)?.detail.clone()
    }

    /// What providers reported for it up to now.
    pub(super) fn spent(&self) -> Option<Usage> {
        let of_summary = self.summarized.as_ref().and_then(|summarized| summarized.made.usage);
        self.refusal.as_ref().and_then(|refusal| refusal.usage).or(of_summary)
    }
}

impl Counted {
    /// The record of the commit.
    pub(super) fn committed(&self, attempt: AttemptId) -> Committed {
        let Summarized { context, numbers, .. } = &*self.summarized;
        let terms = CommitTerms {
            attempt,
            event: self.event,
            post_fingerprint: self.post_fingerprint,
            messages: &context.messages,
            cost_micro_usd: None,
        };
        committed_record(&self.compaction, terms, |at| numbers.get(at).copied().flatten())
    }

    pub(super) fn report(&self, committed: &Committed) -> CompactionReport {
        let Compaction { before, landing, replaced, kept, summary_tokens, left_out, usage, .. } =
            &self.compaction;
        let Compaction { repairs, carried, degraded, .. } = &self.compaction;
        CompactionReport {
            attempt: committed.attempt,
            basis: committed.post,
            before: before.clone(),
            after: committed.after.clone(),
            landing: *landing,
            replaced: replaced.len() as u64,
            kept: kept.len() as u64,
            summary_tokens: *summary_tokens,
            left_out: *left_out,
            usage: *usage,
            repairs: repairs.clone(),
            carried: carried.clone(),
            degraded: degraded.clone(),
        }
    }
}

/// Makes a proven summary of what the attempt replaces.
pub(super) async fn summarize(
    shared: &Arc<Shared>,
    attempt: AttemptId,
    basis: ContextBasis,
) -> Result<(), RejectionReason> {
    let outcome = try_to_summarize(shared, attempt, basis).await.map(Arc::new);
    keep(shared, attempt, outcome, |work, summarized| work.summarized = Some(summarized))
}

/// Counts the complete request with the summary.
pub(super) async fn count(shared: &Arc<Shared>, attempt: AttemptId) -> Result<Replacement, RejectionReason> {
    let counted = try_to_count(shared, attempt).await.map(Arc::new);
    let replacement = counted.as_ref().ok().map(|counted| Replacement {
        before: counted.summarized.before.clone(),
        after: counted.compaction.after.clone(),
        event: counted.event,
        post_fingerprint: counted.post_fingerprint,
        byte_occupancy: counted.byte_occupancy,
    });
    keep(shared, attempt, counted, |work, counted| work.counted = Some(counted))?;
    replacement.ok_or(RejectionReason::Internal)
}

/// Keeps an outcome with its attempt, or why there is none. An attempt that is over meanwhile keeps nothing.
fn keep<T>(
    shared: &Shared,
    attempt: AttemptId,
    outcome: Result<T, AttemptRefused>,
    put: impl FnOnce(&mut AttemptWork, T),
) -> Result<(), RejectionReason> {
    let mut live = shared.live();
    let work = live.attempt.as_mut().filter(|work| work.attempt == attempt);
    match (outcome, work) {
        (Ok(outcome), Some(work)) => {
            put(work, outcome);
            Ok(())
        }
        (Ok(_), None) => Err(RejectionReason::Internal),
        (Err(refused), work) => {
            let reason = refused.reason;
            if let Some(work) = work {
                work.refusal = Some(refused);
            }
            Err(reason)
        }
    }
}

async fn try_to_summarize(
    shared: &Arc<Shared>,
    attempt: AttemptId,
    basis: ContextBasis,
) -> Result<Summarized, AttemptRefused> {
    let (context, earlier, numbers, instructions) = {
        let live = shared.live();
        let work = live.attempt.as_ref().filter(|work| work.attempt == attempt);
        let waiters = work.map(|work| work.waiters.as_slice()).unwrap_or_default();
        let context = Snapshot { framed: frame_of(&live, waiters), ..live.snapshot() };
        (context, live.earlier(), numbers(&live.state.context()), instructions(&live, waiters))
    };
    if context.basis != basis || numbers.len() != context.messages.len() {
        return Err(refused(RejectionReason::StaleBasis, None));
    }
    let binding = Arc::clone(&context.binding);
    let Some(policy) = binding.policy() else {
        return Err(refused(RejectionReason::Unavailable, Some("no_policy")));
    };
    let mut measuring = measuring_of(&context)?;
    // Every count of this attempt is made in one way: that of the measurement that led to it.
    let before = match measured_already(shared, &measuring) {
        Some((before, scale)) => {
            measuring.scale = scale;
            before
        }
        None => {
            measuring.scale = calibrating::scale(shared, &binding).await;
            measuring.measure(Arc::clone(&context.messages)).await.map_err(count_failed)?
        }
    };
    let planning = Planning {
        messages: &context.messages,
        earlier: earlier.as_ref(),
        // A session keeps nothing verbatim but what its policy says.
        pinned: &BTreeSet::new(),
        policy,
        estimator: &*binding.ports.estimator,
        measuring: &measuring,
    };
    let plan = planning.plan().await.map_err(AttemptRefused::from)?;
    let task = SummaryTask {
        attempt: (&plan.input).into(),
        input: plan.input.clone(),
        previous: plan.previous.clone(),
        instructions,
        max_bytes: plan.max_bytes,
        carry_constraints: policy.carry_constraints(),
        estimator: Arc::clone(&binding.ports.estimator),
    };
    // Held while the run goes on: its end must not come from a change of the loop.
    let lanes = lanes(shared, &context)?;
    let second = || AttemptId::from_bytes(shared.ids.fresh());
    let made = ask_hustles(&lanes, policy, task, attempt, second).await.map_err(AttemptRefused::from)?;
    Ok(Summarized { numbers, measuring, before, plan, made, context })
}

async fn try_to_count(shared: &Arc<Shared>, attempt: AttemptId) -> Result<Counted, AttemptRefused> {
    let (summarized, now) = {
        let live = shared.live();
        let work = live.attempt.as_ref().filter(|work| work.attempt == attempt);
        let waiters = work.map(|work| work.waiters.as_slice()).unwrap_or_default();
        let now = Snapshot { framed: frame_of(&live, waiters), ..live.snapshot() };
        (work.and_then(|work| work.summarized.clone()), now)
    };
    let Some(summarized) = summarized else { return Err(refused(RejectionReason::Internal, None)) };
    let Summarized { context, measuring, before, plan, made, numbers } = &*summarized;
    // Model, context and everything that goes around it must be what they were when the summary was made.
    let is_same = |now: &Measuring| {
        (now.basis, &now.model, now.request_fingerprint)
            == (measuring.basis, &measuring.model, measuring.request_fingerprint)
    };
    if !is_same(&measuring_of(&now)?) {
        return Err(refused(RejectionReason::StaleBasis, None));
    }
    let Some(policy) = context.binding.policy() else {
        return Err(refused(RejectionReason::Unavailable, Some("no_policy")));
    };
    let rebuilt = plan.rebuilt(&context.messages, &made.summary);
    let planning = Planning {
        messages: &context.messages,
        earlier: None,
        pinned: &BTreeSet::new(),
        policy,
        estimator: &*context.binding.ports.estimator,
        measuring,
    };
    let weighed = planning.weigh(before, rebuilt.clone()).await.map_err(AttemptRefused::from)?;
    // An earlier summary has no number, and the plan never keeps it.
    if plan.kept.iter().any(|&at| numbers.get(at).copied().flatten().is_none()) {
        return Err(refused(RejectionReason::Internal, None));
    }
    let event = shared.event();
    let post = Snapshot { basis: CommitTerms::post(context.basis, event), ..context.clone() };
    Ok(Counted {
        event,
        post_fingerprint: measuring_of(&post)?.request_fingerprint,
        byte_occupancy: weighed.byte_occupancy,
        compaction: plan.compaction(made, before, weighed),
        rebuilt,
        summarized: Arc::clone(&summarized),
    })
}

/// What was asked for along with the compaction, in the order of the commands.
fn instructions(live: &Live, waiters: &[Waiter]) -> Option<SharedText> {
    let texts: Vec<&SharedText> =
        waiters.iter().filter_map(|waiter| live.instructions.get(&waiter.command)).collect();
    match *texts.as_slice() {
        [] => None,
        [text] => Some(text.clone()),
        _ => Some(texts.iter().map(|text| text.as_str()).collect::<Vec<_>>().join("\n\n").into()),
    }
}

/// What surrounds the request that the attempt is for: that of whoever waits for leave to send one, else the newest.
fn frame_of(live: &Live, waiters: &[Waiter]) -> Arc<Framed> {
    let asked = waiters.iter().find_map(|waiter| live.frames.get(&waiter.command));
    Arc::clone(asked.unwrap_or(&live.framed))
}

fn measuring_of(context: &Snapshot) -> Result<Measuring, AttemptRefused> {
    match context.binding.measuring(&context.framed, context.basis) {
        Ok(Some(measuring)) => Ok(measuring),
        Ok(None) => Err(refused(RejectionReason::Unavailable, Some("no_policy"))),
        Err(_) => Err(refused(RejectionReason::ContextCountFailed, Some("no_fingerprint"))),
    }
}

/// The newest measurement, if it is of this very request, and how it was made.
fn measured_already(
    shared: &Shared,
    measuring: &Measuring,
) -> Option<(ContextMeasurement, Option<CountScale>)> {
    let live = shared.live();
    let scale = live.calibrating.scale_measured(measuring)?;
    let measured = live.state.tracker().measurement()?;
    let is_same =
        measured.basis == measuring.basis && measured.request_fingerprint == measuring.request_fingerprint;
    is_same.then(|| (measured.clone(), scale))
}

/// The lanes of the session, made when they are first needed.
fn lanes(shared: &Arc<Shared>, context: &Snapshot) -> Result<HustleController, AttemptRefused> {
    let mut live = shared.live();
    if let Some(lanes) = &live.lanes {
        return Ok(lanes.clone());
    }
    let unavailable = || refused(RejectionReason::Unavailable, Some("no_worker"));
    let binding = &context.binding;
    let compaction = binding.bound.compaction().ok_or_else(unavailable)?;
    let registered = |definition, worker: &Option<Arc<dyn HustleWorker>>| {
        let worker = worker.clone().ok_or_else(unavailable)?;
        Ok::<_, AttemptRefused>(RegisteredHustle { definition: Arc::clone(definition), worker })
    };
    let first = registered(compaction.hustle, &binding.ports.worker)?;
    let fallback = compaction.fallback.map(|definition| registered(definition, &binding.ports.fallback));
    let hustles = std::iter::once(first).chain(fallback.transpose()?);
    let audit: Arc<dyn HustleAudit> = Arc::new(super::adapter::Audit(Arc::downgrade(shared)));
    let lanes = HustleController::new(shared.runtime.clone(), *compaction.limits, hustles, audit);
    let lanes = lanes.map_err(|_| refused(RejectionReason::Internal, None))?;
    live.lanes = Some(lanes.clone());
    Ok(lanes)
}

fn refused(reason: RejectionReason, detail: Option<&'static str>) -> AttemptRefused {
    AttemptRefused { reason, detail: detail.and_then(|name| StableName::new(name).ok()), usage: None }
}

fn count_failed(failure: CountFailure) -> AttemptRefused {
    RefusalReason::ContextCountFailed(failure).into()
}

impl From<RefusalReason> for AttemptRefused {
    fn from(reason: RefusalReason) -> Self {
        refused(reason.rejection(), reason.detail())
    }
}

impl From<NoSummary> for AttemptRefused {
    fn from(NoSummary { refusal, spent }: NoSummary) -> Self {
        Self { usage: spent, ..refused(refusal.rejection(), Some(refusal.detail())) }
    }
}
