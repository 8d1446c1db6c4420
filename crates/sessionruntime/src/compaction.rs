//! One whole compaction: measure, decide, cut, summarize, prove, and count what would be sent instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_loop::{
    BasisPoints, CompactionInput, ContextBasis, ContextCounter, ContextLimits, ContextMeasurement,
    InvalidSummary, Message, ModelKey, PressureLevel, RawJson, Request, RequestFingerprint, ResolvedLimits,
    SharedText, Summarizer, SummaryDraft, SummaryRequest, SummaryTooLarge, TextEstimator, TokenCount,
    TooLargeDetail, Trigger, Usage, ValidPolicy, core_json_len, resolve_context_limits,
};
use epitome_loopruntime::{
    ConversationSummary, TailCut, Unavailable, judge_landing, landing_level, pressure_level,
    retained_tail_fits,
};

use crate::cutting::{Cutting, without_opaque};
use crate::earlier_summary::{EarlierSummary, leading_system};
use crate::keeping::Keeping;
use crate::outcome::{Compaction, CountFailure, Outcome, Refusal, RefusalReason};
use crate::pinning::Pinned;
use crate::result::{ResultTerms, RunOutput, RunResult, validate_result};
use crate::standing::Standing;

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

/// Compacts a session once, if its policy or its user says so.
///
/// The whole request is measured; the newest part that the policy keeps is set aside; the rest is summarized;
/// the summary is rendered and read back under the strict grammar; the complete new request is built and
/// counted by the same counter. Only a result that fits, shrank, and is legal for a provider is returned as
/// compacted. Nothing is changed here: the caller puts the result in place, or keeps what it has.
///
/// Dropping the future at any point leaves no trace. Deadlines are the caller's.
pub async fn compact_once(session: &SessionContext, policy: &ValidPolicy, ports: &Ports) -> Outcome {
    let limits = match resolve_context_limits(
        &session.model,
        &session.limits,
        policy.reserved_output(),
        policy.safety_margin(),
    ) {
        Ok(limits) => limits,
        Err(fault) => return refused(None, RefusalReason::ContextLimitUnknown(fault)),
    };
    let run = Run { session, policy, ports, limits };
    let before = match run.measure(session.messages.clone()).await {
        Ok(before) => before,
        Err(fault) => return refused(None, RefusalReason::ContextCountFailed(fault)),
    };
    let level = run.pressure(&before);
    // A policy without a trigger compacts only when asked, however full the context is.
    let is_due = policy.trigger() != Trigger::Manual && level >= PressureLevel::Compact;
    if session.demand == Demand::Threshold && !is_due {
        return Outcome::LeftAlone { measurement: before, level };
    }
    match run.compact(&before).await {
        Ok(compaction) => Outcome::Compacted(Box::new(compaction)),
        Err(reason) => refused(Some(before), reason),
    }
}

fn refused(before: Option<ContextMeasurement>, reason: RefusalReason) -> Outcome {
    Outcome::Refused(Box::new(Refusal { before, reason }))
}

/// One run over one session.
struct Run<'a> {
    session: &'a SessionContext,
    policy: &'a ValidPolicy,
    ports: &'a Ports,
    limits: ResolvedLimits,
}

