//! One pass over a history.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_loop::{Message, ModelCall, ModelCallError, ModelClient, Role, SharedText, TokenCount};

use super::answer::{Committed, judge_first, judge_second};
use super::config::StructuredSummaryConfig;
use super::durable::{durable_messages, pull};
use super::estimate::{CharacterScale, MessageScale, count_messages, message_size, most_characters};
use super::notes::ResultNotes;
use super::outcome::{NoChange, StructuredFailure, StructuredOutcome};
use super::pairing::Pairing;
use super::prompt::{Again, system_prompt, user_prompt};
use super::reader::read_summary;
use super::splitting::{Weights, split_weighed};
use super::telemetry::{report_failure, report_success};
use super::transcript::render_transcript;

/// Rounds in which tail and pulled exchanges are brought to agree.
const MOST_ROUNDS: usize = 16;

/// The least that a model may answer, in tokens, however small the budget: reasoning takes room too.
const LEAST_OUTPUT: u64 = 1024;

/// What one pass works on.
#[derive(Clone)]
pub struct StructuredPass {
    /// The history, oldest first. It is never changed.
    pub messages: Arc<[Message]>,
    /// How many tokens the new history should take.
    pub target: TokenCount,
    /// What the caller says that the history takes; counted by the scale when absent.
    pub tokens_before: Option<TokenCount>,
    /// The host's scale.
    pub scale: Arc<dyn MessageScale>,
    /// What the host knows about results.
    pub notes: Arc<dyn ResultNotes>,
    /// Instructions for this pass alone.
    pub hook_instructions: Option<SharedText>,
    /// What else the model should know.
    pub additional_context: Vec<SharedText>,
    /// Messages that stand in front of the summary in every case. One of them that is also in the history is not
    /// summarized.
    pub pinned: Arc<[Message]>,
}

impl StructuredPass {
    /// A pass with the default scale and nothing else known.
    #[must_use]
    pub fn new(messages: Arc<[Message]>, target: TokenCount) -> Self {
        Self {
            messages,
            target,
            tokens_before: None,
            scale: Arc::new(CharacterScale::default()),
            notes: Arc::new(()),
            hook_instructions: None,
            additional_context: Vec::new(),
            pinned: Arc::from([]),
        }
    }
}

/// Summarizes the older part of a history by a model.
#[derive(Clone)]
pub struct StructuredSummarizer {
    client: Arc<dyn ModelClient>,
    config: StructuredSummaryConfig,
}

/// Which messages go where, by index.
struct Plan {
    /// Leading system messages.
    heads: usize,
    split: usize,
    pulled: Vec<usize>,
    /// What is summarized.
    dropped: Vec<usize>,
    /// By index, whether a message stays.
    stays: Vec<bool>,
}

/// The pins by size, so that each message is compared with few of them.
struct Pins<'p>(HashMap<u64, Vec<&'p Message>>);

impl<'p> Pins<'p> {
    fn of(pinned: &'p [Message]) -> Self {
        let mut pins: HashMap<u64, Vec<&Message>> = HashMap::new();
        for pin in pinned {
            pins.entry(message_size(pin)).or_default().push(pin);
        }
        Self(pins)
    }

    fn contains(&self, message: &Message) -> bool {
        !self.0.is_empty() && self.0.get(&message_size(message)).is_some_and(|pins| pins.contains(&message))
    }
}

impl StructuredSummarizer {
    /// A summarizer that asks this client.
    #[must_use]
    pub fn new(client: Arc<dyn ModelClient>, config: StructuredSummaryConfig) -> Self {
        Self { client, config }
    }

    /// How it works.
    #[must_use]
    pub fn config(&self) -> &StructuredSummaryConfig {
        &self.config
    }

    /// Makes one pass: at most two calls, and a typed outcome. Dropped, it leaves no trace.
    ///
    /// A first answer that is blank, unreadable, cut off or over the budget earns one retry, which says what was wrong. A
    /// second one that is over the budget is trimmed, one that cannot be read becomes an entry. An error of the client
    /// ends the pass at once.
    pub async fn compact(&self, pass: &StructuredPass) -> StructuredOutcome {
        let messages = &pass.messages;
        if messages.len() <= self.config.least_messages() {
            return StructuredOutcome::NoChange { why: NoChange::FewMessages };
        }
        let budget = self.config.budget(pass.target);
        let pairing = Pairing::of(messages);
        let plan = self.plan(pass, &pairing, budget);
        if plan.dropped.is_empty() {
            return StructuredOutcome::NoChange { why: NoChange::NothingToSummarize };
        }
        match self.summarize(pass, &pairing, &plan, budget).await {
            Ok((committed, retried)) => self.commit(pass, &plan, committed, budget, retried),
            Err(reason) => failed(reason),
        }
    }

