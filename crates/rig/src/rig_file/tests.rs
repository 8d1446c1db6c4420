use super::*;
use crate::{Incompatibility, RigErrorKind};
use epitome_loop::{CountQuality, LoopDefinitionError, ModelSource, Participation, TokenCount};

const RIG: &str = include_str!("tests/rig.toml");

fn prompts(name: &str) -> Option<SharedText> {
    (name == "compact.md").then(|| "Summarize.".into())
}

fn read(text: &str) -> Result<Rig, FileError> {
    read_rig_file_with(text.as_bytes(), prompts)
}

/// The fault of the example with one text in place of another.
fn fault(from: &str, to: &str) -> FileError {
    assert!(RIG.contains(from), "{from}");
    read(&RIG.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn a_rig_file_becomes_a_rig() {
    let rig = read(RIG).unwrap();
    let limits = rig.hustle_limits().unwrap();
    assert_eq!(limits.lane(Participation::Background).queued, 100);
    assert_eq!(rig.hustles().len(), 2);
    let main = rig.bound_loop("main").unwrap();
    let compaction = main.compaction().unwrap();
    assert_eq!(compaction.hustle.name().as_str(), "context.compact.model");
    assert_eq!(compaction.policy.safety_margin(), TokenCount(4_000));
    assert!(
        matches!(compaction.hustle.model(), ModelSource::Named { prompt, .. } if prompt.text == "Summarize.")
    );
    let context = main.definition().context().unwrap();
    assert_eq!(context.counter().quality, CountQuality::HeuristicEstimate);
    let watched = rig.bound_loop("watched").unwrap();
    assert!(watched.compaction().is_none());
    assert_eq!(watched.definition().model().sampling.temperature, Some(0.5));
    assert!(rig.bound_loop("other").is_none());
    assert!(rig.hustle(compaction.policy.hustle()).is_some());
}

#[test]
fn toml_and_json_say_the_same() {
    let (from_toml, from_json) = (read(RIG).unwrap(), read(include_str!("tests/rig.json")).unwrap());
    let revisions = |rig: &Rig| {
        let loops: Vec<_> =
            rig.loops().iter().map(|found| found.definition().policy_revision().clone()).collect();
        let hustles: Vec<_> = rig.hustles().iter().map(|found| found.policy_revision()).collect();
        (loops, hustles)
    };
    assert_eq!(revisions(&from_toml), revisions(&from_json));
    assert_eq!(from_toml.hustle_limits(), from_json.hustle_limits());
}

#[test]
fn a_rule_that_is_broken_is_pointed_at() {
    for (from, to, kind, shown) in [
        (
            "concurrent = 1",
            "concurrent = 0",
            "invalid_hustle_limits",
            "line 2, column 27, hustle_limits.blocking.concurrent: blocking.concurrent must not be zero",
        ),
        (
            "output_bytes = 65536",
            "output_bytes = 16777217",
            "invalid_hustle",
            "line 13, column 16, hustles[1].output_bytes: the output limit must be from 1 to 16777216 bytes",
        ),
        (
            "hustle = \"context.compact.model\"",
            "hustle = \"gone\"",
            "missing_compaction_hustle",
            "line 48, column 10, loops[1].compaction.hustle: \
             no hustle has the name that its compaction policy asks for",
        ),
        (
            "hustle = \"context.compact.model\"",
            "hustle = \"context.compact.model\"\nfallback = \"gone\"",
            "missing_fallback_hustle",
            "line 49, column 12, loops[1].compaction.fallback: \
             no hustle has the name that its compaction policy has for a fallback",
        ),
        (
            "hustle = \"context.compact.model\"",
            "hustle = \"context.compact.model\"\nfallback = \"context.compact.model\"",
            "policy",
            "line 49, column 12, loops[1].compaction.fallback: must be another hustle than hustle",
        ),
        (
            "name = \"context.compact.model\"\nparticipation = \"blocking\"",
            "name = \"context.compact.model\"\nparticipation = \"background\"",
            "incompatible_compaction_hustle",
            "line 48, column 10, loops[1].compaction.hustle: the hustle of its compaction policy does not fit: \
             it runs in the background, and a compaction is waited for",
        ),
        (
            "counter_policy = \"allow_conservative\"",
            "counter_policy = \"require_exact\"",
            "policy",
            "line 41, column 18, loops[1].compaction.counter_policy: does not admit the counter",
        ),
        (
            "window = 200000, max_output = 8000",
            "window = 8000, max_output = 8000",
            "no_room",
            "line 34, column 50, loops[1].model.window: its policy leaves no room for input: context limit \
             unknown: a window of 8000 and an input limit of 0 tokens leave no room after 8000 tokens for the \
             answer and a margin of 160",
        ),
        (
            "window = 200000, max_output",
            "window = 200000, max_input = 4000, max_output",
            "no_room",
            "line 34, column 70, loops[1].model.max_input: its policy leaves no room for input: context limit \
             unknown: a window of 200000 and an input limit of 4000 tokens leave no room after 8000 tokens for \
             the answer and a margin of 4000",
        ),
        (
            "name = \"big\", sampling",
            "name = \"big\", window = 100, sampling",
            "no_room",
            "line 52, column 50, loops[2].model.window: its policy leaves no room for input: context limit \
             unknown: a window of 100 and an input limit of 0 tokens leave no room after 100 tokens for the \
             answer and a margin of 0",
        ),
        (
            "name = \"watched\"",
            "name = \"main\"",
            "duplicate_loop",
            "line 51, column 8, loops[2].name: \
             an earlier loop has this name",
        ),
        (
            "model = { source = \"embedded\" }",
            "model = { source = \"embedded\", client = \"x\" }",
            "unexpected_value",
            "line 14, column 41, hustles[1].model.client: expected this key only beside the source \"named\"",
        ),
        (
            "retry = \"none\"",
            "retry = \"twice\"",
            "unknown_word",
            "line 16, column 9, hustles[1].retry: unknown word; known here are none, classified_once",
        ),
        (
            "file = \"compact.md\"",
            "file = \"other.md\"",
            "prompt_file",
            "line 26, column 19, hustles[2].prompt.file: this prompt file cannot be read",
        ),
    ] {
        let fault = fault(from, to);
        assert_eq!(fault.problem.kind(), kind, "{fault}");
        assert_eq!(fault.to_string(), shown);
    }
}

#[test]
fn what_is_missing_is_said_where_it_belongs() {
    let gone = fault("[hustle_limits]", "[other]");
    assert_eq!(gone.problem.kind(), "unknown_key");
    let (limits_only, hustles) = RIG.split_at(RIG.find("[[hustles]]").unwrap());
    let kind = |text: &str| read(text).unwrap_err().problem;
    assert_eq!(kind(hustles), FileProblem::Rig(RigErrorKind::MissingHustleLimits));
    assert_eq!(kind(limits_only), FileProblem::Rig(RigErrorKind::UnusedHustleLimits));
    assert_eq!(kind(""), FileProblem::Rig(RigErrorKind::NoLoop));
    let no_counter = fault("counter = { transport", "fixed = { system = 1, tools = 1 }\n#");
    assert_eq!(no_counter.problem.kind(), "duplicate_key");
    let no_counter = fault("counter = { transport", "#");
    assert_eq!(
        no_counter.problem,
        FileProblem::Rig(RigErrorKind::InvalidLoop(LoopDefinitionError::MissingContextCounter))
    );
    assert_eq!(no_counter.place.to_string(), "loops[1].counter");
    let no_prompt = fault("prompt = {", "#");
    assert_eq!(no_prompt.problem, FileProblem::MissingKey { key: "prompt" });
    assert_eq!(no_prompt.place.to_string(), "hustles[2]");
    let two_prompts = fault("file = \"compact.md\"", "file = \"compact.md\", text = \"x\"");
    assert_eq!(two_prompts.place.to_string(), "hustles[2].prompt");
}

#[test]
fn limits_below_the_smallest_payloads_are_refused_with_the_numbers() {
    let small = |key: &str, to: &str| {
        let at = RIG.find("context.compact.model").unwrap();
        let (before, after) = RIG.split_at(at);
        match read(&format!("{before}{}", after.replacen(key, to, 1))) {
            Err(FileError {
                problem: FileProblem::Rig(RigErrorKind::IncompatibleCompactionHustle(why)),
                ..
            }) => Some(why),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        }
    };
    // This hustle answers with the identity around the summary.
    let least = epitome_loop::SMALLEST_ECHO_BYTES as u64;
    let (below, enough) = (least - 1, least);
    assert_eq!(
        small("output_bytes = 65536", &format!("output_bytes = {below}")),
        Some(Incompatibility::OutputLimit { limit: below, least })
    );
    assert_eq!(small("output_bytes = 65536", &format!("output_bytes = {enough}")), None);
    let least = epitome_loop::SMALLEST_INPUT_BYTES as u64;
    let (below, enough) = (least - 1, least);
    assert_eq!(
        small("input_bytes = 4194304", &format!("input_bytes = {below}")),
        Some(Incompatibility::InputLimit { limit: below, least })
    );
    assert_eq!(small("input_bytes = 4194304", &format!("input_bytes = {enough}")), None);
}

#[test]
fn nothing_of_the_file_is_shown() {
    for (from, to) in [
        ("name = \"main\"", "name = \"canary\"\ncanary = 1"),
        ("compact_at = \"85%\"", "compact_at = \"canary\""),
        ("schema = '{\"type\":\"object\"}'", "schema = 'canary'"),
        ("hustle = \"context.compact.model\"", "hustle = \"canary\""),
        ("retry = \"none\"", "retry = \"canary\""),
        ("[hustle_limits]", "[hustle_limits.canary"),
        ("tokenizer_rev = \"t\"", "tokenizer_rev = \"t\", security_identity = \"canary\""),
    ] {
        let fault = fault(from, to);
        assert!(!format!("{fault} {fault:?}").contains("canary"), "{fault}");
    }
}

/// Every table of a rig, policies and their amounts included, and the whole file: with a list of the same values
/// in its place, in the order of the keys and with some to spare.
#[test]
fn a_table_is_never_a_list() {
    let whole: serde_json::Value = serde_json::from_str(include_str!("tests/rig.json")).unwrap();
    let mut tables = Vec::new();
    pointers(&whole, String::new(), &mut tables);
    assert!(tables.len() > 20, "{tables:?}");
    for pointer in tables {
        let mut changed = whole.clone();
        let place = changed.pointer_mut(&pointer).unwrap();
        let values: Vec<_> = place.as_object().unwrap().values().cloned().collect();
        for surplus in [&[][..], &["junk".into(), 5.into()]] {
            *changed.pointer_mut(&pointer).unwrap() = [values.as_slice(), surplus].concat().into();
            let text = serde_json::to_string_pretty(&changed).unwrap();
            let document = Document::parse(text.as_bytes(), FileFormat::Json).unwrap();
            let fault = document.decode::<RigWire>().map(|_| ()).unwrap_err();
            assert_eq!(fault.problem.kind(), "unexpected_value", "{pointer}: {fault}");
            assert!(fault.problem.to_string().contains("a table"), "{pointer}: {fault}");
            // The list is what is pointed at, by its place in the tree and in the text.
            let at = text.lines().nth(fault.line - 1).unwrap().chars().nth(fault.column - 1);
            assert_eq!(at, Some('['), "{pointer}: {fault}");
            assert_eq!(fault.place.to_string(), shown(&pointer), "{fault}");
        }
    }
}

fn pointers(value: &serde_json::Value, at: String, tables: &mut Vec<String>) {
    if let Some(table) = value.as_object() {
        table.iter().for_each(|(key, inner)| pointers(inner, format!("{at}/{key}"), tables));
        tables.push(at);
    } else if let Some(list) = value.as_array() {
        list.iter().enumerate().for_each(|(entry, inner)| pointers(inner, format!("{at}/{entry}"), tables));
    }
}

/// A JSON pointer as a place: `/loops/0/model` is `loops[1].model`.
fn shown(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1).map(|part| match part.parse::<usize>() {
        Ok(entry) => format!("[{}]", entry + 1),
        Err(_) => format!(".{part}"),
    });
    parts.collect::<String>().trim_start_matches('.').to_owned()
}
