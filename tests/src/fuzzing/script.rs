//! Requests for a summary, written as lines, so that a corpus can be read and a fuzzer can cut and paste.
//!
//! A line that begins with a mark opens something; other lines go on with what is open, at first the user's
//! words. `U:` user, `A:` assistant, `S:` system, `T:` a tool's result, `E:` a tool's error, `C:` a call (name,
//! then its input), `P:` an item of the previous summary (section by number, then the item), `I:` instructions,
//! `B:` the budget (tokens, bytes, characters in a token; 0 for no limit in bytes).

use std::sync::Arc;

use epitome_loop::{
    Block, Message, RawJson, Section, SharedText, SummaryRequest, SummarySections, TokenCount, ToolUse,
};

/// How many characters make a token; any other number is as good, as long as the law holds for each.
const CHARACTERS_IN_A_TOKEN: usize = 4;

/// A request from any bytes.
pub(super) fn request(bytes: &[u8]) -> SummaryRequest {
    let text = String::from_utf8_lossy(bytes);
    let mut script = Script::default();
    let mut open = ('U', String::new());
    for line in text.split('\n') {
        match mark(line) {
            Some((mark, rest)) => {
                let (mark, text) = std::mem::replace(&mut open, (mark, rest.to_owned()));
                script.close(mark, text);
            }
            None => {
                if !open.1.is_empty() {
                    open.1.push('\n');
                }
                open.1.push_str(line);
            }
        }
    }
    script.close(open.0, open.1);
    script.into_request()
}

fn mark(line: &str) -> Option<(char, &str)> {
    let mark = line.chars().next().filter(|mark| "UASTECPIB".contains(*mark))?;
    let rest = line.strip_prefix(mark)?.strip_prefix(':')?;
    Some((mark, rest.strip_prefix(' ').unwrap_or(rest)))
}

struct Script {
    messages: Vec<Message>,
    previous: Option<SummarySections>,
    instructions: Option<SharedText>,
    max_tokens: u64,
    max_bytes: Option<usize>,
    characters: usize,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            previous: None,
            instructions: None,
            max_tokens: 500,
            max_bytes: None,
            characters: CHARACTERS_IN_A_TOKEN,
        }
    }
}

impl Script {
    fn close(&mut self, mark: char, text: String) {
        match mark {
            'A' => self.messages.push(Message::assistant(text)),
            'S' => self.messages.push(Message::system(text)),
            'T' | 'E' => self.messages.push(Message::tool_result("id", text, mark == 'E')),
            'C' => self.messages.push(call(&text)),
            'P' => self.item(&text),
            'I' => self.instructions = Some(text.into()),
            'B' => self.budget(&text),
            _ if text.is_empty() && self.messages.is_empty() => {}
            _ => self.messages.push(Message::user(text)),
        }
    }

    fn item(&mut self, text: &str) {
        let (section, item) = text.split_once(' ').unwrap_or(("0", text));
        let section = section.parse().ok().and_then(|at: usize| Section::ALL.get(at));
        let previous = self.previous.get_or_insert_default();
        previous.items_mut(*section.unwrap_or(&Section::State)).push(item.into());
    }

    fn budget(&mut self, text: &str) {
        let mut numbers = text.split_whitespace().map(|number| number.parse::<u32>().unwrap_or(u32::MAX));
        let mut next = |otherwise| numbers.next().unwrap_or(otherwise);
        self.max_tokens = next(500).into();
        self.max_bytes = Some(next(0) as usize).filter(|bytes| *bytes > 0);
        self.characters = (next(4) as usize).max(1);
    }

    fn into_request(self) -> SummaryRequest {
        let characters = self.characters;
        SummaryRequest {
            transcript: self.messages.into(),
            previous: self.previous,
            instructions: self.instructions,
            max_tokens: TokenCount(self.max_tokens),
            max_bytes: self.max_bytes,
            estimator: Arc::new(move |text: &str| TokenCount((text.chars().count() / characters) as u64)),
            correction: None,
            carry_constraints: true,
        }
    }
}

fn call(text: &str) -> Message {
    let (name, input) = text.split_once(' ').unwrap_or((text, ""));
    let input = (!input.is_empty()).then(|| RawJson::parse_or_quote(input));
    let call = Block::ToolUse(ToolUse::new("id", name, input, None));
    Message::Assistant { blocks: Arc::from([call]), usage: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_everything_that_a_request_holds() {
        let request = request(
            b"B: 90 400 2\nI: mind the queue\nP: 1 Never push.\nU: Port\nthe worker.\nC: run {\"a\":1}\nE: no\nA:",
        );
        assert_eq!((request.max_tokens, request.max_bytes), (TokenCount(90), Some(400)));
        assert_eq!(request.estimator.estimate("four"), TokenCount(2));
        assert_eq!(request.instructions.as_deref(), Some("mind the queue"));
        assert_eq!(request.previous.unwrap().constraints, ["Never push."]);
        assert_eq!(
            request.transcript.as_ref(),
            [
                Message::user("Port\nthe worker."),
                call("run {\"a\":1}"),
                Message::tool_result("id", "no", true),
                Message::assistant(""),
            ]
        );
    }

    #[test]
    fn bytes_without_a_mark_are_the_users() {
        assert_eq!(request(b"Port it.").transcript.as_ref(), [Message::user("Port it.")]);
        assert!(request(b"").transcript.is_empty());
    }
}
