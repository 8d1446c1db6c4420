//! Finds the goal, and what was asked for last.

use std::borrow::Cow;

use epitome_loop::Section;

use super::cues::Cues;
use super::phrases::{cues_in, each_cue};
use super::statement::{Origin, Statement};
use super::statements::{Label, count_words, cut_at_word, sentences, sentences_apart};
use super::values::{ValueKind, ValueKinds};
use super::words::{Known, key, known};

/// Said when the conversation names no goal.
pub(crate) const NO_GOAL: &str = "No goal was stated.";

/// The goal.
pub(crate) struct Goal<'t> {
    /// Its statements, at most two.
    pub(crate) statements: Vec<Statement<'t>>,
    /// Those of them, by place, that appear nowhere else.
    pub(crate) is_moved: bool,
}

/// The goal of the previous summary if it still holds, or else the first thing the user said that reads like
/// a task, or else the first thing anybody said.
pub(crate) fn find_goal<'t>(all: &[Statement<'t>]) -> Goal<'t> {
    let previous: Vec<_> = all
        .iter()
        .filter(|statement| statement.origin == Origin::Previous(Section::Goal) && !statement.is_retired)
        .take(2)
        .cloned()
        .collect();
    if !previous.is_empty() {
        return Goal { statements: previous, is_moved: true };
    }
    // Many conversations start with small talk or a fact; then the task may be stated later.
    let first = first_task(all).filter(says_goal);
    match first.or_else(|| stated_task(all)).or_else(|| first_task(all)) {
        Some(goal) => with_goal(goal),
        None => {
            let first = all.iter().find(|one| one.origin != Origin::Tool && !one.is_retired).cloned();
            first.map_or(Goal { statements: Vec::new(), is_moved: true }, with_goal)
        }
    }
}

/// Whether a statement names the task, or is just the first thing that was said.
pub(crate) fn says_goal(statement: &Statement<'_>) -> bool {
    const SPECIFIC: ValueKinds = ValueKinds::of(&[
        ValueKind::Proper,
        ValueKind::Name,
        ValueKind::Path,
        ValueKind::Url,
        ValueKind::Code,
    ]);
    matches!(statement.origin, Origin::Previous(_))
        || statement.label == Some(Label::Section(Section::Goal))
        || statement.has(Cues::NEW_GOAL.with(Cues::TASK_STATED))
        || statement.first_word.any(Known::IMPERATIVE)
        || statement.has_value(SPECIFIC)
}

/// The latest statement of the user that says in so many words what the task is.
fn stated_task<'t>(all: &[Statement<'t>]) -> Option<Statement<'t>> {
    let states_task = |one: &&Statement<'_>| {
        matches!(one.origin, Origin::User | Origin::System)
            && !one.is_retired
            && !one.is_rule()
            && !one.is_question()
            && (one.has(Cues::TASK_STATED) || one.label == Some(Label::Section(Section::Goal)))
    };
    all.iter().rev().find(states_task).cloned()
}

fn first_task<'t>(all: &[Statement<'t>]) -> Option<Statement<'t>> {
    let first = all.iter().position(|statement| statement.is_opening)?;
    let reads_like_task = |(at, one): &(usize, &Statement<'t>)| {
        let is_task = *at == first
            || one.label == Some(Label::Section(Section::Goal))
            || one.has(Cues::NEW_GOAL)
            || one.first_word.any(Known::IMPERATIVE);
        one.is_opening && (is_task && !belongs_elsewhere(one) || task_beside_rule(one).is_some())
    };
    let (at, task) =
        all.iter().enumerate().find(reads_like_task).or_else(|| all.iter().enumerate().nth(first))?;
    if task.is_retired {
        return topic_of(task).or_else(|| {
            all.iter().find(|one| one.is_opening && !one.is_retired && !one.prohibits()).cloned()
        });
    }
    let mut goal = task.clone();
    if goal.text.ends_with(':') {
        // `Here is the issue:` is no goal without the line it announces.
        let announced = all.iter().skip(at + 1).take(3).find(|next| {
            next.place.message == task.place.message
                && next.origin == task.origin
                && next.text.len() > 12
                && !next.text.ends_with(':')
        });
        if let Some(announced) = announced {
            let both = format!("{} {}", goal.text, announced.text);
            goal.text = Cow::Owned(cut_at_word(&both, 300).to_owned());
        }
    }
    Some(goal)
}

