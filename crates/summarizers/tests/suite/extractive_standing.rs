//! A rule of the user outlives everything that merely opens, counts or follows like it.

use std::sync::Arc;

use epitome_loop::{Message, Section, SharedText, SummaryRequest, SummarySections, TokenCount};
use epitome_summarizers::Extractive;

/// How people lead over to the next piece of work; `#` is its number.
const OPENINGS: &[&str] = &[
    "",
    "Next task. ",
    "Next task: ",
    "Next step. ",
    "Next step please. ",
    "Next step: ",
    "Next part #. ",
    "Next part #: ",
    "Next up: ",
    "Step #. ",
    "Step #: ",
    "Step # of 9. ",
    "Part # of 9: ",
    "Task #: ",
    "Task # is done. ",
    "Item #. ",
    "Then ",
    "Then: ",
    "Now ",
    "Now, ",
    "Todo: ",
    "TODO: ",
    "First, ",
    "Second, ",
    "#. ",
    "#) ",
    "Great. ",
    "OK, good. ",
    "Thanks a lot. ",
    "Thanks a lot, ",
    "Looks good to me. ",
    "Please review part #. ",
    "The current task is the parser. ",
    "The next step is the reader of part #. ",
    "The next step is to port the reader, but ",
    "The next step is to port the reader and ",
    "Next step: port the reader; ",
    "Phase # of 9: ",
    "Note: ",
    "Task: ",
];

/// Rules, each about a thing of its own. None takes another's place.
const RULES: &[&str] = &[
    "never delete the backup table",
    "do not touch prod",
    "never push to main",
    "do not edit src/alpha.rs",
    "do not edit src/beta.rs",
    "never use `unwrap`",
    "never use `panic`",
    "never mail ann@books.example",
    "never mail bob@books.example",
    "always answer in English",
    "always run the tests",
    "always use `ruff`",
    "always use `pytest`",
    "from now on keep the log files",
    "from now on keep the public API of crate Foo stable",
    "keep the log files small",
    "only use tabs",
    "use tabs for indentation",
    "instead of mocks use real files in tests",
    "I prefer small commits",
    "functions must have at most 40 lines",
    "lines must have at most 100 columns",
    "the cloud budget is $500 at most",
    "the travel budget is $900 at most",
    "changelogs must be in German",
];

fn request(transcript: Vec<Message>, previous: Option<SummarySections>) -> SummaryRequest {
    SummaryRequest {
        transcript: transcript.into(),
        previous,
        instructions: None,
        max_tokens: TokenCount(2000),
        max_bytes: None,
        estimator: Arc::new(|text: &str| TokenCount(text.len() as u64 / 4)),
        correction: None,
        carry_constraints: true,
    }
}

fn summarize(transcript: Vec<Message>, previous: Option<SummarySections>) -> SummarySections {
    match Extractive::new().summarize_now(&request(transcript, previous)) {
        Ok(draft) => draft.sections,
        Err(refused) => panic!("{refused}"),
    }
}

fn opened(opening: &str, number: usize, rule: &str) -> String {
    let starts_sentence = opening.is_empty() || opening.ends_with(". ");
    let rule = if starts_sentence {
        let (first, rest) = rule.split_at(1);
        first.to_uppercase() + rest
    } else {
        rule.to_owned()
    };
    format!("{}{rule}.", opening.replace('#', &number.to_string()))
}

fn says(items: &[SharedText], rule: &str) -> bool {
    let rule = rule.to_lowercase();
    items.iter().any(|item| item.to_lowercase().contains(&rule))
}

fn everywhere(sections: &SummarySections, rule: &str) -> bool {
    Section::ALL.into_iter().any(|section| says(sections.items(section), rule))
}

fn is_strict(rule: &str) -> bool {
    ["never", "do not", "always", "from now on"].iter().any(|opening| rule.starts_with(opening))
}

/// In `the next step is to port and keep it small` the wish may as well be part of the step, which the next step
/// replaces; and `port the reader and the budget is $500` may tell the two budgets apart by the reader.
fn is_one_thing(opening: &str, rule: &str) -> bool {
    let is_wish = ["keep", "use", "instead"].iter().any(|opening| rule.starts_with(opening));
    let opening = opening.to_lowercase();
    let is_step = (opening.contains("next") || opening.contains("phase")) && !opening.ends_with(". ");
    is_wish && is_step || opening.ends_with("and ") && rule.contains("budget")
}

/// Checks that the summary holds the rules; strict ones as constraints.
fn missing(sections: &SummarySections, rules: &[&str]) -> Option<String> {
    let lost = rules.iter().find(|rule| {
        !if is_strict(rule) { says(&sections.constraints, rule) } else { everywhere(sections, rule) }
    });
    lost.map(|rule| format!("{rule:?} is lost:\n{sections:#?}"))
}

