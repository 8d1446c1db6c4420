//! Runs a case as a user of ours would: read the session, repair it, compact it, write it, read it again.

use epitome_loop::{ContextBasis, ContextRevision, EventId, Message, RequestFingerprint, TokenCount};
use epitome_sessionruntime::{
    Compaction, Demand, Outcome, RefusalReason, SessionContext, compact_once, recognize_earlier_summary,
};
use epitome_transcripts::{Format, ReadError, ReadOptions, Replacement, Session, read, repair, write};

use super::case_file::Document;
use super::expectation::check;
use super::session_policy::{SessionPolicy, read_policy};
use super::{Case, CaseError};
use crate::scripted::{ModelAnswer, ports_for};

/// Every case is run for each of these: one whose text is counted exactly, one that is estimated.
const MODELS: [&str; 2] = ["gpt-4o", "claude-sonnet-4-5"];

/// A message and the name that the case gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) message: Message,
}

/// What became of a session.
pub(super) struct Ran {
    /// The session before, as it was read.
    pub(super) before: Vec<Named>,
    /// The session that is sent next: compacted, or without a compaction the repaired one.
    pub(super) after: Vec<Named>,
    /// Whether what would be written is the input, byte for byte.
    pub(super) bytes_unchanged: bool,
    /// In the words of the case files.
    pub(super) outcome: &'static str,
    /// Why, for people.
    pub(super) reason: String,
    /// What the whole request counted, when it could be counted.
    pub(super) tokens: Option<u64>,
    /// Whether the new request lies below the level where a further compaction may start.
    pub(super) below_rearm: bool,
    /// The session that was read, unless it was refused.
    pub(super) session: Option<Session>,
}

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let mut outcomes = Vec::new();
    let mut failures = Vec::new();
    for model in MODELS {
        let ran = run(case, model)?;
        outcomes.push(format!("{model}: {} {}", ran.outcome, ran.reason));
        failures.extend(check(case, &ran)?.into_iter().map(|failure| format!("{model}: {failure}")));
    }
    Ok((outcomes.join("; "), failures))
}

fn run(case: &Case, model: &str) -> Result<Ran, CaseError> {
    let document = case.document.as_ref().map_err(CaseError::clone)?;
    let options = ReadOptions { format: Some(document.format), conversation: None };
    let original = match read(&document.bytes, &options, &mut |_| {}) {
        Ok(session) => session,
        Err(error) => return Ok(Ran::rejected(error)),
    };
    let SessionPolicy { policy, limits, rearm_below, force } = read_policy(&case.policy)?;
    let answer = case.answer.clone().map(ModelAnswer::new);
    let (key, ports) = ports_for(model, answer.as_ref()).ok_or(CaseError::Model)?;
    let (session, repairs) = repair(&original);
    let context = SessionContext {
        model: key,
        limits,
        tools: session.tools().clone(),
        earlier: recognize_earlier_summary(session.messages()),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount::ZERO,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) },
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
        // A case that scripts an answer is about that answer, so it is asked for in any event.
        demand: if force || answer.is_some() { Demand::Manual } else { Demand::Threshold },
        instructions: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|_| CaseError::Runtime)?;
    let outcome = runtime.block_on(compact_once(&context, &policy, &ports));

    let mut ran = Ran::unchanged(document, original, &session)?;
    match outcome {
        Outcome::LeftAlone { measurement, .. } => {
            ran.tokens = Some(measurement.input_tokens.get());
            ran.reason = format!("at {} tokens", measurement.input_tokens);
        }
        Outcome::Refused(refusal) => {
            let of_summary = match &refusal.reason {
                RefusalReason::InvalidSummary(_) | RefusalReason::SummaryTooLarge(_) => true,
                _ => answer.is_some_and(|answer| answer.was_refused()),
            };
            ran.outcome = if of_summary { "reject_summary" } else { "error" };
            ran.tokens = refusal.before.as_ref().map(|before| before.input_tokens.get());
            ran.reason = refusal.reason.to_string();
        }
        Outcome::Compacted(compaction) => {
            let (before, after) = (&compaction.before, &compaction.after);
            ran.outcome = "compact";
            ran.tokens = Some(before.input_tokens.get());
            ran.below_rearm = after.occupancy() < rearm_below;
            ran.bytes_unchanged = false;
            ran.reason = format!(
                "{} to {} tokens, {} repair(s)",
                before.input_tokens,
                after.input_tokens,
                repairs.len()
            );
            ran.after = written(&ran.before, &session, &compaction)?;
        }
    }
    Ok(ran)
}

impl Ran {
    /// A session that our reader refuses.
    fn rejected(error: ReadError) -> Self {
        Self {
            before: Vec::new(),
            after: Vec::new(),
            bytes_unchanged: true,
            outcome: "reject_input",
            reason: error.to_string(),
            tokens: None,
            below_rearm: false,
            session: None,
        }
    }

    /// A session that is sent as it was repaired, and whose file stays as it is.
    fn unchanged(document: &Document, original: Session, repaired: &Session) -> Result<Self, CaseError> {
        let unusable = CaseError::Part("session");
        let whole: Vec<usize> = (0..original.messages().len()).collect();
        let everything = Replacement { summary: None, kept: &whole };
        let (bytes, _) = write(&original, &everything, document.format).map_err(|_| unusable.clone())?;
        let before = named(&document.names, &original).ok_or(unusable)?;
        Ok(Self {
            after: matched(&before, repaired.messages()),
            before,
            bytes_unchanged: bytes == document.bytes,
            outcome: "no_compact",
            reason: String::new(),
            tokens: None,
            below_rearm: false,
            session: Some(original),
        })
    }
}

/// The messages of a session as it was read, each with its name; `None` when there are more or fewer names.
fn named(names: &[String], session: &Session) -> Option<Vec<Named>> {
    let messages = session.messages();
    let pairs = names.iter().cloned().zip(messages.iter().cloned());
    let named = pairs.map(|(name, message)| Named { name, message }).collect();
    (messages.len() == names.len()).then_some(named)
}

/// What stands in the file after a compaction: written, read back, and named by what it equals.
fn written(before: &[Named], session: &Session, compaction: &Compaction) -> Result<Vec<Named>, CaseError> {
    let unusable = CaseError::Part("compacted session");
    let replacement = Replacement { summary: Some(compaction.summary.raw()), kept: &compaction.kept };
    let (bytes, _) = write(session, &replacement, Format::EpitomeJson).map_err(|_| unusable.clone())?;
    let session = read(&bytes, &ReadOptions::default(), &mut |_| {}).map_err(|_| unusable)?;
    Ok(matched(before, session.messages()))
}

/// Names the messages that are as they were.
fn matched(before: &[Named], messages: &[Message]) -> Vec<Named> {
    let mut unused: Vec<&Named> = before.iter().collect();
    let name_of = |message: &Message| {
        let name = match unused.iter().position(|named| named.message == *message) {
            Some(at) => unused.remove(at).name.clone(),
            None => "(new)".to_owned(),
        };
        Named { name, message: message.clone() }
    };
    messages.iter().map(name_of).collect()
}
