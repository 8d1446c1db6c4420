//! What ours is compared with: the plain use of a well-known crate, written to do no more than ours needs.

use aho_corasick::{AhoCorasick, MatchKind};
use epitome_loop::{Block, Message, SUMMARY_ROOT, Section};

/// Counts a session of plain messages anew with `tiktoken-rs`, with the published framing of OpenAI chat.
#[must_use]
pub fn recount_chat(messages: &[Message]) -> u64 {
    let bpe = tiktoken_rs::o200k_base_singleton();
    let content = |message: &Message| -> usize {
        let texts = message.blocks().iter().filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
        texts.map(|text| bpe.count_ordinary(text)).sum()
    };
    let tokens: usize = messages.iter().map(|message| 3 + 1 + content(message)).sum();
    tokens as u64 + 3
}

/// Reads a summary with `roxmltree` and looks whether it has the root and the five sections in order, texts
/// only. That is less than the strict grammar asks for.
#[must_use]
pub fn roxmltree_accepts(text: &str) -> bool {
    let Ok(document) = roxmltree::Document::parse(text) else { return false };
    let root = document.root_element();
    let names = root.children().map(|child| child.tag_name().name());
    root.tag_name().name() == SUMMARY_ROOT
        && names.eq(Section::ALL.iter().map(|section| section.as_str()))
        && root.children().all(|section| section.children().all(|child| child.is_text()))
}

/// The least that a summarizer without a model has to do, and nothing else: cut text into lines and tokens, hash
/// each token and see what it is made of, and look for cue phrases and for words that announce values, with an
/// automaton each. It keeps nothing of a line when the next one comes.
#[derive(Debug)]
pub struct FeasibilityScan {
    cues: AhoCorasick,
    values: AhoCorasick,
}

impl FeasibilityScan {
    /// Builds the automata.
    #[must_use]
    pub fn new() -> Self {
        // Made of parts; what the phrases say does not matter for the time, how many they are does.
        let cues =
            ["never", "always", "do not", "from now on", "instead of", "let's", "decided to", "scratch"];
        let verbs = ["push", "touch", "use", "keep", "run", "deploy", "answer", "ask", "merge", "drop"];
        let cues = cues.iter().flat_map(|cue| verbs.map(|verb| format!("{cue} {verb}")));
        let cues = cues.chain(verbs.map(|verb| format!("todo: {verb}")));
        let values =
            ["error", "http://", "https://", "budget", "deadline", "utc", "monday", "friday", "$", "%"];
        Self { cues: automaton(cues), values: automaton(values.map(str::to_owned)) }
    }

    /// Scans every text of a session; gives sums, so that nothing is left undone.
    #[must_use]
    pub fn run(&self, messages: &[Message]) -> (u64, u64, u64) {
        let mut sums = (0, 0, 0_u64);
        let mut tokens = Vec::new();
        let texts =
            messages.iter().flat_map(|message| message.blocks().iter()).filter_map(|block| match block {
                Block::Text { text } => Some(text.as_bytes()),
                _ => None,
            });
        for text in texts {
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
                let line = text.get(start..end).unwrap_or_default();
                sums.0 += self.cues.find_iter(line).count() as u64;
                sums.1 += self.values.find_iter(line).count() as u64;
                tokenize(line, &mut tokens);
                // A token with a digit or a joining sign may be a value.
                sums.2 += tokens.iter().filter(|token| token.made & (DIGIT | JOINER) != 0).count() as u64;
                sums.2 ^=
                    tokens.iter().fold(0, |sum, token| sum ^ token.hash ^ (token.end - token.start) as u64);
                start = end + 1;
            }
        }
        sums
    }
}

impl Default for FeasibilityScan {
    fn default() -> Self {
        Self::new()
    }
}

/// A word, number, path or the like.
struct Token {
    start: usize,
    end: usize,
    hash: u64,
    made: u8,
}

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const JOINER: u8 = 4;

/// The tokens of a line, with the hash of each in lower case and what it is made of.
fn tokenize(line: &[u8], tokens: &mut Vec<Token>) {
    tokens.clear();
    let mut open = None;
    for (at, byte) in line.iter().enumerate() {
        let class = match byte {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => LETTER,
            b'_' | b'-' | b'/' | b'.' | b':' | b'@' | b'$' => JOINER,
            _ => 0,
        };
        if class == 0 {
            tokens.extend(open.take());
            continue;
        }
        let token = open.get_or_insert(Token { start: at, end: at, hash: 0, made: 0 });
        token.end = at + 1;
        token.made |= class;
        token.hash = (token.hash.rotate_left(5) ^ u64::from(byte.to_ascii_lowercase()))
            .wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    tokens.extend(open);
}

fn automaton(phrases: impl IntoIterator<Item = String>) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .ascii_case_insensitive(true)
        .build(phrases)
        .unwrap_or_else(|_| unreachable!("a few short phrases fit"))
}
