//! Summaries to parse: valid ones, and ones made to hurt a parser.

use epitome_loop::{SharedText, SummarySections};

/// A valid summary of about so many bytes.
#[must_use]
pub fn valid_summary(bytes: usize) -> String {
    // Every eighth item quotes code, which has to be escaped.
    let item = |section: &str, number: usize| {
        let code = if number.is_multiple_of(8) { "Vec<T> & friends" } else { "the queue and its ledger" };
        SharedText::from(format!("{section} {number}: keep {code}, see crates/{section}/src/lib.rs:{number}"))
    };
    let mut sections = SummarySections::default();
    let mut number = 0;
    let mut xml = String::new();
    while xml.len() < bytes {
        // Grow in steps, so that building the document does not take quadratic time.
        for _ in 0..1 + number / 8 {
            sections.goal.push(item("goal", number));
            sections.constraints.push(item("constraints", number));
            sections.state.push(item("state", number));
            number += 1;
        }
        xml = sections.render().xml.to_string();
    }
    xml
}

/// A megabyte each of what has hurt parsers: attributes, nesting, entities, comments, text without an end.
#[must_use]
pub fn hostile_summaries() -> Vec<(&'static str, String)> {
    const SIZE: usize = 1 << 20;
    let root = "<conversation_summary>";
    let repeated = |head: &str, unit: &str| {
        let mut text = head.to_owned();
        while text.len() + unit.len() <= SIZE {
            text.push_str(unit);
        }
        text
    };
    let attributes = {
        let mut text = "<conversation_summary".to_owned();
        let mut number = 0;
        while text.len() < SIZE {
            text.push_str(&format!(" a{number}=\"\""));
            number += 1;
        }
        text + ">"
    };
    vec![
        ("attributes", attributes),
        ("nesting", repeated("", "<a>")),
        ("entities", repeated(&format!("{root}<goal>"), "&amp;")),
        ("open brackets", repeated(root, "<")),
        ("comments", repeated(root, "<!---->")),
        ("text", repeated(&format!("{root}<goal>"), "x")),
        ("blanks", repeated(root, " ")),
        ("almost CDATA", repeated(&format!("{root}<goal>"), "<![CDATA")),
    ]
}
