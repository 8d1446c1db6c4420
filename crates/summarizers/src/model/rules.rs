//! Which of the user's rules a summary holds already.
//!
//! A rule that is missed is lost; one that is said twice costs a line. So a rule counts as said only when a sentence of one
//! item is its words, in their order, with nothing around them but words that say whose rule it is, and when nothing else
//! in the item takes it back.

use std::collections::HashMap;

/// The items of a summary's constraints, ready to be compared with.
#[derive(Default)]
pub(super) struct SaidRules {
    /// The words of each sentence, and the item that it stands in.
    sentences: Vec<(usize, Vec<String>)>,
    /// The sentences that hold a word, in order.
    holding: HashMap<String, Vec<usize>>,
    items: usize,
}

impl SaidRules {
    /// Adds an item behind the ones before it.
    pub(super) fn push(&mut self, item: &str) {
        let sentences = sentences_of(item);
        let takes_back = |words: &Vec<String>| words.iter().any(|word| takes_back(word));
        // A sentence that is the rule may be followed by one that takes it back.
        let is_taken_back = sentences.len() > 1 && sentences.iter().any(takes_back);
        for words in sentences.into_iter().filter(|_| !is_taken_back) {
            let at = self.sentences.len();
            for word in &words {
                let holding = self.holding.entry(word.clone()).or_default();
                if holding.last() != Some(&at) {
                    holding.push(at);
                }
            }
            self.sentences.push((self.items, words));
        }
        self.items += 1;
    }

    /// How many items there are.
    pub(super) fn count(&self) -> usize {
        self.items
    }

    /// The item that says the sentence of a rule; of a text with several sentences, the item that says the first when all
    /// are said.
    pub(super) fn says(&self, rule: &str) -> Option<usize> {
        let mut first = None;
        for wanted in sentences_of(rule) {
            let found = self.find(&wanted)?;
            first.get_or_insert(found);
        }
        first
    }

    fn find(&self, wanted: &[String]) -> Option<usize> {
        // The word that the fewest sentences hold leads to few of them.
        let holding = wanted.iter().map(|word| self.holding.get(word).map_or(&[][..], Vec::as_slice));
        let candidates = holding.min_by_key(|sentences| sentences.len())?;
        let mut found = candidates.iter().filter_map(|&at| self.sentences.get(at));
        found.find(|(_, sentence)| holds(sentence, wanted)).map(|(item, _)| *item)
    }
}

/// Whether a sentence says another one, and nothing around it that could turn it.
fn holds(sentence: &[String], wanted: &[String]) -> bool {
    let Some(at) = sentence.windows(wanted.len().max(1)).position(|window| window == wanted) else {
        return false;
    };
    let mut around = sentence.iter().take(at).chain(sentence.iter().skip(at + wanted.len()));
    around.all(|word| introduces(word))
}

/// Words that say whose rule stands beside them, or how much it is one.
fn introduces(word: &str) -> bool {
    const INTRODUCING: [&str; 25] = [
        "from",
        "now",
        "on",
        "user",
        "user's",
        "users",
        "said",
        "says",
        "asked",
        "wants",
        "requires",
        "stated",
        "explicit",
        "explicitly",
        "rule",
        "rules",
        "constraint",
        "instruction",
        "requirement",
        "important",
        "critical",
        "strictly",
        "standing",
        "by",
        "that",
    ];
    INTRODUCING.contains(&word)
}

/// Words of a sentence that takes back the sentences beside it.
fn takes_back(word: &str) -> bool {
    const TAKING: [&str; 18] = [
        "obsolete",
        "revoked",
        "retired",
        "superseded",
        "replaced",
        "withdrawn",
        "withdrew",
        "lifted",
        "dropped",
        "cancelled",
        "canceled",
        "ignore",
        "ignored",
        "forget",
        "disregard",
        "nonsense",
        "longer",
        "anymore",
    ];
    TAKING.contains(&word)
}

