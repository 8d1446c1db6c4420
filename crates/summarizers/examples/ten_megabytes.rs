//! What a conversation of 10 MB costs a summarizer by a model, beside the model itself: writing the question for windows of
//! three sizes, and reading an answer with the user's rules looked up.
//!
//! `cargo run --release -p epitome-summarizers --example ten_megabytes`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example prints, and fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use epitome_loop::{
    Block, ContextLimits, Message, ModelAnswer, ModelCall, RawJson, SummaryRequest, SummarySections,
    TokenCount, ToolUse,
};
use epitome_summarizers::{ModelSummarizer, ModelSummarizerSettings};

const BYTES: usize = 10_000_000;

/// Turns of an agent: a wish, a call, what the tool returned, an answer.
fn session(result_lines: usize) -> Vec<Message> {
    let mut messages =
        vec![Message::user("Port the worker to the new queue. Never push to main without my approval.")];
    let mut bytes = 0;
    for turn in 0.. {
        if bytes > BYTES {
            break;
        }
        let lines: String = (0..result_lines)
            .map(|line| format!("{line:>5}  let value_{turn} = queue.take(&key[{line}]) && \"<b>\"; // see crates/worker/src/part{turn}.rs\n"))
            .collect();
        let said = format!(
            "The worker reads part {turn} now; 14 of 20 tests pass. Next I look at part {}.",
            turn + 1
        );
        bytes += lines.len() + said.len() + 150;
        let input = RawJson::parse(format!("{{\"path\":\"crates/worker/src/part{turn}.rs\"}}")).ok();
        let call = Block::ToolUse(ToolUse::new(format!("c{turn}"), "read", input, None));
        messages.push(Message::user(format!("Go on with part {turn}. Do not touch src/legacy{turn}.")));
        messages.push(Message::Assistant { blocks: Arc::from([call]), usage: None });
        messages.push(Message::tool_result(format!("c{turn}"), lines, false));
        messages.push(Message::assistant(said));
    }
    messages
}

fn best_of_five(mut work: impl FnMut()) -> Duration {
    let mut times = (0..5).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    let first = times.next().unwrap_or_default();
    times.fold(first, Duration::min)
}

fn main() {
    let one_message =
        vec![Message::user("Sum it up."), Message::assistant("word & <tag> ".repeat(BYTES / 13))];
    for (name, messages) in
        [("long results", session(80)), ("short turns", session(1)), ("one message", one_message)]
    {
        let count = messages.len();
        let request = SummaryRequest {
            transcript: messages.into(),
            previous: None,
            instructions: None,
            max_tokens: TokenCount(2000),
            max_bytes: None,
            estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4 + 1)),
            correction: None,
            carry_constraints: true,
        };
        println!("{name}, {count} messages:");
        let summarizer = |window| {
            let limits = ContextLimits { window: TokenCount(window), ..ContextLimits::default() };
            let client = |_: &ModelCall| Ok(ModelAnswer::text(""));
            ModelSummarizer::new(Arc::new(client), ModelSummarizerSettings::new("any", limits)).unwrap()
        };
        for window in [8_000, 200_000, 4_000_000] {
            let summarizer = summarizer(window);
            let mut question = None;
            let time = best_of_five(|| question = Some(summarizer.question(&request).unwrap()));
            let bytes: usize = question
                .iter()
                .flat_map(|call| call.messages.iter())
                .flat_map(|message| message.blocks().iter())
                .map(|block| if let Block::Text { text } = block { text.len() } else { 0 })
                .sum();
            println!("  a window of {window:>7} tokens: {time:>10.1?}, {bytes:>8} bytes asked");
        }
        let sections = SummarySections {
            goal: vec!["Port the worker".into()],
            state: vec!["part 1 is done".into()],
            ..SummarySections::default()
        };
        let answer = ModelAnswer::text(sections.render().xml);
        let summarizer = summarizer(200_000);
        let mut carried = 0;
        let time = best_of_five(|| carried = summarizer.read(&request, &answer).unwrap().carried.len());
        println!("  reading the answer:         {time:>10.1?}, {carried} rules carried");
    }
}
