//! Items by their words alone: an item all of whose words a tool used close together, and none of which people used, is the
//! tool's, in whatever order it says them and whatever it puts in between.

use std::collections::{HashMap, HashSet};

use super::Speaker;

/// So many items are looked for: every word of a tool is held against them.
const MOST_ITEMS: usize = 64;
/// An item of more words is long enough to be known by its runs.
const MOST_WORDS: usize = 24;
/// One word alone says too little.
const FEWEST_WORDS: usize = 2;

/// Words that are in every rule and say nothing about what it is about.
const LIGHT: &[&str] = &[
    "the", "and", "for", "with", "from", "that", "this", "these", "those", "are", "was", "were", "been",
    "its", "into", "not", "never", "always", "must", "should", "shall", "will", "would", "can", "cannot",
    "may", "all", "any", "only", "also", "now", "then", "you", "your", "our", "user", "users", "wants",
    "want", "please", "does", "dont", "use", "used", "using", "before", "after", "when", "have", "has",
];

/// The words of one item.
#[derive(Debug)]
struct Bag {
    words: Vec<u64>,
    /// Where a tool used each of them last, counted from 1.
    last: Vec<u64>,
    /// How many words a tool may take to say them all.
    reach: u64,
    is_told: bool,
}

/// The words of many items, and who used them.
#[derive(Default, Debug)]
pub(super) struct Bags {
    bags: Vec<Bag>,
    /// The bags that hold a word, and its place in each.
    holding: HashMap<u64, Vec<(usize, usize)>>,
    by_user: HashSet<u64>,
    by_assistant: HashSet<u64>,
    /// How many words of tools were read.
    read: u64,
}

/// Whether a word says what an item is about.
pub(crate) fn has_weight(word: &str) -> bool {
    let is_short_latin = word.is_ascii() && word.len() < 3;
    !is_short_latin && !LIGHT.contains(&word)
}

impl Bags {
    /// Looks for an item with these words, of which it has `length` in all. Gives its number.
    pub(super) fn look_for(&mut self, words: impl Iterator<Item = u64>, length: usize) -> Option<usize> {
        let words: Vec<u64> = words.collect::<HashSet<_>>().into_iter().collect();
        let at = self.bags.len();
        if at == MOST_ITEMS || !(FEWEST_WORDS..=MOST_WORDS).contains(&words.len()) {
            return None;
        }
        for (place, word) in words.iter().enumerate() {
            self.holding.entry(*word).or_default().push((at, place));
        }
        let reach = 3 * length as u64 + 8;
        self.bags.push(Bag { last: vec![0; words.len()], words, reach, is_told: false });
        Some(at)
    }

    /// A word was used.
    pub(super) fn read(&mut self, word: u64, speaker: Speaker) {
        if speaker == Speaker::Tools {
            self.read += 1;
        }
        let Some(holding) = self.holding.get(&word) else { return };
        match speaker {
            Speaker::User => _ = self.by_user.insert(word),
            Speaker::Assistant => _ = self.by_assistant.insert(word),
            Speaker::Tools => {
                let now = self.read;
                for &(at, place) in holding {
                    let Some(bag) = self.bags.get_mut(at).filter(|bag| !bag.is_told) else { continue };
                    if let Some(last) = bag.last.get_mut(place) {
                        *last = now;
                    }
                    bag.is_told = bag.last.iter().all(|last| *last > 0 && now - last < bag.reach);
                }
            }
        }
    }

    /// Whether a tool used all words of an item close together, and nobody used any who may say such a thing.
    pub(super) fn is_only_from_tools(&self, at: usize, may_be_assistants: bool) -> bool {
        self.bags.get(at).is_some_and(|bag| {
            let is_said = |word: &u64| {
                self.by_user.contains(word) || may_be_assistants && self.by_assistant.contains(word)
            };
            bag.is_told && !bag.words.iter().any(is_said)
        })
    }
}
