//! Transcripts and prompts.

use epitome_loop::{Message, ModelCall};
use epitome_summarizers::structured::{Pairing, TranscriptShape, render_transcript};
use serde_json::{Value, json};

use super::super::Judgment;
use super::classes::NOTHING_FORGED;
use super::equal_or;
use super::scene::{history, index, list, word};

pub(super) fn transcript(input: &Value, expect: &Value) -> Judgment {
    let history = history(&input["messages"]);
    let messages = &history.messages;
    let pairing = Pairing::of(messages);
    let limit = index(&input["max_chars"]).unwrap_or(usize::MAX);
    let write = |chosen: &[usize], limit| render_transcript(messages, chosen, &pairing, &history, limit);
    let all: Vec<usize> = (0..messages.len()).collect();
    let ours = write(&all, limit);
    let sizes: Vec<usize> = all.iter().map(|&at| write(&[at], usize::MAX).text.chars().count()).collect();
    let expected = word(&expect["text"]);
    if expect["chars"] != expected.chars().count() {
        return Judgment::of("the size of the text", "another size");
    }
    let is_equal = json!(sizes) == expect["block_chars"]
        && ours.text.as_str() == with_our_marks(expected)
        && shape(ours.shape) == expect["shape"];
    equal_or(is_equal, "the transcript", NOTHING_FORGED, is_escaped(messages), !ours.text.contains('<'))
}

fn shape(shape: TranscriptShape) -> Value {
    match shape {
        TranscriptShape::Whole => json!({"mode": "whole"}),
        TranscriptShape::HeadAndTail { head: 0, left_out, tail } => {
            json!({"mode": "tail_only", "head": 0, "elided": left_out, "tail": tail})
        }
        TranscriptShape::HeadAndTail { head, left_out, tail } => {
            json!({"mode": "head_tail", "head": head, "elided": left_out, "tail": tail})
        }
        TranscriptShape::HeadCut { whole, not_whole } => {
            json!({"mode": "head_cut", "whole": whole, "not_whole": not_whole})
        }
    }
}

/// The reference's transcript with our marks of what is left out.
pub(super) fn with_our_marks(text: &str) -> String {
    let mut ours = String::new();
    for line in text.split_inclusive('\n') {
        let between = |start: &str, end: &str| {
            let (before, rest) = line.split_once(start)?;
            Some((before, rest.strip_suffix(end)?))
        };
        if let Some((before, count)) = between("\u{2026}[", " messages elided]\u{2026}\n") {
            ours.push_str(&format!("{before}[{count} messages left out]\n"));
        } else if let Some((before, count)) = between("\u{2026}[evicted ", " more messages]") {
            ours.push_str(&format!("{before}\u{2026}[{count} more messages left out]"));
        } else {
            ours.push_str(line);
        }
    }
    ours
}

/// Whether a history holds characters that could close a frame, or lines that could pass for messages.
pub(super) fn is_escaped(messages: &[Message]) -> bool {
    let Ok(text) = serde_json::to_string(&messages.iter().map(text_of).collect::<Vec<_>>()) else {
        return false;
    };
    let lower = text.to_lowercase();
    text.contains(['&', '<', '\u{ff1c}', '\u{fe64}', '\u{2039}', '\u{3008}', '\u{27e8}'])
        || ["user", "assistant", "system", "tool"]
            .iter()
            .any(|label| lower.contains(label) && lower.contains("\\n"))
}

fn text_of(message: &Message) -> String {
    use epitome_loop::Block;
    fn collect(blocks: &[Block], text: &mut String) {
        for block in blocks {
            match block {
                Block::Text { text: said } => text.push_str(said),
                Block::Thinking(thinking) => text.push_str(&thinking.thinking),
                Block::ToolUse(call) => {
                    text.push_str(&call.name);
                    text.push_str(call.input.as_ref().map_or("", |input| input.as_str()));
                }
                Block::ToolResult(result) => collect(&result.content, text),
                _ => {}
            }
        }
    }
    let mut text = String::new();
    collect(message.blocks(), &mut text);
    text
}

/// What of the prompts differs from what the reference's say; our words are our own.
pub(super) fn differing(calls: &[ModelCall], expect: &Value, budget: u64) -> Vec<&'static str> {
    let expected = list(&expect["prompts"]);
    let mut differing = Vec::new();
    if calls.len() != expected.len() {
        differing.push("calls");
    }
    let first = calls.first().map(parts_of);
    for (at, (call, expected)) in calls.iter().zip(expected).enumerate() {
        let (system, user) = parts_of(call);
        let titles: Vec<_> = system.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        if expected["request_messages"] != call.messages.len() {
            differing.push("request_messages");
        }
        if json!(titles) != expected["system"]["sections"] {
            differing.push("sections");
        }
        if !system.contains(&format!(" {budget} tokens")) || expected["system"]["budget_stated"] != budget {
            differing.push("budget_stated");
        }
        if let (1, Some((first_system, first_user))) = (at, &first) {
            let is_sharper = system.starts_with(first_system.as_str()) && system.len() > first_system.len();
            if expected["system"]["sharper_retry"] != is_sharper || user != *first_user {
                differing.push("retry");
            }
        }
        if !expected["user"].is_null() {
            let (transcript, after) = framed(&user);
            // Long ones are given by their size alone.
            let fits = match expected["user"]["transcript"].as_str() {
                Some(expected) => transcript == with_our_marks(expected),
                None => expected["user"]["transcript_chars"] == transcript.chars().count(),
            };
            if !fits {
                differing.push("transcript");
            }
            if json!(after) != expected["user"]["after_transcript"] {
                differing.push("host_blocks");
            }
        }
    }
    differing
}

/// What holds for the prompts of every pass, whichever class it is in: nothing in a transcript closes its frame, and what the
/// host says stands in every call.
pub(super) fn broken_promises(calls: &[ModelCall], host_blocks: &[String]) -> Vec<&'static str> {
    let mut broken = Vec::new();
    let first = calls.first().map(parts_of);
    for call in calls {
        let (_, user) = parts_of(call);
        let (transcript, after) = framed(&user);
        if transcript.contains('<') || user.matches("</conversation>").count() != 1 {
            broken.push("frame");
        }
        if after != host_blocks || first.as_ref().is_some_and(|(_, first)| *first != user) {
            broken.push("host_blocks");
        }
    }
    broken
}

fn parts_of(call: &ModelCall) -> (String, String) {
    let user = call.messages.first().map(text_of).unwrap_or_default();
    (call.system.as_deref().unwrap_or_default().to_owned(), user)
}

/// The transcript inside its frame, and the names of the blocks behind it.
fn framed(user: &str) -> (String, Vec<String>) {
    let (before, after) = user.split_once("</conversation>").unwrap_or_default();
    let transcript = before.split_once("<conversation>\n").map(|(_, inside)| inside.to_owned());
    let mut contexts = 0;
    let blocks = after.lines().filter_map(|line| match line {
        "<host-instructions>" => Some("config_instructions".to_owned()),
        "<hook-instructions>" => Some("hook_instructions".to_owned()),
        "<additional-context>" => {
            contexts += 1;
            Some(format!("additional_context[{}]", contexts - 1))
        }
        _ => None,
    });
    (transcript.unwrap_or_default(), blocks.collect())
}
