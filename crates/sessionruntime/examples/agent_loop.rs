//! A complete agent loop, offline: thousands of turns in a window that holds some dozens of them.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::sync::Arc;

use epitome_loop::*;
use epitome_rig::read_rig_file;
use epitome_sessionruntime::{journal::MemoryJournal, *};

const RIG: &[u8] = br#"
[hustle_limits]
blocking = { concurrent = 1, queued = 8 }
background = { concurrent = 1, queued = 8 }
audit_timeout = "5s"
finalization_timeout = "5s"
worker_drain_timeout = "5s"

[[hustles]]
name = "context.compact"
participation = "blocking"
timeout = "30s"
input_bytes = 1048576
output_bytes = 65536
model = { source = "embedded" }
policy_revision = "1"
retry = "classified_once"
identity = "host"

[[loops]]
name = "porter"
model = { provider = "local", name = "scripted", window = 16000 }
counter = { transport = "local", retention = "none", tokenizer_rev = "function", quality = "heuristic_estimate" }
inference = { provider = "local", transport = "local" }
compaction = { automatic = true, counter_policy = "allow_conservative", compact_at = "80%", rearm_below = "50%", reserved_output = 1000, safety_margin = 500, max_summary_tokens = 500, count_timeout = "2s", hustle = "context.compact", keep_recent = { tokens = 2000 } }
"#;

/// What a model does with a request: it has a tool port the newest file, and says that it is done.
fn model(_request: &[Message], turn: u32) -> Vec<Message> {
    let call = Block::ToolUse(ToolUse::new(format!("call-{turn}"), "port_file", None, None));
    let result = Message::tool_result(format!("call-{turn}"), "ported\n".repeat(40), false);
    vec![Message::Assistant { blocks: [call].into(), usage: None }, result, Message::assistant("Ported.")]
}

/// What summarizes; `epitome-summarizers` has a real one that needs no model.
fn summarize(request: &SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
    Ok(SummaryDraft::from(SummarySections {
        goal: vec!["Port every file.".into()],
        state: vec![format!("{} messages are summarized.", request.transcript.len()).into()],
        ..SummarySections::default()
    }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rig = read_rig_file(RIG)?;
    let porter = rig.bound_loop("porter").ok_or("it is in the file")?;
    let count = |request: &Request| TokenCount(request.messages.iter().map(tail_estimate).sum());
    let agent_loop = LoopPorts {
        counter: Arc::new(count),
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
        worker: Some(Arc::new(SummarizerWorker::new(Arc::new(summarize)))),
        fallback: None,
    };
    let ports = SessionPorts::new(Arc::new(MemoryJournal::new()), agent_loop);
    let session = Session::open(porter, SessionSettings::of(SessionId::from_bytes([7; 16])), ports).await?;
    for turn in 0..3_000 {
        session.append([Message::user(format!("Port file {turn}."))]).await?;
        let admitted = session.admit(RequestFrame::default()).await?;
        session.append(model(&admitted.messages, turn)).await?;
    }
    let (state, to_send) = (session.state(), session.messages().len());
    println!("{} messages, {} compactions, {to_send} messages to send", state.messages(), state.in_force());
    session.rewind_to(0).await?;
    println!("all taken back: {} messages to send", session.messages().len());
    session.shut_down().await;
    Ok(())
}
