//! Recognizes the typed values and the content words of a statement.

use std::sync::LazyLock;

use super::shapes::{
    BRANCH_PREFIXES, ZONE_REGIONS, has_known_extension, is_capital, is_day, is_hash, is_iso_date,
    is_name_part, is_number_with_unit, is_ordinal, is_path, is_path_of_names, is_slash_date, is_version,
};
use super::tokens::{Made, Token, tokenize};
use super::values::{Value, ValueKind};
use super::words::{FirstLook, Key, Known, key, known, stem_key};

/// What a statement holds. Reused from statement to statement.
#[derive(Default)]
pub(crate) struct Content {
    /// Its values, in order.
    pub(crate) values: Vec<Value>,
    /// The keys of the stems of its content words, sorted, each once, those inside values not included.
    pub(crate) words: Vec<Key>,
    /// What the first word is known for that is no opener such as `please`.
    pub(crate) first_word: Known,
    tokens: Vec<Token>,
    quotes: Vec<Quote>,
}

/// Text between quotation marks or backticks, the marks included.
#[derive(Clone, Copy)]
struct Quote {
    start: usize,
    end: usize,
    kind: ValueKind,
}

impl Content {
    /// Reads a statement, given as it is and in ASCII lower case.
    pub(crate) fn read(&mut self, text: &str, lower: &[u8]) {
        self.look_over::<true>(text, lower);
        self.words.sort_unstable();
        self.words.dedup();
    }

    /// Reads only the values of a text, as [`Content::read`] does; it then has no words.
    pub(crate) fn read_values(&mut self, text: &str, lower: &[u8]) {
        self.look_over::<false>(text, lower);
    }

    fn look_over<const WORDS: bool>(&mut self, text: &str, lower: &[u8]) {
        self.values.clear();
        self.words.clear();
        tokenize(text, &mut self.tokens);
        find_quotes(text, &mut self.quotes);
        let line = Line { text, lower, tokens: &self.tokens };
        self.first_word = if WORDS { line.first_word() } else { Known::default() };
        let mut quotes = self.quotes.iter().peekable();
        let mut open: Option<(Quote, usize, usize)> = None;
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            if let Some((quote, values, words)) = open.take_if(|(quote, ..)| token.start >= quote.end) {
                close_quote(quote, values, words, lower, &mut self.values, &mut self.words);
            }
            if let Some(&quote) = quotes.next_if(|quote| token.start >= quote.start) {
                open = Some((quote, self.values.len(), self.words.len()));
            }
            // Most tokens are words that can be nothing else; they are looked up once.
            if token.made == Made::LOWER {
                let is_plain = !WORDS && !VALUE_WORDS.may_be_known(line.lower(token));
                let class = if is_plain { Known::default() } else { line.known(token) };
                if !class.any(MAY_BE_VALUE) && !line.is_call(token) {
                    if WORDS && !class.any(Known::STOP) && token.end - token.start > 2 {
                        self.words.push(stem_key(line.lower(token)));
                    }
                    at += 1;
                    continue;
                }
            }
            match line.value_at(at) {
                Some(found) => {
                    let end = self.tokens.get(at + found.tokens - 1).map_or(token.end, |last| last.end);
                    self.values.push(Value {
                        kind: found.kind,
                        start: token.start as u32,
                        end: end as u32,
                        key: key(lower.get(token.start..end).unwrap_or_default()),
                    });
                    at += found.tokens;
                }
                None => {
                    if WORDS {
                        line.push_words(token, &mut self.words);
                    }
                    at += 1;
                }
            }
        }
        if let Some((quote, values, words)) = open {
            close_quote(quote, values, words, lower, &mut self.values, &mut self.words);
        }
    }
}