    fn plan(&self, pass: &StructuredPass, pairing: &Pairing, budget: TokenCount) -> Plan {
        let (messages, scale) = (&pass.messages, &*pass.scale);
        let heads = messages.iter().take_while(|message| message.role() == Role::System).count();
        let pinned = count_messages(scale, pass.pinned.iter());
        let head = count_messages(scale, messages.iter().take(heads));
        let rest = pass.target.get().saturating_sub(budget.get());
        let mut tail_budget = TokenCount(rest.saturating_sub(pinned.get()).saturating_sub(head.get()));
        let weights = Weights::of(messages, scale);
        let is_durable = durable_messages(messages, pairing, &*pass.notes);
        let least = (self.config.least_messages(), self.config.recent_messages());
        let place = |budget| {
            let split = split_weighed(messages, pairing, scale, &weights, least, budget);
            (split, pull(&is_durable, pairing, &weights, split, budget))
        };
        let mut placed = place(tail_budget);
        // What is pulled takes room from the tail, which may move the split, which may change what is pulled.
        for _ in 0..MOST_ROUNDS {
            let pulled = placed.1.iter().filter_map(|&at| messages.get(at));
            let left = TokenCount(tail_budget.get().saturating_sub(count_messages(scale, pulled).get()));
            if left == tail_budget {
                break;
            }
            tail_budget = left;
            let again = place(tail_budget);
            if again == placed {
                break;
            }
            placed = again;
        }
        let (split, pulled) = placed;
        let mut stays = vec![false; messages.len()];
        for &at in &pulled {
            if let Some(stay) = stays.get_mut(at) {
                *stay = true;
            }
        }
        let pins = Pins::of(&pass.pinned);
        let mut dropped = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let is_lone = pairing.is_lone_result(at, message);
            let stay = at < heads || at >= split && !is_lone || stays.get(at).copied().unwrap_or(false);
            // A pin stands in front of the new history already.
            let is_pin = at < split && pins.contains(message);
            if let Some(slot) = stays.get_mut(at) {
                *slot = stay;
            }
            if !stay && !is_pin {
                dropped.push(at);
            }
        }
        // A history from which nothing is split off is not touched for the sake of lone results.
        if split <= heads {
            dropped.clear();
        }
        Plan { heads, split, pulled, dropped, stays }
    }

    async fn summarize(
        &self,
        pass: &StructuredPass,
        pairing: &Pairing,
        plan: &Plan,
        budget: TokenCount,
    ) -> Result<(Committed, bool), StructuredFailure> {
        if most_characters(budget).unwrap_or(0) == 0 {
            return Err(StructuredFailure::TooSmallBudget { budget });
        }
        let most = self.config.most_transcript_characters();
        let messages = self.as_sent(&pass.messages, &plan.dropped);
        let transcript = render_transcript(&messages, &plan.dropped, pairing, &*pass.notes, most);
        let hook = pass.hook_instructions.as_ref();
        let context = &pass.additional_context;
        let user: SharedText =
            user_prompt(&transcript.text, self.config.instructions(), hook, context).into();
        let client = |error: ModelCallError| StructuredFailure::Client { kind: error.kind };
        let first = self.client.call(self.request(&user, budget, None)).await.map_err(client)?;
        let again = match judge_first(&first, &self.config, budget) {
            Ok(committed) => return Ok((committed, false)),
            Err(again) => again,
        };
        let second = self.client.call(self.request(&user, budget, Some(again))).await.map_err(client)?;
        judge_second(&second, &self.config, budget).map(|committed| (committed, true))
    }

    /// The history, of which the chosen messages are without what the client keeps back: they are about to be shortened.
    fn as_sent(&self, messages: &Arc<[Message]>, chosen: &[usize]) -> Vec<Message> {
        let mut sent = messages.to_vec();
        let asked: Arc<[Message]> = chosen.iter().filter_map(|&at| messages.get(at).cloned()).collect();
        let answered = self.client.as_sent(&asked);
        for (&at, message) in chosen.iter().zip(answered.iter()) {
            if let Some(place) = sent.get_mut(at) {
                *place = message.clone();
            }
        }
        sent
    }

    fn request(&self, user: &SharedText, budget: TokenCount, again: Option<Again>) -> ModelCall {
        let most = self.config.model_sampling().max_tokens;
        let room = TokenCount(budget.get().saturating_mul(4).max(LEAST_OUTPUT));
        ModelCall {
            model: self.config.model().clone(),
            system: Some(system_prompt(self.config.summary_template(), budget, again).into()),
            messages: Arc::from([Message::user(user.clone())]),
            max_output: Some(most.unwrap_or(room)),
            sampling: self.config.model_sampling().clone(),
            answer_form: None,
        }
    }

    fn commit(
        &self,
        pass: &StructuredPass,
        plan: &Plan,
        committed: Committed,
        budget: TokenCount,
        retried: bool,
    ) -> StructuredOutcome {
        let Committed { text, sections, degraded } = committed;
        let all = &pass.messages;
        let at = |index: &usize| all.get(*index).cloned();
        let mut messages: Vec<Message> = all.iter().take(plan.heads).cloned().collect();
        messages.extend(pass.pinned.iter().cloned());
        messages.push(Message::assistant(text.clone()));
        messages.extend(plan.pulled.iter().filter_map(at));
        let tail = (plan.split..all.len()).filter(|&index| plan.stays.get(index).copied().unwrap_or(true));
        messages.extend(tail.filter_map(|index| at(&index)));
        let before = count_messages(&*pass.scale, all.iter());
        let after = count_messages(&*pass.scale, &messages);
        if after >= before {
            return failed(StructuredFailure::NotSmaller { before, after });
        }
        let template = self.config.summary_template();
        let shown = sections.clone().or_else(|| read_summary(&text)).unwrap_or_default();
        report_success(template, &shown, budget, retried);
        StructuredOutcome::Compacted {
            messages: messages.into(),
            evicted: plan.dropped.iter().filter_map(at).collect(),
            tokens_before: pass.tokens_before.unwrap_or(before),
            tokens_after: after,
            summary: text,
            sections,
            retried,
            degraded,
        }
    }
}

fn failed(reason: StructuredFailure) -> StructuredOutcome {
    report_failure(reason);
    StructuredOutcome::Failed { reason }
}
