//! Cuts a statement into tokens: words, numbers, paths, addresses, each in one piece.

/// What a token is made of, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Made(u16);

impl Made {
    /// Holds `a-z`.
    pub(crate) const LOWER: Self = Self(1);
    /// Holds `A-Z`.
    pub(crate) const UPPER: Self = Self(1 << 1);
    /// Holds a digit.
    pub(crate) const DIGIT: Self = Self(1 << 2);
    /// Holds `_`.
    pub(crate) const UNDERSCORE: Self = Self(1 << 3);
    /// Holds `-`.
    pub(crate) const HYPHEN: Self = Self(1 << 4);
    /// Holds `.`.
    pub(crate) const DOT: Self = Self(1 << 5);
    /// Holds `/` or `\`.
    pub(crate) const SLASH: Self = Self(1 << 6);
    /// Holds `:`.
    pub(crate) const COLON: Self = Self(1 << 7);
    /// Holds `@`.
    pub(crate) const AT: Self = Self(1 << 8);
    /// Starts with a currency sign.
    pub(crate) const CURRENCY: Self = Self(1 << 9);
    /// Holds a letter of another script, or one with an accent.
    pub(crate) const FOREIGN: Self = Self(1 << 10);
    /// Holds a capital after a small letter.
    pub(crate) const HUMP: Self = Self(1 << 11);
    /// Holds `+`.
    pub(crate) const PLUS: Self = Self(1 << 12);
    /// Holds an apostrophe.
    pub(crate) const APOSTROPHE: Self = Self(1 << 13);
    /// Holds a comma between digits.
    pub(crate) const COMMA: Self = Self(1 << 14);
    /// Holds `~`.
    pub(crate) const TILDE: Self = Self(1 << 15);

