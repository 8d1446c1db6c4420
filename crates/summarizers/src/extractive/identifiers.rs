//! Keeps account of the names, paths and numbers that an agent cannot make up again.

use std::borrow::Cow;

use super::fixed_point::{Score, log2_in_256ths, recency, weighted};
use super::recognize::Content;
use super::statement::Statement;
use super::values::{Value, ValueKind, ValueKinds};
use super::words::{Key, KeyMap, key};

/// Who mentioned an identifier.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The user or the host.
    User = 1,
    /// The model, in a tool call.
    Call = 2,
    /// The model, in its text.
    Assistant = 4,
    /// A tool, or a file.
    Tool = 8,
    /// The previous summary.
    Previous = 16,
}

/// An identifier and its mentions.
pub(crate) struct Identifier<'t> {
    /// As it was written first.
    pub(crate) text: Cow<'t, str>,
    /// Its text in lower case.
    pub(crate) key: Key,
    pub(crate) kind: ValueKind,
    sources: u8,
    mentions: u32,
    first_message: usize,
    last_message: usize,
}

/// All identifiers of a conversation, in the order of their first mention.
#[derive(Default)]
pub(crate) struct Identifiers<'t> {
    all: Vec<Identifier<'t>>,
    by_key: KeyMap<usize>,
}

impl<'t> Identifiers<'t> {
    /// Notes the values of a statement whose kind is wanted.
    pub(crate) fn note_all(
        &mut self,
        statement: &Statement<'t>,
        source: Source,
        message: usize,
        wants: impl Fn(ValueKind) -> bool,
    ) {
        let values = &statement.values;
        match &statement.text {
            Cow::Borrowed(text) => self.note_values(text, values, source, message, wants),
            Cow::Owned(text) => {
                let own = |word: &str| Cow::Owned(word.to_owned());
                self.note_each(text, values, source, message, wants, own);
            }
        }
    }

    /// Notes those values of a text whose kind is wanted.
    pub(crate) fn note_values(
        &mut self,
        text: &'t str,
        values: &[Value],
        source: Source,
        message: usize,
        wants: impl Fn(ValueKind) -> bool,
    ) {
        self.note_each(text, values, source, message, wants, Cow::Borrowed);
    }

    fn note_each<'a>(
        &mut self,
        text: &'a str,
        values: &[Value],
        source: Source,
        message: usize,
        wants: impl Fn(ValueKind) -> bool,
        own: impl Fn(&'a str) -> Cow<'t, str>,
    ) {
        const SHORTEST: usize = 3;
        const LONGEST: usize = 80;
        for value in values {
            if !wants(value.kind) {
                continue;
            }
            let word = text.get(value.start as usize..value.end as usize).unwrap_or_default();
            let word = word.trim_matches(['`', '"', '.', '“', '”']);
            if (SHORTEST..=LONGEST).contains(&word.len()) && !is_field_name(text, value) {
                self.note(|| own(word), value.key, value.kind, source, message);
            }
        }
    }

    /// Notes an argument of a tool call, as what it is if it is a value as a whole.
    pub(crate) fn note_argument(&mut self, argument: &str, message: usize, content: &mut Content) {
        if argument.len() <= 3 {
            return;
        }
        let lower = argument.to_ascii_lowercase();
        content.read(argument, lower.as_bytes());
        let kind = match content.values.as_slice() {
            [value] if value.start == 0 && value.end as usize == argument.len() => value.kind,
            _ => ValueKind::Argument,
        };
        let text = || Cow::Owned(argument.to_owned());
        self.note(text, key(lower.as_bytes()), kind, Source::Call, message);
    }

    /// The identifiers worth listing with what they are worth, best first.
    pub(crate) fn ranked(&self, messages: usize) -> Vec<(Score, &Identifier<'t>)> {
        const MOST: usize = 2048;
        let mut ranked: Vec<_> = self
            .all
            .iter()
            .filter(|identifier| identifier.text.len() >= 4 && identifier.is_telling())
            .map(|identifier| (identifier.score(messages), identifier))
            .filter(|(score, _)| *score >= 100)
            .collect();
        // `all` is in the order of first mention and the sort is stable, so equals have a fixed order.
        ranked.sort_by_key(|(score, identifier)| std::cmp::Reverse((*score, identifier.last_message)));
        ranked.truncate(MOST);
        ranked
    }

