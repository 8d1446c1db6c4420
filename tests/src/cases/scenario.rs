//! Runs a case as a user of ours would: read the session, repair it, compact it, write it, read it again.

use epitome_loop::{
    ContextBasis, ContextMeasurement, ContextRevision, CountError, EventId, Message, ModelKey, PressureLevel,
    Request, RequestFingerprint, TokenCount, ValidPolicy,
};
use epitome_loopruntime::pressure_level;
use epitome_sessionruntime::journal::StableName;
use epitome_sessionruntime::{
    Compaction, Demand, Outcome, Ports, RefusalReason, ReportedContext, SessionContext, compact_once,
    leading_system, recognize_earlier_summary, unseen_by_report,
};
use epitome_transcripts::{Format, ReadError, ReadOptions, Replacement, Session, read, repair, write};

use super::case_file::Document;
use super::expectation::check;
use super::live::LiveFacts;
use super::session_policy::{SessionPolicy, read_policy};
use super::{Case, CaseError};
use crate::scripted::{ModelAnswer, ports_for};

/// Every case is run for each of these: one whose text is counted exactly, one that is estimated.
pub(super) const MODELS: [&str; 2] = ["gpt-4o", "claude-sonnet-4-5"];

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
    /// Whether the request was due for a compaction, whatever came of it.
    pub(super) is_due: bool,
    /// What the new request counted, and what it counts when it is read back from the file.
    pub(super) tokens_after: Option<(u64, u64)>,
    /// How many compactions it took until the session was left alone, by its threshold.
    pub(super) compactions: usize,
    /// Whether the new request lies below the level where a further compaction may start.
    pub(super) below_rearm: bool,
    /// The session that was read, unless it was refused.
    pub(super) session: Option<Session>,
    /// What a live session showed besides, when the case was played through one.
    pub(super) live: Option<LiveFacts>,
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
    let answer = case.answer.clone().map(ModelAnswer::new);
    let (key, ports) = ports_for(model, answer.as_ref()).ok_or(CaseError::Model)?;
    run_with(case, key, &ports, || answer.as_ref().is_some_and(ModelAnswer::was_refused)).map(|(ran, _)| ran)
}

/// Runs a case with these ports, and says what was repaired in the answer. `was_refused` says whether the summarizer had
/// an answer that was no summary.
pub(super) fn run_with(
    case: &Case,
    key: ModelKey,
    ports: &Ports,
    was_refused: impl Fn() -> bool,
) -> Result<(Ran, Vec<StableName>), CaseError> {
    let mut answer_repairs = Vec::new();
    let document = case.document.as_ref().map_err(CaseError::clone)?;
    let options = ReadOptions { format: Some(document.format), conversation: None };
    let original = match read(&document.bytes, &options, &mut |_| {}) {
        Ok(session) => session,
        Err(error) => return Ok((Ran::rejected(error), answer_repairs)),
    };
    let SessionPolicy { policy, limits, rearm_below, force, settings: _ } = match read_policy(&case.policy)? {
        Ok(policy) => policy,
        Err(error) => {
            let (repaired, _) = repair(&original);
            let unchanged = Ran::unchanged(document, original, &repaired)?;
            let ran = Ran { outcome: "policy_error", reason: error.to_string(), ..unchanged };
            return Ok((ran, answer_repairs));
        }
    };
    let (session, repairs) = repair(&original);
    let mut context = SessionContext {
        model: key,
        limits,
        tools: session.tools().clone(),
        earlier: recognize_earlier_summary(session.messages()),
        messages: session.messages().clone(),
        unseen_tokens: TokenCount::ZERO,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) },
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
        // A case that scripts an answer is about that answer, so it is asked for in any event.
        demand: if force || !case.summary.is_null() { Demand::Manual } else { Demand::Threshold },
        instructions: None,
        pinned: std::collections::BTreeSet::new(),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|_| CaseError::Runtime)?;
    context.unseen_tokens =
        runtime.block_on(unseen(&context, &session, ports)).map_err(|_| CaseError::Part("usage"))?;
    let outcome = runtime.block_on(compact_once(&context, &policy, ports));

    let is_due = |measured: &ContextMeasurement| {
        let level = pressure_level(PressureLevel::Unknown, measured.occupancy(), policy.trigger());
        level >= PressureLevel::Compact
    };

    let mut ran = Ran::unchanged(document, original, &session)?;
    match outcome {
        Outcome::LeftAlone { measurement, .. } => {
            ran.tokens = Some(measurement.input_tokens.get());
            ran.reason = format!("at {} tokens", measurement.input_tokens);
        }
        Outcome::Refused(refusal) => {
            let of_summary = match &refusal.reason {
                RefusalReason::InvalidSummary(_) | RefusalReason::SummaryTooLarge(_) => true,
                _ => was_refused(),
            };
            ran.outcome = match &refusal.reason {
                _ if of_summary => "reject_summary",
                // The limits of the policy and the model leave no room.
                RefusalReason::ContextLimitUnknown(_) => "policy_error",
                _ => "error",
            };
            ran.tokens = refusal.before.as_ref().map(|before| before.input_tokens.get());
            ran.is_due = refusal.before.as_ref().is_some_and(is_due);
            ran.reason = refusal.reason.to_string();
        }
        Outcome::Compacted(compaction) => {
            let (before, after) = (&compaction.before, &compaction.after);
            ran.outcome = "compact";
            ran.tokens = Some(before.input_tokens.get());
            ran.is_due = is_due(before);
            ran.below_rearm = after.occupancy() < rearm_below;
            ran.bytes_unchanged = false;
            ran.reason = format!(
                "{} to {} tokens, {} repair(s)",
                before.input_tokens,
                after.input_tokens,
                repairs.len()
            );
            ran.after = written(&ran.before, &session, &compaction)?;
            context.messages = ran.after.iter().map(|named| named.message.clone()).collect();
            let read_back = runtime.block_on(ports.counter.count(&request_of(&context)));
            let read_back = read_back.map_err(|_| CaseError::Part("compacted session"))?;
            ran.tokens_after = Some((after.input_tokens.get(), read_back.input_tokens.get()));
            answer_repairs.clone_from(&compaction.repairs);
            ran.compactions = 1 + runtime.block_on(further_compactions(context, &policy, ports));
        }
    }
    Ok((ran, answer_repairs))
}