/// Takes a quote as one value, unless more telling values stand in it.
fn close_quote(
    quote: Quote,
    values_before: usize,
    words_before: usize,
    lower: &[u8],
    values: &mut Vec<Value>,
    words: &mut Vec<Key>,
) {
    if values.get(values_before..).unwrap_or_default().iter().any(|value| value.kind < quote.kind) {
        return;
    }
    values.truncate(values_before);
    words.truncate(words_before);
    let inner = lower.get(quote.start + 1..quote.end.saturating_sub(1)).unwrap_or_default();
    values.push(Value {
        kind: quote.kind,
        start: quote.start as u32,
        end: quote.end as u32,
        key: key(inner),
    });
}

/// Fills `quotes` with the quotes of at most 60 bytes.
fn find_quotes(text: &str, quotes: &mut Vec<Quote>) {
    const LONGEST: usize = 60;
    quotes.clear();
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(open) = memchr::memchr2(b'"', b'`', bytes.get(from..).unwrap_or_default()) {
        let start = from + open;
        let mark = bytes.get(start).copied().unwrap_or_default();
        let inner = bytes.get(start + 1..).unwrap_or_default();
        let near = inner.get(..LONGEST + 1).unwrap_or(inner);
        match memchr::memchr(mark, near) {
            Some(len) => {
                let kind = if mark == b'`' { ValueKind::Identifier } else { ValueKind::Quoted };
                if len >= 2 {
                    quotes.push(Quote { start, end: start + len + 2, kind });
                }
                from = start + len + 2;
            }
            None => from = start + 1,
        }
    }
}

/// A value that takes one token or more.
struct Found {
    kind: ValueKind,
    tokens: usize,
}

impl Found {
    fn one(kind: ValueKind) -> Option<Self> {
        Some(Self { kind, tokens: 1 })
    }
}

struct Line<'a> {
    text: &'a str,
    lower: &'a [u8],
    tokens: &'a [Token],
}

/// Words of small letters that may be or open a value.
const MAY_BE_VALUE: Known = Known::MONTH
    .with(Known::WEEKDAY)
    .with(Known::STYLE)
    .with(Known::NUMBER)
    .with(Known::CLOCK)
    .with(Known::ZONE);
static VALUE_WORDS: LazyLock<FirstLook> = LazyLock::new(|| FirstLook::new(MAY_BE_VALUE));
const LETTERS: Made = Made::LOWER.with(Made::UPPER);
const WORD: Made = LETTERS.with(Made::APOSTROPHE).with(Made::FOREIGN);
const FIGURES: Made = Made::DIGIT.with(Made::COMMA).with(Made::DOT);

