//! What the user wants and demands, for summaries whose rest comes from elsewhere.

use epitome_loop::{Message, Section, SharedText, SummarySections};

use super::goal::{NO_GOAL, find_goal};
use super::reading::read;
use super::statement::{Origin, Statement};
use super::supersession::retire_superseded;

/// Goal and rules in the user's own words.
pub(crate) struct UsersWords {
    /// The first request that still holds; never empty, and never without a word.
    pub(crate) goal: Vec<SharedText>,
    /// The rules that still hold, in order.
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
    let constraints = rules.iter().map(|statement| text(statement)).collect();
    UsersWords { goal, constraints, by_weight }
}
