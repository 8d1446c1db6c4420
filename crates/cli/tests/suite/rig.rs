//! Rig files, at the terminal.

use std::fs;
use std::process::Output;

use crate::terminal::{code, epitome, json, stderr, stdout};

const RIG: &str = include_str!("../../../rig/tests/files/agents.toml");

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(rig: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("agents.toml", rig);
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run_with(&self, args: &[&str], input: &str) -> Output {
        epitome(self.0.path(), &[&["check", "rig"], args].concat(), input.as_bytes())
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, "")
    }
}

#[test]
fn a_rig_is_judged_in_words_and_as_json() {
    let folder = Folder::with(RIG);
    let shown = folder.run(&["agents.toml"]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let words = stdout(&shown);
    assert!(words.starts_with("valid rig: 1 loop and 2 hustles\n"), "{words}");
    assert!(words.contains("compacts at 85.00% by small-model"), "{words}");
    assert!(words.contains("note: no loop asks for the hustle extractive"), "{words}");
    let report = json(&folder.run(&["agents.toml", "--json"]));
    assert_eq!(report["outcome"], "valid");
    assert_eq!(report["loops"][0]["hustle"], "small-model");
    assert_eq!(report["hustles"][1]["source"], "named");
    assert_eq!(report["lanes"][0]["queued"], 8);
    let piped = folder.run_with(&["-", "--json"], RIG);
    assert_eq!(json(&piped), report);
}

#[test]
fn a_floor_above_the_re_arm_level_is_a_warning() {
    let folder = Folder::with(&RIG.replacen("tools = 12000", "tools = 80000", 1));
    let report = json(&folder.run(&["agents.toml", "--json"]));
    assert!(
        report["loops"][0]["warning"].as_str().is_some_and(|warning| warning.contains("80000")),
        "{report}"
    );
    let shown = folder.run(&["agents.toml"]);
    assert_eq!(code(&shown), 0);
    assert!(stdout(&shown).contains("warning: "));
}

/// Also without a fixed part, which the floor needs; a window that is not known is no fault.
#[test]
fn a_loop_without_room_for_input_is_no_rig() {
    let bare = RIG.replacen("fixed = { system = 4000, tools = 12000 }", "", 1).replacen(
        ", max_output = 64000",
        "",
        1,
    );
    for (window, says) in [("1", "a window of 1 "), ("32000", "a window of 32000 ")] {
        let file = bare.replacen("window = 200000", &format!("window = {window}"), 1);
        assert_ne!(file, bare);
        let folder = Folder::with(&file.replacen(
            "safety_margin = { share_of_window = \"2%\" }",
            "safety_margin = 1",
            1,
        ));
        let report = folder.run(&["agents.toml", "--json"]);
        assert_eq!((code(&report), &json(&report)["problem"]), (3, &"no_room".into()));
        assert_eq!(json(&report)["place"], "loops[1].model.window");
        assert!(stderr(&folder.run(&["agents.toml"])).contains(says));
    }
    let unknown = bare.replacen("window = 200000, ", "", 1).replacen(
        "safety_margin = { share_of_window = \"2%\" }",
        "safety_margin = 1",
        1,
    );
    let folder = Folder::with(&unknown);
    assert_eq!(code(&folder.run(&["agents.toml"])), 0);
}

#[test]
fn what_does_not_fit_is_pointed_at() {
    let folder = Folder::with(&RIG.replacen("hustle = \"small-model\"", "hustle = \"sk-secret\"", 1));
    let shown = folder.run(&["agents.toml"]);
    assert_eq!(code(&shown), 3);
    assert!(shown.stdout.is_empty());
    let message = stderr(&shown);
    assert!(message.contains("agents.toml: line 51, column 10, loops[1].compaction.hustle: "), "{message}");
    assert!(message.contains("docs/rig-file.md"), "{message}");
    assert!(!message.contains("secret"), "{message}");
    let output = folder.run(&["agents.toml", "--json"]);
    assert_eq!(code(&output), 3);
    let report = json(&output);
    assert_eq!(report["outcome"], "invalid");
    assert_eq!(report["problem"], "missing_compaction_hustle");
    assert_eq!((&report["line"], &report["column"]), (&51.into(), &10.into()));
    assert_eq!(report["place"], "loops[1].compaction.hustle");
    assert!(!report.to_string().contains("secret"));
}

#[test]
fn prompts_are_looked_for_beside_the_rig() {
    let folder = Folder::with("");
    let rig = RIG.replacen("text = \"Summarize the conversation.\"", "file = \"prompts/small.md\"", 1);
    folder.write("rigs/agents.toml", &rig);
    let missing = folder.run(&["rigs/agents.toml"]);
    assert_eq!(code(&missing), 3);
    let message = stderr(&missing).replace('\\', "/");
    assert!(message.contains("hustles[2].prompt.file: this prompt file cannot be read"), "{message}");
    assert!(message.contains("rigs/prompts/small.md: "), "{message}");
    folder.write("rigs/prompts/small.md", "Summarize.");
    assert_eq!(code(&folder.run(&["rigs/agents.toml"])), 0);
    let one = json(&folder.run(&["rigs/agents.toml", "--json"]));
    folder.write("rigs/prompts/small.md", "Summarize it all.");
    let other = json(&folder.run(&["rigs/agents.toml", "--json"]));
    assert_ne!(one["hustles"][1]["policy_revision"], other["hustles"][1]["policy_revision"]);
    folder.write("rigs/prompts/small.md", " \n");
    let blank = json(&folder.run(&["rigs/agents.toml", "--json"]));
    assert_eq!((&blank["problem"], &blank["place"]), (&"invalid_hustle".into(), &"hustles[2].prompt".into()));
    folder.write("rigs/prompts/small.md", &"x".repeat(2_000_000));
    assert_eq!(code(&folder.run(&["rigs/agents.toml"])), 3);
}

#[test]
fn what_is_not_there_or_no_rig_has_its_exit_code() {
    let folder = Folder::with("");
    assert_eq!(code(&folder.run(&["gone.toml"])), 5);
    let gone = folder.run(&["gone.toml", "--json"]);
    assert_eq!(json(&gone)["failure"], "io");
    let empty = folder.run(&["agents.toml", "--json"]);
    assert_eq!((code(&empty), &json(&empty)["problem"]), (3, &"no_loop".into()));
    folder.write("agents.json", "{\"loops\": 3}");
    let wrong = folder.run(&["agents.json", "--json"]);
    assert_eq!((code(&wrong), &json(&wrong)["problem"]), (3, &"unexpected_value".into()));
    assert_eq!(code(&folder.run(&[])), 2);
}
