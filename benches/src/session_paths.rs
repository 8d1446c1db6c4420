//! What a session goes through before it is summarized.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{
    CompactionInput, ContextLimits, CountQuality, CounterCapability, InferenceCapability, KeepRecent,
    Message, Model, ModelCaps, ModelKey, RawJson, Request, RequestFingerprintInput, Sampling, TokenCount,
    core_json_len, runtime_context_revision, system_revision, tool_policy_revision, validate_transcript,
};
use epitome_loopruntime::{Projection, project, select_tail};

use crate::agent_text::{agent_session, plain_text};
use crate::path::{HotPath, Measured, Target};
use crate::stopwatch::{duel, solo};
use crate::wire::{basis, input_of};

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "session",
        name: "validate a transcript, 1 MB",
        target: Target::Megabytes(2_000.0),
        reason: None,
        measure: || validate(1_000_000),
    },
    HotPath {
        group: "session",
        name: "validate a transcript, 10 MB",
        target: Target::Megabytes(2_000.0),
        reason: None,
        measure: || validate(10_000_000),
    },
    HotPath {
        group: "session",
        name: "choose the tail, 20,000 messages",
        target: Target::AtMost(2.0, "length pass"),
        reason: None,
        measure: choose_tail,
    },
    HotPath {
        group: "session",
        name: "project, 1 MB",
        target: Target::Megabytes(1_000.0),
        reason: None,
        measure: || projection(1_000_000),
    },
    HotPath {
        group: "session",
        name: "project, 10 MB",
        target: Target::Megabytes(1_000.0),
        reason: None,
        measure: || projection(10_000_000),
    },
    HotPath {
        group: "session",
        name: "fingerprint, 20 KB of system, 200 KB of tools",
        target: Target::TimesFaster(100.0, "full rehash"),
        reason: None,
        measure: fingerprint,
    },
    HotPath {
        group: "session",
        name: "five stages that pass 10 MB through",
        target: Target::Within(Duration::from_micros(500)),
        reason: None,
        measure: five_stages,
    },
];

fn validate(bytes: usize) -> Measured {
    let session = agent_session(bytes);
    let mut valid = true;
    let ours = solo(101, || valid &= validate_transcript(black_box(&session)).is_ok());
    Measured { agreed: valid, ..Measured::alone(ours, text_bytes(&session)) }
}

/// The rival only adds up how long each message is, which a choice by size cannot do without.
fn choose_tail() -> Measured {
    let mut session = agent_session(32_000_000).to_vec();
    // Whole turns of three messages.
    session.truncate(20_001);
    let keep = KeepRecent { segments: u64::MAX, tokens: TokenCount(2_000_000) };
    let mut duel = duel(
        15,
        |_| select_tail(&session, 0, keep).is_ok_and(|choice| choice.head > 0),
        |_| session.iter().map(core_json_len).sum::<u64>() > 0,
    );
    duel.agreed &= session.len() == 20_001;
    duel.on(text_bytes(&session))
}

fn projection(bytes: usize) -> Measured {
    let session = agent_session(bytes);
    let mut right = true;
    let ours = solo(25, || {
        let projected = project(&session, Projection::WithReferences);
        right &= projected.is_ok_and(|projected| projected.len() == session.len());
    });
    Measured { agreed: right, ..Measured::alone(ours, text_bytes(&session)) }
}

/// System prompt and tools are hashed once for each change of theirs; the rival hashes them for each request.
fn fingerprint() -> Measured {
    const RUNS: usize = 100;
    let system: String = plain_text(0, 7);
    let tools: Vec<RawJson> =
        (0..70).map(|number| RawJson::parse_or_quote(&plain_text(100 + number, 1))).collect();
    let revise = || {
        let tools = tool_policy_revision(&tools, None).ok()?;
        Some((system_revision(&system), tools, runtime_context_revision(None)))
    };
    let Some((system_revision, tool_policy_revision, runtime_context_revision)) = revise() else {
        return Measured { agreed: false, ..Measured::alone(Duration::MAX, 0) };
    };
    let request = RequestFingerprintInput {
        system_revision,
        tool_policy_revision,
        runtime_context_revision,
        model: model(),
        basis: basis(),
        counter_capability: CounterCapability::local("o200k_base", CountQuality::ExactLocal),
        inference_capability: InferenceCapability::local(),
    };
    let duel = duel(
        25,
        |_| repeated(RUNS, || black_box(&request).fingerprint().ok()),
        |_| {
            let rehashed = || {
                let (system_revision, tool_policy_revision, runtime_context_revision) = revise()?;
                let parts = (system_revision, tool_policy_revision, runtime_context_revision);
                RequestFingerprintInput {
                    system_revision: parts.0,
                    tool_policy_revision: parts.1,
                    runtime_context_revision: parts.2,
                    ..request.clone()
                }
                .fingerprint()
                .ok()
            };
            repeated(RUNS, rehashed)
        },
    );
    duel.each(RUNS).on(0)
}

/// The last of so many answers.
fn repeated<A>(runs: usize, mut run: impl FnMut() -> Option<A>) -> Option<A> {
    (0..runs).fold(None, |_, _| run())
}

fn model() -> Model {
    Model {
        provider: "anthropic".into(),
        api_format: "anthropic".into(),
        base_url: "".into(),
        name: "claude-sonnet-4-5".into(),
        origin: 0,
        caps: ModelCaps::default(),
        limits: ContextLimits::default(),
        sampling: Sampling::default(),
    }
}

/// What a compaction hands a session through: a request to count, an input to summarize, what the summarizer
/// gets, the list behind the summary, and the request that is counted again.
fn five_stages() -> Measured {
    let session = agent_session(10_000_000);
    let mut right = true;
    let ours = solo(25, || {
        let request = request(session.clone());
        let input = input_of(request.messages.iter().cloned().collect());
        let summarized: Option<Arc<[Message]>> = input.as_ref().map(CompactionInput::transcript).cloned();
        let rebuilt: Arc<[Message]> = [Message::user("summary")]
            .into_iter()
            .chain(summarized.iter().flat_map(|all| all.iter().cloned()))
            .collect();
        let again = self::request(rebuilt);
        right &= again.messages.len() == session.len() + 1;
        black_box(again)
    });
    Measured { agreed: right, ..Measured::alone(ours, text_bytes(&session)) }
}

fn request(messages: Arc<[Message]>) -> Request {
    Request {
        model: ModelKey::new("anthropic", "claude-sonnet-4-5"),
        tools: Arc::from([]),
        messages,
        unseen_tokens: TokenCount::ZERO,
    }
}

/// About how much content a session has.
fn text_bytes(messages: &[Message]) -> usize {
    messages.iter().map(|message| usize::try_from(core_json_len(message)).unwrap_or(0)).sum()
}
