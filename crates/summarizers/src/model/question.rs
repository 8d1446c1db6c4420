//! The request to the model, within its window.

use std::sync::Arc;

use epitome_loop::{
    ContextLimits, Message, ModelCall, SummarizerError, SummaryRequest, SummarySections, TokenCount,
};

use super::entries::Entries;
use super::excerpt::{Room, excerpt};
use super::framing::{section_lines, user_message};
use super::planning::{Judge, plan_answer};
use super::prompt::system_prompt;
use super::settings::ModelSummarizerSettings;
use crate::Extractive;

/// Tokens by which parts that are sized one by one may take more together.
const SEAMS: u64 = 16;

/// Writes the request.
pub(super) fn write(
    settings: &ModelSummarizerSettings,
    request: &SummaryRequest,
) -> Result<ModelCall, SummarizerError> {
    let judge = Judge {
        estimator: Arc::clone(settings.estimator.as_ref().unwrap_or(&request.estimator)),
        is_own: settings.estimator.is_some(),
    };
    let too_small = SummarizerError::WindowTooSmall { window: known_window(settings.limits) };
    let instructions = request.instructions.as_ref().filter(|text| !text.trim().is_empty());
    let prompt_of = |budget, most_characters| {
        system_prompt(&settings.prompt, settings.form, budget, most_characters, request.correction)
    };
    let frame_of = |system: &str| {
        let empty = user_message(request.previous.as_ref().map(|_| ""), "", instructions);
        judge.tokens(system).saturating_add(judge.tokens(&empty)).saturating_add(SEAMS)
    };
    // The prompt's length hangs on the budget by a few digits alone.
    let about = frame_of(&prompt_of(request.max_tokens, request.max_tokens.get()));
    let plan = plan_answer(settings, request, about, &judge).ok_or(too_small)?;
    let system = prompt_of(plan.budget, plan.most_characters);
    let room = plan.input.get().checked_sub(frame_of(&system)).ok_or(too_small)?;
    let previous = request.previous.as_ref().map(|previous| previous_lines(previous, room / 2, &judge));
    let previous = previous.as_deref().filter(|lines| !lines.is_empty());
    let taken = previous.map_or(0, |lines| judge.tokens(lines));
    let room = Room { tokens: room.saturating_sub(taken), judge: &judge, instructions };
    let transcript = excerpt(&Entries::of(&request.transcript), &room).ok_or(too_small)?;
    let user = user_message(previous, &transcript, instructions);
    if judge.tokens(&system).saturating_add(judge.tokens(&user)) > plan.input.get() {
        return Err(too_small);
    }
    Ok(ModelCall {
        model: settings.model.clone(),
        system: Some(system.into()),
        messages: Arc::from([Message::user(user)]),
        max_output: Some(plan.most_output),
        sampling: settings.sampling.clone(),
        answer_form: settings.form.answer_form(plan.budget),
    })
}

fn known_window(limits: ContextLimits) -> TokenCount {
    if limits.window == TokenCount::ZERO { limits.max_input } else { limits.window }
}

/// The previous summary as lines, cut by rules where it takes more than its part of the room.
fn previous_lines(previous: &SummarySections, most: u64, judge: &Judge) -> String {
    let lines = section_lines(previous);
    if judge.tokens(&lines) <= most {
        return lines;
    }
    let request = SummaryRequest {
        transcript: Arc::from([]),
        previous: Some(previous.clone()),
        instructions: None,
        max_tokens: TokenCount(most),
        max_bytes: None,
        estimator: Arc::clone(&judge.estimator),
        correction: None,
        carry_constraints: true,
    };
    let shorter = Extractive::new().summarize_now(&request);
    shorter.map(|draft| section_lines(&draft.sections)).unwrap_or_default()
}
