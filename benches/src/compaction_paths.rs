//! One whole compaction with a scripted model: measure, decide, cut, summarize, prove, count what would be sent.
//!
//! The rival is the one of those that the target names which can be had as a crate for this Rust; goose cannot.
//! What the model is sent is not made on either side. Ours has the counts of old messages from the turns before, as
//! in a live session; the rival estimates by length, so it has nothing to remember.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use epitome_counters::{Encoding, LocalCounter};
use epitome_loop::{
    BasisPoints, CompactionPolicy, ContextLimits, CountQuality, CounterPolicy, KeepRecent, Message, ModelKey,
    RequestFingerprint, SummaryDraft, SummaryRequest, SummarySections, TokenCount, ValidPolicy,
    core_json_len,
};
use epitome_sessionruntime::{Demand, Outcome, Ports, SessionContext, compact_once};
use tokio::runtime::{Builder, Runtime};

use crate::agent_text::reading_session;
use crate::fresh_process::{PEAK, in_a_fresh_process, peak_beyond};
use crate::loopctl_rival::{Loopctl, messages};
use crate::path::{HotPath, Measured, Target, Unit};
use crate::stopwatch::{duel, solo};
use crate::wire::basis;

/// Turns of three messages: 1.1 MB in 480, and 11 MB in 4,881.
const SHORT: usize = 160;
const LONG: usize = 1_627;
const WINDOW: u64 = 200_000;

pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        group: "compaction",
        name: "whole compaction, 480 messages, 1.1 MB",
        target: Target::TimesFaster(4.0, "loopctl"),
        reason: Some(
            "where the target was set, the rival took 3.0 and 67 ms; its manager, splitter and counter alone, which \
             are measured here, take a quarter of that",
        ),
        measure: || against_loopctl(SHORT, 15),
    },
    HotPath {
        group: "compaction",
        name: "whole compaction, 4,881 messages, 11 MB",
        target: Target::TimesFaster(4.0, "loopctl"),
        reason: Some(
            "where the target was set, the rival took 3.0 and 67 ms; its manager, splitter and counter alone, which \
             are measured here, take a quarter of that",
        ),
        measure: || against_loopctl(LONG, 7),
    },
    HotPath {
        group: "compaction",
        name: "whole compaction, 4x the messages",
        target: Target::AtMost(5.0, "a quarter of them"),
        reason: None,
        measure: growth,
    },
    HotPath {
        group: "compaction",
        name: "peak memory beyond the session, 11 MB",
        target: Target::AtMost(0.5, "its JSON"),
        reason: None,
        measure: peak,
    },
];

/// Each round has a session of its own, which is dropped when its summary has taken its place.
fn against_loopctl(turns: usize, rounds: usize) -> Measured {
    let host = Host::new();
    let made = messages(&reading_session(turns));
    let mut ours: Vec<_> = (0..rounds).map(|_| Some(host.live_session(reading_session(turns)))).collect();
    let mut theirs: Vec<_> = (0..rounds).map(|_| Some(made.clone())).collect();
    let rival = Loopctl::new(WINDOW, SUMMARY);
    let duel = duel(
        rounds,
        |round| ours.get_mut(round).and_then(Option::take).is_some_and(|live| host.compact(live)),
        |round| {
            let history = theirs.get_mut(round).and_then(Option::take);
            history.is_some_and(|history| rival.compact(&host.runtime, history))
        },
    );
    duel.on(0)
}

fn growth() -> Measured {
    const ROUNDS: usize = 5;
    let host = Host::new();
    let mut right = true;
    let mut time = |turns: usize| {
        let mut live: Vec<_> = (0..ROUNDS).map(|_| host.live_session(reading_session(turns))).collect();
        solo(ROUNDS, || right &= live.pop().is_some_and(|live| host.compact(live))).as_secs_f64()
    };
    let (quarter, whole) = (time(LONG / 4), time(LONG));
    Measured { ours: whole, rival: quarter, unit: Unit::Seconds, bytes: 0, agreed: right }
}

