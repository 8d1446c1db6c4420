//! A live session whose summaries come from a model that fails: whatever it does, the history stays as it was.

use std::io;
use std::sync::Arc;

use epitome_loop::{ContextLimits, Message, TokenCount};
use epitome_sessionruntime::{CompactError, SummarizerWorker};
use epitome_summarizers::{ModelSummarizer, ModelSummarizerSettings};

use super::{CANARY_SAID, FaultCase, MODEL, leaks};
use crate::session_scene::{ScriptedWorker, SessionScene, WorkAct, turn};

/// Compacts a session by the model of a case, without and with a fallback, and says what is wrong with what came of it.
///
/// No answer of any case is a summary, so without a fallback every compaction must be refused, and with one every one must
/// be degraded.
///
/// # Errors
/// When a server cannot be started.
pub async fn faults_in_a_session(case: &FaultCase) -> io::Result<Vec<String>> {
    let mut faults = Vec::new();
    for has_fallback in [false, true] {
        let played = case.start()?;
        let limits = ContextLimits { window: TokenCount(32_000), ..ContextLimits::default() };
        let settings = ModelSummarizerSettings::new(MODEL, limits);
        let summarizer = ModelSummarizer::new(Arc::new(played.model.clone()), settings);
        let summarizer = summarizer.map_err(io::Error::other)?;
        let scene = SessionScene {
            instead: Some(Arc::new(SummarizerWorker::new(Arc::new(summarizer)))),
            fallback: has_fallback.then(|| Arc::new(ScriptedWorker::new(WorkAct::Answers))),
            window: 8_000,
            ..SessionScene::default()
        };
        let found = compacted(&scene, has_fallback).await;
        faults.extend(found.into_iter().map(|fault| match has_fallback {
            true => format!("in a session with a fallback: {fault}"),
            false => format!("in a session: {fault}"),
        }));
    }
    Ok(faults)
}

async fn compacted(scene: &SessionScene, has_fallback: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let session = match scene.open().await {
        Ok(session) => session,
        Err(error) => return vec![error.to_string()],
    };
    for at in 0..8 {
        let mut messages = turn(at, 300);
        messages.insert(0, Message::user(CANARY_SAID));
        if let Err(error) = session.append(messages).await {
            faults.push(error.to_string());
        }
    }
    let before = session.messages();
    let outcome = session.compact(None).await;
    match &outcome {
        Ok(report) if has_fallback && report.degraded.is_some() => {}
        Err(CompactError::Rejected(refused)) if !has_fallback => {
            if refused.detail.is_none() {
                faults.push("a refusal without a finer reason".to_owned());
            }
            if session.messages() != before || session.state().in_force() != 0 {
                faults.push("the history was changed".to_owned());
            }
        }
        other => faults.push(format!("it came to {other:?}")),
    }
    let shown = match &outcome {
        Ok(report) => format!("{report:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    faults.extend(leaks(&shown));
    // It goes on.
    if let Err(error) = session.append(turn(20, 100)).await {
        faults.push(format!("afterwards: {error}"));
    }
    session.shut_down().await;
    faults
}