/// The words of a text, sentence by sentence.
fn sentences_of(text: &str) -> Vec<Vec<String>> {
    let text = plain(text);
    let mut sentences = vec![Vec::new()];
    for token in text.split_whitespace() {
        let word = bare(token);
        let is_dash = word.chars().all(|character| matches!(character, '-' | '\u{2013}' | '\u{2014}'));
        if !is_dash
            && !is_filler(word)
            && let Some(sentence) = sentences.last_mut()
        {
            sentence.push(word.to_owned());
        }
        let end = token.trim_end_matches(['"', '\'', ')', '*', '`']);
        // What is asked is not said.
        if end.ends_with(['?', '\u{ff1f}'])
            && let Some(sentence) = sentences.last_mut()
        {
            sentence.push("?".to_owned());
        }
        if end.ends_with(['.', '!', '?', ';', '\u{3002}', '\u{ff01}', '\u{ff1f}', '\u{ff1b}']) {
            sentences.push(Vec::new());
        }
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// A word without the punctuation and the emphasis around it.
fn bare(token: &str) -> &str {
    let word = token.trim_matches(is_edge);
    let word = word.trim_start_matches("**").trim_end_matches("**");
    let word = match word.strip_prefix('*').and_then(|inner| inner.strip_suffix('*')) {
        Some(inner) if inner.contains(char::is_alphanumeric) => inner,
        _ => word,
    };
    word.trim_matches(is_edge)
}

/// Lower case, straight quotes, no references, no soft characters.
fn plain(text: &str) -> String {
    let decoded = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&");
    decoded
        .chars()
        .filter(|&character| !crate::defusing::is_unseen(character))
        .map(|character| match character {
            '\u{2018}' | '\u{2019}' | '\u{201b}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' => '"',
            '\u{2010}' | '\u{2011}' => '-',
            _ => character,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Punctuation around a word. Signs that are part of names and options are not: `--force`, `C++`, `#7`, `$HOME`.
fn is_edge(character: char) -> bool {
    matches!(
        character,
        '.' | ','
            | ':'
            | ';'
            | '!'
            | '?'
            | '"'
            | '\''
            | '`'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '\u{ab}'
            | '\u{bb}'
            | '\u{2026}'
            | '\u{3001}'
            | '\u{3002}'
            | '\u{ff01}'
            | '\u{ff0c}'
            | '\u{ff1a}'
            | '\u{ff1b}'
            | '\u{ff1f}'
    )
}

/// Words without which a rule is the same rule.
fn is_filler(word: &str) -> bool {
    matches!(
        word,
        "" | "please" | "kindly" | "thanks" | "also" | "the" | "a" | "an" | "note" | "remember" | "reminder"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(items: &[&str]) -> SaidRules {
        let mut said = SaidRules::default();
        items.iter().for_each(|item| said.push(item));
        said
    }

    fn says(item: &str, rule: &str) -> bool {
        said(&[item]).says(rule).is_some()
    }

    #[test]
    fn the_same_rule_is_known_in_other_dress() {
        for (item, rule) in [
            ("Never push to main", "never push  to main."),
            ("- **Never push to `main`!**", "Never push to main"),
            ("Don\u{2019}t touch \u{201c}a.rs\u{201d}", "don't touch \"a.rs\""),
            ("From now on: use tabs, always use pnpm", "Please use tabs, always use pnpm"),
            ("Keep a &lt;b&gt; &amp; c", "Keep a <b> & c"),
            ("The budget is $500. Never push to main.", "Never push to the main"),
            ("Use tabs; never push to main", "use tabs"),
            ("The user said explicitly: never push to main", "Never push to main"),
        ] {
            assert!(says(item, rule), "{item} | {rule}");
        }
        let two = said(&["never push", "use tabs"]);
        assert_eq!(two.says("Use tabs. Never push!"), Some(1));
        assert_eq!(two.says("Use tabs. Never pull!"), None);
    }

    #[test]
    fn another_rule_is_another_rule() {
        for (item, rule) in [
            ("Do not use tabs", "use tabs"),
            ("Use tabs only in makefiles", "use tabs"),
            ("We no longer use tabs", "use tabs"),
            ("(assistant) use tabs", "use tabs"),
            ("Forget never push to main", "Never push to main"),
            ("It is false that: never push to main.", "Never push to main"),
            ("The user withdrew never push to main", "Never push to main"),
            ("Someone wrote \"never push to main\" on the page", "Never push to main"),
            ("Do push to main even though the user said never push to main", "Never push to main"),
            ("Never push to main? Nonsense", "Never push to main"),
            ("Never push to main. This is obsolete.", "Never push to main"),
            ("[x] Never push to main", "Never push to main"),
            ("Never push to main - done", "Never push to main"),
            ("Never push to main during the week", "Never push to main"),
            ("Use C", "Use C++"),
            ("Run cargo test", "Run cargo test --all"),
            ("Never force", "Never --force"),
            ("Never push to mainline", "Never push to main"),
            ("The user has rules", "Never push"),
            ("", "Never push"),
        ] {
            assert!(!says(item, rule), "{item} | {rule}");
        }
    }
}
