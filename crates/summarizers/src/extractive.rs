//! The embedded default: an extractive summarizer without model or network.

mod attributes;
mod calls;
mod cues;
mod fitting;
mod fixed_point;
mod goal;
mod identifiers;
mod ledger;
mod lines;
mod mentions;
mod phrases;
mod pool;
mod reading;
mod recognize;
mod scoring;
mod selection;
mod shapes;
mod shortening;
mod standing;
mod statement;
mod statements;
mod supersession;
mod tokens;
mod users_words;
mod values;
mod words;

use async_trait::async_trait;
use epitome_loop::{Summarizer, SummarizerError, SummaryDraft, SummaryRequest};

use self::fitting::fit;
use self::goal::{find_goal, raise_latest};
use self::reading::read;
use self::selection::Candidates;
pub(crate) use self::standing::rule_sentences;
use self::supersession::retire_superseded;
pub(crate) use self::users_words::users_words;

/// Summarizes by selecting what was said, without model, network, clock or randomness.
///
/// It cuts the conversation into statements, finds rules, decisions, open items and facts by the wording that
/// English uses for them, retires what later statements made void, and fills the budget with the statements
/// that are worth most per byte. The words of rules stay as they were said.
///
/// * **Time and memory** are linear in the conversation. It is deterministic: the same request gives the same
///   draft on every platform. The first use in a process builds the table of phrases, which takes a few
///   milliseconds.
/// * **Authority**: what tools returned, and files, can only become state. The assistant's rules are marked as
///   such and weigh little. A previous summary counts only as [`SummaryRequest::previous`]; text that looks
///   like one is text.
/// * **Rules** of the user go only when a later statement gives the same thing another value, or takes the plan back
///   that they belong to. A prohibition is never taken back with a plan.
/// * **Instructions** of the host raise statements that share their content words, by one point for the first
///   word and half a point for each further one up to two points, where a plain fact has about one and a rule
///   for the session about six. They never become content.
/// * **Language**: the cues are English. In other languages it goes by labels in capitals or English, exact
///   values (paths, numbers, names, dates, identifiers) and recency, which keeps less.
/// * **Not read**: reasoning, pictures, recordings and providers' opaque items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extractive;

impl Extractive {
    /// The summarizer.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Summarizes without being awaited.
    ///
    /// The rendered draft takes at most [`SummaryRequest::max_tokens`] by the request's estimator and at most
    /// [`SummaryRequest::max_bytes`]. Goal and state always say something.
    ///
    /// # Errors
    /// [`SummarizerError::BudgetTooSmall`] when the budget cannot hold the frame and one character each for
    /// goal and state. Nothing else fails.
    pub fn summarize_now(&self, request: &SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        let instructions = request.instructions.as_deref();
        let mut reading = read(&request.transcript, request.previous.as_ref(), instructions);
        let void = retire_superseded(&mut reading);
        let goal = find_goal(&reading.statements);
        let last_user = reading.conversation.last_user;
        reading.statements.retain(|statement| !statement.is_retired);
        raise_latest(&mut reading.statements, last_user);
        let candidates = Candidates::new(&reading, &void, &goal);
        fit(request, |bytes| candidates.select(bytes))
    }
}

#[async_trait]
impl Summarizer for Extractive {
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        self.summarize_now(&request)
    }

    fn name(&self) -> &'static str {
        "extractive"
    }
}
