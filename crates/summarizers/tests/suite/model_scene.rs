//! A model summarizer with a scripted model, and requests for it.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use epitome_loop::{
    Block, ContextLimits, Message, ModelAnswer, ModelCall, ModelCallError, Summarizer, SummarizerError,
    SummaryDraft, SummaryRequest, SummarySections, TokenCount,
};
use epitome_summarizers::{ModelSummarizer, ModelSummarizerSettings};

/// A token is four bytes.
pub(crate) fn quarter_bytes(text: &str) -> TokenCount {
    TokenCount(text.len().div_ceil(4) as u64)
}

pub(crate) fn limits(window: u64) -> ContextLimits {
    ContextLimits { window: TokenCount(window), ..ContextLimits::default() }
}

pub(crate) fn settings(window: u64) -> ModelSummarizerSettings {
    ModelSummarizerSettings::new("scripted", limits(window))
}

pub(crate) fn request(transcript: Vec<Message>) -> SummaryRequest {
    SummaryRequest {
        transcript: transcript.into(),
        previous: None,
        instructions: None,
        max_tokens: TokenCount(1000),
        max_bytes: None,
        estimator: Arc::new(quarter_bytes),
        correction: None,
        carry_constraints: true,
    }
}

/// What comes of one call that is answered so, and the call.
pub(crate) fn summarize(
    settings: ModelSummarizerSettings,
    request: &SummaryRequest,
    answer: Result<ModelAnswer, ModelCallError>,
) -> (Result<SummaryDraft, SummarizerError>, Vec<ModelCall>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let client = move |call: &ModelCall| {
        seen.lock().unwrap().push(call.clone());
        answer.clone()
    };
    let summarizer = ModelSummarizer::new(Arc::new(client), settings).unwrap();
    let mut future = pin!(summarizer.summarize(request.clone()));
    let Poll::Ready(draft) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a scripted model waits for nothing")
    };
    let calls = calls.lock().unwrap().clone();
    (draft, calls)
}

/// The draft of a model that answers with these sections.
pub(crate) fn draft_of(request: &SummaryRequest, sections: &SummarySections) -> SummaryDraft {
    let answer = ModelAnswer::text(sections.render().xml);
    summarize(settings(100_000), request, Ok(answer)).0.unwrap()
}

/// The question for a request.
pub(crate) fn question(
    settings: ModelSummarizerSettings,
    request: &SummaryRequest,
) -> Result<ModelCall, SummarizerError> {
    let nobody = |_: &ModelCall| -> Result<ModelAnswer, ModelCallError> { panic!("nobody is asked") };
    ModelSummarizer::new(Arc::new(nobody), settings).unwrap().question(request)
}

/// The system prompt of a call, and its one user message.
pub(crate) fn prompts(call: &ModelCall) -> (String, String) {
    let [Message::User { blocks }] = &*call.messages else { panic!("one user message") };
    let [Block::Text { text }] = &**blocks else { panic!("one text") };
    (call.system.as_deref().unwrap().to_owned(), text.to_string())
}

/// What stands in the transcript's block.
pub(crate) fn transcript_of(user: &str) -> &str {
    let (_, rest) = user.split_once("\n<transcript-").unwrap();
    let (name, rest) = rest.split_once(">\n").unwrap();
    rest.split_once(&format!("</transcript-{name}>\n")).unwrap().0
}

pub(crate) fn sections(goal: &str, constraints: &[&str], state: &[&str]) -> SummarySections {
    let items = |items: &[&str]| items.iter().map(|item| (*item).into()).collect();
    SummarySections {
        goal: vec![goal.into()],
        constraints: items(constraints),
        state: items(state),
        ..SummarySections::default()
    }
}
