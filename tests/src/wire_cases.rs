//! Compaction inputs made up from a seed: every kind of block, nesting, odd strings, edges of numbers, raw
//! JSON in every spelling. Fast, and the same on every machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome_loop::{
    Audio, Block, Blocks, CompactionInput, ContextBasis, ContextRevision, Document, EventId, Image,
    MAX_BLOCK_DEPTH, Message, ModelKey, RawJson, RequestFingerprint, SharedBytes, SharedText, Thinking,
    TokenCount, ToolResult, ToolUse, Usage,
};

/// How many cases had what, by name.
pub type Covered = BTreeMap<&'static str, u64>;

/// Makes up inputs.
pub struct WireCases {
    state: u64,
    /// What the inputs made so far had in them.
    pub covered: Covered,
    has_halves: bool,
}

/// Pieces of text, chosen for what they do to a writer or a reader of JSON.
const TEXTS: &[(&str, &str)] = &[
    ("text: plain", "the quick brown fox"),
    ("text: quote", "\""),
    ("text: backslash", "\\"),
    ("text: slash", "/"),
    ("text: markup", "</a> & <b>"),
    ("text: short escapes", "\u{8}\u{c}\n\r\t"),
    ("text: other controls", "\0\u{1}\u{1b}\u{1f}"),
    ("text: delete", "\u{7f}\u{80}\u{9f}"),
    ("text: line separators", "\u{2028}\u{2029}"),
    ("text: beside line separators", "\u{2027}\u{202a}\u{e2}\u{2128}"),
    ("text: two bytes", "é"),
    ("text: three bytes", "日本"),
    ("text: four bytes", "🚀\u{10ffff}"),
    ("text: beside surrogates", "\u{d7ff}\u{e000}"),
    ("text: no characters", "\u{feff}\u{fffe}\u{ffff}"),
    ("text: replacement", "\u{fffd}"),
    ("text: looks like an escape", "\\u003c\\n\\ud800"),
    ("text: looks like the wire", "\"},{\"type\":\"text\"}],\"usage\":null}"),
    ("text: blanks", "  \u{a0} "),
];

/// Pieces of strings inside raw JSON, as they are spelled there.
const RAW_STRINGS: &[(&str, &str)] = &[
    ("raw: plain string", "value"),
    ("raw: short escapes", "\\b\\f\\n\\r\\t\\\"\\\\"),
    ("raw: escaped slash", "\\/"),
    ("raw: needless escape", "\\u0041\\u00E9"),
    ("raw: surrogate pair", "\\ud83d\\ude00"),
    ("raw: lone surrogate", "\\ud800\\uDFFF"),
    ("raw: markup", "<b>&</b>"),
    ("raw: escaped markup", "\\u003c\\u003E\\u0026"),
    ("raw: line separators", "\u{2028}\u{2029}\u{2027}"),
    ("raw: unicode", "é日本🚀"),
    ("raw: blanks in a string", "  a\u{a0} {} [] : , "),
];

const RAW_NUMBERS: &[&str] =
    &["0", "-0", "1.0", "1e5", "1E+2", "-1.5e-10", "18446744073709551616", "1e400", "0.1000", "123456789"];

