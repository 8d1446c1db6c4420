//! Runs a case as a session of ours: read, count, compact, put the result in place.

use std::sync::Arc;

use epitome_loop::{ContextBasis, ContextRevision, EventId, Message, RequestFingerprint, TokenCount};
use epitome_sessionruntime::{
    Demand, Outcome, Ports, RefusalReason, SessionContext, compact_once, recognize_earlier_summary,
};

use super::case_file::Named;
use super::expectation::check;
use super::session_policy::{SessionPolicy, read_policy};
use super::{Case, CaseError};
use crate::scripted::{ModelAnswer, ports_for};

/// Every case is run for each of these: one whose text is counted exactly, one that is estimated.
const MODELS: [&str; 2] = ["gpt-4o", "claude-sonnet-4-5"];

/// What became of a session.
pub(super) struct Ran {
    /// The session before.
    pub(super) before: Vec<Named>,
    /// The session after; the same when nothing was compacted.
    pub(super) after: Vec<Named>,
    /// In the words of the case files.
    pub(super) outcome: &'static str,
    /// Why, for people.
    pub(super) reason: String,
    /// What the whole request counted, when it could be counted.
    pub(super) tokens: Option<u64>,
    /// Whether the new request lies below the level where a further compaction may start.
    pub(super) below_rearm: bool,
}

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let mut outcomes = Vec::new();
    let mut failures = Vec::new();
    for model in MODELS {
        let ran = run(case, model)?;
        outcomes.push(format!("{model}: {} {}", ran.outcome, ran.reason));
        failures.extend(check(case, &ran)?.into_iter().map(|failure| format!("{model}: {failure}")));
    }
    outcomes.dedup();
    Ok((outcomes.join("; "), failures))
}

fn run(case: &Case, model: &str) -> Result<Ran, CaseError> {
    let SessionPolicy { policy, limits, rearm_below, force } = read_policy(&case.policy)?;
    let before = case.session()?;
    let messages: Arc<[Message]> = before.iter().map(|named| named.message.clone()).collect();
    let answer = ModelAnswer::new(case.answer.clone());
    let (key, ports): (_, Ports) = ports_for(model, &answer).ok_or(CaseError::Runtime)?;
    let session = SessionContext {
        model: key,
        limits,
        tools: Arc::default(),
        earlier: recognize_earlier_summary(&messages),
        messages: messages.clone(),
        unseen_tokens: TokenCount::ZERO,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) },
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
        demand: if force { Demand::Manual { instructions: None } } else { Demand::Threshold },
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().map_err(|_| CaseError::Runtime)?;
    let outcome = runtime.block_on(compact_once(&session, &policy, &ports));
    let unchanged = |outcome, reason: String, tokens| Ran {
        after: before.clone(),
        before: before.clone(),
        outcome,
        reason,
        tokens,
        below_rearm: false,
    };
    Ok(match outcome {
        Outcome::LeftAlone { measurement, .. } => {
            let tokens = measurement.input_tokens.get();
            unchanged("no_compact", format!("at {tokens} tokens"), Some(tokens))
        }
        Outcome::Refused(refusal) => {
            let tokens = refusal.before.as_ref().map(|before| before.input_tokens.get());
            let rejected = answer.was_refused()
                || matches!(refusal.reason, RefusalReason::InvalidSummary(_) | RefusalReason::SummaryTooLarge(_));
            let outcome = if rejected { "reject_summary" } else { "error" };
            unchanged(outcome, refusal.reason.to_string(), tokens)
        }
        Outcome::Compacted(compaction) => {
            let kept = |at: &usize| before.get(*at).cloned();
            let systems = messages.iter().take_while(|message| matches!(message, Message::System { .. })).count();
            let (lead, tail) = compaction.kept.split_at(systems.min(compaction.kept.len()));
            let summary = Message::user(compaction.summary.raw().clone());
            let summary = Named { id: "the summary".to_owned(), message: summary };
            let after = lead.iter().filter_map(kept).chain([summary]).chain(tail.iter().filter_map(kept));
            Ran {
                after: after.collect(),
                outcome: "compact",
                reason: format!("{} to {} tokens", compaction.before.input_tokens, compaction.after.input_tokens),
                tokens: Some(compaction.before.input_tokens.get()),
                below_rearm: compaction.after.occupancy() < rearm_below,
                before,
            }
        }
    })
}
