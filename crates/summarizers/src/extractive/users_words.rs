//! What the user wants and demands, for summaries whose rest comes from elsewhere.

use std::collections::{HashMap, HashSet};

use epitome_loop::{Message, Section, SharedText, SummarySections};

use super::goal::{NO_GOAL, find_goal};
use super::reading::read;
use super::statement::{Origin, Place, Statement};
use super::supersession::retire_superseded;
use crate::folding::words;
use crate::provenance::has_weight;

/// Goal and rules in the user's own words.
pub(crate) struct UsersWords {
    /// The first request that still holds; never empty, and never without a word.
    pub(crate) goal: Vec<SharedText>,
    /// The rules that still hold, in order; behind them what the user said later about the same things and that may take
    /// one back.
    pub(crate) constraints: Vec<SharedText>,
    /// Indexes of `constraints`: those that weigh most first, of equal ones the newer.
    pub(crate) by_weight: Vec<usize>,
}

/// Finds them in a conversation and in the summary that stands before it. What tools or the assistant said, and what was
/// pasted, is neither.
pub(crate) fn users_words(messages: &[Message], previous: Option<&SummarySections>) -> UsersWords {
    let mut reading = read(messages, previous, None);
    retire_superseded(&mut reading);
    let is_users =
        |statement: &&Statement<'_>| matches!(statement.origin, Origin::User | Origin::Previous(_));
    let users: Vec<Statement<'_>> = reading.statements.iter().filter(is_users).cloned().collect();
    let text = |statement: &Statement<'_>| SharedText::from(statement.text.as_ref());
    let mut goal: Vec<SharedText> = find_goal(&users).statements.iter().map(text).collect();
    goal.retain(|item| item.contains(char::is_alphanumeric));
    if goal.is_empty() {
        goal.push(NO_GOAL.into());
    }
    let is_rule =
        |statement: &&Statement<'_>| statement.section == Section::Constraints && !statement.is_retired;
    let rules: Vec<&Statement<'_>> = users.iter().filter(is_rule).collect();
    let mut by_weight: Vec<usize> = (0..rules.len()).collect();
    by_weight.sort_by_key(|&at| {
        std::cmp::Reverse(rules.get(at).map(|statement| (statement.score, statement.place)))
    });
    let mut constraints: Vec<SharedText> = rules.iter().map(|statement| text(statement)).collect();
    // What the user said later about the same thing goes with the rule: whether it takes the rule back, the reader sees.
    let mut ruled: HashMap<String, Place> = HashMap::new();
    for rule in &rules {
        for word in heavy_words(&rule.text) {
            let place = ruled.entry(word).or_insert(rule.place);
            *place = rule.place.min(*place);
        }
    }
    let mut said: HashSet<SharedText> = constraints.iter().cloned().collect();
    for later in users.iter().filter(|statement| statement.section != Section::Constraints) {
        let is_about_a_rule = |word: &String| ruled.get(word).is_some_and(|place| *place < later.place);
        let changes = allows(&later.text) && heavy_words(&later.text).iter().any(is_about_a_rule);
        if changes && said.insert(text(later)) {
            by_weight.push(constraints.len());
            constraints.push(text(later));
        }
    }
    UsersWords { goal, constraints, by_weight }
}

/// Whether a statement allows something or changes the user's mind.
fn allows(text: &str) -> bool {
    const ALLOWING: [&str; 17] = [
        " may ",
        " can now ",
        " you can ",
        " allowed ",
        " is fine ",
        " is okay ",
        " is ok ",
        " forget ",
        " ignore ",
        " scrap ",
        " changed my mind ",
        " take back ",
        " no longer ",
        " instead ",
        " from now on ",
        " lift the ",
        " drop the ",
    ];
    let joined: String = words(text).map(|word| format!(" {}", word.text)).chain([" ".to_owned()]).collect();
    ALLOWING.iter().any(|allowing| joined.contains(allowing))
}

/// The words of a text that say what it is about.
fn heavy_words(text: &str) -> Vec<String> {
    words(text).map(|word| word.text).filter(|word| word.len() > 3 && has_weight(word)).collect()
}
