//! What stands around an answer.

use epitome_loop::InvalidSummaryReason;

use super::{Repair, leave_out};

/// Marks by which models end their turn. Some servers hand them on.
const END_TOKENS: [&str; 7] =
    ["<|im_end|>", "</s>", "<|eot_id|>", "<|end|>", "<|endoftext|>", "<end_of_turn>", "<|end_of_text|>"];

/// How models mark reasoning that their server hands on in the text.
const REASONING: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"),
];

/// Takes off what is around the answer: a byte-order mark, white space, reasoning, marks of the end, one fence.
pub(super) fn unwrap<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> Result<&'a str, InvalidSummaryReason> {
    let mut rest = text;
    if let Some(without) = rest.strip_prefix('\u{feff}') {
        repairs.push(Repair::ByteOrderMark);
        rest = without;
    }
    rest = trimmed(rest, repairs);
    while let Some(without) = END_TOKENS.into_iter().find_map(|token| rest.strip_suffix(token)) {
        repairs.push(Repair::EndToken);
        rest = without.trim_end();
    }
    for (open, close) in REASONING {
        if let Some(answer) = behind_reasoning(rest, open, close) {
            repairs.push(Repair::Reasoning);
            rest = answer.trim();
        }
    }
    fenced(rest, repairs)
}

/// What stands behind reasoning in front. Where the template of a chat begins it, the answer only ends it.
fn behind_reasoning<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (reasoning, answer) = text.split_once(close)?;
    let is_begun = reasoning.starts_with(open)
        || !reasoning.contains(open) && !reasoning.contains("<conversation_summary");
    is_begun.then_some(answer)
}

fn trimmed<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> &'a str {
    let inner = text.trim();
    if inner.len() != text.len() {
        repairs.push(Repair::OuterWhiteSpace);
    }
    inner
}

/// What stands in a fence that is around everything but an introduction of one line and a farewell; all of the text where
/// there is no such fence.
fn fenced<'a>(text: &'a str, repairs: &mut Vec<Repair>) -> Result<&'a str, InvalidSummaryReason> {
    let Some((introduction, inner, farewell)) = parts(text) else { return Ok(text) };
    for around in [introduction, farewell] {
        if !around.trim().is_empty() {
            leave_out(around, repairs)?;
        }
    }
    repairs.push(Repair::CodeFence);
    Ok(inner.trim())
}

/// The introduction, what is in the fence, and the farewell.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let fence = if text.starts_with("~~~") { "~~~" } else { "```" };
    let (introduction, opened) = match text.strip_prefix(fence) {
        Some(opened) => ("", opened),
        None => {
            let (introduction, rest) = text.split_once('\n')?;
            let rest = rest.trim_start();
            let is_introduction = !introduction.contains('<') && !introduction.starts_with(['#', '{']);
            (introduction, rest.strip_prefix(fence).filter(|_| is_introduction)?)
        }
    };
    // The rest of the line says what is in it.
    let (_, opened) = opened.split_once('\n')?;
    let is_fence = |line: &str| line.trim().starts_with(fence);
    // Two fences are no fence around everything.
    if opened.lines().filter(|line| is_fence(line)).count() > 1 {
        return None;
    }
    let (inner, farewell) = match opened.trim_end().strip_suffix(fence) {
        Some(inner) => (inner, ""),
        None => opened.split_once(&format!("\n{fence}"))?,
    };
    // What goes on behind a farewell of the model's is part of its answer.
    let goes_on = farewell.lines().any(|line| line.trim_start().starts_with(['#', '-', '*', '{']));
    (!goes_on).then_some((introduction, inner, farewell))
}
