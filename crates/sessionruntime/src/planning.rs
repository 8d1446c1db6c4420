//! What a compaction keeps, what it summarizes, and whether the outcome may take the place of what there was.

use std::collections::BTreeSet;

use epitome_loop::{
    BasisPoints, CompactionInput, ContextMeasurement, Message, SharedText, SummarySections, SummaryTooLarge,
    TextEstimator, TokenCount, TooLargeDetail, Usage, ValidPolicy,
};
use epitome_loopruntime::{ConversationSummary, Landing, TailCut, Unavailable, judge_landing, landing_level};
use tokio::task::yield_now;

use crate::cutting::{Cutting, without_opaque};
use crate::earlier_summary::{EarlierSummary, leading_system};
use crate::journal::StableName;
use crate::keeping::Keeping;
use crate::lengths::Lengths;
use crate::measuring::Measuring;
use crate::outcome::{Compaction, RefusalReason};
use crate::pinning::Pinned;
use crate::room::{self, Room, Size};
use crate::standing::Standing;

/// How many estimated tokens are sized before other tasks have their turn: about a megabyte.
const SIZED_IN_ONE_GO: u64 = 1 << 18;

/// A conversation that is to be compacted.
pub(crate) struct Planning<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) earlier: Option<&'a EarlierSummary>,
    pub(crate) pinned: &'a BTreeSet<usize>,
    pub(crate) policy: &'a ValidPolicy,
    pub(crate) estimator: &'a dyn TextEstimator,
    pub(crate) measuring: &'a Measuring,
}

/// What a compaction would keep, and what is to be summarized. Messages are given by index, ascending.
pub(crate) struct Plan {
    /// Where the conversation is cut, in terms of its messages after the leading system ones.
    pub(crate) cut: TailCut,
    pub(crate) kept: Vec<usize>,
    /// Of those that stay, the pinned ones and what they need.
    pub(crate) pinned: Vec<usize>,
    pub(crate) replaced: Vec<usize>,
    /// Of the replaced ones, system messages that a later one supersedes.
    pub(crate) superseded: Vec<usize>,
    /// What the summary has to speak for.
    pub(crate) input: CompactionInput,
    /// An earlier summary of ours, whose message is not in the input.
    pub(crate) previous: Option<SummarySections>,
    /// How many bytes the request has left for the summary, where they are counted.
    pub(crate) max_bytes: Option<usize>,
}

/// A new request that may take the place of the old one.
pub(crate) struct Weighed {
    pub(crate) after: ContextMeasurement,
    pub(crate) landing: Landing,
    /// How full it is by its bytes; 0 when they are not counted.
    pub(crate) byte_occupancy: BasisPoints,
}

/// A summary that was proven, and what its making came to.
pub(crate) struct MadeSummary {
    pub(crate) summary: ConversationSummary,
    /// What it takes, by the loop's own estimator.
    pub(crate) tokens: TokenCount,
    pub(crate) left_out: [u64; 5],
    pub(crate) dropped_characters: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) repairs: Vec<StableName>,
    pub(crate) carried: Vec<SharedText>,
    pub(crate) degraded: Option<StableName>,
}

impl Plan {
    /// What the plan and its summary come to.
    pub(crate) fn compaction(
        &self,
        made: &MadeSummary,
        before: &ContextMeasurement,
        weighed: Weighed,
    ) -> Compaction {
        Compaction {
            before: before.clone(),
            after: weighed.after,
            landing: weighed.landing,
            cut: self.cut,
            kept: self.kept.clone(),
            pinned: self.pinned.clone(),
            replaced: self.replaced.clone(),
            superseded: self.superseded.clone(),
            summary: made.summary.clone(),
            summary_tokens: made.tokens,
            left_out: made.left_out,
            dropped_characters: made.dropped_characters,
            usage: made.usage,
            repairs: made.repairs.clone(),
            carried: made.carried.clone(),
            degraded: made.degraded.clone(),
        }
    }

    /// The conversation with a summary in the place of what it replaces.
    pub(crate) fn rebuilt(&self, messages: &[Message], summary: &ConversationSummary) -> Vec<Message> {
        let mut rebuilt: Vec<Message> =
            self.kept.iter().filter_map(|&at| messages.get(at).cloned()).collect();
        rebuilt.insert(leading_system(&rebuilt), Message::user(summary.raw().clone()));
        rebuilt
    }
}