/// What a compaction of a conversation with two rules loses, or one of `rounds` more of work that goes on.
fn lost_of(first: &str, second: &str, rules: [&str; 2], rounds: usize) -> Option<String> {
    let mut sections = summarize(
        vec![
            Message::user("Port the worker."),
            Message::assistant("Done with step 0: the queue works."),
            Message::user(first),
            Message::assistant("Done with step 1: the socket works."),
            Message::user(second),
            Message::assistant("Done with step 2: the cache works."),
            Message::user("Go on with the parser."),
            Message::assistant("The parser works."),
        ],
        None,
    );
    if let Some(lost) = missing(&sections, &rules) {
        return Some(format!("at once: {lost}"));
    }
    for round in 1..=rounds {
        let next = vec![
            Message::user(format!("Next part {round}. Port module {round}.")),
            Message::assistant(format!("Done with part {round}.")),
            Message::user(format!("Next step: check module {round}.")),
            Message::assistant("It works."),
        ];
        sections = summarize(next, Some(sections));
        if let Some(lost) = missing(&sections, &rules) {
            return Some(format!("in round {round}: {lost}"));
        }
    }
    None
}

#[test]
fn a_rule_survives_every_opening_and_every_other_rule() {
    let mut lost = Vec::new();
    for opening in OPENINGS {
        let rules: Vec<&str> = RULES.iter().copied().filter(|rule| !is_one_thing(opening, rule)).collect();
        for (number, rule) in rules.iter().enumerate() {
            // The one that stands next to it, which is the most like it, is followed through six compactions.
            for (ahead, rounds) in [(1, 5), (2, 0), (9, 0)] {
                let Some(other) = rules.get((number + ahead) % rules.len()) else { continue };
                let (first, second) = (opened(opening, 1, rule), opened(opening, 2, other));
                if let Some(how) = lost_of(&first, &second, [rule, other], rounds) {
                    lost.push(format!("{first:?}, {second:?}: {how}"));
                }
            }
        }
    }
    assert!(lost.is_empty(), "{} pairs lose a rule, the first:\n{}", lost.len(), lost[0]);
}

#[test]
fn a_rule_survives_the_next_step_it_was_said_with() {
    for (said, later, rule) in [
        (
            "Great. The next step is to port the reader, but never push to main.",
            "The next step is to port the writer and always run the tests.",
            "never push to main",
        ),
        (
            "Next step: port the reader; do not touch prod.",
            "Next step: port the writer.",
            "do not touch prod",
        ),
        ("Now port the reader; do not touch prod.", "Now port the writer.", "do not touch prod"),
        (
            "The project budget is $800. Never push to main.",
            "The project budget is $900.",
            "Never push to main",
        ),
        ("max_retries = 5. Never change the port.", "max_retries = 6", "Never change the port"),
        (
            "We will use redis streams. Always write the changelog.",
            "Scratch that. We will use sqlite files.",
            "Always write the changelog",
        ),
        (
            "Always push to branch release/1.",
            "I checked out branch feature/x.",
            "Always push to branch release/1",
        ),
        (
            "Never push to branch release/1.",
            "From now on use branch feature/x.",
            "Never push to branch release/1",
        ),
        ("No meetings on Monday.", "No meetings on Friday.", "No meetings on Monday"),
        (
            "Port the reader. Do not touch prod. Next task.",
            "Port the writer. Keep it small. Next task.",
            "Do not touch prod",
        ),
    ] {
        if let Some(lost) = lost_of(said, later, [rule, rule], 5) {
            panic!("{said:?}, {later:?}: {lost}");
        }
    }
}

#[test]
fn a_rule_goes_when_the_same_thing_gets_another_value() {
    for (said, later, stale) in [
        ("Always answer in English.", "From now on: answer in German.", "English"),
        ("Thanks a lot. Always answer in English.", "Great. Always answer in German.", "English"),
        ("Only Ann Lee may approve deploys.", "Only Bob Ray may approve deploys.", "Ann Lee"),
        ("Functions must have at most 40 lines.", "Functions must have at most 60 lines.", "40"),
        (
            "Never spend more than $500 on cloud servers.",
            "Never spend more than $300 on cloud servers.",
            "$500",
        ),
        ("The travel budget is $500 at most.", "The travel budget is $900 now.", "$500"),
        ("The next step is to port the reader.", "The next step is to port the writer.", "reader"),
    ] {
        let sections = summarize(
            vec![
                Message::user("Fix the build."),
                Message::user(said),
                Message::assistant("Ok."),
                Message::user(later),
            ],
            None,
        );
        let is_stale = Section::ALL.into_iter().any(|section| says(sections.items(section), stale));
        assert!(!is_stale, "{said:?}, {later:?}: {sections:#?}");
    }
}
