//! The page about rig files says what the reader does.

use std::fs;
use std::path::Path;

use epitome_rig::{FileProblem, read_rig_file};

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rig-file.md")).unwrap()
}

/// The example of the page.
fn example(page: &str) -> &str {
    let (_, after) = page.split_once("```toml\n").unwrap();
    after.split_once("```").unwrap().0
}

/// The keys that are known where the example has this text, found out by a key that is not.
fn known(example: &str, at: &str) -> &'static [&'static str] {
    let wrong = example.replacen(at, &at.replacen("{ ", "{ unheard = 1, ", 1), 1);
    let wrong =
        if at.contains("{ ") { wrong } else { example.replacen(at, &format!("unheard = 1\n{at}"), 1) };
    match read_rig_file(wrong.as_bytes()).unwrap_err().problem {
        FileProblem::UnknownKey { known } => known,
        other => panic!("{at}: {other:?}"),
    }
}

#[test]
fn the_example_is_a_rig() {
    let page = page();
    let rig = read_rig_file(example(&page).as_bytes()).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!((rig.loops().len(), rig.hustles().len()), (1, 2));
    assert!(rig.bound_loop("coder").unwrap().compaction().is_some());
}

#[test]
fn every_key_has_its_row() {
    let page = page();
    // What the example leaves out, so that its keys can be asked for.
    let full = example(&page)
        .replacen(
            "prompt = {",
            "output_schema = { name = \"s\", schema = \"{}\", strict = true, revision = \"1\" }\nprompt = {",
            1,
        )
        .replacen("abilities =", "sampling = { effort = \"high\" }, abilities =", 1);
    let watched = full.replacen(
        "[loops.compaction]",
        "observation = { reserved_output = 1, safety_margin = 1, count_timeout = \"1s\" }\n[loops.compaction]",
        1,
    );
    let row = |key: &str| page.lines().filter(|line| line.starts_with(&format!("| `{key}` |"))).count();
    for (table, at) in [
        ("", "[hustle_limits]"),
        ("hustle_limits.", "audit_timeout"),
        ("hustle_limits.blocking.", "blocking = { "),
        ("hustles.", "timeout = \"30s\""),
        ("hustles.model.", "model = { source = \"named\""),
        ("hustles.prompt.", "prompt = { "),
        ("hustles.output_schema.", "output_schema = { "),
        ("loops.", "counter = "),
        ("loops.model.", "model = { provider"),
        ("loops.model.sampling.", "sampling = { "),
        ("loops.counter.", "counter = { "),
        ("loops.inference.", "inference = { "),
        ("loops.observation.", "observation = { "),
        ("loops.fixed.", "fixed = { "),
    ] {
        let text = if table == "loops.observation." { &watched } else { &full };
        for key in known(text, at) {
            assert_eq!(row(&format!("{table}{key}")), 1, "{table}{key}");
        }
    }
}

#[test]
fn every_kind_of_fault_of_a_rig_is_explained() {
    let page = page();
    let example = example(&page);
    let changed = |from: &str, to: &str| {
        assert!(example.contains(from), "{from}");
        example.replacen(from, to, 1)
    };
    let (lanes, rest) = example.split_once("# Summarizes").unwrap();
    for (file, kind) in [
        (changed("concurrent = 1", "concurrent = 0"), "invalid_hustle_limits"),
        (rest.split_once('\n').unwrap().1.to_owned(), "missing_hustle_limits"),
        (lanes.to_owned(), "unused_hustle_limits"),
        (changed("timeout = \"30s\"", "timeout = \"0s\""), "invalid_hustle"),
        (changed("\"extractive\"", "\"small-model\""), "duplicate_hustle"),
        (String::new(), "no_loop"),
        (changed("inference =", "#"), "invalid_loop"),
        (
            format!("{example}\n[[loops]]\nname = \"coder\"\nmodel = {{ provider = \"p\", name = \"m\" }}"),
            "duplicate_loop",
        ),
        (changed("hustle = \"small-model\"", "hustle = \"gone\""), "missing_compaction_hustle"),
        (
            changed(
                "name = \"small-model\"\nparticipation = \"blocking\"",
                "name = \"small-model\"\nparticipation = \"background\"",
            ),
            "incompatible_compaction_hustle",
        ),
        (
            changed("reserved_output = 32000", "reserved_output = 200000").replacen(
                ", max_output = 64000",
                "",
                1,
            ),
            "no_room",
        ),
        (changed("window = 200000, ", ""), "window_unknown"),
        (changed("text = \"Summarize the conversation.\"", "file = \"p.md\""), "prompt_file"),
    ] {
        assert_eq!(read_rig_file(file.as_bytes()).unwrap_err().problem.kind(), kind);
        let rows = page.lines().filter(|line| line.starts_with(&format!("| `{kind}` |")));
        assert_eq!(rows.count(), 1, "{kind}");
    }
}
