//! Laws of wire v1, on made-up inputs and on broken documents. The same laws at length: `cargo xtask evidence
//! roundtrip`.

use epitome_sessionruntime::{decode_input, encode_input};
use epitome_tests::fuzzing::{wire_input, wire_output};
use epitome_tests::{WireCases, check_written, normal_form};
use proptest::prelude::*;

/// Pieces that documents are broken with.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    " ",
    "\n",
    "\u{1}",
    "\\u0041",
    "\\ud800",
    "\\udc00",
    "\u{2028}",
    "é",
    "\"type\":\"text\",",
    "\"TYPE\":\"text\",",
    "\"text\":\"\",",
    "\"role\":\"tool\",",
    "\"usage\":null,",
    "\"is_error\":false,",
    "\"content\":[],",
    "\"provider_state\":{},",
    "\"unknown\":[{}],",
];

/// A written input with a few pieces put in, taken out, or put in twice.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..3_usize, prop::sample::select(PIECES), 0..12_usize);
    (any::<u64>(), prop::collection::vec(edit, 0..4)).prop_map(|(seed, edits)| {
        let mut document = encode_input(&WireCases::new(seed).next_input());
        for (place, action, piece, count) in edits {
            let at = place.index(document.len() + 1);
            let until = (at + count).min(document.len());
            let put: Vec<u8> = match action {
                0 => piece.as_bytes().to_vec(),
                1 => Vec::new(),
                _ => document[at..until].repeat(2),
            };
            let until = if action == 0 { at } else { until };
            document.splice(at..until, put);
        }
        document
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_and_written_in_the_same_bytes(seed in any::<u64>()) {
        let input = WireCases::new(seed).next_input();
        let written = check_written(&input).unwrap();
        prop_assert!(encode_input(&decode_input(&written).unwrap()) == written);
    }

    #[test]
    fn what_held_halves_is_written_without_them_ever_after(seed in any::<u64>()) {
        let input = WireCases::with_halves(seed).next_input();
        let written = check_written(&input).unwrap();
        let settled = encode_input(&normal_form(&input).unwrap());
        prop_assert!(encode_input(&decode_input(&written).unwrap()) == settled);
        let has_halves = written != settled;
        let what_is_left = decode_input(&settled).unwrap();
        prop_assert!(!has_halves || encode_input(&what_is_left) == settled && settled.len() < written.len());
    }

    #[test]
    fn what_is_broken_gets_an_answer_that_serde_json_agrees_with(document in broken()) {
        wire_input(&document);
        wire_output(&document);
    }
}

/// Every kind of content is made up, so the laws above are about all of them.
#[test]
fn made_up_inputs_hold_every_kind_of_content() {
    let mut cases = WireCases::new(1);
    for _ in 0..3_000 {
        cases.next_input();
    }
    assert_eq!(cases.covered.len(), WireCases::KINDS, "{:?}", cases.covered);
}
