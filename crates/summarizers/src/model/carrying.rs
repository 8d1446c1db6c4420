//! Carries the user's rules that a model's summary lacks into it, word for word.

use std::collections::BTreeMap;

use epitome_loop::{Message, SummarySections};

use super::rules::SaidRules;
use crate::extractive::{rule_sentences, users_words};

/// What the constraints of a summary are worth, by index.
#[derive(Default)]
pub(super) struct Rules {
    /// Places of the user's rules in the constraints, and their rank: 0 weighs most.
    pub(super) ranks: BTreeMap<usize, usize>,
    /// From this index on the constraints were carried.
    pub(super) first_carried: usize,
}

/// Whether a statement with the words of a rule demands something: a question about a rule does not, nor does what the
/// user tells of themselves.
fn demands(rule: &str) -> bool {
    let tells = |sentence: &str| sentence.to_ascii_lowercase().starts_with("i never ");
    const ASKING: [&str; 19] = [
        "why", "how", "what", "when", "where", "who", "which", "if", "do", "does", "did", "is", "are", "was",
        "should", "could", "can", "would", "must",
    ];
    let asks = |sentence: &str| {
        let lower = sentence.trim().to_ascii_lowercase();
        let first = lower.split(|character: char| !character.is_alphabetic()).find(|word| !word.is_empty());
        let is_asked = lower.ends_with(['?', '\u{ff1f}']) && !lower.contains("please");
        is_asked && first.is_some_and(|first| ASKING.contains(&first))
    };
    rule_sentences(rule).into_iter().any(|sentence| !asks(sentence) && !tells(sentence.trim_start()))
}

/// Appends the user's rules that the constraints lack. What only tools or the assistant said is no rule of the user, and
/// one that the user took back does not hold.
pub(super) fn carry(
    sections: &mut SummarySections,
    transcript: &[Message],
    previous: Option<&SummarySections>,
) -> Rules {
    let words = users_words(transcript, previous);
    let first_carried = sections.constraints.len();
    let mut rank_of = vec![0_usize; words.constraints.len()];
    for (rank, &at) in words.by_weight.iter().enumerate() {
        if let Some(slot) = rank_of.get_mut(at) {
            *slot = rank;
        }
    }
    let mut said = SaidRules::default();
    sections.constraints.iter().for_each(|item| said.push(item));
    let mut rules = Rules { ranks: BTreeMap::new(), first_carried };
    let rules_of_user = words.constraints.iter().zip(&rank_of).filter(|(rule, _)| demands(rule));
    for (rule, &rank) in rules_of_user {
        let places = rule_sentences(rule).into_iter().map(|sentence| said.says(sentence));
        // A task may stand in front of the rule, in the same line. It is no rule, and need not be said as one.
        let places: Vec<usize> = match places.collect::<Option<Vec<usize>>>() {
            Some(places) => places,
            // The user may say it again later on.
            None => {
                said.push(rule);
                sections.constraints.push(rule.clone());
                vec![said.count() - 1]
            }
        };
        for place in places {
            rules.ranks.entry(place).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
        }
    }
    rules
}
