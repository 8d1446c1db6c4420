//! Sessions as a coding agent leaves them, made up and the same on every run.

use std::fmt::Write;
use std::sync::Arc;

use epitome_loop::{Block, Message, RawJson, ToolUse};

/// A session of about so many bytes, with calls of tools and their results.
#[must_use]
pub fn agent_session(bytes: usize) -> Arc<[Message]> {
    let mut author = Author::new(1);
    let mut messages = Vec::new();
    let mut written = 0;
    while written < bytes {
        let lines = 20 + author.below(60);
        written += author.exchange(lines, &mut messages);
    }
    messages.into()
}

/// A session of so many turns of three messages, 7 KB together: longer results of tools than [`agent_session`] has.
#[must_use]
pub fn reading_session(turns: usize) -> Arc<[Message]> {
    let mut author = Author::new(3);
    let mut messages = Vec::new();
    for _ in 0..turns {
        let lines = 75 + author.below(50);
        author.exchange(lines, &mut messages);
    }
    messages.into()
}

/// The same kind of text as plain messages of about 3 KB, `count` of them, so that it can be counted exactly.
#[must_use]
pub fn chat_session(count: usize) -> Vec<Message> {
    let mut author = Author::new(2);
    (0..count).map(|turn| author.message(turn)).collect()
}

/// A message of 3 KB that stands in no session; another one for each number.
#[must_use]
pub fn new_message(number: usize) -> Message {
    Author::new(1_000 + number as u64).message(number)
}

/// The text of `count` messages of 3 KB that stand in no session, from number `first` on.
#[must_use]
pub fn plain_text(first: usize, count: usize) -> String {
    (first..first + count).map(|number| Author::new(1_000 + number as u64).prose_and_code()).collect()
}

struct Author {
    state: u64,
}

impl Author {
    fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap_or(0) % limit
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        let chosen = self.below(words.len());
        words.get(chosen).copied().unwrap_or_default()
    }

    /// Half of the names hold a word that hardly ever comes again, as in real projects.
    fn name(&mut self) -> String {
        match self.below(2) {
            0 => format!("{}_{}", self.pick(VERBS), self.rare_word()),
            _ => format!("{}_{}", self.pick(VERBS), self.pick(NOUNS)),
        }
    }

    fn rare_word(&mut self) -> String {
        let syllables = 3 + self.below(5);
        (0..syllables).map(|_| self.pick(SYLLABLES)).collect()
    }

    fn path(&mut self) -> String {
        format!("{}/src/{}/{}.rs", self.pick(PACKAGES), self.pick(NOUNS), self.pick(NOUNS))
    }

    fn sentence(&mut self) -> String {
        let (name, path, noun, number) = (self.name(), self.path(), self.pick(NOUNS), self.below(900));
        match self.below(6) {
            0 => format!("Please look at `{name}` in {path}: the {noun} is off by {number}. "),
            1 => format!("We decided to keep the {noun} as it is, because {name} depends on it. "),
            2 => format!("Never touch {path} without running the {noun} tests first. "),
            3 => format!("The build failed at {path}:{number} with a wrong {noun}; {name} returns early. "),
            4 => format!("I moved {name} behind the {noun} and the {number} tests pass now. "),
            _ => format!("Next, the {noun} has to go through {name} before the release on day {number}. "),
        }
    }

    fn code(&mut self, lines: usize) -> String {
        let mut code = String::new();
        for line in 1..=lines {
            let (name, noun, other, number) =
                (self.name(), self.pick(NOUNS), self.pick(NOUNS), self.below(4_000));
            let statement = match self.below(7) {
                0 => format!("pub fn {name}({noun}: &str, {other}: usize) -> Result<(), Error> {{"),
                1 => format!("    let {noun} = self.{name}({other}, {number})?;"),
                2 => format!("    if {noun}.len() > {number} {{ return Err(Error::{other}); }}"),
                3 => format!("        // The {noun} is checked before the {other} is written."),
                4 => format!("    tracing::debug!({noun} = {number}, \"{name} done\");"),
                5 => format!(
                    "    \"{noun}\": {{ \"{other}\": {number}, \"id\": \"{:08x}\" }},",
                    self.below(1 << 31)
                ),
                _ => "}".to_owned(),
            };
            let _ = writeln!(code, "{line:>5}\t{statement}");
        }
        code
    }

    /// Adds what the user asks, what the model says and calls, and a result of so many lines. Gives the bytes.
    fn exchange(&mut self, lines: usize, messages: &mut Vec<Message>) -> usize {
        let number = messages.len();
        let ask: String = (0..2).map(|_| self.sentence()).collect();
        let say: String = (0..3).map(|_| self.sentence()).collect();
        let path = self.path();
        let result = format!("# result {number}\n{}", self.code(lines));
        let bytes = ask.len() + say.len() + result.len() + path.len();
        let id = format!("call_{number}");
        let input = RawJson::parse_or_quote(&format!(r#"{{"path":"{path}","limit":200}}"#));
        let call = Block::ToolUse(ToolUse::new(id.as_str(), "read_file", Some(input), None));
        messages.push(Message::user(ask));
        messages.push(Message::Assistant { blocks: Arc::from([Block::text(say), call]), usage: None });
        messages.push(Message::tool_result(id.as_str(), result, false));
        bytes
    }

    fn prose_and_code(&mut self) -> String {
        let mut text = String::new();
        while text.len() < 3_000 {
            text.push_str(&self.sentence());
            text.push('\n');
            text.push_str(&self.code(8));
        }
        text
    }

    fn message(&mut self, turn: usize) -> Message {
        let text = self.prose_and_code();
        if turn.is_multiple_of(2) { Message::user(text) } else { Message::assistant(text) }
    }
}

const VERBS: &[&str] = &[
    "load", "store", "parse", "render", "merge", "split", "check", "count", "rebuild", "resolve", "flush",
    "restore", "collect", "compare", "encode", "decode", "validate", "schedule", "cancel", "retry",
];

const NOUNS: &[&str] = &[
    "queue",
    "ledger",
    "session",
    "header",
    "window",
    "cursor",
    "journal",
    "budget",
    "policy",
    "request",
    "reply",
    "segment",
    "worker",
    "deadline",
    "fingerprint",
    "snapshot",
    "invoice",
    "customer",
    "migration",
    "timeout",
    "signature",
    "checksum",
    "registry",
    "transcript",
    "estimate",
    "boundary",
    "permission",
    "attachment",
    "schema",
    "fixture",
];

const SYLLABLES: &[&str] = &[
    "ka", "ren", "to", "mil", "sor", "ve", "ali", "dor", "quin", "ba", "shel", "un", "tri", "pol", "ge",
    "wyn",
];

const PACKAGES: &[&str] = &["billing", "gateway", "storage", "agent", "console", "mailer", "search", "auth"];
