//! One compaction, offline: a scripted counter and summarizer stand in for a tokenizer and a model.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use epitome_loop::*;
use epitome_sessionruntime::{Demand, Outcome, Ports, SessionContext, compact_once};

struct FourBytesAToken;

#[async_trait]
impl ContextCounter for FourBytesAToken {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        let bytes: u64 = request.messages.iter().map(core_json_len).sum();
        let quality = CountQuality::HeuristicEstimate;
        Ok(ContextCount { model: request.model.clone(), input_tokens: TokenCount(bytes / 4), quality })
    }
    fn capability(&self) -> CounterCapability {
        let local = || SharedText::from("local");
        CounterCapability {
            provider: local(),
            transport: local(),
            security_identity: SharedText::default(),
            retention: SharedText::from("none"),
            tokenizer_rev: SharedText::from("bytes/4"),
            quality: Some(CountQuality::HeuristicEstimate),
        }
    }
}

struct Scripted;

#[async_trait]
impl Summarizer for Scripted {
    async fn summarize(&self, _: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        let sections = SummarySections {
            goal: vec!["Port the worker to the new queue.".into()],
            constraints: vec!["Never push to main.".into()],
            state: vec!["Reading is ported; writing is not.".into()],
            ..SummarySections::default()
        };
        Ok(SummaryDraft { sections, left_out: [0; 5], usage: None })
    }
    fn name(&self) -> &'static str {
        "scripted"
    }
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
        keep_recent: Some(KeepRecent { segments: 1, tokens: TokenCount(400) }),
        max_request_bytes: None,
    }
    .validate(Some(CountQuality::HeuristicEstimate))?;
    let talk = |at| [Message::user(format!("Step {at}: port it.")), Message::assistant("Done. ".repeat(60))];
    let session = SessionContext {
        model: ModelKey::new("local", "example"),
        limits: ContextLimits { window: TokenCount(4_000), ..ContextLimits::default() },
        tools: Arc::default(),
        messages: (1..=30).flat_map(talk).collect(),
        unseen_tokens: TokenCount::ZERO,
        earlier: None,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([7; 16]) },
        request_fingerprint: RequestFingerprint::from_bytes([7; 32]),
        demand: Demand::Threshold,
    };
    let estimator = |text: &str| TokenCount(text.len() as u64 / 4);
    let ports = Ports {
        counter: Arc::new(FourBytesAToken),
        estimator: Arc::new(estimator),
        summarizer: Arc::new(Scripted),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    match runtime.block_on(compact_once(&session, &policy, &ports)) {
        Outcome::LeftAlone { measurement, .. } => println!("fits: {} tokens", measurement.input_tokens),
        Outcome::Refused(refusal) => println!("{refusal}"),
        Outcome::Compacted(done) => println!(
            "{} messages, {} tokens -> {} kept and a summary, {} tokens",
            session.messages.len(),
            done.before.input_tokens,
            done.kept.len(),
            done.after.input_tokens
        ),
    }
    Ok(())
}
