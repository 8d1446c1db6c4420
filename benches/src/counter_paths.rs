//! Counting tokens.

use std::sync::Arc;

use epitome_counters::{Encoding, HeuristicEstimator, LocalCounter};
use epitome_loop::{Message, ModelKey, Request, TextEstimator, TokenCount};

use crate::agent_text::{chat_session, new_message, plain_text};
use crate::path::{HotPath, Measured, Target};
use crate::rivals::recount_chat;
use crate::stopwatch::{duel, solo};

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "counters",
        name: "one new message in 1 M tokens",
        target: Target::TimesFaster(1_000.0, "tiktoken-rs recount"),
        reason: None,
        measure: new_message_in_a_long_session,
    },
    HotPath {
        group: "counters",
        name: "first count, 300 KB of agent text",
        target: Target::TimesFaster(3.0, "tiktoken-rs"),
        reason: None,
        measure: first_count_of_agent_text,
    },
    HotPath {
        group: "counters",
        name: "estimate without a tokenizer, 1 MB",
        target: Target::Megabytes(500.0),
        reason: None,
        measure: estimate_without_a_tokenizer,
    },
];

/// One new message of 3 KB in a session of a million tokens; each round has another one.
fn new_message_in_a_long_session() -> Measured {
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
    duel.on(0)
}

/// Text that this process has not counted, by a counter that has seen the like of it.
fn first_count_of_agent_text() -> Measured {
    const ROUNDS: usize = 9;
    let texts: Vec<String> = (0..ROUNDS).map(|round| plain_text(10_000 + 100 * round, 100)).collect();
    let bpe = tiktoken_rs::o200k_base_singleton();
    let duel = duel(
        ROUNDS,
        |round| Encoding::O200kBase.count(&texts[round]),
        |round| bpe.count_ordinary(&texts[round]) as u64,
    );
    duel.on(texts.first().map_or(0, String::len))
}

fn estimate_without_a_tokenizer() -> Measured {
    let text = plain_text(0, 330);
    Measured::alone(solo(15, || HeuristicEstimator.estimate(&text)), text.len())
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
