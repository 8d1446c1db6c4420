//! The summarizing model's window: how long the answer may be, and what is left for the question.

use std::sync::Arc;

use epitome_loop::{SummaryRequest, TextEstimator, TokenCount};

use super::settings::ModelSummarizerSettings;

/// A summary is not asked for in fewer tokens: the five sections would hold nothing.
const LEAST_SUMMARY: u64 = 96;
/// What the frame of a chat takes around two messages.
const CHAT_FRAME: u64 = 32;
/// Characters that a model is told for each token. Fewer than most texts have, so that the summary lands inside.
const CHARACTERS_PER_TOKEN: u64 = 3;

/// What is planned for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerPlan {
    /// How many tokens the model is told for the summary.
    pub(super) budget: TokenCount,
    /// How many characters it is told.
    pub(super) most_characters: u64,
    /// How many tokens the answer may take: the summary in its form, a third more, and reasoning.
    pub(super) most_output: TokenCount,
    /// How many tokens system prompt and user message may take together by the estimator.
    pub(super) input: TokenCount,
}

/// Sizes text by the summarizing model's tokenizer, or by what there is.
pub(super) struct Judge {
    pub(super) estimator: Arc<dyn TextEstimator>,
    /// Whether the estimator is the summarizing model's own.
    pub(super) is_own: bool,
}

impl Judge {
    pub(super) fn tokens(&self, text: &str) -> u64 {
        self.estimator.estimate(text).get()
    }
}

/// Plans the answer first and the question with what is left; `None` when there is no room for an answer.
///
/// `frame` is what prompt and blocks take without what they hold. The answer takes at most half of what they leave of the
/// window, and of a short answer reasoning takes at most half; the summary is asked for in the rest.
pub(super) fn plan_answer(
    settings: &ModelSummarizerSettings,
    request: &SummaryRequest,
    frame: u64,
    judge: &Judge,
) -> Option<AnswerPlan> {
    let limits = settings.limits;
    let known = |count: TokenCount| Some(count.get()).filter(|&count| count > 0);
    let window = known(limits.window);
    let most = [
        known(limits.max_output),
        settings.sampling.max_tokens.and_then(known),
        window.map(|window| window.saturating_sub(frame) / 2),
    ];
    let most = most.into_iter().flatten().min().unwrap_or(u64::MAX);
    let reasoning = settings.reasoning.get().min(most / 2);
    let form = settings.form;
    let with_a_third = |summary: u64| {
        let answer = form.answer_tokens(summary);
        answer.saturating_add(answer / 3)
    };
    let wanted = request.max_tokens.get().max(1);
    let room = most - reasoning;
    let budget = if with_a_third(wanted) <= room {
        wanted
    } else {
        // The inverse, rounded down: no form takes more than an eighth and 16 tokens on top.
        let scaled = u128::from(room) * 3 / 4;
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled.saturating_sub(form.answer_tokens(scaled) - scaled)
    };
    if budget < LEAST_SUMMARY.min(wanted) {
        return None;
    }
    let most_output = with_a_third(budget).saturating_add(reasoning).min(most);
    let from_window = window.map(|window| window.saturating_sub(most_output));
    let raw = [from_window, known(limits.max_input)].into_iter().flatten().min().unwrap_or(0);
    // Estimates by another model's tokenizer are off by more.
    let margin = if judge.is_own { raw / 32 } else { raw / 10 };
    let input = raw.saturating_sub(margin).saturating_sub(CHAT_FRAME);
    let characters = budget.saturating_mul(CHARACTERS_PER_TOKEN);
    let most_bytes =
        request.max_bytes.map_or(u64::MAX, |bytes| u64::try_from(bytes / 10 * 9).unwrap_or(u64::MAX));
    Some(AnswerPlan {
        budget: TokenCount(budget),
        most_characters: characters.min(most_bytes),
        most_output: TokenCount(most_output),
        input: TokenCount(input),
    })
}