impl Line<'_> {
    fn str(&self, token: &Token) -> &str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn lower(&self, token: &Token) -> &[u8] {
        self.lower.get(token.start..token.end).unwrap_or_default()
    }

    fn known(&self, token: &Token) -> Known {
        known(key(self.lower(token)))
    }

    /// The next token, if nothing but one space stands between.
    fn next_word(&self, at: usize) -> Option<&Token> {
        let (this, next) = (self.tokens.get(at)?, self.tokens.get(at + 1)?);
        (self.lower.get(this.end..next.start) == Some(b" ")).then_some(next)
    }

    fn next_is(&self, at: usize, word: &[u8]) -> bool {
        self.next_word(at).is_some_and(|next| self.lower(next) == word)
    }

    fn first_word(&self) -> Known {
        let mut words = self.tokens.iter().take(3).map(|token| self.known(token));
        words.find(|known| !known.any(Known::OPENER)).unwrap_or_default()
    }

    /// The value that starts with this token, if there is one.
    fn value_at(&self, at: usize) -> Option<Found> {
        let token = self.tokens.get(at)?;
        let made = token.made;
        if made.only(WORD) {
            return self.value_of_word(at, token);
        }
        if made.any(Made::CURRENCY) {
            return Found::one(ValueKind::Money);
        }
        if made.only(FIGURES.with(Made::HYPHEN).with(Made::SLASH).with(Made::COLON)) {
            return self.value_of_figures(at, token);
        }
        if made.any(Made::AT.with(Made::SLASH)) {
            return self.value_with_separators(token);
        }
        if made.any(Made::DOT) && has_known_extension(self.lower(token)) {
            return Found::one(ValueKind::Path);
        }
        self.value_of_symbol(at, token)
    }

    /// Words of letters alone: most tokens end here.
    fn value_of_word(&self, at: usize, token: &Token) -> Option<Found> {
        let class = self.known(token);
        if class.any(Known::MONTH) && self.next_word(at).is_some_and(|next| is_day(self.lower(next))) {
            return Some(Found { kind: ValueKind::Date, tokens: 2 });
        }
        if class.any(Known::WEEKDAY) {
            return Found::one(ValueKind::Weekday);
        }
        if class.any(Known::STYLE) {
            return Found::one(ValueKind::Style);
        }
        if class.any(Known::NUMBER)
            && let Some(tokens) = self.sum_in_words(at)
        {
            return Some(Found { kind: ValueKind::Money, tokens });
        }
        if class.any(Known::CLOCK) {
            return Found::one(ValueKind::TimeZone);
        }
        if class.any(Known::ZONE) {
            if self.next_is(at, b"time") {
                return Some(Found { kind: ValueKind::TimeZone, tokens: 2 });
            }
            if (self.next_is(at, b"standard") || self.next_is(at, b"daylight"))
                && self.next_is(at + 1, b"time")
            {
                return Some(Found { kind: ValueKind::TimeZone, tokens: 3 });
            }
        }
        if self.is_call(token) {
            return Found::one(ValueKind::Identifier);
        }
        if is_hash(self.lower(token)) {
            return Found::one(ValueKind::Hash);
        }
        if !token.made.any(Made::UPPER) || token.made.any(Made::APOSTROPHE) {
            return None;
        }
        self.value_of_capitalized(at, token, class)
    }

    fn value_of_capitalized(&self, at: usize, token: &Token, class: Known) -> Option<Found> {
        let word = self.str(token);
        let is_capitalized = word.starts_with(|first: char| first.is_uppercase());
        if class.any(Known::LANGUAGE) && is_capitalized {
            return self.language(at, token);
        }
        if !is_capitalized || token.made.any(Made::HUMP) {
            return token.made.any(Made::HUMP).then_some(Found { kind: ValueKind::Identifier, tokens: 1 });
        }
        if is_name_part(word) {
            if self.next_is(at, b"style") || self.is_after(token, b"style is ") {
                return Found::one(ValueKind::Style);
            }
            if self.next_word(at).is_some_and(|next| is_name_part(self.str(next)) && !self.is_title(at + 1))
                && (self.is_inside_sentence(token)
                    || self.next_word(at + 1).is_some_and(|verb| self.known(verb).any(Known::AFTER_NAME)))
            {
                return Some(Found { kind: ValueKind::Name, tokens: 2 });
            }
        }
        let is_proper = word.chars().count() >= 3 && self.follows_lower(token) && !class.any(Known::STOP)
            || is_name_part(word) && self.precedes_verb(at, token);
        is_proper.then_some(Found { kind: ValueKind::Proper, tokens: 1 })
    }

    /// A programming language with its version: `Python 3.11`, `C++`.
    fn language(&self, at: usize, token: &Token) -> Option<Found> {
        if self.lower(token) == b"c" {
            let after = self.lower.get(token.end..).unwrap_or_default();
            return (after.starts_with(b"++") || after.starts_with(b"#"))
                .then_some(Found { kind: ValueKind::Language, tokens: 1 });
        }
        // `Go` opens sentences, too.
        if self.lower(token) == b"go" && !self.is_inside_sentence(token) {
            return None;
        }
        let version = self.next_word(at).is_some_and(|next| next.made.only(Made::DIGIT.with(Made::DOT)));
        Some(Found { kind: ValueKind::Language, tokens: if version { 2 } else { 1 } })
    }

    /// How many tokens a sum in words takes: `five hundred dollars`.
    fn sum_in_words(&self, at: usize) -> Option<usize> {
        let mut last = at;
        while let Some(next) = self.next_word(last) {
            let lower = self.lower(next);
            let class = self.known(next);
            if class.any(Known::CURRENCY) {
                return Some(last + 2 - at);
            }
            let goes_on = class.any(Known::NUMBER)
                || lower == b"and"
                || lower.split(|&byte| byte == b'-').all(|part| known(key(part)).any(Known::NUMBER));
            if !goes_on || last - at > 12 {
                return None;
            }
            last += 1;
        }
        None
    }

    /// Tokens of digits and the signs between them.
    fn value_of_figures(&self, at: usize, token: &Token) -> Option<Found> {
        let figures = self.lower(token);
        let made = token.made;
        if self.next_word(at).is_some_and(|next| self.known(next).any(Known::CURRENCY)) && made.only(FIGURES)
        {
            return Some(Found { kind: ValueKind::Money, tokens: 2 });
        }
        if is_iso_date(figures) || is_slash_date(figures) {
            return Found::one(ValueKind::Date);
        }
        if made.only(Made::DIGIT)
            && self.next_is(at, b"of")
            && self.next_word(at + 1).is_some_and(|next| next.made.only(Made::DIGIT))
        {
            return Some(Found { kind: ValueKind::Ratio, tokens: 3 });
        }
        if made.any(Made::SLASH) {
            return made
                .only(Made::DIGIT.with(Made::SLASH))
                .then_some(Found { kind: ValueKind::Number, tokens: 1 });
        }
        if made.only(Made::DIGIT) && figures.len() >= 7 {
            return (figures.len() <= 40).then_some(Found { kind: ValueKind::Hash, tokens: 1 });
        }
        let digits = figures.iter().filter(|byte| byte.is_ascii_digit()).count();
        (digits >= 2).then_some(Found { kind: ValueKind::Number, tokens: 1 })
    }

    /// Addresses, branches, paths and zones: tokens with `/` or `@`.
    fn value_with_separators(&self, token: &Token) -> Option<Found> {
        let lower = self.lower(token);
        let text = self.str(token);
        if text.contains("://") {
            return Found::one(ValueKind::Url);
        }
        if !token.made.any(Made::SLASH) {
            let is_email =
                text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
            return is_email.then_some(Found { kind: ValueKind::Email, tokens: 1 });
        }
        let first = lower.split(|&byte| byte == b'/').next().unwrap_or_default();
        if BRANCH_PREFIXES.contains(&first) && lower.len() > first.len() + 1 && !has_known_extension(lower) {
            return Found::one(ValueKind::GitRef);
        }
        if ZONE_REGIONS.contains(&first) && is_capital(text) {
            return Found::one(ValueKind::TimeZone);
        }
        is_path(lower, token.made).then_some(Found { kind: ValueKind::Path, tokens: 1 })
    }

    /// Digests, codes, identifiers and versions: what is left.
    fn value_of_symbol(&self, at: usize, token: &Token) -> Option<Found> {
        let (lower, made) = (self.lower(token), token.made);
        if is_hash(lower) {
            return Found::one(ValueKind::Hash);
        }
        if made.any(Made::PLUS) && (lower.starts_with(b"utc+") || lower.starts_with(b"gmt+")) {
            return Found::one(ValueKind::TimeZone);
        }
        if made.any(Made::HYPHEN) && (lower.starts_with(b"utc-") || lower.starts_with(b"gmt-")) {
            return Found::one(ValueKind::TimeZone);
        }
        if is_version(lower) {
            return Found::one(ValueKind::Number);
        }
        if is_number_with_unit(lower) {
            return Found::one(ValueKind::Number);
        }
        let mixed = made.any(Made::DIGIT) && made.any(LETTERS);
        if mixed
            && made.only(LETTERS.with(Made::DIGIT).with(Made::HYPHEN).with(Made::UNDERSCORE).with(Made::HUMP))
            && (made.any(Made::HYPHEN.with(Made::UNDERSCORE)) || made.any(Made::UPPER) && lower.len() >= 3)
            && !is_ordinal(lower)
        {
            return Found::one(ValueKind::Code);
        }
        if made.any(Made::UNDERSCORE.with(Made::HUMP)) && !made.any(Made::APOSTROPHE)
            || is_path_of_names(lower, made)
        {
            return Found::one(ValueKind::Identifier);
        }
        if self.is_call(token) {
            return Found::one(ValueKind::Identifier);
        }
        if made.any(Made::HYPHEN) && self.sum_in_words(at).is_some() {
            return self.sum_in_words(at).map(|tokens| Found { kind: ValueKind::Money, tokens });
        }
        // `Jean-Luc`, `X-Request`: capitalized compounds.
        let parts_are_names = made.only(LETTERS.with(Made::HYPHEN).with(Made::FOREIGN))
            && self.str(token).split('-').all(|part| part.starts_with(char::is_uppercase));
        (parts_are_names && self.follows_lower(token)).then_some(Found { kind: ValueKind::Proper, tokens: 1 })
    }

    /// Whether `()` follows.
    fn is_call(&self, token: &Token) -> bool {
        self.lower.get(token.end..).unwrap_or_default().starts_with(b"()")
    }

    /// Whether the statement neither starts here nor a sentence in it.
    fn is_inside_sentence(&self, token: &Token) -> bool {
        let before = self.lower.get(..token.start).unwrap_or_default();
        match before.trim_ascii_end() {
            text if text.iter().all(|byte| byte.is_ascii_punctuation()) => false,
            [.., end] => !b".!?".contains(end),
            [] => false,
        }
    }

    fn is_after(&self, token: &Token, words: &[u8]) -> bool {
        self.lower.get(..token.start).unwrap_or_default().ends_with(words)
    }

    /// Whether the token stands after a small letter or a sign that does not end a sentence.
    fn follows_lower(&self, token: &Token) -> bool {
        match self.text.as_bytes().get(..token.start).unwrap_or_default() {
            [.., before, b' '] => before.is_ascii_lowercase() || b",:;>(-".contains(before),
            _ => false,
        }
    }

    /// Whether a heading goes on or ends with this token: another capitalized word or a colon follows.
    fn is_title(&self, at: usize) -> bool {
        let ends_heading = self.tokens.get(at).is_some_and(|token| {
            let after = self.lower.get(token.end..).unwrap_or_default();
            after.trim_ascii_start().starts_with(b":")
        });
        ends_heading || self.next_word(at).is_some_and(|next| is_name_part(self.str(next)))
    }

    fn precedes_verb(&self, at: usize, token: &Token) -> bool {
        self.lower.get(token.end..).unwrap_or_default().starts_with(b" ->")
            || self.next_word(at).is_some_and(|next| {
                [b"owns".as_slice(), b"leads", b"will", b"is"].contains(&self.lower(next))
            }) && !self.known(token).any(Known::STOP)
    }

    /// The content words of a token that is no value.
    fn push_words(&self, token: &Token, words: &mut Vec<Key>) {
        let lower = self.lower(token);
        if token.made.only(WORD) {
            push_word(lower, words);
        } else {
            // A compound tells more than its parts: `rule-safety` and `rule-style` are two things.
            if token.made.only(WORD.with(Made::HYPHEN)) {
                push_word(lower, words);
            }
            let parts = lower.split(|byte| byte.is_ascii_punctuation() && *byte != b'\'');
            parts.for_each(|part| push_word(part, words));
        }
    }
}

