//! One whole compaction: measure, decide, cut, summarize, prove, and count what would be sent instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_loop::{
    AttemptId, CompactionInput, ContextBasis, ContextCounter, ContextLimits, ContextMeasurement,
    InvalidSummary, Message, ModelKey, PressureLevel, RawJson, RequestFingerprint, ResolvedLimits,
    SharedText, Summarizer, SummarizerError, SummaryDraft, SummaryRequest, TextEstimator, TokenCount,
    Trigger, Usage, ValidPolicy, resolve_context_limits,
};
use epitome_loopruntime::{ConversationSummary, pressure_level};

use crate::earlier_summary::EarlierSummary;
use crate::hustles::{HustleController, SummaryTask};
use crate::journal::StableName;
use crate::measuring::Measuring;
use crate::outcome::{Compaction, Outcome, Refusal, RefusalReason};
use crate::planning::{MadeSummary, Plan, Planning};
use crate::result::{ResultTerms, RunOutput, RunResult, validate_result};
use crate::session::{FreshIds, IdSource as _};
use crate::summarizing::{NoSummary, ask_hustles};

/// A conversation as it stands before the next model call.
#[derive(Clone, Debug)]
pub struct SessionContext {
    /// The model of the next call.
    pub model: ModelKey,
    /// What that model can hold.
    pub limits: ContextLimits,
    /// Tool definitions that go with the call.
    pub tools: Arc<[RawJson]>,
    /// The messages that would be sent, leading system ones included.
    pub messages: Arc<[Message]>,
    /// Tokens of parts that would be sent but are not known here.
    pub unseen_tokens: TokenCount,
    /// What an earlier compaction left at the head, if there was one.
    pub earlier: Option<EarlierSummary>,
    /// Which context this is.
    pub basis: ContextBasis,
    /// Which request this is.
    pub request_fingerprint: RequestFingerprint,
    /// Who asks for the compaction.
    pub demand: Demand,
    /// What the summary should pay attention to.
    pub instructions: Option<SharedText>,
    /// Indices of messages that stay verbatim, in their place between the summary and the tail, together with what
    /// they need to be legal. They count against the limit.
    pub pinned: BTreeSet<usize>,
}

/// Who asks for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// The threshold of the policy decides.
    Threshold,
    /// Somebody asked; thresholds are not looked at.
    Manual,
}

/// What a compaction needs from outside.
#[derive(Clone)]
pub struct Ports {
    /// Counts whole requests and has the last word on every size.
    pub counter: Arc<dyn ContextCounter>,
    /// Sizes text for the summarizer while it works.
    pub estimator: Arc<dyn TextEstimator>,
    /// Makes the summary.
    pub summarizer: Arc<dyn Summarizer>,
}

/// What a compaction by hustles needs from outside.
#[derive(Clone)]
pub struct HustlePorts {
    /// Counts whole requests and has the last word on every size.
    pub counter: Arc<dyn ContextCounter>,
    /// Sizes text for the summarizer while it works.
    pub estimator: Arc<dyn TextEstimator>,
    /// The hustles that the policy names: the first choice, and the fallback where there is one.
    pub lanes: HustleController,
}

