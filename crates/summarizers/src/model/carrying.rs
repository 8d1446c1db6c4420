//! Carries the user's rules that a model's summary lacks into it, word for word.

use std::collections::BTreeMap;

use epitome_loop::{Message, SharedText, SummarySections};

use super::rules::SaidRules;
use crate::extractive::users_words;

/// What the constraints of a summary are worth, by index.
#[derive(Default)]
pub(super) struct Rules {
    /// Places of the user's rules in the constraints, and their rank: 0 weighs most.
    pub(super) ranks: BTreeMap<usize, usize>,
    /// From this index on the constraints were carried.
    pub(super) first_carried: usize,
}

/// Appends the user's rules that the constraints lack. What only tools or the assistant said is no rule of the user, and
/// one that the user took back does not hold.
pub(super) fn carry(
    sections: &mut SummarySections,
    transcript: &[Message],
    previous: Option<&SummarySections>,
) -> Rules {
    let words = users_words(transcript, previous);
    let said = SaidRules::of(&sections.constraints);
    let first_carried = sections.constraints.len();
    let mut rank_of = vec![0_usize; words.constraints.len()];
    for (rank, &at) in words.by_weight.iter().enumerate() {
        if let Some(slot) = rank_of.get_mut(at) {
            *slot = rank;
        }
    }
    let mut rules = Rules { ranks: BTreeMap::new(), first_carried };
    let mut carried: Vec<SharedText> = Vec::new();
    for (rule, &rank) in words.constraints.iter().zip(&rank_of) {
        let place = match said.says(rule) {
            Some(place) => place,
            // The user may have said it more than once.
            None => match SaidRules::of(&carried).says(rule) {
                Some(place) => first_carried + place,
                None => {
                    carried.push(rule.clone());
                    first_carried + carried.len() - 1
                }
            },
        };
        rules.ranks.entry(place).and_modify(|known| *known = rank.min(*known)).or_insert(rank);
    }
    sections.constraints.extend(carried);
    rules
}
