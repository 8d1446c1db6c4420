//! The guarded count is tiktoken's own wherever tiktoken gives one.

use epitome_counters::Encoding;
use proptest::prelude::*;

const ENCODINGS: [Encoding; 2] = [Encoding::O200kBase, Encoding::Cl100kBase];

fn tiktoken(encoding: Encoding, text: &str) -> u64 {
    let bpe = match encoding {
        Encoding::O200kBase => tiktoken_rs::o200k_base_singleton(),
        Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
    };
    bpe.count_ordinary(text) as u64
}

#[test]
fn control_tokens_in_text_are_text() {
    let text = "Why does the parser stop at <|endoftext|> and not at <|im_end|>?";
    for encoding in ENCODINGS {
        assert_eq!(encoding.count(text), tiktoken(encoding, text));
        assert!(encoding.count("<|endoftext|>") > 3);
    }
    assert_eq!(Encoding::O200kBase.count("hello world"), 2);
    assert_eq!(Encoding::O200kBase.count(""), 0);
}

/// Blank runs as long as tiktoken takes them are exact, longer ones are close and do not panic.
#[test]
fn blank_runs_of_any_length_are_counted() {
    // The longest that tiktoken takes before a visible character.
    let longest = 999_998;
    for (encoding, blank) in [(Encoding::O200kBase, " "), (Encoding::Cl100kBase, "\u{3000}")] {
        let exact = format!("a\n{}x", blank.repeat(longest));
        let once = encoding.count(&exact);
        assert_eq!(once, tiktoken(encoding, &exact), "{encoding} {blank:?}");
        let twice = encoding.count(&format!("a\n{}x", blank.repeat(2 * longest)));
        assert!(twice.abs_diff(2 * once) <= 4, "{encoding} {blank:?}: {once} once, {twice} twice");
        // A line break at the end of the run spares tiktoken the backtracking, so this is exact again.
        let broken = format!("{}\n", " ".repeat(longest + 100));
        assert_eq!(encoding.count(&broken), tiktoken(encoding, &broken), "{encoding}");
    }
    let at_end = " ".repeat(longest + 100);
    assert_eq!(Encoding::Cl100kBase.count(&at_end), tiktoken(Encoding::Cl100kBase, &at_end));
}

/// Much of anything is counted without a panic. How fast is a matter of the benches.
#[test]
fn hostile_text_is_bounded() {
    for encoding in ENCODINGS {
        for unit in [
            " ",
            "\t",
            "\n",
            "\r\n",
            " \n\t ",
            "\u{a0}",
            "\u{3000}",
            "a",
            "A",
            "Aa",
            "7",
            "abcabc",
            "=",
            "!?",
            "/",
            "-/\n",
            "漢",
            "漢字仮名交じり文",
            "🚀",
            "👩‍👩‍👧",
            "\0",
            "\u{301}",
            "a\u{301}",
            "\u{200d}",
            "\u{fffd}",
            "iVBORw0KGgoAAAANSUhE",
            "deadbeef0123",
            "  a",
            "x's",
            "ا",
            "กำ",
            "ʰ",
        ] {
            let text = unit.repeat(300_000 / unit.len() + 1);
            let tokens = encoding.count(&text);
            assert!(tokens > 0 && tokens <= text.len() as u64, "{encoding} {unit:?}");
        }
    }
}

/// Enough different words that the memory of counts overflows and starts to forget.
#[test]
fn what_was_counted_before_does_not_change_a_count() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let separators = [" ", "\n", "\n\n    ", ".", "(", "_", "  ", ", ", "\t", "/"];
    let mut text = String::new();
    for _ in 0..60_000 {
        for _ in 0..1 + next(7) {
            text.push(char::from(b"abcdefgh ijklmnoPQRST0123'"[next(26) as usize]));
        }
        text.push_str(separators[next(10) as usize]);
    }
    for encoding in ENCODINGS {
        let expected = tiktoken(encoding, &text);
        assert_eq!(encoding.count(&text), expected, "{encoding}");
        assert_eq!(encoding.count(&text), expected, "{encoding}, again");
    }
}

/// Pieces that meet in awkward ways at the places where the pre-tokenizer may split.
fn awkward_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,8}",
        2 => "[A-Z][a-z]{0,6}",
        1 => "[A-Z]{1,6}",
        2 => "[0-9]{1,7}",
        4 => Just(" ".to_owned()),
        2 => "[ \t]{2,6}",
        2 => "[\n\r]{1,3}",
        1 => "[\u{a0}\u{3000}\u{2028}\u{b}\u{c}\u{85}]{1,2}",
        3 => "[!-/:-@\\[-`{-~]{1,4}",
        1 => "'(s|t|re|ve|m|ll|d|S|LL)",
        1 => "[漢字仮名אبกʰ]{1,3}",
        1 => "[\u{301}\u{200d}\u{fffd}\0🚀é]{1,3}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn equals_tiktoken(text in awkward_text()) {
        for encoding in ENCODINGS {
            prop_assert_eq!(encoding.count(&text), tiktoken(encoding, &text), "{}", encoding);
        }
    }
}