    /// Whether any bit of `other` is set.
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no bit outside `other` is set.
    pub(crate) fn only(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Both sets together.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A token of a statement, by byte offsets.
#[derive(Clone, Copy)]
pub(crate) struct Token {
    /// Offset of its first byte.
    pub(crate) start: usize,
    /// Offset after its last byte.
    pub(crate) end: usize,
    /// What it is made of.
    pub(crate) made: Made,
}

/// Fills `tokens` with the tokens of the statement.
pub(crate) fn tokenize(text: &str, tokens: &mut Vec<Token>) {
    tokens.clear();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match CLASS[usize::from(byte)] {
            Class::Word(_) => {
                let token = token_from(text, at, at, Made::default());
                at = token.end;
                tokens.push(token);
            }
            Class::Foreign => match foreign_at(text, at) {
                Foreign::Letter(_) => {
                    let token = token_from(text, at, at, Made::default());
                    at = token.end;
                    tokens.push(token);
                }
                Foreign::Currency(len) if is_digit(bytes, at + len) => {
                    let token = token_from(text, at, at + len, Made::CURRENCY);
                    at = token.end;
                    tokens.push(token);
                }
                Foreign::Currency(len) | Foreign::Mark(len) => at += len,
            },
            Class::Other => match lead(bytes, at) {
                Some((len, made)) => {
                    let token = token_from(text, at, at + len, made);
                    at = token.end;
                    tokens.push(token);
                }
                None => at += 1,
            },
        }
    }
}

#[derive(Clone, Copy)]
enum Class {
    Word(Made),
    Foreign,
    Other,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Word(Made::LOWER),
            b'A'..=b'Z' => Class::Word(Made::UPPER),
            b'0'..=b'9' => Class::Word(Made::DIGIT),
            b'_' => Class::Word(Made::UNDERSCORE),
            0x80.. => Class::Foreign,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
};

enum Foreign {
    Letter(usize),
    Currency(usize),
    Mark(usize),
}

/// What stands at an offset that is no ASCII byte.
fn foreign_at(text: &str, at: usize) -> Foreign {
    match text.get(at..).and_then(|rest| rest.chars().next()) {
        Some(letter) if letter.is_alphanumeric() => Foreign::Letter(letter.len_utf8()),
        Some(sign @ ('€' | '£')) => Foreign::Currency(sign.len_utf8()),
        Some(mark) => Foreign::Mark(mark.len_utf8()),
        None => Foreign::Mark(1),
    }
}

/// Signs that a token may start with: those of paths and sums. Says how many bytes they take.
fn lead(bytes: &[u8], at: usize) -> Option<(usize, Made)> {
    let rest = bytes.get(at..).unwrap_or_default();
    let (len, made) = match rest {
        [b'.', b'.', b'/', ..] => (3, Made::DOT.with(Made::SLASH)),
        [b'.', b'/', ..] => (2, Made::DOT.with(Made::SLASH)),
        [b'~', b'/', ..] => (2, Made::TILDE.with(Made::SLASH)),
        [b'/', b'.', ..] => (2, Made::DOT.with(Made::SLASH)),
        [b'/', ..] => (1, Made::SLASH),
        [b'.', next, ..] if next.is_ascii_alphabetic() => (1, Made::DOT),
        [b'$', next, ..] if next.is_ascii_digit() => (1, Made::CURRENCY),
        [b'$', b' ', next, ..] if next.is_ascii_digit() => (2, Made::CURRENCY),
        _ => return None,
    };
    is_word(bytes, at + len).then_some((len, made))
}

/// The token that starts at `start` and of which the bytes before `at` are read.
fn token_from(text: &str, start: usize, mut at: usize, mut made: Made) -> Token {
    let bytes = text.as_bytes();
    let mut after_lower = false;
    while let Some(&byte) = bytes.get(at) {
        match CLASS[usize::from(byte)] {
            Class::Word(kind) => {
                if after_lower && kind == Made::UPPER {
                    made = made.with(Made::HUMP);
                }
                after_lower = kind == Made::LOWER;
                made = made.with(kind);
                at += 1;
            }
            Class::Foreign => match foreign_at(text, at) {
                Foreign::Letter(len) => {
                    made = made.with(Made::FOREIGN);
                    after_lower = false;
                    at += len;
                }
                _ => match joiner(bytes, at) {
                    Some((len, kind)) => {
                        made = made.with(kind);
                        after_lower = false;
                        at += len;
                    }
                    None => break,
                },
            },
            Class::Other => match joiner(bytes, at) {
                Some((len, kind)) => {
                    made = made.with(kind);
                    after_lower = false;
                    at += len;
                }
                None => break,
            },
        }
    }
    if made.any(Made::COLON) && text.get(start..at).is_some_and(|token| token.contains("://")) {
        at = url_end(bytes, at);
    }
    Token { start, end: at, made }
}

/// Signs that join two parts of one token. Says how many bytes they take.
fn joiner(bytes: &[u8], at: usize) -> Option<(usize, Made)> {
    let rest = bytes.get(at..).unwrap_or_default();
    let (len, made) = match rest {
        [b':', b'/', b'/', ..] => (3, Made::COLON.with(Made::SLASH)),
        [b':', b':', ..] => (2, Made::COLON),
        [b':', b'\\', ..] => (2, Made::COLON.with(Made::SLASH)),
        [b'/', b'.', b'.', b'/', ..] => (4, Made::SLASH.with(Made::DOT)),
        [b'/', b'.', ..] => (2, Made::SLASH.with(Made::DOT)),
        [b'/' | b'\\', ..] => (1, Made::SLASH),
        [b'.', ..] => (1, Made::DOT),
        [b'-', ..] => (1, Made::HYPHEN),
        [b'@', ..] => (1, Made::AT),
        [b'+', ..] => (1, Made::PLUS),
        [b'\'', ..] => (1, Made::APOSTROPHE),
        [0xe2, 0x80, 0x99, ..] => (3, Made::APOSTROPHE),
        [b',', ..] if is_digit_before(bytes, at) && is_digit(bytes, at + 1) => (1, Made::COMMA),
        [b':', ..] if is_digit_before(bytes, at) && is_digit(bytes, at + 1) => (1, Made::COLON),
        _ => return None,
    };
    is_word(bytes, at + len).then_some((len, made))
}

/// Where an address ends: at white space or a sign that closes what stands around it.
fn url_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let len = rest
        .iter()
        .position(|byte| byte.is_ascii_whitespace() || b"<>\"')]`".contains(byte) || *byte >= 0x80)
        .unwrap_or(rest.len());
    let url = rest.get(..len).unwrap_or_default();
    let trailing = url.iter().rev().take_while(|byte| b".,;:!?".contains(byte)).count();
    at + len - trailing
}

fn is_word(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|&byte| !matches!(CLASS[usize::from(byte)], Class::Other))
}

fn is_digit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(u8::is_ascii_digit)
}

fn is_digit_before(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| is_digit(bytes, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let mut tokens = Vec::new();
        tokenize(text, &mut tokens);
        tokens.iter().map(|token| text.get(token.start..token.end).unwrap()).collect()
    }

    #[test]
    fn tokens_stay_in_one_piece() {
        assert_eq!(
            texts("See src/a.rs:12, ../b/c.py and https://x.io/a?b=c#d). Pay $1,200.50 to a.b@c.org!"),
            [
                "See",
                "src/a.rs",
                "12",
                "../b/c.py",
                "and",
                "https://x.io/a?b=c#d",
                "Pay",
                "$1,200.50",
                "to",
                "a.b@c.org"
            ]
        );
        assert_eq!(
            texts("key=value; don't std::fmt - 10:30 (x)"),
            ["key", "value", "don't", "std::fmt", "10:30", "x"]
        );
        assert_eq!(texts("“naïve” — don’t → ~/x .env €5 £7"), ["naïve", "don’t", "~/x", ".env", "€5", "£7"]);
    }

    #[test]
    fn any_text_is_cut_on_character_bounds() {
        for text in [
            "’",
            "a’",
            "€",
            "£",
            "a€",
            "$",
            "/",
            "..",
            "../",
            "a:\u{e9}",
            "日本語。テスト",
            "a/\u{2014}b",
            "/…",
        ] {
            let mut tokens = Vec::new();
            tokenize(text, &mut tokens);
            assert!(tokens.iter().all(|token| text.get(token.start..token.end).is_some()), "{text}");
        }
    }
}