impl Run<'_> {
    /// Counts the request that would carry these messages.
    async fn measure(&self, messages: Arc<[Message]>) -> Result<ContextMeasurement, CountFailure> {
        let request = Request {
            model: self.session.model.clone(),
            tools: self.session.tools.clone(),
            messages,
            unseen_tokens: self.session.unseen_tokens,
        };
        let count = self.ports.counter.count(&request).await.map_err(CountFailure::Counter)?;
        if count.model != self.session.model {
            return Err(CountFailure::OtherModel);
        }
        if count.quality != self.ports.counter.capability().quality {
            return Err(CountFailure::OtherQuality);
        }
        Ok(ContextMeasurement {
            basis: self.session.basis,
            model: count.model,
            request_fingerprint: self.session.request_fingerprint,
            input_tokens: count.input_tokens,
            input_limit: self.limits.input_limit,
            quality: count.quality,
        })
    }

    /// How pressing it is, by tokens and, where the policy sets a limit, by bytes.
    fn pressure(&self, measurement: &ContextMeasurement) -> PressureLevel {
        if self.is_over_bytes(self.request_bytes(&self.session.messages)) {
            return PressureLevel::HardLimit;
        }
        // One session seen once has no level before.
        pressure_level(PressureLevel::Unknown, measurement.occupancy(), self.policy.trigger())
    }

    fn request_bytes(&self, messages: &[Message]) -> u64 {
        let tools = self.session.tools.iter().map(|tool| tool.as_str().len() as u64);
        tools.chain(messages.iter().map(core_json_len)).sum()
    }

    fn is_over_bytes(&self, bytes: u64) -> bool {
        self.policy.max_request_bytes().is_some_and(|limit| bytes > limit)
    }

    async fn compact(&self, before: &ContextMeasurement) -> Result<Compaction, RefusalReason> {
        let messages = &self.session.messages;
        let lead = leading_system(messages);
        let earlier = self.session.earlier.as_ref();
        let body = messages.get(lead..).unwrap_or_default();
        let derived_prefix = earlier.map_or(0, |earlier| earlier.messages);
        let cutting = Cutting::new(body, derived_prefix, self.policy.keep_recent())
            .map_err(RefusalReason::Unavailable)?;
        let standing = Standing::of(messages, lead, self.policy.max_summary_tokens(), &*self.ports.estimator);
        let pinned = Pinned::of(messages, lead, derived_prefix, &self.session.pinned)?;
        let keeping = Keeping { messages, lead, standing, pinned };
        let cut = self.choose_cut(&cutting, &keeping).await?;
        let kept = keeping.kept(Some(cut));
        let in_body = kept.iter().filter_map(|at| at.checked_sub(lead));
        cutting.check_kept(in_body).map_err(RefusalReason::TailInvalid)?;

        let head = keeping.to_summarize(lead..lead + cut.tail_start());
        if !keeping.replaces_any(&head, lead + derived_prefix) {
            return Err(RefusalReason::Unavailable(Unavailable::NothingToCompact));
        }
        let max_bytes = self.policy.max_request_bytes().map(|limit| {
            // Half of what is left: in a request, markup takes more bytes than in a text.
            let left = limit.saturating_sub(self.request_bytes(&keeping.messages_at(&kept)));
            usize::try_from(left / 2).unwrap_or(usize::MAX)
        });
        let (summary, draft) = self.summarize(head, lead + derived_prefix, max_bytes).await?;
        let mut rebuilt = keeping.messages_at(&kept);
        rebuilt.insert(leading_system(&rebuilt), Message::user(summary.raw().clone()));
        let is_over_bytes = self.is_over_bytes(self.request_bytes(&rebuilt));
        let after = self.measure(rebuilt.into()).await.map_err(RefusalReason::ContextCountFailed)?;
        let landing = judge_landing(before, &after, self.policy.trigger());
        let landing = if is_over_bytes { landing.and(Err(TooLargeDetail::OverBytes)) } else { landing };
        let landing = landing.map_err(|detail| {
            RefusalReason::SummaryTooLarge(SummaryTooLarge { measurement: after.clone(), detail })
        })?;
        Ok(Compaction {
            before: before.clone(),
            after,
            landing,
            cut,
            replaced: keeping.replaced(&kept),
            superseded: keeping.standing.superseded.difference(&keeping.pinned.kept).copied().collect(),
            pinned: keeping.pinned.kept.into_iter().collect(),
            kept,
            summary_tokens: self.ports.estimator.estimate(summary.raw()),
            summary,
            left_out: draft.left_out,
            dropped_characters: draft.sections.render().dropped_characters,
            usage: draft.usage,
        })
    }

    /// Chooses the largest tail, up to what the policy keeps, that leaves room for a summary of the largest
    /// size below the level where the compaction should land. The tail is counted as it will be sent. If even
    /// the newest exchange is too much for that, it is summarized too; only if that does not help either, a
    /// tail that fits at all is taken, and the landing says so.
    async fn choose_cut(
        &self,
        cutting: &Cutting<'_>,
        keeping: &Keeping<'_>,
    ) -> Result<TailCut, RefusalReason> {
        let limit = self.room(BasisPoints::FULL_SCALE);
        let target = self.room(landing_level(self.policy.trigger()));
        let fixed = self.size_kept(None, keeping).await?;
        let mut budget = cutting.wanted();
        let mut fitting = None;
        loop {
            let Some(cut) = cutting.cut(budget) else {
                // The tail holds everything: it yields until something is left to summarize.
                if budget <= 1 {
                    return Err(RefusalReason::Unavailable(Unavailable::NothingToCompact));
                }
                budget /= 2;
                continue;
            };
            let tail = self.size_kept(Some(cut), keeping).await?;
            if target.holds(tail) {
                return Ok(cut);
            }
            if limit.holds(tail) {
                fitting = Some(cut);
            }
            if budget <= 1 {
                break;
            }
            // Scale by what the last tail really took; at least halve, so that this ends soon.
            let room = target.tokens.saturating_sub(fixed.tokens).saturating_sub(target.summary_tokens);
            let taken = tail.tokens.saturating_sub(fixed.tokens).max(1);
            let scaled = u128::from(budget) * u128::from(room) / u128::from(taken);
            budget = u64::try_from(scaled).unwrap_or(u64::MAX).min(budget / 2);
        }
        if let Some(cut) = cutting.newest_results()
            && target.holds(self.size_kept(Some(cut), keeping).await?)
        {
            return Ok(cut);
        }
        // The newest exchange alone may be too much for a low landing; then it is summarized with the rest.
        let smallest = cutting.smallest();
        let tail = self.size_kept(smallest, keeping).await?;
        match (smallest, fitting) {
            (Some(cut), _) if target.holds(tail) => Ok(cut),
            (_, Some(cut)) => Ok(cut),
            (Some(cut), None) if limit.holds(tail) => Ok(cut),
            _ => Err(self.too_large(tail, smallest, keeping).await?),
        }
    }

    /// The room up to a level.
    fn room(&self, level: BasisPoints) -> Room {
        Room {
            tokens: share_of(self.limits.input_limit.get(), level),
            bytes: self.policy.max_request_bytes().map(|limit| share_of(limit, level)),
            summary_tokens: self.policy.max_summary_tokens().get(),
        }
    }

    /// Why the smallest that can be kept is too large: the pins, where it would fit without them.
    async fn too_large(
        &self,
        tail: Size,
        smallest: Option<TailCut>,
        keeping: &Keeping<'_>,
    ) -> Result<RefusalReason, RefusalReason> {
        let limit = self.room(BasisPoints::FULL_SCALE);
        let without = self.size_kept(smallest, &keeping.without_pins()).await?;
        let (input_limit, max_summary_tokens) = (self.limits.input_limit, self.policy.max_summary_tokens());
        if !keeping.pinned.kept.is_empty() && limit.holds(without) && !limit.holds_tokens(tail) {
            let needed = tail.tokens.saturating_add(limit.summary_tokens).saturating_add(1);
            return Ok(RefusalReason::PinnedTooLarge {
                pinned_tokens: TokenCount(tail.tokens.saturating_sub(without.tokens)),
                over: TokenCount(needed.saturating_sub(limit.tokens)),
                max_summary_tokens,
                input_limit,
            });
        }
        Ok(match self.policy.max_request_bytes() {
            Some(max_request_bytes) if limit.holds_tokens(tail) => {
                RefusalReason::RetainedTailOverBytes { tail_bytes: tail.bytes, max_request_bytes }
            }
            _ => RefusalReason::RetainedTailTooLarge {
                tail_tokens: TokenCount(tail.tokens),
                max_summary_tokens,
                input_limit,
            },
        })
    }

    /// Measures the request without what a cut summarizes, and without a summary; without a cut, everything
    /// but the conversation.
    async fn size_kept(&self, cut: Option<TailCut>, keeping: &Keeping<'_>) -> Result<Size, RefusalReason> {
        let kept = keeping.messages_at(&keeping.kept(cut));
        let bytes = self.policy.max_request_bytes().map_or(0, |_| self.request_bytes(&kept));
        let measured = self.measure(kept.into()).await.map_err(RefusalReason::ContextCountFailed)?;
        Ok(Size { tokens: measured.input_tokens.get(), bytes })
    }

    /// Summarizes what lies before the kept tail, and proves the summary before anybody may use it. A user
    /// message that stays although the cut lies behind it is summarized as well: it tells what the rest is for.
    async fn summarize(
        &self,
        head: Vec<usize>,
        derived_until: usize,
        max_bytes: Option<usize>,
    ) -> Result<(ConversationSummary, SummaryDraft), RefusalReason> {
        let previous = self.session.earlier.as_ref().and_then(|earlier| earlier.sections.clone());
        // A typed earlier summary goes in as such; its message would only say the same again.
        let first = if previous.is_some() { derived_until } else { 0 };
        let head = head.into_iter().filter(|&at| at >= first);
        let head = head.filter_map(|at| self.session.messages.get(at));
        let input = CompactionInput::new(
            self.session.basis,
            self.session.model.clone(),
            self.session.request_fingerprint,
            head.map(without_opaque).collect(),
            self.policy.max_summary_tokens(),
        )
        .map_err(RefusalReason::Input)?;
        let request = SummaryRequest {
            transcript: input.transcript().clone(),
            previous,
            instructions: self.session.instructions.clone(),
            max_tokens: input.max_summary_tokens(),
            max_bytes,
            estimator: self.ports.estimator.clone(),
        };
        let draft = self.ports.summarizer.summarize(request).await.map_err(RefusalReason::ExecutionFailed)?;
        let summary = prove(&input, &draft, &*self.ports.estimator).map_err(RefusalReason::InvalidSummary)?;
        Ok((summary, draft))
    }
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

/// What a request takes.
#[derive(Clone, Copy)]
struct Size {
    tokens: u64,
    bytes: u64,
}

/// What a request with a summary may take.
struct Room {
    tokens: u64,
    bytes: Option<u64>,
    summary_tokens: u64,
}

impl Room {
    /// Whether a request and a summary of the largest size stay below.
    fn holds(&self, kept: Size) -> bool {
        // A token is four bytes or so. The summarizer is told how many bytes are left, so a quarter is enough.
        let summary = self.summary_tokens.saturating_mul(4);
        let has_room = |limit: u64| kept.bytes.saturating_add(summary.min(limit / 4)) <= limit;
        self.holds_tokens(kept) && self.bytes.is_none_or(has_room)
    }

    fn holds_tokens(&self, kept: Size) -> bool {
        retained_tail_fits(kept.tokens, self.summary_tokens, self.tokens)
    }
}

/// The share of a limit that a level stands for, rounded down.
fn share_of(limit: u64, level: BasisPoints) -> u64 {
    let share = u128::from(limit) * u128::from(level.get()) / u128::from(BasisPoints::FULL_SCALE.get());
    u64::try_from(share).unwrap_or(u64::MAX)
}