fn push_word(lower: &[u8], words: &mut Vec<Key>) {
    let word = without_possessive(lower);
    if word.len() > 2 && !word.first().is_some_and(u8::is_ascii_digit) && !known(key(word)).any(Known::STOP) {
        words.push(stem_key(word));
    }
}

fn without_possessive(lower: &[u8]) -> &[u8] {
    lower.strip_suffix(b"'s").or_else(|| lower.strip_suffix("\u{2019}s".as_bytes())).unwrap_or(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(ValueKind, &str)> {
        let mut content = Content::default();
        content.read(text, text.to_ascii_lowercase().as_bytes());
        content
            .values
            .iter()
            .map(|value| (value.kind, text.get(value.start as usize..value.end as usize).unwrap()))
            .collect()
    }

    #[track_caller]
    fn assert_values(text: &str, expected: &[(ValueKind, &str)]) {
        assert_eq!(values(text), expected, "{text}");
    }

    #[test]
    fn each_kind_of_value() {
        use ValueKind::*;
        assert_values("see https://a.io/x?y=1.", &[(Url, "https://a.io/x?y=1")]);
        assert_values("mail a.b+c@d.org now", &[(Email, "a.b+c@d.org")]);
        assert_values("pay $1,200.50 or 300 euros", &[(Money, "$1,200.50"), (Money, "300 euros")]);
        assert_values("up to five hundred and twenty dollars", &[(Money, "five hundred and twenty dollars")]);
        assert_values(
            "due 2026-03-01 or March 5th or 3/4",
            &[(Date, "2026-03-01"), (Date, "March 5th"), (Date, "3/4")],
        );
        assert_values("on feature/login-2 today", &[(GitRef, "feature/login-2")]);
        assert_values("in src/main.rs and lib.py", &[(Path, "src/main.rs"), (Path, "lib.py")]);
        assert_values("and/or either", &[]);
        assert_values("phase 3 of 5", &[(Ratio, "3 of 5")]);
        assert_values("at 3f9a2bc now", &[(Hash, "3f9a2bc")]);
        assert_values(
            "in Europe/Berlin or UTC+2 or pacific time",
            &[(TimeZone, "Europe/Berlin"), (TimeZone, "UTC+2"), (TimeZone, "pacific time")],
        );
        assert_values("every monday", &[(Weekday, "monday")]);
        assert_values(
            "in Rust or Python 3.11 or C++",
            &[(Language, "Rust"), (Language, "Python 3.11"), (Language, "C")],
        );
        assert_values("be terse", &[(Style, "terse")]);
        assert_values(
            "flight HAT170, user mia_li_3668, booking 4WQ150",
            &[(Code, "HAT170"), (Code, "mia_li_3668"), (Code, "4WQ150")],
        );
        assert_values(
            "call parse_args and getUser and std::fmt and run()",
            &[
                (Identifier, "parse_args"),
                (Identifier, "getUser"),
                (Identifier, "std::fmt"),
                (Identifier, "run"),
            ],
        );
        assert_values("ask Jane Doe or call Kim", &[(Name, "Jane Doe"), (Proper, "Kim")]);
        assert_values("port 8080, v1.2.3, 250ms", &[(Number, "8080"), (Number, "v1.2.3"), (Number, "250ms")]);
        assert_values(
            "say \"good luck\" to `the thing`",
            &[(Quoted, "\"good luck\""), (Identifier, "`the thing`")],
        );
        assert_values("say \"see src/a.rs\"", &[(Path, "src/a.rs")]);
    }

    #[test]
    fn sentence_starts_are_no_names() {
        assert_values("Please wait. Then go on", &[]);
        assert_values("Jane Doe owns billing", &[(ValueKind::Name, "Jane Doe")]);
    }

    #[test]
    fn words_are_content_without_values() {
        let mut content = Content::default();
        let read = |content: &mut Content, text: &str| {
            content.read(text, text.to_ascii_lowercase().as_bytes());
            content.words.clone()
        };
        let first = read(&mut content, "The travel budget is $500.");
        let second = read(&mut content, "the travel budget is $900");
        assert_eq!(first, second);
        assert_eq!(first.len(), 2);
        assert_eq!(read(&mut content, "the team's well-known plan").len(), 5);
    }
}
