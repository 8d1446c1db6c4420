//! The strict parser against the second judge.

use epitome_loop::{Section, SharedText};
use epitome_loopruntime::{ConversationSummary, parse_summary, parse_summary_text};

use crate::{SecondVerdict, second_judge};

/// Our parser and the second judge say the same of any bytes. What is accepted is kept as it came, and its
/// sections, rendered anew, are a summary that says the same.
pub fn summary_xml(bytes: &[u8]) {
    let ours = parse_summary(bytes);
    match second_judge(bytes) {
        SecondVerdict::TooLong => {}
        SecondVerdict::Refused => assert!(ours.is_err(), "only we accept"),
        SecondVerdict::Accepted(sections) => {
            assert_eq!(ours.as_ref().ok().map(texts), Some(sections), "we refuse, or read another text");
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(parse_summary_text(SharedText::from(text)), ours, "text is judged otherwise than bytes");
    }
    let Ok(summary) = ours else { return };
    assert_eq!(summary.raw().as_bytes(), bytes, "the raw text was changed");
    let rendered = summary.sections().render().xml;
    match parse_summary(rendered.as_bytes()) {
        Ok(again) => assert_eq!(again.sections(), summary.sections(), "rendered anew it says something else"),
        Err(_) => {
            // Goal or state may be nothing but marks of a list, which are no items.
            let sections = summary.sections();
            assert!(sections.goal.is_empty() || sections.state.is_empty(), "rendered anew it is no summary");
        }
    }
}

fn texts(summary: &ConversationSummary) -> Vec<String> {
    Section::ALL.map(|section| summary.text(section).into_owned()).to_vec()
}
