//! The page about the wire shows what is so: its examples are read, written and refused as it says, and every
//! stable name is on it.

use std::collections::BTreeSet;
use std::path::Path;

use epitome_loop::{InvalidSummaryReason, TokenCount, Usage};
use epitome_sessionruntime::{
    OMITTED_TOOL_RESULT, ResultTerms, RunOutput, RunResult, WirePart, decode_input, encode_input,
    validate_result,
};
use epitome_tests::conformance::{STRICTER_WIRE, stricter_class};

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/wire-v1.md")).unwrap()
}

/// The examples of a kind, each with what its fence says besides.
fn examples<'a>(page: &'a str, kind: &str) -> Vec<(&'a str, &'a str)> {
    let fences = page.split("```json ").skip(1).filter_map(|rest| rest.strip_prefix(kind));
    let found: Vec<_> = fences
        .map(|rest| {
            let (first, rest) = rest.split_once('\n').unwrap();
            (first.trim(), rest.split_once("```").unwrap().0)
        })
        .collect();
    assert!(!found.is_empty(), "no example of {kind}");
    found
}

/// The text without the white space between its tokens; no example has two blanks or a line break in a string.
fn compact(json: &str) -> String {
    let mut compact = String::new();
    let mut in_string = false;
    for character in json.chars() {
        in_string ^= character == '"';
        if in_string || !character.is_whitespace() {
            compact.push(character);
        }
    }
    compact
}

/// The input of the page with a block or a message in place of its transcript.
fn with(page: &str, example: &str) -> String {
    let whole = compact(examples(page, "input")[0].1);
    let (head, rest) = whole.split_once("\"transcript\":").unwrap();
    let (_, tail) = rest.split_once(",\"max_summary_tokens\"").unwrap();
    let example = compact(example);
    let message = match example.contains("\"role\"") {
        true => example,
        false => format!("{{\"role\":\"user\",\"blocks\":[{example}]}}"),
    };
    format!("{head}\"transcript\":[{message}],\"max_summary_tokens\"{tail}")
}

fn comes_back(document: &str) {
    let read = decode_input(document.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(encode_input(&read)).unwrap(), document);
}

#[test]
fn inputs_and_blocks_are_shown_as_they_are_written() {
    let page = page();
    for (_, input) in examples(&page, "input") {
        comes_back(&compact(input));
        assert!(decode_input(input.as_bytes()).is_ok());
    }
    let blocks = examples(&page, "block");
    assert_eq!(blocks.len(), 8);
    for (_, block) in blocks {
        comes_back(&with(&page, block));
    }
}

#[test]
fn every_stricter_class_is_explained_and_shown() {
    let page = page();
    let mut shown = BTreeSet::new();
    for (class, example) in examples(&page, "refused") {
        let error = decode_input(with(&page, example).as_bytes()).unwrap_err();
        assert_eq!(stricter_class(error.fault), Some(class), "{error}");
        assert_eq!(error.part, WirePart::Transcript);
        shown.insert(class);
    }
    for class in STRICTER_WIRE {
        assert!(page.contains(&format!("\n| `{}` |", class.name)), "{} is not explained", class.name);
        assert!(shown.contains(class.name) || class.name == "not-utf-8", "{} is not shown", class.name);
    }
}

#[test]
fn the_output_answers_the_input() {
    let page = page();
    let input = decode_input(examples(&page, "input")[0].1.as_bytes()).unwrap();
    let output = examples(&page, "output")[0].1.as_bytes().to_vec();
    let usage = Usage { output: TokenCount(40), ..Usage::default() };
    let result = RunResult { output: RunOutput::Echo(output.into()), usage: Some(usage) };
    validate_result(result, &ResultTerms::of(&input, 10_000)).unwrap();
}

#[test]
fn every_stable_name_is_on_the_page() {
    let page = page();
    let reasons = InvalidSummaryReason::ALL.iter().map(|reason| reason.as_str());
    let parts = [
        WirePart::Wire,
        WirePart::Basis,
        WirePart::Model,
        WirePart::RequestFingerprint,
        WirePart::Transcript,
        WirePart::MaxSummaryTokens,
    ];
    for name in reasons.chain(parts.iter().map(|part| part.as_str())) {
        assert!(page.contains(&format!("`{name}`")), "{name} is missing");
    }
    assert!(page.contains(OMITTED_TOOL_RESULT));
}
