//! The promises about speed, each measured against a rival in the same run.

use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{Encoding, HeuristicEstimator, LocalCounter};
use epitome_loop::{Message, ModelKey, Request, SharedText, SummaryRequest, TextEstimator, TokenCount};
use epitome_loopruntime::{parse_summary, parse_summary_text};
use epitome_summarizers::Extractive;

use crate::agent_text::{agent_session, chat_session, new_message, plain_text};
use crate::documents::{hostile_summaries, valid_summary};
use crate::rivals::{recount_chat, roxmltree_accepts};
use crate::stopwatch::{Duel, duel, solo};

/// One promise and what was measured.
#[derive(Clone, Debug)]
pub struct SpeedRow {
    /// What was measured, and against what.
    pub name: &'static str,
    /// Ours, for one run.
    pub ours: Duration,
    /// The rival, for one run on the same input; where the promise is a rate or a time, the time it allows.
    pub rival: Duration,
    /// How many times faster ours is; 0 when ours gave another answer than the rival.
    pub ratio: f64,
    /// What the ratio must reach.
    pub target: f64,
}

impl SpeedRow {
    fn of(name: &'static str, duel: &Duel, target: f64) -> Self {
        let &Duel { ours, rival, agreed } = duel;
        let ratio = if agreed { rival.as_secs_f64() / ours.as_secs_f64().max(1e-9) } else { 0.0 };
        Self { name, ours, rival, ratio, target }
    }

    fn within(name: &'static str, ours: Duration, allowed: Duration) -> Self {
        Self::of(name, &Duel { ours, rival: allowed, agreed: true }, 1.0)
    }

    /// Whether the promise is kept.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.ratio >= self.target
    }
}

/// Measures every promise. Takes some seconds in a release build; means nothing in another.
#[must_use]
pub fn speed_report() -> Vec<SpeedRow> {
    vec![
        new_message_in_a_long_session(),
        first_count_of_agent_text(),
        estimate_without_a_tokenizer(),
        summary("summary of 2 KB, against roxmltree", 2 << 10, 10.0),
        summary("summary of 64 KB, against roxmltree", 64 << 10, 30.0),
        hostile_summary(),
        extractive("extractive summary of 1 MB, at 10 MB/s", 1_000_000),
        extractive("extractive summary of 10 MB, at 10 MB/s", 10_000_000),
    ]
}

/// One new message of 3 KB in a session of a million tokens; each round has another one.
fn new_message_in_a_long_session() -> SpeedRow {
    const ROUNDS: usize = 9;
    let session = chat_session(1_060);
    let grown: Vec<Request> = (0..ROUNDS)
        .map(|round| chat_request(session.iter().cloned().chain([new_message(round)]).collect()))
        .collect();
    let counter = LocalCounter::with_encoding(Encoding::O200kBase, false);
    let count =
        |request: &Request| counter.count_request(request).map_or(0, |count| count.input_tokens.get());
    let known = count(&chat_request(session));
    let mut duel = duel(ROUNDS, |round| count(&grown[round]), |round| recount_chat(&grown[round].messages));
    duel.agreed &= known >= 1_000_000;
    SpeedRow::of("new message in 1 M tokens, against a recount with tiktoken-rs", &duel, 1_000.0)
}

/// Text that this process has not counted, by a counter that has seen the like of it.
fn first_count_of_agent_text() -> SpeedRow {
    const ROUNDS: usize = 9;
    let texts: Vec<String> = (0..ROUNDS).map(|round| plain_text(10_000 + 100 * round, 100)).collect();
    let bpe = tiktoken_rs::o200k_base_singleton();
    let duel = duel(
        ROUNDS,
        |round| Encoding::O200kBase.count(&texts[round]),
        |round| bpe.count_ordinary(&texts[round]) as u64,
    );
    SpeedRow::of("first count of 300 KB of agent text, against tiktoken-rs", &duel, 3.0)
}

fn estimate_without_a_tokenizer() -> SpeedRow {
    let text = plain_text(0, 330);
    let ours = solo(9, || HeuristicEstimator.estimate(&text));
    SpeedRow::within("estimate of 1 MB without a tokenizer, at 500 MB/s", ours, allowed(text.len(), 500))
}

fn summary(name: &'static str, bytes: usize, target: f64) -> SpeedRow {
    let text = valid_summary(bytes);
    // Both get text that is known to be UTF-8, as a renderer hands it over.
    let shared = SharedText::from(text.as_str());
    let runs = 2_000_000 / bytes;
    let duel = duel(
        15,
        |_| (0..runs).all(|_| parse_summary_text(shared.clone()).is_ok()),
        |_| (0..runs).all(|_| roxmltree_accepts(&text)),
    );
    let each = |total: Duration| total / u32::try_from(runs).unwrap_or(u32::MAX);
    SpeedRow::of(name, &Duel { ours: each(duel.ours), rival: each(duel.rival), ..duel }, target)
}

/// The slowest of several kinds of hostile megabyte.
fn hostile_summary() -> SpeedRow {
    let times = hostile_summaries().into_iter().map(|(_, text)| solo(9, || parse_summary(text.as_bytes())));
    let slowest = times.max().unwrap_or(Duration::MAX);
    SpeedRow::within("hostile summary of 1 MB, within 1 ms", slowest, Duration::from_millis(1))
}

fn extractive(name: &'static str, bytes: usize) -> SpeedRow {
    let request = summary_request(bytes);
    let mut fits = true;
    let ours = solo(3, || fits &= Extractive::new().summarize_now(&request).is_ok());
    let duel = Duel { ours, rival: allowed(bytes, 10), agreed: fits };
    SpeedRow::of(name, &duel, 1.0)
}

/// A session of about so many bytes and the budget of a usual summary.
#[must_use]
pub fn summary_request(bytes: usize) -> SummaryRequest {
    SummaryRequest {
        transcript: agent_session(bytes),
        previous: None,
        instructions: None,
        max_tokens: TokenCount(2_000),
        max_bytes: None,
        estimator: Arc::new(HeuristicEstimator),
    }
}

/// A request for a model of OpenAI that holds nothing but these messages.
#[must_use]
pub fn chat_request(messages: Vec<Message>) -> Request {
    Request {
        model: ModelKey::new("openai", "gpt-4o"),
        tools: Arc::from([]),
        messages: messages.into(),
        unseen_tokens: TokenCount::ZERO,
    }
}

fn allowed(bytes: usize, megabytes_a_second: u32) -> Duration {
    Duration::from_secs_f64(bytes as f64 / 1e6 / f64::from(megabytes_a_second))
}
