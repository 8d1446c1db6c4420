//! A summarizer by a model, whose answer has the five sections of a session's summary.
//!
//! One call makes one request: system prompt and one user message, without tools. What goes wrong is typed; a second try
//! is the caller's affair, who then says in [`SummaryRequest::correction`] what was wrong.
//!
//! What is asked, planned, carried and refused: `docs/model-summarizer.md`.

mod answer;
mod carrying;
mod entries;
mod excerpt;
mod fitting;
mod forms;
mod framing;
mod middle;
mod planning;
mod prompt;
mod question;
mod rules;
mod settings;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_loop::{
    AnswerFault, Block, InvalidSummaryReason, Message, ModelAnswer, ModelCall, ModelClient, Section,
    Summarizer, SummarizerError, SummaryDraft, SummaryRequest, SummarySections,
};

use self::answer::{Answered, read_answer};
use self::carrying::{Rules, carry};
use self::fitting::{fit, is_within};
use crate::extractive::users_words;
use crate::provenance::demote_tool_text;

pub use self::forms::SummaryForm;
pub use self::prompt::{MODEL_PROMPT, MODEL_PROMPT_REVISION};
pub use self::settings::{ModelSummarizerError, ModelSummarizerSettings};

/// The name of the repair by which a summary over its budget lost items.
const OVER_BUDGET: &str = "over_budget";

/// The name of the repair by which what only tools and files said lost its place among goals, rules and decisions.
const TOOL_TEXT: &str = "tool_text_demoted";

/// Summarizes by asking a model.
///
/// * **The question** fits the summarizing model's own window. A transcript that does not is shown with shorter results of
///   tools, then without its middle, for which notes made by rules stand.
/// * **The transcript is data**: nothing in it can close its block or form a mark.
/// * **The answer** is read tolerantly, each repair by name, and an answer that is no summary is refused with its reason.
///   Tool calls are never run.
/// * **Authority**: what an answer took from tools and files alone is state, and neither goal nor rule nor decision.
/// * **The user's rules** that the answer lacks are put into it word for word, when the request says so. Over its budget
///   a summary loses items, never its goal and its state.
/// * **Deterministic** but for the model: the same request makes the same question.
#[derive(Clone)]
pub struct ModelSummarizer {
    client: Arc<dyn ModelClient>,
    settings: ModelSummarizerSettings,
}

impl fmt::Debug for ModelSummarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSummarizer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl ModelSummarizer {
    /// A summarizer that asks through a client.
    ///
    /// # Errors
    /// [`ModelSummarizerError`] when no model can be asked with the settings.
    pub fn new(
        client: Arc<dyn ModelClient>,
        settings: ModelSummarizerSettings,
    ) -> Result<Self, ModelSummarizerError> {
        settings.validate()?;
        Ok(Self { client, settings })
    }

    /// The request that [`Summarizer::summarize`] sends, without sending it: for hosts that show or size it.
    ///
    /// # Errors
    /// [`SummarizerError::BudgetTooSmall`] when the budget holds no summary at all;
    /// [`SummarizerError::WindowTooSmall`] when the model's window has no room for the question and its answer.
    pub fn question(&self, request: &SummaryRequest) -> Result<ModelCall, SummarizerError> {
        let least = least_summary();
        if !is_within(&least, request) {
            return Err(SummarizerError::BudgetTooSmall {
                needed_bytes: least.rendered_len(),
                needed_tokens: request.estimator.estimate(&least.render().xml),
            });
        }
        question::write(&self.settings, &self.as_sent(request))
    }

    /// The request without what the client keeps back, so that nothing of it is cut and then not recognized.
    fn as_sent(&self, request: &SummaryRequest) -> SummaryRequest {
        let transcript = self.client.as_sent(&request.transcript);
        let previous = request.previous.as_ref().map(|previous| sections_as_sent(&*self.client, previous));
        SummaryRequest { transcript, previous, ..request.clone() }
    }

    /// Makes a summary of an answer to [`ModelSummarizer::question`].
    ///
    /// # Errors
    /// [`SummarizerError::Answer`] when the answer is no summary.
    pub fn read(
        &self,
        request: &SummaryRequest,
        answer: &ModelAnswer,
    ) -> Result<SummaryDraft, SummarizerError> {
        let refused = |fault| SummarizerError::Answer { fault, usage: answer.usage };
        let Answered { mut sections, mut repairs } = read_answer(answer).map_err(refused)?;
        if demote_tool_text(&mut sections, &request.transcript, request.previous.as_ref()) > 0 {
            repairs.push(TOOL_TEXT);
            if sections.goal.is_empty() {
                sections.goal = users_words(&request.transcript, request.previous.as_ref()).goal;
            }
        }
        if !is_within(&sections, request) {
            repairs.push(OVER_BUDGET);
        }
        let rules = if request.carry_constraints {
            carry(&mut sections, &request.transcript, request.previous.as_ref())
        } else {
            Rules { first_carried: sections.items(Section::Constraints).len(), ..Rules::default() }
        };
        let fitted = fit(&sections, &rules, request)
            .ok_or_else(|| refused(AnswerFault::Invalid(InvalidSummaryReason::TokenLimit)))?;
        let carried = fitted.constraints.iter().filter(|&&at| at >= rules.first_carried);
        let carried = carried.filter_map(|&at| sections.constraints.get(at).cloned()).collect();
        Ok(SummaryDraft {
            sections: fitted.sections,
            left_out: fitted.left_out,
            usage: answer.usage,
            repairs,
            carried,
        })
    }
}

/// A summary without what the client keeps back.
fn sections_as_sent(client: &dyn ModelClient, sections: &SummarySections) -> SummarySections {
    let mut sent = SummarySections::default();
    for section in Section::ALL {
        let items = sections.items(section).iter();
        let messages: Arc<[Message]> = items.map(|item| Message::user(item.clone())).collect();
        let texts = client.as_sent(&messages);
        let texts = texts.iter().flat_map(|message| message.blocks().iter());
        *sent.items_mut(section) = texts
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.clone()),
                _ => None,
            })
            .collect();
    }
    sent
}

fn least_summary() -> SummarySections {
    SummarySections { goal: vec!["-".into()], state: vec!["-".into()], ..SummarySections::default() }
}

#[async_trait]
impl Summarizer for ModelSummarizer {
    async fn summarize(&self, request: SummaryRequest) -> Result<SummaryDraft, SummarizerError> {
        let call = self.question(&request)?;
        let answer = self.client.call(call).await.map_err(SummarizerError::Model)?;
        self.read(&request, &answer)
    }

    fn name(&self) -> &'static str {
        "model"
    }
}
