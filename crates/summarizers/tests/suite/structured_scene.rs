//! A scripted model, and histories for it.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use epitome_loop::{
    Block, Message, ModelAnswer, ModelCall, ModelCallError, ModelCallErrorKind, ModelClient, ToolUse,
};
use epitome_summarizers::structured::{
    StructuredOutcome, StructuredPass, StructuredSummarizer, StructuredSummaryConfig,
};

pub(crate) type Answer = Result<ModelAnswer, ModelCallError>;

/// Says what it is given, and remembers what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    answers: Mutex<VecDeque<Answer>>,
    pub(crate) calls: Mutex<Vec<ModelCall>>,
}

#[async_trait]
impl ModelClient for Script {
    async fn call(&self, call: ModelCall) -> Answer {
        self.calls.lock().unwrap().push(call);
        self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Err(ModelCallErrorKind::Network.into()))
    }
}

/// The outcome of one pass and the calls that it took.
pub(crate) fn run(
    config: StructuredSummaryConfig,
    pass: &StructuredPass,
    answers: impl IntoIterator<Item = Answer>,
) -> (StructuredOutcome, Vec<ModelCall>) {
    let script = Arc::new(Script::default());
    script.answers.lock().unwrap().extend(answers);
    let client: Arc<dyn ModelClient> = Arc::clone(&script) as _;
    let summarizer = StructuredSummarizer::new(client, config);
    let mut future = pin!(summarizer.compact(pass));
    let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a scripted model waits for nothing");
    };
    let calls = script.calls.lock().unwrap().clone();
    (outcome, calls)
}

pub(crate) fn says(text: &str) -> Answer {
    Ok(ModelAnswer::text(text))
}

pub(crate) fn config() -> StructuredSummaryConfig {
    StructuredSummaryConfig::for_model("scripted").min_messages(4).preserve_recent(2)
}

/// So many turns of some length.
pub(crate) fn chat(turns: usize) -> Vec<Message> {
    (0..turns)
        .flat_map(|turn| {
            let long = "and so on at some length ".repeat(8);
            [
                Message::user(format!("question {turn} {long}")),
                Message::assistant(format!("answer {turn} {long}")),
            ]
        })
        .collect()
}

pub(crate) fn calls(ids: &[&str]) -> Message {
    let blocks: Vec<Block> =
        ids.iter().map(|&id| Block::ToolUse(ToolUse::new(id, "run", None, None))).collect();
    Message::Assistant { blocks: blocks.into(), usage: None }
}

/// The system prompt of a call, and its user message.
pub(crate) fn prompts(call: &ModelCall) -> (String, String) {
    let [Message::User { blocks }] = &*call.messages else { panic!("one user message") };
    let [Block::Text { text }] = &**blocks else { panic!("one text") };
    (call.system.as_deref().unwrap().to_owned(), text.to_string())
}
