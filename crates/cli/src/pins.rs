//! What `--pin` names: messages by their number, by the id of a call, or by what they say.

use std::collections::BTreeSet;

use epitome_loop::{Block, Message};
use epitome_sessionruntime::EarlierSummary;
use epitome_transcripts::Session;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// One option with what it names. The user's words are not repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Pin {
    /// Which of the options, counted from 1.
    pub(crate) option: usize,
    /// The messages it names, as the report numbers them.
    pub(crate) messages: Vec<usize>,
}

/// An option that names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum PinError {
    #[error("--pin number {option}: the session has no message #{message}; it has {count}, counted from #0")]
    NoSuchMessage { option: usize, message: usize, count: usize },
    #[error("--pin number {option}: message #{message} is not sent; a repair leaves it out")]
    LeftOut { option: usize, message: usize },
    #[error("--pin number {option}: message #{message} is an earlier summary, whose place the new one takes")]
    EarlierSummary { option: usize, message: usize },
    #[error("--pin number {option}: no message has this number, call id or text")]
    NoMatch { option: usize },
}

/// Finds what each option names in the session as it is sent. Numbers are those that `measure` shows, of the
/// session as it was read.
pub(crate) fn resolve(
    options: &[String],
    original: &Session,
    sent: &Session,
    earlier: Option<&EarlierSummary>,
) -> Result<Vec<Pin>, PinError> {
    let lead = sent.leading_system();
    let summary = lead..lead + earlier.map_or(0, |earlier| earlier.messages);
    options
        .iter()
        .enumerate()
        .map(|(at, named)| {
            let option = at + 1;
            let messages = match number(named) {
                Some(message) => {
                    let count = original.messages().len();
                    if message >= count {
                        return Err(PinError::NoSuchMessage { option, message, count });
                    }
                    let now = sent.position_of(original, message);
                    let now = now.ok_or(PinError::LeftOut { option, message })?;
                    if summary.contains(&now) {
                        return Err(PinError::EarlierSummary { option, message });
                    }
                    vec![now]
                }
                None => {
                    let messages = sent.messages().iter().enumerate();
                    let named =
                        messages.filter(|(at, message)| !summary.contains(at) && is_named(message, named));
                    named.map(|(at, _)| at).collect()
                }
            };
            if messages.is_empty() { Err(PinError::NoMatch { option }) } else { Ok(Pin { option, messages }) }
        })
        .collect()
}

/// Every message that a pin names.
pub(crate) fn messages(pins: &[Pin]) -> BTreeSet<usize> {
    pins.iter().flat_map(|pin| pin.messages.iter().copied()).collect()
}

/// `#94` is the message with this number.
fn number(named: &str) -> Option<usize> {
    let digits = named.strip_prefix('#')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    digits.parse().ok()
}

/// Whether a message holds the call of this id, its result, or this text.
fn is_named(message: &Message, named: &str) -> bool {
    if matches!(message, Message::ToolResult { tool_use_id, .. } if tool_use_id == named) {
        return true;
    }
    let mut left: Vec<&[Block]> = vec![message.blocks()];
    while let Some(blocks) = left.pop() {
        for block in blocks {
            let found = match block {
                Block::Text { text } | Block::Refusal { text } => text.contains(named),
                Block::Document(document) => document.text.contains(named) || document.name.contains(named),
                Block::ToolUse(call) => {
                    let input = call.input.as_ref().map_or("", |input| input.as_str());
                    call.id == named || input.contains(named) || says(input, named)
                }
                Block::ToolResult(result) => {
                    left.push(&result.content);
                    result.tool_use_id == named
                }
                _ => false,
            };
            if found {
                return true;
            }
        }
    }
    false
}

/// Whether a text in the arguments of a call holds these words, escapes undone.
fn says(input: &str, named: &str) -> bool {
    let mut left: Vec<Value> = serde_json::from_str(input).into_iter().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) if text.contains(named) => return true,
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_transcripts::{ReadOptions, read, repair};

    fn session(messages: &str) -> Session {
        let document = format!(r#"{{"epitome":1,"messages":[{messages}]}}"#);
        read(document.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap()
    }

    const MESSAGES: &str = r#"
        {"role":"system","content":"be brief"},
        {"role":"user","content":"fix the build"},
        {"role":"tool","tool_use_id":"lost","content":"x"},
        {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"edit","input":{"new":"say \"hi\"\n"}}]},
        {"role":"tool","tool_use_id":"c1","content":"edited"},
        {"role":"user","content":"never touch prod"}"#;

    fn resolved(options: &[&str]) -> Result<Vec<Vec<usize>>, PinError> {
        let original = session(MESSAGES);
        let (sent, repairs) = repair(&original);
        assert_eq!(repairs.len(), 1, "the lost result goes");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let pins = resolve(&options, &original, &sent, None)?;
        Ok(pins.into_iter().map(|pin| pin.messages).collect())
    }

    #[test]
    fn messages_are_named_by_number_id_or_text() {
        assert_eq!(resolved(&["#1", "#4", "c1"]), Ok(vec![vec![1], vec![3], vec![2, 3]]));
        assert_eq!(resolved(&["touch prod", "say \"hi\"\n", "#x"]), Err(PinError::NoMatch { option: 3 }));
        assert_eq!(
            resolved(&["touch prod", "say \"hi\"\n", r#"\"hi\""#]),
            Ok(vec![vec![4], vec![2], vec![2]])
        );
        assert_eq!(resolved(&[]), Ok(vec![]));
    }

    #[test]
    fn what_names_nothing_is_an_error() {
        assert_eq!(resolved(&["#6"]), Err(PinError::NoSuchMessage { option: 1, message: 6, count: 6 }));
        assert_eq!(resolved(&["#1", "#2"]), Err(PinError::LeftOut { option: 2, message: 2 }));
        assert_eq!(resolved(&["canary"]), Err(PinError::NoMatch { option: 1 }));
    }

    #[test]
    fn an_earlier_summary_cannot_be_pinned() {
        let original = session(MESSAGES);
        let (sent, _) = repair(&original);
        let earlier = EarlierSummary { messages: 1, sections: None };
        let resolve = |option: &str| resolve(&[option.to_owned()], &original, &sent, Some(&earlier));
        assert_eq!(resolve("#1"), Err(PinError::EarlierSummary { option: 1, message: 1 }));
        assert_eq!(resolve("fix the build"), Err(PinError::NoMatch { option: 1 }));
    }
}
