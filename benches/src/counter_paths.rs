//! Counting tokens.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{Encoding, HeuristicEstimator, LocalCounter};
use epitome_loop::{Message, ModelKey, Request, TextEstimator, TokenCount};

use crate::agent_text::{chat_session, new_message, plain_text};
use crate::fresh_process::{START, in_a_fresh_process};
use crate::hostile_text::hostile_texts;
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
        name: "first count, worst of the hostile texts",
        target: Target::TimesFaster(1.0, "tiktoken-rs"),
        reason: Some(
            "the tokenizer is tiktoken-rs itself; in noise such as base64 hardly any piece was seen before, and the \
             attempt to look them up is added to its work",
        ),
        measure: first_count_of_hostile_text,
    },
    HotPath {
        group: "counters",
        name: "first count of a process",
        target: Target::Within(Duration::from_millis(150)),
        reason: None,
        measure: start,
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

/// The kind of text that is worst for us against the rival. Each round has another text of its kind, as a text that
/// was counted before is known.
fn first_count_of_hostile_text() -> Measured {
    const ROUNDS: usize = 7;
    let bpe = tiktoken_rs::o200k_base_singleton();
    let measured = hostile_texts(ROUNDS).into_iter().map(|texts| {
        let duel = duel(
            ROUNDS,
            |round| Encoding::O200kBase.count(&texts[round]),
            |round| bpe.count_ordinary(&texts[round]) as u64,
        );
        duel.on(texts.first().map_or(0, String::len))
    });
    let ratio = |measured: &Measured| measured.rival / measured.ours.max(1e-9);
    let worst = measured.min_by(|one, other| {
        (one.agreed, ratio(one)).partial_cmp(&(other.agreed, ratio(other))).unwrap_or(Ordering::Equal)
    });
    worst.unwrap_or_else(|| Measured::alone(Duration::MAX, 0))
}

fn start() -> Measured {
    let told = in_a_fresh_process(START).map(|(seconds, _)| Duration::from_secs_f64(seconds));
    let measured = Measured::alone(told.unwrap_or_default(), 0);
    Measured { agreed: told.is_some(), ..measured }
}

/// The processor time in seconds of the first count in this process.
#[must_use]
pub fn time_of_the_first_count() -> f64 {
    solo(1, || Encoding::O200kBase.count("The first words.")).as_secs_f64()
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
