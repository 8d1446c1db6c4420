//! What a model answered: a summary, or the reason for which it is none.

use epitome_loop::{
    AnswerFault, Block, FinishReason, InvalidSummaryReason, ModelAnswer, Section, SummarySections,
};

use crate::declining::declines;
use crate::normalize::{NormalizedAnswer, Repair, normalize_answer};

/// The name of the repair by which items that say nothing were left out.
const EMPTY_ITEMS: &str = "empty_items";

/// A summary as the model gave it.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) sections: SummarySections,
    pub(super) repairs: Vec<&'static str>,
}

/// Reads an answer. Nothing of a tool call is looked at.
pub(super) fn read_answer(answer: &ModelAnswer) -> Result<Answered, AnswerFault> {
    let has = |is: fn(&Block) -> bool| answer.blocks.iter().any(is);
    match answer.finish {
        FinishReason::Length => return Err(AnswerFault::CutOff),
        FinishReason::Refused => return Err(AnswerFault::Refused),
        FinishReason::ToolCalls => return Err(AnswerFault::ToolCall),
        FinishReason::Stop | FinishReason::Unknown => {}
    }
    if has(|block| matches!(block, Block::ToolUse(_))) {
        return Err(AnswerFault::ToolCall);
    }
    let texts = answer.blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<String>();
    let refuses = has(|block| matches!(block, Block::Refusal { .. }));
    if text.trim().is_empty() {
        return Err(if refuses { AnswerFault::Refused } else { AnswerFault::NoText });
    }
    match summary_of(&text, answer.finish) {
        Ok(answered) => Ok(answered),
        // What is said beside a refusal is no attempt at a summary.
        Err(_) if refuses => Err(AnswerFault::Refused),
        Err(reason) => Err(AnswerFault::Invalid(reason)),
    }
}

fn summary_of(text: &str, finish: FinishReason) -> Result<Answered, InvalidSummaryReason> {
    let NormalizedAnswer { mut sections, repairs } = normalize_answer(text)?;
    // Nobody says that this is the whole answer, and Markdown does not say where it ends.
    if finish == FinishReason::Unknown && repairs.contains(&Repair::Markdown) {
        return Err(InvalidSummaryReason::XmlSyntax);
    }
    let mut repairs: Vec<&'static str> = repairs.into_iter().map(Repair::as_str).collect();
    let mut has_empty = false;
    for section in Section::ALL {
        let items = sections.items_mut(section);
        let before = items.len();
        items.retain(|item| says_something(item));
        has_empty |= items.len() < before;
    }
    if sections.goal.is_empty() || sections.state.is_empty() {
        return Err(InvalidSummaryReason::XmlContent);
    }
    // Under a schema or a grammar a refusal has no other place to go.
    if [Section::Goal, Section::State]
        .into_iter()
        .all(|section| sections.items(section).iter().all(|item| declines(item)))
    {
        return Err(InvalidSummaryReason::XmlContent);
    }
    if has_empty {
        repairs.push(EMPTY_ITEMS);
    }
    Ok(Answered { sections, repairs })
}

/// Whether an item is more than marks and a word for nothing.
fn says_something(item: &str) -> bool {
    const NOTHING: [&str; 5] = ["none", "n/a", "nothing", "empty", "null"];
    let bare = item.trim_matches(|mark: char| !mark.is_alphanumeric());
    !bare.is_empty() && !NOTHING.iter().any(|nothing| bare.eq_ignore_ascii_case(nothing))
}

#[cfg(test)]
mod tests;