/// What a plan was about, when the plan itself was taken back: the words before `let's`, `we will`, `plan:`.
fn topic_of<'t>(task: &Statement<'t>) -> Option<Statement<'t>> {
    let mut clause = None;
    each_cue(task.text.to_ascii_lowercase().as_bytes(), |cues, start| {
        if cues.any(Cues::PLAN_CLAUSE) {
            clause = Some(clause.map_or(start, |first: usize| first.min(start)));
        }
    });
    let topic = task.text.get(..clause?)?.trim_matches([' ', ',', ':', ';', '-', '.']);
    (count_words(topic) >= 2).then(|| Statement {
        text: Cow::Owned(topic.to_owned()),
        is_retired: false,
        ..task.clone()
    })
}

/// Whether a statement is a rule, by its words or by its label.
fn belongs_elsewhere(statement: &Statement<'_>) -> bool {
    statement.is_rule() || statement.label == Some(Label::Section(Section::Constraints))
}

/// The sentence of a rule's line that states a task and no rule.
fn task_beside_rule<'s>(statement: &'s Statement<'_>) -> Option<&'s str> {
    if !statement.is_rule() || statement.label.is_some() {
        return None;
    }
    let states_task = |sentence: &&str| {
        let lower = sentence.to_ascii_lowercase();
        let cues = cues_in(lower.as_bytes());
        let first = lower.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
        !cues.any(Cues::PROHIBITION.with(Cues::SCOPE).with(Cues::OBLIGATION))
            && (cues.any(Cues::NEW_GOAL) || known(key(first.as_bytes())).any(Known::IMPERATIVE))
    };
    sentences_apart(&statement.text).into_iter().find(states_task)
}

/// A statement as the goal. If it also states a rule, the rule stays where it is and a sentence without one
/// becomes the goal.
fn with_goal(mut goal: Statement<'_>) -> Goal<'_> {
    goal.section = Section::Goal;
    if !belongs_elsewhere(&goal) {
        return Goal { statements: vec![goal], is_moved: true };
    }
    let is_plain = |sentence: &&str| {
        !cues_in(sentence.to_ascii_lowercase().as_bytes()).any(Cues::PROHIBITION.with(Cues::SCOPE))
    };
    if let Some(task) = task_beside_rule(&goal) {
        goal.text = Cow::Owned(task.to_owned());
        return Goal { statements: vec![goal], is_moved: false };
    }
    let plain =
        sentences(&goal.text).into_iter().find(is_plain).unwrap_or_else(|| cut_at_word(&goal.text, 80));
    goal.text = Cow::Owned(plain.to_owned());
    Goal { statements: vec![goal], is_moved: false }
}

/// Gives weight to what was said last: the user's last requests are open, and what the assistant and the
/// user said in their last messages is where the work stands.
pub(crate) fn raise_latest(all: &mut [Statement<'_>], last_user: Option<usize>) {
    let in_last_user = |statement: &Statement<'_>| {
        statement.origin == Origin::User
            && last_user.is_some_and(|last| statement.place.message as usize == last + 1)
    };
    let is_request = |statement: &Statement<'_>| {
        in_last_user(statement)
            && statement.score > 500
            && !statement.is_acknowledgement()
            && !statement.has(Cues::TANGENT)
    };
    for statement in all.iter_mut().filter(|statement| is_request(statement)).take(2) {
        if matches!(statement.section, Section::State | Section::OpenItems) {
            statement.section = Section::OpenItems;
            statement.score = statement.score.max(2500);
        }
    }
    // What a tool returned last is where the work stands.
    let last_message = all.iter().map(|statement| statement.place.message).max();
    for statement in
        all.iter_mut().rev().take_while(|statement| Some(statement.place.message) == last_message)
    {
        if statement.origin == Origin::Tool {
            statement.score += 800;
        }
    }
    let last_assistant = all
        .iter()
        .rev()
        .find(|statement| statement.origin == Origin::Assistant)
        .map(|statement| statement.place.message);
    let mut last_words = 0;
    for statement in all.iter_mut().rev() {
        if Some(statement.place.message) == last_assistant && statement.origin == Origin::Assistant {
            let is_among_last = statement.score > 600 && last_words < 3;
            last_words += usize::from(is_among_last);
            if is_among_last || !statement.values.is_empty() {
                statement.score += 1200;
            }
        } else if in_last_user(statement) && !statement.values.is_empty() {
            statement.score += 800;
        }
    }
}
