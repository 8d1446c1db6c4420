//! The two commands tell a difference from agreement, and say by their exit codes what they found.

use epitome_tests::evidence::PROMISES;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const AGREED: &str = r#"{"id":"limits/own/1","input":{"op":"occupancy","used":1,"limit":2},"expect":{"ok":true,"basis_points":5000}}"#;
const DIFFERENT: &str = r#"{"id":"limits/own/2","input":{"op":"occupancy","used":1,"limit":2},"expect":{"ok":true,"basis_points":5001}}"#;

fn conformance(files: &[(&str, &str)], names: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in files {
        fs::write(folder.path().join(name), lines).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_conformance")).arg(folder.path()).args(names).output().unwrap()
}

fn evidence(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evidence"));
    command.args(args).env("EPITOME_SHARED", Path::new("no/such/folder")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn agreement_is_zero_and_a_difference_is_one() {
    let agreed = conformance(&[("limits.jsonl", AGREED)], &[]);
    assert_eq!(agreed.status.code(), Some(0), "{}", text(&agreed.stderr));
    let both = format!("{AGREED}\n{DIFFERENT}\n");
    let different = conformance(&[("limits.jsonl", &both)], &["limits"]);
    assert_eq!(different.status.code(), Some(1));
    let shown = text(&different.stdout);
    assert!(shown.contains("limits/own/2: expected ok (one value), got ok (another value)"), "{shown}");
    assert!(!shown.contains("limits/own/1"), "{shown}");
}

#[test]
fn files_that_are_not_covered_are_listed() {
    let listed = conformance(&[("limits.jsonl", AGREED), ("elsewhere.jsonl", "not read")], &[]);
    assert_eq!(listed.status.code(), Some(0));
    assert!(text(&listed.stdout).contains("not covered: elsewhere"), "{}", text(&listed.stdout));
    for (files, names) in [
        (&[("limits.jsonl", AGREED)][..], &["elsewhere"][..]),
        (&[("limits.jsonl", AGREED)], &["policy"]),
        (&[("limits.jsonl", "not a vector")], &[]),
        (&[("elsewhere.jsonl", "not read")], &[]),
        (&[], &[]),
    ] {
        assert_eq!(conformance(files, names).status.code(), Some(2), "{files:?} {names:?}");
    }
}

#[test]
fn evidence_lists_its_promises() {
    let listed = evidence(&[]);
    assert_eq!(listed.status.code(), Some(0));
    let names: Vec<String> = text(&listed.stdout)
        .lines()
        .map(|line| line.split_whitespace().next().unwrap_or_default().to_owned())
        .collect();
    let promises: Vec<&str> = PROMISES.iter().map(|promise| promise.name).collect();
    assert_eq!(names, promises);
    assert!(promises.is_sorted());
}

#[test]
fn evidence_without_its_data_is_not_measured() {
    for name in ["cases", "conformance-reference", "counting", "quality", "transcripts", "no-such-promise"] {
        let refused = evidence(&[name]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(!refused.stderr.is_empty(), "{name}");
    }
}
