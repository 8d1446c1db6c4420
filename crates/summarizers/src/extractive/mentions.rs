//! Finds the mentions of an attribute: which value a statement gives it, and what tells it from another one.

use super::attributes::{Attribute, RulesAbout};
use super::cues::Cues;
use super::phrases::each_cue;
use super::standing::{carries_rule, words_around};
use super::statement::{Statement, shared};
use super::statements::{count_words, sentences, sentences_apart};
use super::values::Value;
use super::words::{Key, is_light, is_scaffold, key};

/// An attribute's mention in a statement.
pub(crate) struct Mention {
    /// The statement's index.
    pub(crate) at: usize,
    /// The values, sorted.
    pub(crate) values: Vec<Key>,
    /// The words that say which one is meant, sorted; none if there is only one.
    qualifiers: Vec<Key>,
}

impl Mention {
    /// The mention of an attribute in the statement with this index, if there is one.
    pub(crate) fn find(attribute: &Attribute, statement: &Statement<'_>, at: usize) -> Option<Self> {
        if !statement.has(attribute.head) {
            return None;
        }
        let Some(kinds) = attribute.values else {
            let is_one = opens_with(&statement.text, attribute.head) && !is_mere_opening(statement);
            let values = vec![key(statement.text.as_bytes())];
            return is_one.then_some(Self { at, values, qualifiers: Vec::new() });
        };
        let wanted = || statement.values.iter().filter(|value| kinds.has(value.kind));
        let is_forbidden = |value: &Value| {
            attribute.rules == RulesAbout::NameTheirOwn
                && follows_in_clause(statement, value, Cues::PROHIBITION)
        };
        let named = wanted().filter(|value| !is_forbidden(value));
        let values = sorted(named.map(|value| value.key).collect());
        if values.is_empty() {
            return None;
        }
        if attribute.is_unique {
            return Some(Self { at, values, qualifiers: Vec::new() });
        }
        let neutral: Vec<Key> = attribute.neutral.iter().map(|word| key(word.as_bytes())).collect();
        let mut qualifiers = words_around(statement, |value| kinds.has(value.kind));
        qualifiers.retain(|word| !is_light(*word) && !neutral.contains(word));
        Some(Self { at, values, qualifiers })
    }

    /// Whether this later mention, in the statement `this`, replaces the earlier one of `before`.
    pub(crate) fn replaces(
        &self,
        this: &Statement<'_>,
        attribute: &Attribute,
        old: &Self,
        before: &Statement<'_>,
    ) -> bool {
        if before.is_retired || old.at == self.at || old.values == self.values {
            return false;
        }
        let updates = this.has(Cues::UPDATE);
        let is_same = attribute.is_unique
            || shared(&old.qualifiers, &self.qualifiers).any(|word| !is_scaffold(word))
            || self.qualifiers.is_empty() && (updates || old.qualifiers.is_empty());
        // The value may have gone already, and the statement have stayed for a rule beside it.
        let has_gone = attribute.values.is_some() && !holds_any(before, &old.values);
        if !is_same || has_gone {
            return false;
        }
        match attribute.rules {
            RulesAbout::Stay => !carries_rule(before),
            // What is so does not change what is to be.
            RulesAbout::Follow | RulesAbout::NameTheirOwn => {
                updates || carries_rule(this) || !old.is_ruled(before)
            }
        }
    }
}

impl Mention {
    /// Whether a rule in its statement says that it is to be so.
    fn is_ruled(&self, statement: &Statement<'_>) -> bool {
        const RULING: Cues = Cues::OBLIGATION.with(Cues::SCOPE);
        let mut values = statement.values.iter().filter(|value| self.values.contains(&value.key));
        values.any(|value| follows_in_clause(statement, value, RULING))
    }
}

/// Whether the statement is one sentence that opens with a word of the class.
fn opens_with(text: &str, head: Cues) -> bool {
    const OPENING: usize = 14;
    let mut first = usize::MAX;
    each_cue(text.to_ascii_lowercase().as_bytes(), |cues, start| {
        if cues.any(head) {
            first = first.min(start);
        }
    });
    first <= OPENING && sentences(text).len() == 1
}

/// Whether a rule stands behind a first sentence such as `Next task.` that names no step.
fn is_mere_opening(statement: &Statement<'_>) -> bool {
    const NAMES_A_STEP: usize = 4;
    let sentences = sentences_apart(&statement.text);
    let first = sentences.first().copied().unwrap_or_default();
    carries_rule(statement) && sentences.len() > 1 && count_words(first) < NAMES_A_STEP
}

/// Whether a cue of the class stands before a value in the same clause.
fn follows_in_clause(statement: &Statement<'_>, value: &Value, class: Cues) -> bool {
    if !statement.has(class) {
        return false;
    }
    let lower = statement.text.to_ascii_lowercase();
    let mut follows = false;
    each_cue(lower.as_bytes(), |cues, start| {
        let between = lower.get(start..value.start as usize);
        follows |= cues.any(class)
            && between.is_some_and(|between| !between.contains([',', ';', ':', '.', '!', '?']));
    });
    follows
}

/// Whether the statement still has one of these values.
fn holds_any(statement: &Statement<'_>, values: &[Key]) -> bool {
    statement.values.iter().any(|value| values.contains(&value.key))
}

/// The keys, sorted, each once.
pub(crate) fn sorted(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_unstable();
    keys.dedup();
    keys
}