/// Who makes a summary.
enum Source<'a> {
    Summarizer(&'a dyn Summarizer),
    Hustles(&'a HustleController),
}

/// Compacts a session once, if its policy or its user says so.
///
/// The whole request is measured; the newest part that the policy keeps is set aside; the rest is summarized;
/// the summary is rendered and read back under the strict grammar; the complete new request is built and
/// counted by the same counter. Only a result that fits, shrank, and is legal for a provider is returned as
/// compacted. Nothing is changed here: the caller puts the result in place, or keeps what it has.
///
/// Dropping the future at any point leaves no trace. Deadlines are the caller's.
///
/// The summarizer of the ports is asked, and asked once: what hustle the policy names is not looked at. See
/// [`compact_by_hustles`] for a second try, a timeout and a fallback.
pub async fn compact_once(session: &SessionContext, policy: &ValidPolicy, ports: &Ports) -> Outcome {
    let Ports { counter, estimator, summarizer } = ports;
    judge(session, policy, counter, estimator, &Source::Summarizer(&**summarizer)).await
}

/// As [`compact_once`], with the summary made by the hustles that the policy names: bounded in time and size, tried a
/// second time where their retry policy says so, and by the policy's fallback where the first one gave no valid summary.
/// What the fallback made is [degraded](Compaction::degraded).
///
/// Dropping the future ends the hustles too.
pub async fn compact_by_hustles(
    session: &SessionContext,
    policy: &ValidPolicy,
    ports: &HustlePorts,
) -> Outcome {
    let HustlePorts { counter, estimator, lanes } = ports;
    judge(session, policy, counter, estimator, &Source::Hustles(lanes)).await
}

async fn judge(
    session: &SessionContext,
    policy: &ValidPolicy,
    counter: &Arc<dyn ContextCounter>,
    estimator: &Arc<dyn TextEstimator>,
    source: &Source<'_>,
) -> Outcome {
    let limits = match resolve_context_limits(
        &session.model,
        &session.limits,
        policy.reserved_output(),
        policy.safety_margin(),
    ) {
        Ok(limits) => limits,
        Err(fault) => return refused(None, RefusalReason::ContextLimitUnknown(fault)),
    };
    let measuring = measuring_of(session, limits, counter);
    let before = match measuring.measure(session.messages.clone()).await {
        Ok(before) => before,
        Err(fault) => return refused(None, RefusalReason::ContextCountFailed(fault)),
    };
    let level = pressure(session, policy, &measuring, &before);
    // A policy without a trigger compacts only when asked, however full the context is.
    let is_due = policy.trigger() != Trigger::Manual && level >= PressureLevel::Compact;
    if session.demand == Demand::Threshold && !is_due {
        return Outcome::LeftAlone { measurement: before, level };
    }
    match compact(session, policy, estimator, source, &measuring, &before).await {
        Ok(compaction) => Outcome::Compacted(Box::new(compaction)),
        Err(NotCompacted { reason, usage }) => {
            Outcome::Refused(Box::new(Refusal { before: Some(before), reason, usage }))
        }
    }
}

fn refused(before: Option<ContextMeasurement>, reason: RefusalReason) -> Outcome {
    Outcome::Refused(Box::new(Refusal { before, reason, usage: None }))
}

fn measuring_of(
    session: &SessionContext,
    limits: ResolvedLimits,
    counter: &Arc<dyn ContextCounter>,
) -> Measuring {
    Measuring {
        counter: counter.clone(),
        quality: counter.capability().quality,
        model: session.model.clone(),
        limits,
        basis: session.basis,
        request_fingerprint: session.request_fingerprint,
        tools: session.tools.clone(),
        unseen_tokens: session.unseen_tokens,
        front: Arc::default(),
        back: Arc::default(),
        scale: None,
        count_timeout: None,
    }
}

/// How pressing it is, by tokens and, where the policy sets a limit, by bytes.
fn pressure(
    session: &SessionContext,
    policy: &ValidPolicy,
    measuring: &Measuring,
    measurement: &ContextMeasurement,
) -> PressureLevel {
    let is_over_bytes = |limit| measuring.request_bytes(&session.messages) > limit;
    if policy.max_request_bytes().is_some_and(is_over_bytes) {
        return PressureLevel::HardLimit;
    }
    // One session seen once has no level before.
    pressure_level(PressureLevel::Unknown, measurement.occupancy(), policy.trigger())
}

/// There is no compaction.
struct NotCompacted {
    reason: RefusalReason,
    /// What providers reported for answers that came to nothing.
    usage: Option<Usage>,
}

impl From<RefusalReason> for NotCompacted {
    fn from(reason: RefusalReason) -> Self {
        Self { reason, usage: None }
    }
}

async fn compact(
    session: &SessionContext,
    policy: &ValidPolicy,
    estimator: &Arc<dyn TextEstimator>,
    source: &Source<'_>,
    measuring: &Measuring,
    before: &ContextMeasurement,
) -> Result<Compaction, NotCompacted> {
    let planning = Planning {
        messages: &session.messages,
        earlier: session.earlier.as_ref(),
        pinned: &session.pinned,
        policy,
        estimator: &**estimator,
        measuring,
    };
    let plan = planning.plan().await?;
    let made = match source {
        Source::Summarizer(summarizer) => {
            ask_summarizer(*summarizer, session, policy, estimator, &plan).await?
        }
        Source::Hustles(lanes) => {
            let task = SummaryTask {
                attempt: (&plan.input).into(),
                input: plan.input.clone(),
                previous: plan.previous.clone(),
                instructions: session.instructions.clone(),
                max_bytes: plan.max_bytes,
                carry_constraints: policy.carry_constraints(),
                estimator: estimator.clone(),
            };
            let made = ask_hustles(lanes, policy, task, fresh_run(), fresh_run).await;
            made.map_err(|NoSummary { refusal, spent }| NotCompacted {
                reason: RefusalReason::Hustle(refusal),
                usage: spent,
            })?
        }
    };
    let weighed = planning.weigh(before, plan.rebuilt(&session.messages, &made.summary)).await;
    let weighed = weighed.map_err(|reason| NotCompacted { reason, usage: made.usage })?;
    Ok(plan.compaction(&made, before, weighed))
}

fn fresh_run() -> AttemptId {
    AttemptId::from_bytes(FreshIds.fresh())
}

async fn ask_summarizer(
    summarizer: &dyn Summarizer,
    session: &SessionContext,
    policy: &ValidPolicy,
    estimator: &Arc<dyn TextEstimator>,
    plan: &Plan,
) -> Result<MadeSummary, NotCompacted> {
    let request = SummaryRequest {
        transcript: plan.input.transcript().clone(),
        previous: plan.previous.clone(),
        instructions: session.instructions.clone(),
        max_tokens: plan.input.max_summary_tokens(),
        max_bytes: plan.max_bytes,
        estimator: estimator.clone(),
        correction: None,
        carry_constraints: policy.carry_constraints(),
    };
    let failed = |error: SummarizerError| NotCompacted {
        reason: RefusalReason::ExecutionFailed(error),
        usage: error.usage(),
    };
    let draft = summarizer.summarize(request).await.map_err(failed)?;
    let summary = prove(&plan.input, &draft, &**estimator).map_err(|invalid| NotCompacted {
        reason: RefusalReason::InvalidSummary(invalid),
        usage: draft.usage,
    })?;
    let dropped_characters = draft.sections.render().dropped_characters;
    let SummaryDraft { sections: _, left_out, usage, repairs, carried } = draft;
    Ok(MadeSummary {
        tokens: estimator.estimate(summary.raw()),
        summary,
        left_out,
        dropped_characters,
        usage,
        repairs: repairs.into_iter().filter_map(|name| StableName::new(name).ok()).collect(),
        carried,
        degraded: None,
    })
}

/// Renders a draft and judges it as if it came from a stranger: budget, grammar, and identity with the input
/// that this run is bound to. What it takes is measured by the loop's own estimator, whoever made it.
fn prove(
    input: &CompactionInput,
    draft: &SummaryDraft,
    estimator: &dyn TextEstimator,
) -> Result<ConversationSummary, InvalidSummary> {
    let xml = draft.sections.render().xml;
    let usage = Usage { output: estimator.estimate(&xml), ..Usage::default() };
    let output = RunOutput::Host { summary: xml, bound: input.into() };
    let proven =
        validate_result(RunResult { output, usage: Some(usage) }, &ResultTerms::of(input, u64::MAX))?;
    Ok(proven.summary)
}