/// What the provider counted beyond what the case shows, where it gives a provider's figure.
async fn unseen(
    context: &SessionContext,
    session: &Session,
    ports: &Ports,
) -> Result<TokenCount, CountError> {
    let Some(usage) = session.reported_usage() else { return Ok(TokenCount::ZERO) };
    let reported = ReportedContext { messages: usage.message + 1, tokens: usage.context_tokens };
    unseen_by_report(&*ports.counter, &request_of(context), reported).await
}

fn request_of(context: &SessionContext) -> Request {
    Request {
        model: context.model.clone(),
        tools: context.tools.clone(),
        messages: context.messages.clone(),
        unseen_tokens: context.unseen_tokens,
    }
}

/// How often a compacted session is compacted again, although nothing was added to it, by its threshold.
async fn further_compactions(mut context: SessionContext, policy: &ValidPolicy, ports: &Ports) -> usize {
    const ENOUGH: usize = 5;
    context.demand = Demand::Threshold;
    for done in 0..ENOUGH {
        context.earlier = recognize_earlier_summary(&context.messages);
        let Outcome::Compacted(compaction) = compact_once(&context, policy, ports).await else { return done };
        let system = leading_system(&context.messages);
        let mut kept: Vec<Message> =
            compaction.kept.iter().filter_map(|&at| context.messages.get(at).cloned()).collect();
        kept.insert(system.min(kept.len()), Message::user(compaction.summary.raw().clone()));
        context.messages = kept.into();
    }
    ENOUGH
}

impl Ran {
    /// A session that our reader refuses.
    pub(super) fn rejected(error: ReadError) -> Self {
        Self {
            before: Vec::new(),
            after: Vec::new(),
            bytes_unchanged: true,
            outcome: "reject_input",
            reason: error.to_string(),
            tokens: None,
            is_due: false,
            tokens_after: None,
            compactions: 0,
            below_rearm: false,
            session: None,
            live: None,
        }
    }

    /// A session that is sent as it was repaired, and whose file stays as it is.
    pub(super) fn unchanged(
        document: &Document,
        original: Session,
        repaired: &Session,
    ) -> Result<Self, CaseError> {
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
            is_due: false,
            tokens_after: None,
            compactions: 0,
            below_rearm: false,
            session: Some(original),
            live: None,
        })
    }
}

/// The messages of a session as it was read, each with its name; `None` when there are more or fewer names.
pub(super) fn named(names: &[String], session: &Session) -> Option<Vec<Named>> {
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
pub(super) fn matched(before: &[Named], messages: &[Message]) -> Vec<Named> {
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
