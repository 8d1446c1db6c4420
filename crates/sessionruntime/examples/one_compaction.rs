//! One compaction, offline: two functions stand in for a tokenizer and a model.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use epitome_loop::*;
use epitome_sessionruntime::{Demand, Outcome, Ports, SessionContext, compact_once};

fn count(request: &Request) -> TokenCount {
    request.messages.iter().map(|message| TokenCount(tail_estimate(message))).sum()
}

fn summarize(_: &SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
    Ok(SummaryDraft::from(SummarySections {
        goal: vec!["Port the worker to the new queue.".into()],
        constraints: vec!["Never push to main.".into()],
        state: vec!["Reading is ported; writing is not.".into()],
        ..SummarySections::default()
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = CompactionPolicy {
        automatic: true,
        counter_policy: CounterPolicy::AllowConservative,
        compact_at: BasisPoints(8_500),
        rearm_below: BasisPoints(6_000),
        reserved_output: TokenCount(512),
        safety_margin: TokenCount(256),
        max_summary_tokens: TokenCount(256),
        count_timeout: Duration::from_secs(2),
        hustle: "context.compact".into(),
        keep_recent: Some(KeepRecent { segments: 2, tokens: TokenCount(400) }),
        max_request_bytes: None,
        fallback: None,
        carry_constraints: true,
    }
    .validate(Some(CountQuality::HeuristicEstimate))?;
    let turn = |at| [Message::user(format!("Step {at}: port it.")), Message::assistant("Done. ".repeat(60))];
    let session = SessionContext {
        model: ModelKey::new("local", "example"),
        limits: ContextLimits { window: TokenCount(4_000), ..ContextLimits::default() },
        tools: Arc::default(),
        messages: (1..=30).flat_map(turn).collect(),
        unseen_tokens: TokenCount::ZERO,
        earlier: None,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([7; 16]) },
        request_fingerprint: RequestFingerprint::from_bytes([7; 32]),
        demand: Demand::Threshold,
        instructions: None,
        pinned: BTreeSet::new(),
    };
    let estimator = |text: &str| TokenCount(text.len() as u64 / 4);
    let ports =
        Ports { counter: Arc::new(count), estimator: Arc::new(estimator), summarizer: Arc::new(summarize) };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    match runtime.block_on(compact_once(&session, &policy, &ports)) {
        Outcome::LeftAlone { measurement, .. } => println!("fits: {} tokens", measurement.input_tokens),
        Outcome::Refused(refusal) => println!("{refusal}"),
        Outcome::Compacted(done) => println!(
            "{} messages, {} tokens -> a summary and {} messages, {} tokens",
            session.messages.len(),
            done.before.input_tokens,
            done.kept.len(),
            done.after.input_tokens
        ),
    }
    Ok(())
}