const NUMBERS: &[u64] = &[
    1,
    2,
    9,
    10,
    255,
    256,
    65_535,
    1 << 32,
    (1 << 53) + 1,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

impl WireCases {
    /// How many kinds of content there are.
    pub const KINDS: usize = 65;

    /// Makes up inputs from this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed, covered: Covered::new(), has_halves: false }
    }

    /// Makes up inputs from this seed, some of whose blocks hold halves that no constructor makes: a state without its
    /// format, a format without a state, a signature's format without a signature.
    #[must_use]
    pub fn with_halves(seed: u64) -> Self {
        Self { has_halves: true, ..Self::new(seed) }
    }

    /// The next input. Its blocks are as their constructors make them, unless halves were asked for.
    pub fn next_input(&mut self) -> CompactionInput {
        loop {
            let basis = ContextBasis {
                revision: ContextRevision(self.number().max(1)),
                through_event_id: EventId::from_bytes(u128::from(self.next_word()).max(1).to_be_bytes()),
            };
            let name = |text: SharedText| format!("m{}", text.as_str());
            let model = ModelKey::new(name(self.text()), name(self.text()));
            let mut print = [7; 32];
            print[..8].copy_from_slice(&self.next_word().to_be_bytes());
            let transcript: Vec<Message> = (0..1 + self.below(4)).map(|_| self.message()).collect();
            let budget = TokenCount(self.number().max(1));
            let print = RequestFingerprint::from_bytes(print);
            // All of this is valid, so the loop runs once.
            if let Ok(input) = CompactionInput::new(basis, model, print, transcript.into(), budget) {
                return input;
            }
        }
    }

    fn message(&mut self) -> Message {
        let blocks = self.blocks(0);
        match self.below(4) {
            0 => {
                self.note("role: user");
                Message::User { blocks }
            }
            1 => {
                self.note("role: system");
                Message::System { blocks }
            }
            2 => {
                let usage = (self.below(3) > 0).then(|| Usage {
                    input: TokenCount(self.number()),
                    output: TokenCount(self.number()),
                    cache_read: TokenCount(self.number()),
                    cache_creation: TokenCount(self.number()),
                    reasoning: TokenCount(self.number()),
                });
                self.note(if usage.is_some() { "role: assistant, usage" } else { "role: assistant" });
                Message::Assistant { blocks, usage }
            }
            _ => {
                let is_error = self.coin();
                self.note(if is_error { "role: tool, error" } else { "role: tool" });
                Message::ToolResult { blocks, tool_use_id: self.text(), is_error }
            }
        }
    }

    fn blocks(&mut self, depth: usize) -> Blocks {
        let count = self.below(if depth == 0 { 4 } else { 3 });
        if count == 0 {
            self.note("blocks: none");
        }
        (0..count).map(|_| self.block(depth)).collect::<Vec<_>>().into()
    }

    fn block(&mut self, depth: usize) -> Block {
        match self.below(9) {
            0 => {
                self.note("block: refusal");
                Block::Refusal { text: self.text() }
            }
            1 => {
                self.note("block: image");
                Block::Image(Image { media_type: self.text(), url: self.text(), data: self.data() })
            }
            2 => {
                self.note("block: audio");
                Block::Audio(Audio { media_type: self.text(), data: self.data() })
            }
            3 => {
                self.note("block: document");
                let (media_type, name, data) = (self.text(), self.text(), self.data());
                Block::Document(Document { media_type, name, data, text: self.text() })
            }
            4 => {
                let state = self.provider_state();
                self.note(if state.is_some() { "block: thinking, state" } else { "block: thinking" });
                let whole = Thinking::new(self.text(), self.text(), self.text(), state);
                Block::Thinking(if self.has_halves && self.below(8) == 0 {
                    self.half_of_a_thought(whole)
                } else {
                    whole
                })
            }
            5 | 6 => {
                let input = (self.below(6) > 0).then(|| self.raw());
                let state = self.provider_state();
                self.note(match (&input, &state) {
                    (None, _) => "block: call without input",
                    (Some(_), None) => "block: call",
                    (Some(_), Some(_)) => "block: call, state",
                });
                let whole = ToolUse::new(self.text(), self.text(), input, state);
                Block::ToolUse(if self.has_halves && self.below(8) == 0 {
                    self.half_of_a_call(whole)
                } else {
                    whole
                })
            }
            7 if depth == 0 && self.below(200) == 0 => self.deep_result(),
            7 if depth < 5 => {
                self.note(if depth == 0 { "block: result" } else { "block: result in a result" });
                let (tool_use_id, is_error) = (self.text(), self.coin());
                Block::ToolResult(ToolResult { tool_use_id, content: self.blocks(depth + 1), is_error })
            }
            _ => {
                self.note("block: text");
                Block::Text { text: self.text() }
            }
        }
    }

    /// As deep as results may nest.
    fn deep_result(&mut self) -> Block {
        self.note("block: results nested 128 times");
        let mut block = Block::Text { text: self.text() };
        for _ in 0..MAX_BLOCK_DEPTH {
            let content = Arc::from([block]);
            block = Block::ToolResult(ToolResult { tool_use_id: "n".into(), content, is_error: false });
        }
        block
    }

    /// A state without its format, or a format without a state: fields are public, so there are such values.
    fn half_of_a_call(&mut self, whole: ToolUse) -> ToolUse {
        if self.coin() {
            ToolUse {
                provider_state: Some(self.raw()),
                provider_state_format: SharedText::default(),
                ..whole
            }
        } else {
            ToolUse { provider_state: None, provider_state_format: "f".into(), ..whole }
        }
    }

    /// The same, or a signature's format without a signature.
    fn half_of_a_thought(&mut self, whole: Thinking) -> Thinking {
        match self.below(3) {
            0 => Thinking {
                provider_state: Some(self.raw()),
                provider_state_format: SharedText::default(),
                ..whole
            },
            1 => Thinking { provider_state: None, provider_state_format: "f".into(), ..whole },
            _ => Thinking { signature: SharedText::default(), signature_format: "f".into(), ..whole },
        }
    }

    fn provider_state(&mut self) -> Option<(RawJson, SharedText)> {
        self.coin().then(|| (self.raw(), self.text()))
    }

    fn text(&mut self) -> SharedText {
        let mut text = String::new();
        for _ in 0..self.below(4) {
            if self.below(4) == 0 {
                self.note("text: a run of some length");
                let run = self.below(100);
                text.extend(std::iter::repeat_n('x', run));
            } else {
                let (name, piece) = self.pick(TEXTS);
                self.note(name);
                text.push_str(piece);
            }
        }
        if text.is_empty() {
            self.note("text: empty");
        }
        text.into()
    }

    fn data(&mut self) -> Option<SharedBytes> {
        match self.below(4) {
            0 => {
                self.note("data: absent");
                None
            }
            1 => {
                self.note("data: empty");
                Some(Vec::new().into())
            }
            _ => {
                let len = self.below(70);
                self.note(match len % 3 {
                    0 => "data: no padding",
                    1 => "data: two of padding",
                    _ => "data: one of padding",
                });
                Some((0..len).map(|_| self.next_word().to_le_bytes()[0]).collect::<Vec<u8>>().into())
            }
        }
    }

    fn raw(&mut self) -> RawJson {
        loop {
            let mut text = String::new();
            if self.below(100) == 0 {
                self.note("raw: nested deep");
                let levels = 1 + self.below(2_000);
                text.push_str(&"[".repeat(levels));
                text.push_str(&"]".repeat(levels));
            } else {
                self.blank(&mut text);
                self.raw_value(&mut text, 0);
                self.blank(&mut text);
            }
            if let Ok(raw) = RawJson::parse(text) {
                return raw;
            }
        }
    }

    fn raw_value(&mut self, out: &mut String, depth: usize) {
        match self.below(if depth < 4 { 8 } else { 6 }) {
            0 => {
                self.note("raw: null");
                out.push_str("null");
            }
            1 => out.push_str(if self.coin() { "true" } else { "false" }),
            2 => {
                self.note("raw: number");
                let number = self.pick(RAW_NUMBERS);
                out.push_str(number);
            }
            3..=5 => self.raw_string(out),
            6 => {
                self.note("raw: array");
                self.raw_list(out, depth, false);
            }
            _ => {
                self.note("raw: object");
                self.raw_list(out, depth, true);
            }
        }
    }

    fn raw_list(&mut self, out: &mut String, depth: usize, object: bool) {
        out.push(if object { '{' } else { '[' });
        self.blank(out);
        let mut keys = Vec::new();
        for index in 0..self.below(4) {
            if index > 0 {
                out.push(',');
                self.blank(out);
            }
            if object {
                let start = out.len();
                self.raw_string(out);
                let key = out.get(start..).unwrap_or_default().to_owned();
                if keys.contains(&key) {
                    self.note("raw: the same key twice");
                }
                keys.push(key);
                self.blank(out);
                out.push(':');
                self.blank(out);
            }
            self.raw_value(out, depth + 1);
            self.blank(out);
        }
        out.push(if object { '}' } else { ']' });
    }

    fn raw_string(&mut self, out: &mut String) {
        out.push('"');
        for _ in 0..self.below(3) {
            let (name, piece) = self.pick(RAW_STRINGS);
            self.note(name);
            out.push_str(piece);
        }
        out.push('"');
    }

    fn blank(&mut self, out: &mut String) {
        if self.below(4) == 0 {
            self.note("raw: white space");
            let blank = self.pick(&[" ", "\n", "\t", "\r\n  "]);
            out.push_str(blank);
        }
    }

    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => self.next_word(),
            _ => {
                self.note("number: an edge");
                self.pick(NUMBERS)
            }
        }
    }

    fn note(&mut self, name: &'static str) {
        *self.covered.entry(name).or_default() += 1;
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn coin(&mut self) -> bool {
        self.next_word() >> 63 == 1
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        let scaled = (u128::from(self.next_word()) * limit as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// The next word of the sequence known as SplitMix64.
    fn next_word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }
}
