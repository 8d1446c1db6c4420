//! Laws of the summary grammar, on generated documents: what we render we read, and our parser and roxmltree
//! say the same about anything.

use epitome_loop::{Section, SharedText, SummarySections, is_xml_character};
use epitome_loopruntime::parse_summary;
use epitome_tests::{SecondVerdict, second_judge};
use proptest::prelude::*;

/// Pieces that documents are built, and broken, with.
const PIECES: &[&str] = &[
    "<conversation_summary>",
    "</conversation_summary>",
    "<goal>",
    "</goal>",
    "<goal/>",
    "<goal >",
    "<state>",
    "</state>",
    "<constraints></constraints>",
    "<constraints/>",
    "<decisions>d</decisions>",
    "<open_items></open_items>",
    "<x:goal>",
    "<:goal>",
    " ",
    "\n",
    "\t",
    "\r\n",
    "\u{a0}",
    "\u{feff}",
    "\u{fffe}",
    "\0",
    "\u{1b}",
    "g",
    "&",
    "&amp;",
    "&lt;",
    "&#32;",
    "&#x20;",
    "&#0;",
    "&#xD800;",
    "&#x10FFFF;",
    "&#x110000;",
    "&#xFFFE;",
    "&#;",
    "&nbsp;",
    "<!-- c -->",
    "<!--",
    "<?x y?>",
    "<?xml version=\"1.0\"?>",
    "<!DOCTYPE a>",
    "<![CDATA[x]]>",
    "]]>",
    " a=\"b\"",
    "xmlns=\"u\"",
    "<",
    ">",
    "/>",
    "\"",
    "é",
    "🚀",
];

const WHOLE: &str = "<conversation_summary><goal>g</goal><constraints></constraints><decisions>- d</decisions>\
                     <state>s</state><open_items/></conversation_summary>";

fn items() -> impl Strategy<Value = Vec<SharedText>> {
    prop::collection::vec("[ -~\\PC<>&\\n\u{1b}]{0,40}", 0..4)
        .prop_map(|items| items.into_iter().map(SharedText::from).collect())
}

/// A document with a few pieces put in, taken out or put in twice.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..3_usize, prop::sample::select(PIECES), 0..12_usize);
    prop::collection::vec(edit, 0..4).prop_map(|edits| {
        let mut document: Vec<char> = WHOLE.chars().collect();
        for (place, action, piece, count) in edits {
            let at = place.index(document.len() + 1);
            let until = (at + count).min(document.len());
            let put: Vec<char> = match action {
                0 => piece.chars().collect(),
                1 => Vec::new(),
                _ => document[at..until].repeat(2),
            };
            let until = if action == 0 { at } else { until };
            document.splice(at..until, put);
        }
        document.into_iter().collect::<String>().into_bytes()
    })
}

/// Nothing but pieces.
fn jumble() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(PIECES), 0..30).prop_map(|pieces| pieces.concat().into_bytes())
}

/// A whole document with its text replaced by pieces.
fn with_text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(PIECES), 0..4)
        .prop_map(|pieces| WHOLE.replace("- d", &pieces.concat()).into_bytes())
}

/// A document with any bytes put in.
fn not_text() -> impl Strategy<Value = Vec<u8>> {
    (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..4)).prop_map(|(place, bytes)| {
        let mut document = WHOLE.as_bytes().to_vec();
        let at = place.index(document.len() + 1);
        document.splice(at..at, bytes);
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_rendered_is_read(
        goal in items(), constraints in items(), decisions in items(), state in items(), open_items in items(),
    ) {
        let sections = SummarySections { goal, constraints, decisions, state, open_items };
        let rendered = sections.render();
        // A dash alone is the mark of a list, not an item.
        let says_something = |section| {
            let text: String = sections.items(section).iter().map(|item| item.as_str()).collect();
            text.chars().any(|c| !c.is_whitespace() && c != '-' && is_xml_character(c))
        };
        let whole = says_something(Section::Goal) && says_something(Section::State);
        match parse_summary(rendered.xml.as_bytes()) {
            Ok(summary) => {
                prop_assert_eq!(summary.raw(), &rendered.xml);
                prop_assert!(matches!(second_judge(rendered.xml.as_bytes()), SecondVerdict::Accepted(_)));
                if whole {
                    let again = summary.sections().render();
                    prop_assert_eq!(parse_summary(again.xml.as_bytes()).unwrap().sections(), summary.sections());
                }
            }
            Err(error) => prop_assert!(!whole, "{}", error),
        }
    }

    #[test]
    fn two_judges_agree(document in prop_oneof![broken(), jumble(), with_text(), not_text()]) {
        let second = second_judge(&document);
        match parse_summary(&document) {
            Ok(summary) => {
                prop_assert_eq!(summary.raw().as_bytes(), &document[..]);
                let texts = Section::ALL.map(|section| summary.text(section).into_owned());
                prop_assert_eq!(second, SecondVerdict::Accepted(texts.to_vec()));
            }
            Err(_) => prop_assert_eq!(second, SecondVerdict::Refused),
        }
    }
}
