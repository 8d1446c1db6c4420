//! One compaction with a scripted counter and scripted summaries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::*;
use epitome_sessionruntime::*;

/// Counts a quarter of the core JSON; media count a flat 1,000.
struct Counter {
    quality: CountQuality,
}

#[async_trait]
impl ContextCounter for Counter {
    async fn count(&self, request: &Request) -> Result<ContextCount, CountError> {
        let size = |message: &Message| {
            let media = message.blocks().iter().filter(|block| matches!(block, Block::Image(_))).count();
            if media > 0 { 1_000 * media as u64 } else { tail_estimate(message) }
        };
        let tokens = request.messages.iter().map(size).sum::<u64>() + request.unseen_tokens.get();
        Ok(ContextCount {
            model: request.model.clone(),
            input_tokens: TokenCount(tokens),
            quality: CountQuality::HeuristicEstimate,
        })
    }

    fn capability(&self) -> CounterCapability {
        CounterCapability::local("test", self.quality)
    }
}

/// Gives one answer and remembers what it was asked.
struct Scripted {
    answer: Result<SummarySections, SummarizerError>,
    asked: Mutex<Option<SummaryRequest>>,
}

#[async_trait]
impl Summarizer for Scripted {
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        *self.asked.lock().unwrap() = Some(request);
        let sections = self.answer.clone()?;
        Ok(sections.into())
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

pub(crate) fn sections(state: &str) -> SummarySections {
    SummarySections { goal: vec!["goal".into()], state: vec![state.into()], ..SummarySections::default() }
}

/// One compaction with everything around it scripted.
pub(crate) struct Setup {
    pub(crate) session: SessionContext,
    pub(crate) policy: CompactionPolicy,
    pub(crate) answer: Result<SummarySections, SummarizerError>,
    pub(crate) quality: CountQuality,
}

impl Setup {
    pub(crate) fn new(messages: Vec<Message>, window: u64) -> Self {
        Self {
            session: SessionContext {
                model: ModelKey::new("p", "m"),
                limits: ContextLimits { window: TokenCount(window), ..ContextLimits::default() },
                tools: Arc::default(),
                messages: messages.into(),
                unseen_tokens: TokenCount::ZERO,
                earlier: None,
                basis: ContextBasis {
                    revision: ContextRevision(1),
                    through_event_id: EventId::from_bytes([1; 16]),
                },
                request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
                demand: Demand::Threshold,
                instructions: None,
                pinned: std::collections::BTreeSet::new(),
            },
            policy: CompactionPolicy {
                automatic: true,
                counter_policy: CounterPolicy::AllowConservative,
                compact_at: BasisPoints(8_000),
                rearm_below: BasisPoints(6_000),
                reserved_output: TokenCount(1),
                safety_margin: TokenCount(1),
                max_summary_tokens: TokenCount(100),
                count_timeout: Duration::from_secs(1),
                hustle: "h".into(),
                keep_recent: Some(KeepRecent { segments: 2, tokens: TokenCount(200) }),
                max_request_bytes: None,
                fallback: None,
                carry_constraints: true,
            },
            answer: Ok(sections("state")),
            quality: CountQuality::HeuristicEstimate,
        }
    }

    pub(crate) fn ports(&self) -> Ports {
        Ports {
            counter: Arc::new(Counter { quality: self.quality }),
            estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
            summarizer: Arc::new(Scripted { answer: self.answer.clone(), asked: Mutex::default() }),
        }
    }

    pub(crate) fn run(self) -> (Outcome, Option<SummaryRequest>) {
        let policy = self.policy.validate(Some(CountQuality::HeuristicEstimate)).unwrap();
        let scripted = Arc::new(Scripted { answer: self.answer.clone(), asked: Mutex::default() });
        let ports = Ports { summarizer: scripted.clone(), ..self.ports() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(compact_once(&self.session, &policy, &ports));
        let asked = scripted.asked.lock().unwrap().take();
        (outcome, asked)
    }

    pub(crate) fn compacted(self) -> (Compaction, SummaryRequest) {
        match self.run() {
            (Outcome::Compacted(compaction), Some(asked)) => (*compaction, asked),
            (outcome, _) => panic!("not compacted: {outcome:?}"),
        }
    }

    pub(crate) fn refused(self) -> RefusalReason {
        match self.run().0 {
            Outcome::Refused(refusal) => refusal.reason,
            outcome => panic!("not refused: {outcome:?}"),
        }
    }
}

pub(crate) fn call(id: &str) -> Message {
    let call = Block::ToolUse(ToolUse::new(id, "tool", None, None));
    Message::Assistant { blocks: [call].into(), usage: None }
}

/// One user message and then nothing but tool exchanges, each about 40 tokens.
pub(crate) fn one_user_session(exchanges: usize) -> Vec<Message> {
    let mut messages = vec![Message::system("be brief"), Message::user("fix the build")];
    for at in 0..exchanges {
        messages.extend([call(&at.to_string()), Message::tool_result(at.to_string(), "r".repeat(20), false)]);
    }
    messages
}

pub(crate) fn talk(turns: usize) -> Vec<Message> {
    (0..turns).flat_map(|_| [Message::user("u".repeat(100)), Message::assistant("a".repeat(100))]).collect()
}
