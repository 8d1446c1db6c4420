use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// What a definition could look like.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Definition {
    number: u64,
    #[serde(default)]
    words: Vec<Word>,
    inner: Option<Box<Definition>>,
    #[serde(default)]
    named: BTreeMap<String, Named>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Word {
    One,
    Two,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, expecting = "a table of names")]
struct Named {
    text: String,
}

fn decode(text: &str) -> Result<Definition, FileError> {
    Document::parse(text.as_bytes(), FileFormat::detect(text.as_bytes()))?.decode()
}

fn fault(text: &str) -> String {
    decode(text).unwrap_err().to_string()
}

#[test]
fn both_formats_give_the_same_definition() {
    let toml = decode(
        "number = 0x10\nwords = ['one', \"two\"]\n[inner]\nnumber = 2\n[named.'a b']\ntext = '''\nx'''\n",
    );
    let json = decode(
        r#" {"number": 16, "words": ["one", "\u0074wo"], "inner": {"number": 2, "inner": null},
            "named": {"a b": {"text": "x"}}} "#,
    );
    assert_eq!(toml.unwrap(), json.unwrap());
}

#[test]
fn every_fault_has_its_place() {
    for (text, expected) in [
        (
            "number = 1\nsecret = 2",
            "line 2, column 1: unknown key; known here are number, words, inner, named",
        ),
        ("{\n \"secret\": 2}", "line 2, column 2: unknown key; known here are number, words, inner, named"),
        ("\nnumber = 'secret'", "line 2, column 10, number: expected a whole number, 0 or more"),
        ("number = -1", "line 1, column 10, number: expected a whole number, 0 or more"),
        ("number = 1.0", "line 1, column 10, number: expected a whole number, 0 or more"),
        ("number = 1979-05-27", "line 1, column 10, number: expected a whole number, 0 or more"),
        (
            "{\"number\": 18446744073709551616}",
            "line 1, column 12, number: expected a whole number, 0 or more",
        ),
        ("words = []", "line 1, column 1: the key number is missing"),
        ("number = 1\n[inner]\nwords = []", "line 2, column 1, inner: the key number is missing"),
        (
            "number = 1\nwords = ['one', 'secret']",
            "line 2, column 17, words[2]: unknown word; known here are one, two",
        ),
        (
            "number = 1\nwords = ['one', 5]",
            "line 2, column 17, words[2]: unknown word; known here are one, two",
        ),
        ("number = 1\n[named.secret]\ntext = 5", "line 3, column 8, named[1].text: expected text in quotes"),
        ("number = 1\n[named.x]\nsecret = 5", "line 3, column 1, named[1]: unknown key; known here are text"),
        ("number = 1\nnumber = 2", "line 2, column 1: this key is given twice"),
        ("{\"number\": 1, \"n\\u0075mber\": 2}", "line 1, column 15: this key is given twice"),
        ("number = 1\n[inner]\n[inner]", "line 3, column 2: this key is given twice"),
        ("number = \"\u{e9}\u{1f600}\" secret", "line 1, column 15: this is not valid TOML"),
        ("{\"number\": 1} secret", "line 1, column 15: this is not valid JSON"),
        ("{\"number\": 01}", "line 1, column 12: this is not valid JSON"),
        ("{\"number\": 1,}", "line 1, column 14: this is not valid JSON"),
        ("{\"a\": \"\n\"}", "line 1, column 7: this is not valid JSON"),
        ("5", "line 1, column 2: this is not valid TOML"),
        // Where it stands, not behind it.
        ("\u{1}", "line 1, column 1: this is not valid TOML"),
        ("\u{1}\u{1}\u{1}", "line 1, column 1: this is not valid TOML"),
        ("number = 1\n  ab\u{7f}\u{7f}", "line 2, column 5: this is not valid TOML"),
        ("number = 1\na.b!!!.c", "line 2, column 4: this is not valid TOML"),
        ("\u{e9}\u{e9}", "line 1, column 1: this is not valid TOML"),
        ("number = '\u{1}\u{1}'", "line 1, column 11: this is not valid TOML"),
        ("number = 0b", "line 1, column 10: this is not valid TOML"),
        ("number = 0x", "line 1, column 10: this is not valid TOML"),
        ("number = 0o", "line 1, column 10: this is not valid TOML"),
        (
            "number = 99999999999999999999999999999999999999999999",
            "line 1, column 10: expected a number that is not this large",
        ),
        // A byte-order mark is passed over once, and takes no column.
        ("\u{feff}number = -1", "line 1, column 10, number: expected a whole number, 0 or more"),
        ("\u{feff}{\"number\": -1}", "line 1, column 12, number: expected a whole number, 0 or more"),
        ("\u{feff}\u{feff}number = 1", "line 1, column 1: this is not valid TOML"),
        ("\u{feff}\u{feff}{\"number\": 1}", "line 1, column 1: this is not valid TOML"),
        // A table is a table, however well a list would fill it.
        ("number = 1\ninner = [5, [], 7]", "line 2, column 9, inner: expected a table"),
        ("number = 1\n[[inner]]\nnumber = 2", "line 2, column 1, inner: expected a table"),
        ("number = 1\nnamed = [1]", "line 2, column 9, named: expected a table"),
        ("number = 1\nnamed.x = ['text', 'junk']", "line 2, column 11, named[1]: expected a table of names"),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
    assert_eq!(
        Document::parse(b"[1]", FileFormat::Json)
            .and_then(|document| document.decode::<Definition>())
            .unwrap_err()
            .to_string(),
        "line 1, column 1: expected a table"
    );
    let broken = Document::parse(b"a = 1\n\n b = '\xff'", FileFormat::Toml).err().unwrap();
    assert_eq!(broken.to_string(), "line 3, column 7: this is not UTF-8");
}

/// Readers of every kind that the derive makes, and what the standard ones read: none passes over a value.
#[test]
fn nothing_is_read_by_position_or_passed_over() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Newtype(u64);
    #[derive(Debug, Deserialize, PartialEq)]
    struct Pair(u64, u64);
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct All {
        newtype: Newtype,
        pair: Pair,
        tuple: (u64, u64),
        array: [u64; 2],
        word: Word,
        none: Option<Pair>,
    }
    const GOOD: &str = r#"{"newtype": 1, "pair": [1, 2], "tuple": [1, 2], "array": [1, 2], "word": "one"}"#;
    let read = |text: &str| Document::parse(text.as_bytes(), FileFormat::Json).unwrap().decode::<All>();
    assert_eq!(
        read(GOOD).unwrap(),
        All {
            newtype: Newtype(1),
            pair: Pair(1, 2),
            tuple: (1, 2),
            array: [1, 2],
            word: Word::One,
            none: None
        }
    );
    for (from, to, place, what) in [
        ("\"newtype\": 1", "\"newtype\": [1]", "newtype", "expected a whole number, 0 or more"),
        ("\"pair\": [1, 2]", "\"pair\": [1, 2, {}]", "pair[3]", "expected a list of 2 values"),
        ("\"tuple\": [1, 2]", "\"tuple\": [1, 2, \"x\", 4]", "tuple[3]", "expected a list of 2 values"),
        ("\"array\": [1, 2]", "\"array\": [1, 2, 3]", "array[3]", "expected a list of 2 values"),
        ("\"word\": \"one\"", "\"word\": [\"one\"]", "word", "unknown word; known here are one, two"),
        ("\"word\": \"one\"", "\"word\": {\"one\": []}", "word", "unknown word; known here are one, two"),
        ("\"word\": \"one\"", "\"word\": 0", "word", "unknown word; known here are one, two"),
    ] {
        assert!(GOOD.contains(from));
        let fault = read(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert_eq!((fault.place.to_string().as_str(), fault.problem.to_string().as_str()), (place, what));
        assert!(fault.column > 1);
    }
    let whole = Document::parse(b"[1, [1, 2], [1, 2], [1, 2], \"one\"]", FileFormat::Json).unwrap();
    assert_eq!(whole.decode::<All>().unwrap_err().problem.kind(), "unexpected_value");
}

#[test]
fn a_byte_order_mark_says_nothing() {
    let plain = decode("number = 1").unwrap();
    assert_eq!(decode("\u{feff}number = 1").unwrap(), plain);
    assert_eq!(decode("\u{feff} {\"number\": 1}").unwrap(), plain);
    let broken = Document::parse(b"\xef\xbb\xbfa = \xff", FileFormat::Toml).err().unwrap();
    assert_eq!(broken.to_string(), "line 1, column 5: this is not UTF-8");
}

#[test]
fn a_fault_found_later_is_placed_at_its_value_or_around_it() {
    let text = "number = 1\nwords = ['one', 'two']\n[named.x]\ntext = ''";
    let document = Document::parse(text.as_bytes(), FileFormat::Toml).unwrap();
    let at = |parts: &[PlacePart]| {
        let fault = document.fault(FilePlace(parts.to_vec()), FileProblem::DuplicateKey);
        (fault.line, fault.column)
    };
    use PlacePart::{Entry, Key};
    assert_eq!(at(&[]), (1, 1));
    assert_eq!(at(&[Key("words"), Entry(2)]), (2, 17));
    assert_eq!(at(&[Key("words"), Entry(0)]), (2, 9));
    assert_eq!(at(&[Key("named"), Entry(1), Key("text")]), (4, 8));
    assert_eq!(at(&[Key("named"), Entry(1), Key("missing")]), (3, 1));
}

#[test]
fn depth_is_bounded_in_every_spelling() {
    let nested = |levels: usize| {
        let lists = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let tables = format!("{}1{}", "{a=".repeat(levels), "}".repeat(levels));
        let dotted = vec!["a"; levels + 1].join(".");
        [
            format!("a = {lists}"),
            format!("a = {tables}"),
            format!("{dotted} = 1"),
            format!("[{}]", vec!["a"; levels].join(".")),
            format!("{{\"a\": {lists}}}"),
            format!("{{\"a\": {}}}", tables.replace("a=", "\"a\":")),
        ]
    };
    for text in nested(MAX_FILE_DEPTH) {
        assert!(Document::parse(text.as_bytes(), FileFormat::detect(text.as_bytes())).is_ok(), "{text}");
    }
    for text in nested(MAX_FILE_DEPTH + 1).into_iter().chain(nested(100_000)) {
        let fault = Document::parse(text.as_bytes(), FileFormat::detect(text.as_bytes())).err().unwrap();
        assert_eq!(fault.problem, FileProblem::TooDeep { limit: MAX_FILE_DEPTH });
    }
}

#[test]
fn a_large_file_is_refused_unread() {
    let large = vec![b'#'; MAX_FILE_BYTES + 1];
    let fault = Document::parse(&large, FileFormat::Toml).err().unwrap();
    assert_eq!(fault.problem, FileProblem::TooLarge { limit: MAX_FILE_BYTES });
    assert!(Document::parse(large.split_last().unwrap().1, FileFormat::Toml).is_ok());
}

/// JSON, nearly JSON, and anything.
fn json_like() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just(" "),
        Just("\n"),
        Just("\"a\""),
        Just("\"b\\n\""),
        Just("\"\\u00e9\\ud83d\\ude00\""),
        Just("\"\\ud800\""),
        Just("\"\u{1}\""),
        Just("\""),
        Just("1"),
        Just("-0"),
        Just("01"),
        Just("1.5e3"),
        Just("1."),
        Just("-"),
        Just("true"),
        Just("false"),
        Just("null"),
        Just("nul"),
        Just("\u{feff}"),
        Just("\u{e9}"),
    ];
    let value = prop_oneof![Just("1"), Just("\"x\""), Just("[]"), Just("[1, {}]"), Just("{ }"), Just("null")];
    prop_oneof![
        prop::collection::vec(token, 0..8).prop_map(|tokens| tokens.concat()),
        prop::collection::vec(value, 0..5).prop_map(|values| format!("[{}]", values.join(", "))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The second judge is a JSON library. It keeps the last of two equal keys; we refuse them.
    #[test]
    fn json_is_what_the_library_says_it_is(text in json_like()) {
        let ours = Document::parse(text.as_bytes(), FileFormat::Json).map(|_| ()).map_err(|fault| fault.problem);
        if ours != Err(FileProblem::DuplicateKey) {
            let library = serde_json::from_str::<serde_json::Value>(text.strip_prefix('\u{feff}').unwrap_or(&text)).map_err(|error| error.to_string());
            // A number of any size is JSON; the library stops at one that it cannot keep and says no more.
            prop_assume!(!library.as_ref().is_err_and(|error| error.contains("number out of range")));
            prop_assert_eq!(ours.is_ok(), library.is_ok(), "{}", text);
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for format in [FileFormat::Toml, FileFormat::Json] {
            if let Ok(document) = Document::parse(&bytes, format) {
                let _ = document.decode::<Definition>();
            }
        }
    }
}
