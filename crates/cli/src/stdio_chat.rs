//! `epitome compact --stdio-chat BUDGET`: the contract of offline yardsticks for compactors.
//!
//! Chat messages as a JSON array come in on standard input, the compacted messages go out on standard output.
//! A token is four bytes there, and every message costs four tokens besides its text. The budget in bytes,
//! unrounded, may stand in the environment variable `COMPACT_BUDGET_BYTES`.

use std::io::{self, Read as _};
use std::sync::Arc;

use epitome_loop::{Block, Message, SharedText, SummarizerError, SummaryRequest, TokenCount};
use epitome_loopruntime::parse_summary_text;
use epitome_sessionruntime::{leading_system, recognize_earlier_summary};
use epitome_summarizers::Extractive;
use epitome_transcripts::{Format, ReadOptions, Replacement};

use crate::failure::Failure;
use crate::output::Destination;

/// What every message costs besides its text, in bytes.
const MESSAGE_BYTES: usize = 16;

/// Compacts chat messages to a budget. Messages that fit are passed on unchanged.
pub(crate) fn run(budget_tokens: u64) -> Result<(), Failure> {
    let budget = std::env::var("COMPACT_BUDGET_BYTES").ok().and_then(|bytes| bytes.parse().ok());
    let budget =
        budget.unwrap_or_else(|| usize::try_from(budget_tokens.saturating_mul(4)).unwrap_or(usize::MAX));
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input).map_err(Failure::io("standard input"))?;
    let options = ReadOptions { format: Some(Format::OpenAiChat), conversation: None };
    let session = epitome_transcripts::read(&input, &options, &mut |_| {}).map_err(Failure::StdioChat)?;
    let (session, _) = epitome_transcripts::repair(&session);
    let messages = session.messages();
    if messages.iter().map(size).sum::<usize>() <= budget {
        return Destination::Stdout.write(&input);
    }

    // A system prompt stays if it leaves most of the budget to the conversation.
    let lead = leading_system(messages);
    let system: usize = messages.iter().take(lead).map(size).sum();
    let kept = if system <= budget / 3 { lead } else { 0 };
    let room = if kept > 0 { budget - system } else { budget };
    let earlier = recognize_earlier_summary(messages);
    let skipped = earlier.as_ref().map_or(0, |earlier| earlier.messages);
    let transcript: Vec<Message> = if kept > 0 {
        messages.iter().skip(lead + skipped).cloned().collect()
    } else {
        messages.iter().take(lead).chain(messages.iter().skip(lead + skipped)).cloned().collect()
    };
    let request = SummaryRequest {
        transcript: transcript.into(),
        previous: earlier.and_then(|earlier| earlier.sections),
        instructions: None,
        max_tokens: TokenCount(u64::MAX),
        max_bytes: Some(room.saturating_sub(MESSAGE_BYTES)),
        estimator: Arc::new(|text: &str| TokenCount((text.len() as u64).div_ceil(4))),
        correction: None,
        carry_constraints: true,
    };
    let draft = Extractive::new().summarize_now(&request).map_err(Failure::StdioBudget)?;
    let summary = proven(draft.sections.render().xml)?;
    let kept: Vec<usize> = (0..kept).collect();
    let replacement = Replacement { summary: Some(&summary), kept: &kept };
    let (bytes, _) =
        epitome_transcripts::write(&session, &replacement, Format::OpenAiChat).map_err(Failure::Write)?;
    Destination::Stdout.write(&bytes)
}

/// The summary, if the strict parser accepts it.
fn proven(xml: SharedText) -> Result<SharedText, Failure> {
    match parse_summary_text(xml) {
        Ok(summary) => Ok(summary.raw().clone()),
        Err(_) => Err(Failure::StdioBudget(SummarizerError::Unavailable)),
    }
}

/// What a message costs in the contract: its text, its calls as `name(arguments)`, and the fixed part.
fn size(message: &Message) -> usize {
    let blocks = message.blocks().iter().map(|block| match block {
        Block::Text { text } | Block::Refusal { text } => text.len(),
        Block::ToolUse(call) => {
            call.name.len() + 2 + call.input.as_ref().map_or(0, |input| input.as_str().len())
        }
        _ => 0,
    });
    let parts = message.blocks().len();
    blocks.sum::<usize>() + parts.saturating_sub(1) + MESSAGE_BYTES
}
