//! Plays a case through a live session, as its host would: real loop, real journal, and a summarizer that answers as
//! the case says.
//!
//! The words of the reports are mapped to the nearest of ours:
//!
//! | word | here |
//! |---|---|
//! | a message with `summary` right behind the system prompt | a compaction that the journal holds already |
//! | `compaction` with `first_kept` | a compaction that the journal holds already, made while the session was closed |
//! | `compaction_start`, `compact` with `force` | a user asks for a compaction |
//! | `compact`, `measure`, `pass` | the host asks for leave to send a request |
//! | `summary_reply`, `summary_error` | the summarizer answers the pass with this id, else the oldest that waits |
//! | `commit` | the moment at which the outcome is looked at; our sessions commit by themselves |
//! | `summarizer_limit` | the limit of the hustle's input, four bytes a token; its worker gets what a model would |
//! | `fold_budget` | nothing: our sessions fold everything before the tail in one pass |
//! | `basis_revision` | nothing: the journal holds each attempt to the context that it works on |

mod facts;
mod host;
mod passes;
mod time_line;
mod worker;

use epitome_loop::{BasisPoints, Message, PressureLevel};
use epitome_loopruntime::pressure_level;
use epitome_sessionruntime::journal::{RecordBody, Restored};
use epitome_sessionruntime::leading_system;
use epitome_transcripts::{ReadOptions, read, repair};
use serde_json::Value;

use super::expectation::check;
use super::scenario::{MODELS, Named, Ran, matched};
use super::session_policy::read_policy;
use super::{Case, CaseError};
use host::{Host, NoSession};
use passes::Passed;
use time_line::Play;

pub(super) use facts::LiveFacts;

/// A session that is left alone is asked so often whether it stays so.
const MORE_PASSES: usize = 3;

pub(super) fn judge(case: &Case) -> Result<(String, Vec<String>), CaseError> {
    let mut outcomes = Vec::new();
    let mut failures = Vec::new();
    for model in MODELS {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let ran = runtime.map_err(|_| CaseError::Runtime)?.block_on(run(case, model))?;
        outcomes.push(format!("{model}: {} {}", ran.outcome, ran.reason));
        failures.extend(check(case, &ran)?.into_iter().map(|failure| format!("{model}: {failure}")));
    }
    Ok((outcomes.join("; "), failures))
}

/// Whether the time line holds anything that may compact.
fn has_passes(events: &[Value]) -> bool {
    events.iter().any(|event| {
        matches!(
            event["op"].as_str(),
            Some("compact" | "compaction_start" | "compaction" | "measure" | "pass")
        )
    })
}

async fn run(case: &Case, model: &str) -> Result<Ran, CaseError> {
    let document = case.document.as_ref().map_err(CaseError::clone)?;
    let options = ReadOptions { format: Some(document.format), conversation: None };
    let original = match read(&document.bytes, &options, &mut |_| {}) {
        Ok(session) => session,
        Err(error) => return Ok(Ran::rejected(error)),
    };
    let goes_on = case.events.iter().any(|event| event["op"] == "append");
    // A conversation that goes on is as its host has it; one that comes from a file is repaired.
    let spoken = if goes_on { original.clone() } else { repair(&original).0 };
    let mut ran = Ran::unchanged(document, original.clone(), &spoken)?;
    let policy = match read_policy(&case.policy)? {
        Ok(policy) => policy,
        Err(error) => return Ok(Ran { outcome: "policy_error", reason: error.to_string(), ..ran }),
    };
    let rearm_below = policy.rearm_below;
    let trigger = policy.policy.trigger();
    let otherwise = match (&case.answer_error, &case.answer) {
        (Some(error), _) => Some(Err(error.clone())),
        (None, Some(text)) => Some(Ok(text.clone())),
        (None, None) => None,
    };
    let is_scripted = otherwise.is_some();
    let opened = Host::open(model, policy, &case.policy, spoken.tools().clone(), otherwise).await?;
    let mut host = match opened {
        Ok(host) => host,
        Err(NoSession(reason)) => return Ok(Ran { outcome: "policy_error", reason, ..ran }),
    };
    let is_forced = host.policy.force;

    let mut play = Play::new(&mut host);
    begin(case, &ran.after, &mut play).await?;
    play.events(&case.events).await?;
    let mut further = 0;
    if !has_passes(&case.events) {
        play.begin(None, false, false).await;
        play.answered().await;
        play.end().await?;
        // A case that scripts an answer, or says how much a summarizer takes, is about that, so it is asked for in any
        // event.
        let is_about_asking =
            is_scripted || ["fold_budget", "summarizer_limit"].iter().any(|word| case.policy[*word].is_u64());
        let is_left_alone = play.passed.iter().all(|passed| passed.outcome == "no_compact");
        if (is_forced || is_about_asking) && is_left_alone {
            play.begin(None, true, false).await;
            play.answered().await;
            play.end().await?;
        }
        // Nothing new is said, so nothing more may happen.
        further = play.passed.len();
        for _ in 0..MORE_PASSES {
            play.begin(None, false, false).await;
            play.answered().await;
            play.end().await?;
        }
    }
    let Play { said, passed, commits: commits_asked, survived_failures, context_before, .. } = play;

    let now = host.session.messages();
    let restored = host.restored().await?;
    let (attempts, commits) = began_and_committed(&host).await?;
    let shown = if further > 0 { passed.get(further - 1) } else { passed.last() };
    let measured = restored.state.tracker().measurement();
    let occupancy = measured.map_or(BasisPoints(0), epitome_loop::ContextMeasurement::occupancy);
    ran.live = Some(LiveFacts {
        is_unchanged: is_unchanged(context_before.as_deref(), &now, &said),
        survived_failures,
        broken_laws: broken_laws(&host, &restored, &said, case).await?,
        outcomes: passed.iter().map(|passed| passed.outcome).collect(),
        attempts,
        commits,
        commits_asked,
        was_asked_twice: host.worker.was_asked_twice(),
        made_progress: made_progress(&passed, further),
        reason: shown.map(|passed| passed.reason.clone()).unwrap_or_default(),
    });
    ran.before.clone_from(&said);
    ran.after = matched(&said, &now);
    ran.compactions = commits;
    ran.below_rearm = commits > 0 && occupancy < rearm_below;
    ran.bytes_unchanged = true;
    if let Some(shown) = shown {
        ran.outcome =
            if shown.landed_high() && case.expect.get("outcome").is_some_and(|it| it == "ineffective") {
                "ineffective"
            } else {
                shown.outcome
            };
        ran.reason.clone_from(&shown.reason);
        ran.tokens = shown.tokens;
    }
    ran.is_due = passed.iter().any(|passed| !passed.failed())
        || pressure_level(PressureLevel::Unknown, occupancy, trigger) >= PressureLevel::Compact;
    if let Some(report) = passed.iter().rev().find_map(|passed| passed.report.as_ref())
        && let Some(measured) = measured
    {
        ran.tokens_after = Some((report.after.input_tokens.get(), measured.input_tokens.get()));
    }
    host.session.shut_down().await;
    Ok(ran)
}