    fn note(
        &mut self,
        text: impl FnOnce() -> Cow<'t, str>,
        key: Key,
        kind: ValueKind,
        source: Source,
        message: usize,
    ) {
        let at = *self.by_key.entry(key).or_insert_with(|| {
            self.all.push(Identifier {
                text: text(),
                key,
                kind,
                sources: 0,
                mentions: 0,
                first_message: message,
                last_message: message,
            });
            self.all.len() - 1
        });
        if let Some(identifier) = self.all.get_mut(at) {
            identifier.sources |= source as u8;
            identifier.mentions = identifier.mentions.saturating_add(1);
            identifier.last_message = message;
            identifier.kind = identifier.kind.min(kind);
        }
    }
}

impl Identifier<'_> {
    /// The messages of its first and last mention, by index.
    pub(crate) fn span(&self) -> (usize, usize) {
        (self.first_message, self.last_message)
    }

    fn has(&self, source: Source) -> bool {
        self.sources & source as u8 != 0
    }

    /// Plain numbers, names, words and quotes matter only when the user said them; a tool's quotes are data.
    fn is_telling(&self) -> bool {
        if self.kind == ValueKind::Quoted && self.has(Source::Tool) {
            return !self.text.contains(' ');
        }
        const COMMON: ValueKinds = ValueKinds::of(&[ValueKind::Number, ValueKind::Name, ValueKind::Quoted]);
        let is_word =
            self.kind == ValueKind::Identifier && self.text.bytes().all(|byte| byte.is_ascii_lowercase());
        !is_word && !COMMON.has(self.kind) || self.has(Source::User) || self.has(Source::Previous)
    }

    fn score(&self, messages: usize) -> Score {
        let age = messages.saturating_sub(self.last_message + 1);
        let fresh = 450 + weighted(550, recency(age, messages));
        if self.kind == ValueKind::Quoted && self.sources == Source::Tool as u8 {
            // The last resort: a word that a tool repeats a lot is a code of its own, not a name.
            return weighted(300, fresh);
        }
        let points = |source, worth| if self.has(source) { worth } else { 0 };
        let said = points(Source::User, 3000).max(points(Source::Previous, 3000))
            + points(Source::Call, 2200)
            + points(Source::Assistant, 1200)
            + points(Source::Tool, 600);
        let several = if self.sources.count_ones() > 1 { 800 } else { 0 };
        // 0.4 for each doubling of the mentions, as a natural logarithm.
        let often = (log2_in_256ths(u64::from(self.mentions) + 1) as Score) * 277 / 256;
        let mut score = weighted(said + several + often, fresh);
        if self.kind == ValueKind::Path {
            score += 600;
        }
        let only_tools = self.sources == Source::Tool as u8;
        const CHEAP: ValueKinds = ValueKinds::of(&[ValueKind::Hash, ValueKind::Path, ValueKind::GitRef]);
        let is_plain_name =
            self.kind == ValueKind::Identifier && !self.text.bytes().any(|byte| byte.is_ascii_digit());
        if only_tools && (CHEAP.has(self.kind) || is_plain_name) {
            score -= 800;
        }
        score
    }
}

/// Whether a value is the name of a field, as in `"flight_type": "one_way"` or `cache_type = redis`. Names
/// with digits are data all the same: some answers are keyed by what they are about.
fn is_field_name(text: &str, value: &Value) -> bool {
    let name = text.get(value.start as usize..value.end as usize).unwrap_or_default();
    let after = text.get(value.end as usize..).unwrap_or_default();
    let after = after.strip_prefix(['"', '\'', '`']).unwrap_or(after).trim_start();
    let is_named = after.starts_with(':') || after.starts_with('=') && !after.starts_with("==");
    is_named && !name.bytes().any(|byte| byte.is_ascii_digit())
}
