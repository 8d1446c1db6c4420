//! System messages in the middle of a conversation: which of them still stand.
//!
//! Hosts put rules there that hold from then on: a sandbox became writable, a mode changed. Summarized, such a
//! rule would lose its authority; carried over blindly, the old and the new one would stand side by side. So
//! the newest about each subject stays verbatim, and those that it supersedes go. The subject is read off how
//! a message begins; where that is not clear, nothing is superseded.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use epitome_loop::{Block, Message, TextEstimator, TokenCount};

/// A message of more words than this is a text of its own and no variant of another one.
const MOST_WORDS: usize = 40;

/// Words that begin many messages which have nothing to do with each other.
const GENERAL: [&str; 26] = [
    "always",
    "attention",
    "context",
    "do",
    "error",
    "hint",
    "important",
    "info",
    "instruction",
    "instructions",
    "message",
    "never",
    "note",
    "notes",
    "notice",
    "please",
    "remember",
    "reminder",
    "rule",
    "rules",
    "system",
    "task",
    "tip",
    "update",
    "user",
    "warning",
];

/// The system messages of a conversation, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Those that stay verbatim: all leading ones and, newest first, as many later ones as the budget holds.
    pub(crate) kept: BTreeSet<usize>,
    /// Those that a later one supersedes.
    pub(crate) superseded: BTreeSet<usize>,
}

impl Standing {
    /// `lead` messages at the front are the system's; `budget` is for those behind them, since every exemption
    /// from summarizing needs a bound.
    pub(crate) fn of(
        messages: &[Message],
        lead: usize,
        budget: TokenCount,
        size: &dyn TextEstimator,
    ) -> Self {
        let superseded = superseded(messages);
        let mut kept: BTreeSet<usize> = (0..lead).filter(|at| !superseded.contains(at)).collect();
        let mut left = budget.get();
        for (at, message) in messages.iter().enumerate().skip(lead).rev() {
            if !matches!(message, Message::System { .. }) || superseded.contains(&at) {
                continue;
            }
            let texts = message.blocks().iter().map(|block| match block {
                Block::Text { text } => size.estimate(text).get(),
                _ => u64::MAX,
            });
            let tokens = texts.fold(0, u64::saturating_add);
            if let Some(rest) = left.checked_sub(tokens) {
                left = rest;
                kept.insert(at);
            }
        }
        Self { kept, superseded }
    }
}

/// Which system messages are superseded by a later one, by index.
fn superseded(messages: &[Message]) -> BTreeSet<usize> {
    let mut newest: HashMap<Subject, (usize, Cow<'_, str>)> = HashMap::new();
    let mut superseded = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let Some(text) = system_text(message) else { continue };
        let Some(subject) = Subject::of(&text) else { continue };
        match newest.get(&subject) {
            // Said once more, it stays where it was said first.
            Some((_, before)) if *before == text => {
                superseded.insert(at);
                continue;
            }
            Some((before_at, before)) if subject.is_certain() || is_variant(before, &text) => {
                superseded.insert(*before_at);
            }
            _ => {}
        }
        newest.insert(subject, (at, text));
    }
    superseded
}

fn system_text(message: &Message) -> Option<Cow<'_, str>> {
    let Message::System { blocks } = message else { return None };
    match &**blocks {
        [Block::Text { text }] => Some(Cow::Borrowed(text.trim())),
        blocks => {
            let texts = blocks.iter().map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            Some(Cow::Owned(texts.collect::<Option<Vec<_>>>()?.join("\n").trim().to_owned()))
        }
    }
}

/// What a message is about, as far as its beginning tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    /// `<sandbox_mode>...`
    Tag(String),
    /// `Sandbox: ...`
    Label(String),
    /// The first two words of a short message.
    Opening(String),
}

impl Subject {
    fn of(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        if let Some(rest) = line.strip_prefix('<') {
            let name: String =
                rest.chars().take_while(|at| at.is_alphanumeric() || "-_ ".contains(*at)).collect();
            return specific(&name).map(Self::Tag);
        }
        let line = line.trim_start_matches(['#', '*', ' ']);
        if let Some((label, _)) =
            line.split_once(':').filter(|(label, _)| label.split_whitespace().count() <= 5)
        {
            return specific(label).map(Self::Label);
        }
        let mut words = text.split_whitespace();
        let opening = format!("{} {}", words.next()?, words.next()?).to_lowercase();
        (words.count() <= MOST_WORDS).then_some(Self::Opening(opening))
    }

