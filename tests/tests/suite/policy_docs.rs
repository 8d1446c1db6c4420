//! The page about policies says what the reader does.

use std::fs;
use std::path::Path;

use epitome_rig::{FileProblem, read_policy_file};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/policy.md")).unwrap()
}

#[test]
fn every_example_is_a_valid_policy() {
    let page = page();
    let blocks = page.split("```").skip(1).step_by(2);
    let mut read = 0;
    for (language, text) in blocks.filter_map(|block| block.split_once('\n')) {
        if matches!(language, "toml" | "json") {
            read_policy_file(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault} in\n{text}"));
            read += 1;
        }
    }
    assert_eq!(read, 3);
}

#[test]
fn every_key_has_its_row() {
    let known = |file: &str| match read_policy_file(file.as_bytes()).unwrap_err().problem {
        FileProblem::UnknownKey { known } => known,
        other => panic!("{other:?}"),
    };
    let page = page();
    let row = |key: &str| page.lines().filter(|line| line.starts_with(&format!("| `{key}` |"))).count();
    for key in known("x = 1") {
        let inner = if *key == "keep_recent" { known("keep_recent.x = 1") } else { &[] };
        let rows = if inner.is_empty() { row(key) } else { 1 };
        assert_eq!(rows, 1, "{key}");
        for inner in inner {
            assert_eq!(row(&format!("{key}.{inner}")), 1, "{key}.{inner}");
        }
    }
}

#[test]
fn every_kind_of_fault_is_explained() {
    let page = page();
    for (file, kind) in [
        ("x", "syntax"),
        ("x = 1\nx = 1", "duplicate_key"),
        ("x = 1", "unknown_key"),
        ("counter_policy = ''", "unknown_word"),
        ("", "missing_key"),
        ("automatic = 1", "unexpected_value"),
        (&"#".repeat(2_000_000), "too_large"),
        (&format!("x = {}", "[".repeat(1_000)), "too_deep"),
    ] {
        assert_eq!(read_policy_file(file.as_bytes()).unwrap_err().problem.kind(), kind);
        let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains(&format!("`{kind}`")));
        assert_eq!(rows.count(), 1, "{kind}");
    }
}