fn peak() -> Measured {
    let told = in_a_fresh_process(PEAK);
    let (ours, rival) = told.unwrap_or_default();
    Measured { ours, rival, unit: Unit::Bytes, bytes: 0, agreed: told.is_some() }
}

/// The peak memory of one compaction beyond its session, and the length of the session's JSON, both in bytes; `None`
/// where the system does not tell, or when nothing was compacted.
#[must_use]
pub fn peak_of_a_compaction() -> Option<(u64, u64)> {
    let host = Host::new();
    let session = reading_session(LONG);
    let json = session.iter().map(core_json_len).sum();
    // What stays for good, as the tables of the tokenizer, is there before.
    let _warm = host.live_session(reading_session(1));
    let live = host.live_session(session);
    let (peak, done) = peak_beyond(|| host.compact(live))?;
    done.then_some((peak, json))
}

const SUMMARY: &str =
    "The queue is ported to the new worker. Never push to main. Three retries stay. The ledger is next.";

/// What a host has: a counter that has seen the session grow, a policy, and a model.
struct Host {
    counter: Arc<LocalCounter>,
    policy: ValidPolicy,
    ports: Ports,
    runtime: Runtime,
}

impl Host {
    fn new() -> Self {
        let counter = Arc::new(LocalCounter::with_encoding(Encoding::O200kBase, true));
        let ports = Ports {
            counter: counter.clone(),
            estimator: counter.clone(),
            summarizer: Arc::new(|_: &SummaryRequest| Ok(draft())),
        };
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.unwrap_or_else(|_| unreachable!("a runtime without drivers needs nothing"));
        Self { counter, policy: policy(), ports, runtime }
    }

    /// A session whose messages were counted turn by turn.
    fn live_session(&self, messages: Arc<[Message]>) -> SessionContext {
        let context = SessionContext {
            model: ModelKey::new("openai", "gpt-4o"),
            limits: ContextLimits { window: TokenCount(WINDOW), ..ContextLimits::default() },
            tools: Arc::from([]),
            messages,
            unseen_tokens: TokenCount::ZERO,
            earlier: None,
            basis: basis(),
            request_fingerprint: RequestFingerprint::from_bytes([2; 32]),
            demand: Demand::Threshold,
            instructions: None,
            pinned: BTreeSet::new(),
        };
        let request = epitome_loop::Request {
            model: context.model.clone(),
            tools: context.tools.clone(),
            messages: context.messages.clone(),
            unseen_tokens: TokenCount::ZERO,
        };
        // A count that fails here fails again in the compaction, which then is none.
        let _known = self.counter.count_request(&request);
        context
    }

    /// Whether a session was compacted; it is dropped, as a host does that puts the outcome in its place.
    fn compact(&self, live: SessionContext) -> bool {
        let outcome = self.runtime.block_on(compact_once(&live, &self.policy, &self.ports));
        drop(live);
        matches!(outcome, Outcome::Compacted(_))
    }
}

fn draft() -> SummaryDraft {
    let items = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
    SummaryDraft::from(SummarySections {
        goal: items(&["Port the queue to the new worker."]),
        constraints: items(&["Never push to main."]),
        decisions: items(&["Three retries stay."]),
        state: items(&["The queue is ported."]),
        open_items: items(&["The ledger is next."]),
    })
}

fn policy() -> ValidPolicy {
    let policy = CompactionPolicy {
        automatic: true,
        counter_policy: CounterPolicy::AllowConservative,
        compact_at: BasisPoints(8_000),
        rearm_below: BasisPoints(6_000),
        reserved_output: TokenCount(8_000),
        safety_margin: TokenCount(1),
        max_summary_tokens: TokenCount(2_000),
        count_timeout: Duration::from_secs(10),
        hustle: "context.compact".into(),
        keep_recent: Some(KeepRecent { segments: u64::MAX, tokens: TokenCount(20_000) }),
        max_request_bytes: None,
        fallback: None,
        carry_constraints: true,
    };
    let valid = policy.validate(Some(CountQuality::HeuristicEstimate));
    valid.unwrap_or_else(|_| unreachable!("the policy is valid for any counter"))
}