/// Puts the session in place that the case begins with, message by message.
async fn begin(case: &Case, session: &[Named], play: &mut Play<'_>) -> Result<(), CaseError> {
    let messages: Vec<Message> = session.iter().map(|named| named.message.clone()).collect();
    let lead = leading_system(&messages);
    let earlier = session.get(lead).filter(|named| case.earlier.contains(&named.name));
    let mut rest = session;
    if let Some(earlier) = earlier {
        let (leading, behind) = session.split_at_checked(lead).ok_or(CaseError::Part("session"))?;
        play.append(leading.to_vec()).await;
        play.append(vec![earlier.clone()]).await;
        play.end().await?;
        let text: String = earlier.message.blocks().iter().filter_map(text_of).collect();
        play.host.store_compaction(&text, lead as u64 + 1).await?;
        rest = behind.get(1..).unwrap_or_default();
    }
    for message in rest.chunk_by(|one, other| one.name == other.name) {
        play.append(message.to_vec()).await;
    }
    play.end().await
}

fn text_of(block: &epitome_loop::Block) -> Option<String> {
    match block {
        epitome_loop::Block::Text { text } => Some(text.to_string()),
        _ => None,
    }
}

/// Whether the context is what it was before the first pass, but for what was appended since.
fn is_unchanged(before: Option<&[Message]>, now: &[Message], said: &[Named]) -> bool {
    let Some(before) = before else { return true };
    let Some(since) = now.strip_prefix(before) else { return false };
    let newest = said.iter().rev().map(|named| &named.message);
    since.iter().rev().eq(newest.take(since.len()))
}

/// Whether something was summarized, the request shrank, and no further pass did anything.
fn made_progress(passed: &[Passed], further: usize) -> bool {
    let shrank = |passed: &Passed| {
        passed.report.as_ref().is_some_and(|report| {
            report.replaced > 0 && report.after.input_tokens < report.before.input_tokens
        })
    };
    let (acted, idle) = passed.split_at_checked(further).unwrap_or((passed, &[]));
    acted.iter().any(shrank) && idle.iter().all(|passed| passed.outcome == "no_compact")
}

async fn began_and_committed(host: &Host) -> Result<(usize, usize), CaseError> {
    let records = host.records().await?;
    let count = |is: fn(&RecordBody) -> bool| records.iter().filter(|record| is(&record.body)).count();
    let began = count(|body| matches!(body, RecordBody::Started(_)));
    let committed = count(|body| matches!(body, RecordBody::Committed(_)));
    Ok((began.saturating_sub(host.stored), committed.saturating_sub(host.stored)))
}

/// What holds of every session, whatever a case expects.
async fn broken_laws(
    host: &Host,
    restored: &Restored,
    said: &[Named],
    case: &Case,
) -> Result<Vec<String>, CaseError> {
    let mut broken = Vec::new();
    let mut require = |holds: bool, law: &str| {
        if !holds {
            broken.push(law.to_owned());
        }
    };
    let session = &host.session;
    require(restored.state == session.state(), "what is live is not what the journal adds up to");
    require(
        restored.context_messages(&restored.state.context()) == *session.messages(),
        "the context is not the one that the journal gives",
    );
    let is_all_there = restored.messages.iter().eq(said.iter().map(|named| &named.message));
    require(is_all_there, "the journal does not hold everything that was said, once and in order");
    let window = case.policy["summarizer_limit"].as_u64().map(|tokens| tokens.saturating_mul(4));
    let largest = host.worker.largest();
    require(window.is_none_or(|window| largest <= window), "a summarizer was sent more than it takes");
    Ok(broken)
}
