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
#[serde(deny_unknown_fields)]
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
            let library = serde_json::from_str::<serde_json::Value>(&text).map_err(|error| error.to_string());
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
