//! Judging one answer.

use epitome_loop::{Block, FinishReason, ModelAnswer, SharedText, TokenCount};

use super::config::StructuredSummaryConfig;
use super::estimate::estimate_text;
use super::json_answer::json_answer;
use super::outcome::{Degradation, StructuredFailure};
use super::prompt::Again;
use super::reader::read_summary;
use super::rendering::render;
use super::section::StructuredSummary;
use super::trimming::{is_substantive, trim_summary_to_budget, trim_text_to_budget};
use crate::declining::is_no_answer;

/// A summary that may be committed.
pub(super) struct Committed {
    pub(super) text: SharedText,
    /// By section, for the outcome; `None` when answers are not parsed.
    pub(super) sections: Option<StructuredSummary>,
    pub(super) degraded: Option<Degradation>,
}

/// What an answer is worth.
enum Worth {
    Good(Committed),
    Poor(Again, String),
}

/// Judges the first answer: it is good, or the model is asked again.
pub(super) fn judge_first(
    answer: &ModelAnswer,
    config: &StructuredSummaryConfig,
    budget: TokenCount,
) -> Result<Committed, Again> {
    match worth(answer, config, budget) {
        Worth::Good(committed) => Ok(committed),
        Worth::Poor(again, _) => Err(again),
    }
}

/// Judges the second answer: it is good, rescued, or the pass fails.
pub(super) fn judge_second(
    answer: &ModelAnswer,
    config: &StructuredSummaryConfig,
    budget: TokenCount,
) -> Result<Committed, StructuredFailure> {
    match worth(answer, config, budget) {
        Worth::Good(committed) => Ok(committed),
        Worth::Poor(Again::Blank, _) => Err(StructuredFailure::Blank),
        Worth::Poor(Again::Cut, _) => Err(StructuredFailure::Cut),
        Worth::Poor(Again::NoAnswer, _)
            if answer.finish == FinishReason::ToolCalls || calls_a_tool(answer) =>
        {
            Err(StructuredFailure::ToolCall)
        }
        Worth::Poor(Again::NoAnswer, text) if is_no_answer(&text) => Err(StructuredFailure::ErrorText),
        Worth::Poor(Again::NoAnswer, _) => Err(StructuredFailure::Refused),
        Worth::Poor(Again::Unreadable, text) => Ok(raw(&text, config)),
        Worth::Poor(Again::TooLong, text) => {
            trimmed(&text, config, budget).ok_or(StructuredFailure::OverBudget { budget })
        }
    }
}

fn calls_a_tool(answer: &ModelAnswer) -> bool {
    answer.blocks.iter().any(|block| matches!(block, Block::ToolUse(_)))
}

fn worth(answer: &ModelAnswer, config: &StructuredSummaryConfig, budget: TokenCount) -> Worth {
    let mut text = String::new();
    let mut refuses = answer.finish == FinishReason::Refused;
    for block in answer.blocks.iter() {
        match block {
            Block::Text { text: said } => text.push_str(said),
            Block::Refusal { .. } => refuses = true,
            _ => {}
        }
    }
    let poor = match answer.finish {
        _ if refuses => Some(Again::NoAnswer),
        FinishReason::ToolCalls => Some(Again::NoAnswer),
        _ if calls_a_tool(answer) => Some(Again::NoAnswer),
        FinishReason::Length => Some(Again::Cut),
        _ if text.trim().is_empty() => Some(Again::Blank),
        _ if is_no_answer(&text) => Some(Again::NoAnswer),
        // Nobody says that this is the whole answer, and lines do not say where they end.
        FinishReason::Unknown if json_answer(&text).is_none() => Some(Again::Cut),
        _ if estimate_text(&text) > budget => Some(Again::TooLong),
        _ => None,
    };
    if let Some(again) = poor {
        return Worth::Poor(again, text);
    }
    if !config.parses_output() {
        return Worth::Good(Committed { text: text.into(), sections: None, degraded: None });
    }
    let template = config.summary_template();
    match read_summary(&text).filter(|summary| summary.fits(template)) {
        Some(summary) => {
            let text = render(&summary, template).into();
            Worth::Good(Committed { text, sections: Some(summary), degraded: None })
        }
        None => Worth::Poor(Again::Unreadable, text),
    }
}

/// An answer that cannot be read, as an entry of the first section.
fn raw(text: &str, config: &StructuredSummaryConfig) -> Committed {
    let template = config.summary_template();
    let summary = StructuredSummary::of_raw_text(text, template);
    let text = render(&summary, template).into();
    Committed { text, sections: Some(summary), degraded: Some(Degradation::RawText) }
}

/// As much of an answer as the budget holds, by section where it can be read.
fn trimmed(text: &str, config: &StructuredSummaryConfig, budget: TokenCount) -> Option<Committed> {
    if !config.parses_output() {
        let text = trim_text_to_budget(text, budget)?;
        let degraded = Some(Degradation::Trimmed { is_raw: true });
        return Some(Committed { text: text.into(), sections: None, degraded });
    }
    let template = config.summary_template();
    let read = read_summary(text).filter(|summary| !summary.is_empty() && summary.fits(template));
    let is_raw = read.is_none();
    if is_raw && !is_substantive(text) {
        return None;
    }
    let summary = read.unwrap_or_else(|| StructuredSummary::of_raw_text(text, template));
    let trimmed = trim_summary_to_budget(&summary, template, budget)?;
    let was_cut = trimmed.left_out > 0;
    let degraded = (was_cut || is_raw).then_some(Degradation::Trimmed { is_raw });
    Some(Committed { text: trimmed.text, sections: Some(trimmed.summary), degraded })
}