impl Planning<'_> {
    /// Chooses what stays and prepares the rest for a summarizer. Counts the tails that it tries.
    pub(crate) async fn plan(&self) -> Result<Plan, RefusalReason> {
        let messages = self.messages;
        let lead = leading_system(messages);
        let body = messages.get(lead..).unwrap_or_default();
        let derived_prefix = self.earlier.map_or(0, |earlier| earlier.messages);
        let standing = Standing::of(messages, lead, self.policy.max_summary_tokens(), self.estimator);
        let superseded = standing.superseded.iter().filter_map(|at| at.checked_sub(lead)).collect();
        let cutting = Cutting::new(body, derived_prefix, self.policy.keep_recent(), &superseded)
            .map_err(RefusalReason::Unavailable)?;
        let pinned = Pinned::of(messages, lead, derived_prefix, self.pinned)?;
        let astray = cutting.astray().iter().map(|at| lead + at).collect();
        let lengths = Lengths::new(messages);
        let keeping = Keeping { messages, lead, standing, pinned, astray, lengths: &lengths };
        let cut = self.choose_cut(&cutting, &keeping).await?;
        let kept = keeping.kept(Some(cut));
        let in_body = kept.iter().filter_map(|at| at.checked_sub(lead));
        cutting.check_kept(in_body).map_err(RefusalReason::TailInvalid)?;

        let head = keeping.to_summarize(cut);
        if !keeping.replaces_any(&head, lead + derived_prefix) {
            return Err(RefusalReason::Unavailable(Unavailable::NothingToCompact));
        }
        let max_bytes = self.policy.max_request_bytes().map(|limit| {
            // Half of what is left: in a request, markup takes more bytes than in a text.
            let left = limit.saturating_sub(self.bytes_kept(&kept, &keeping));
            usize::try_from(left / 2).unwrap_or(usize::MAX)
        });
        let (input, previous) = self.input(head, lead + derived_prefix)?;
        Ok(Plan {
            cut,
            replaced: keeping.replaced(&kept),
            superseded: keeping.standing.superseded.difference(&keeping.pinned.kept).copied().collect(),
            pinned: keeping.pinned.kept.into_iter().collect(),
            kept,
            input,
            previous,
            max_bytes,
        })
    }

    /// Counts the complete new request and judges it against the one that it would replace, by tokens and by bytes.
    pub(crate) async fn weigh(
        &self,
        before: &ContextMeasurement,
        rebuilt: Vec<Message>,
    ) -> Result<Weighed, RefusalReason> {
        let limit = self.policy.max_request_bytes();
        let byte_occupancy = limit
            .map_or(BasisPoints(0), |_| room::byte_occupancy(self.measuring.request_bytes(&rebuilt), limit));
        let after =
            self.measuring.measure(rebuilt.into()).await.map_err(RefusalReason::ContextCountFailed)?;
        let landing = match judge_landing(before, &after, self.policy.trigger()) {
            Ok(_) if byte_occupancy >= BasisPoints::FULL_SCALE => Err(TooLargeDetail::OverBytes),
            Ok(_) if byte_occupancy >= landing_level(self.policy.trigger()) => Ok(Landing::High),
            landing => landing,
        };
        match landing {
            Ok(landing) => Ok(Weighed { after, landing, byte_occupancy }),
            Err(detail) => {
                Err(RefusalReason::SummaryTooLarge(SummaryTooLarge { measurement: after, detail }))
            }
        }
    }

    /// Chooses the largest tail, up to what the policy keeps, that leaves room for a summary of the largest
    /// size below the level where the compaction should land. The tail is counted as it will be sent. If even
    /// the newest exchange is too much for that, it is summarized too; only if that does not help either, a
    /// tail that fits at all is taken, and the landing says so. Behind an earlier summary a tail that holds everything
    /// yields only where there is no room for it.
    async fn choose_cut(
        &self,
        cutting: &Cutting<'_>,
        keeping: &Keeping<'_>,
    ) -> Result<TailCut, RefusalReason> {
        let limit = self.room(BasisPoints::FULL_SCALE);
        let target = self.room(landing_level(self.policy.trigger()));
        let fixed = self.size_kept(None, keeping).await?;
        let mut budget = self.wanted(cutting).await;
        let (mut fitting, mut tried) = (None, None);
        // A pass that could fold nothing but what the policy keeps would only wear the earlier summary down.
        if self.earlier.is_some() && cutting.cut(budget).is_none() {
            let landed = Room { summary_tokens: 0, ..target };
            let everything: Vec<usize> = (0..self.messages.len()).collect();
            if landed.holds(self.size(&everything, keeping).await?) {
                return Err(RefusalReason::Unavailable(Unavailable::NothingToCompact));
            }
        }
        loop {
            // A large session takes its time; deadlines and interrupts have theirs in between.
            yield_now().await;
            let Some(cut) = cutting.cut(budget) else {
                // The tail holds everything: it yields until something is left to summarize.
                if budget <= 1 {
                    return Err(RefusalReason::Unavailable(Unavailable::NothingToCompact));
                }
                budget /= 2;
                continue;
            };
            let tail = match tried {
                Some((before, tail)) if before == cut => tail,
                _ => self.size_kept(Some(cut), keeping).await?,
            };
            tried = Some((cut, tail));
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

    /// Why the smallest that can be kept is too large: the pins, where it would fit without them.
    async fn too_large(
        &self,
        tail: Size,
        smallest: Option<TailCut>,
        keeping: &Keeping<'_>,
    ) -> Result<RefusalReason, RefusalReason> {
        let limit = self.room(BasisPoints::FULL_SCALE);
        let without = self.size_kept(smallest, &keeping.without_pins()).await?;
        let (input_limit, max_summary_tokens) =
            (self.measuring.limits.input_limit, self.policy.max_summary_tokens());
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

    /// The tail's size that the policy asks for, in estimated tokens. Sizes the messages of that tail.
    async fn wanted(&self, cutting: &Cutting<'_>) -> u64 {
        let most = cutting.most();
        let (mut sum, mut in_one_go) = (0_u64, 0_u64);
        for tokens in cutting.tokens_of_newest() {
            sum = sum.saturating_add(tokens);
            if sum > most {
                break;
            }
            in_one_go = in_one_go.saturating_add(tokens);
            if in_one_go > SIZED_IN_ONE_GO {
                in_one_go = 0;
                yield_now().await;
            }
        }
        sum.min(most)
    }

    /// Measures the request without what a cut summarizes, and without a summary; without a cut, everything
    /// but the conversation.
    async fn size_kept(&self, cut: Option<TailCut>, keeping: &Keeping<'_>) -> Result<Size, RefusalReason> {
        self.size(&keeping.kept(cut), keeping).await
    }

    /// Measures the request with these messages.
    async fn size(&self, kept: &[usize], keeping: &Keeping<'_>) -> Result<Size, RefusalReason> {
        let bytes = self.policy.max_request_bytes().map_or(0, |_| self.bytes_kept(kept, keeping));
        let messages = keeping.messages_at(kept);
        let measured =
            self.measuring.measure(messages.into()).await.map_err(RefusalReason::ContextCountFailed)?;
        Ok(Size { tokens: measured.input_tokens.get(), bytes })
    }

    /// How many bytes the request with these messages takes.
    fn bytes_kept(&self, kept: &[usize], keeping: &Keeping<'_>) -> u64 {
        self.measuring.bytes_around().saturating_add(keeping.bytes_at(kept))
    }

    /// The room up to a level.
    fn room(&self, level: BasisPoints) -> Room {
        Room::up_to(level, &self.measuring.limits, self.policy)
    }

    /// What lies before the kept tail, for a summarizer. A user message that stays although the cut lies behind it is
    /// summarized as well: it tells what the rest is for.
    fn input(
        &self,
        head: Vec<usize>,
        derived_until: usize,
    ) -> Result<(CompactionInput, Option<SummarySections>), RefusalReason> {
        let previous = self.earlier.and_then(|earlier| earlier.sections.clone());
        // A typed earlier summary goes in as such; its message would only say the same again.
        let first = if previous.is_some() { derived_until } else { 0 };
        let head = head.into_iter().filter(|&at| at >= first);
        let head = head.filter_map(|at| self.messages.get(at));
        let input = CompactionInput::new(
            self.measuring.basis,
            self.measuring.model.clone(),
            self.measuring.request_fingerprint,
            head.map(without_opaque).collect(),
            self.policy.max_summary_tokens(),
        )
        .map_err(RefusalReason::Input)?;
        Ok((input, previous))
    }
}