    /// Whether the same subject is enough to supersede.
    fn is_certain(&self) -> bool {
        match self {
            Self::Tag(_) | Self::Label(_) => true,
            Self::Opening(_) => false,
        }
    }
}

/// A name with at least one word that says something.
fn specific(name: &str) -> Option<String> {
    let name = name.trim().to_lowercase();
    let mut words = name.split(|at: char| !at.is_alphanumeric()).filter(|word| !word.is_empty());
    words.any(|word| !GENERAL.contains(&word) && !word.chars().all(|at| at.is_ascii_digit())).then_some(name)
}

/// Whether two messages state the same thing with another end: at least half of the longer one is shared from
/// the start, and it says that something *is* so. Two orders that begin alike may both hold.
fn is_variant(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split_whitespace().count();
    let shared = one.split_whitespace().zip(other.split_whitespace()).take_while(|(one, other)| one == other);
    let shared: Vec<&str> = shared.map(|(word, _)| word).collect();
    let states = shared.iter().any(|word| matches!(*word, "is" | "are" | "="));
    states && shared.len() * 2 >= words(one).max(words(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(texts: &[&str]) -> Vec<usize> {
        let messages: Vec<Message> = texts.iter().map(|text| Message::system(*text)).collect();
        superseded(&messages).into_iter().collect()
    }

    #[test]
    fn the_newest_about_a_subject_stands() {
        for (texts, expected) in [
            (&["Sandbox: read-only.", "Sandbox: workspace-write."][..], &[0][..]),
            (&["sandbox: a", "Model: x", "Sandbox: b", "SANDBOX: c"], &[0, 2]),
            (&["<sandbox_mode>ro</sandbox_mode>", "<sandbox_mode>rw</sandbox_mode>"], &[0]),
            (&["<permissions instructions>\nro", "<permissions instructions>\nrw"], &[0]),
            (&["The current mode is plan.", "The current mode is build."], &[0]),
            (&["## Mode: plan", "Mode: build"], &[0]),
            // Said twice, it is said once.
            (&["Be brief and kind.", "Be brief and kind."], &[1]),
        ] {
            assert_eq!(gone(texts), expected, "{texts:?}");
        }
    }

    #[test]
    fn what_stands_is_kept_within_its_budget() {
        let said = [
            Message::system("Be kind."),
            Message::system("Sandbox: a"),
            Message::user("u"),
            Message::system("Mode: 12345678"),
            Message::system("Sandbox: b"),
            Message::system("Shell: c"),
        ];
        let bytes = |text: &str| TokenCount(text.len() as u64);
        let kept = |budget| {
            let standing = Standing::of(&said, 2, TokenCount(budget), &bytes);
            assert_eq!(standing.superseded, [1].into());
            standing.kept.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(kept(100), [0, 3, 4, 5]);
        assert_eq!(kept(18), [0, 4, 5]);
        assert_eq!(kept(0), [0]);
    }

    #[test]
    fn what_may_be_about_something_else_stays() {
        for texts in [
            &["Note: tests are slow.", "Note: never push."][..],
            &["Rule 1: tabs.", "Rule 2: no tabs."],
            &["<system-reminder>a</system-reminder>", "<system-reminder>b</system-reminder>"],
            &["You are a careful engineer who writes tests.", "You are a reviewer."],
            &["Never push to main.", "Never push to prod."],
            &["Run the tests with make.", "Run the tests with cargo."],
            &["Important: a", "IMPORTANT: b"],
            &["", " "],
            &["One", "One two"],
        ] {
            assert_eq!(gone(texts), [0; 0], "{texts:?}");
        }
        let users = [Message::user("Sandbox: a"), Message::user("Sandbox: b"), Message::system("Sandbox: c")];
        assert_eq!(superseded(&users).len(), 0);
    }
}
