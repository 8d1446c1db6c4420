//! The request to the model, within its window.

use std::sync::Arc;

use epitome_loop::{Message, ModelCall, SummarizerError, SummaryRequest, SummarySections, TokenCount};

use super::entries::Entries;
use super::excerpt::{Room, excerpt};
use super::framing::{section_lines, user_message};
use super::planning::{Judge, plan_answer};
use super::prompt::system_prompt;
use super::settings::ModelSummarizerSettings;
use crate::Extractive;

/// Writes the request.
pub(super) fn write(
    settings: &ModelSummarizerSettings,
    request: &SummaryRequest,
) -> Result<ModelCall, SummarizerError> {
    let judge = Judge {
        estimator: Arc::clone(settings.estimator.as_ref().unwrap_or(&request.estimator)),
        is_own: settings.estimator.is_some(),
    };
    let plan = plan_answer(settings, request.max_tokens, request.max_bytes, &judge)?;
    let too_small = SummarizerError::WindowTooSmall {
        window: if settings.limits.window == TokenCount::ZERO {
            settings.limits.max_input
        } else {
            settings.limits.window
        },
    };
    let system =
        system_prompt(&settings.prompt, settings.form, plan.budget, plan.most_characters, request.correction);
    let instructions = request.instructions.as_ref().filter(|text| !text.trim().is_empty());
    let frame = judge.tokens(&system).saturating_add(judge.tokens(&user_message(None, "", instructions)));
    let room = plan.input.get().checked_sub(frame).ok_or(too_small)?;
    let previous = request.previous.as_ref().map(|previous| previous_lines(previous, room / 2, &judge));
    let previous = previous.as_deref().filter(|lines| !lines.is_empty());
    // What the blocks' tags take was counted with the frame, or is a few tokens that the margin holds.
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
