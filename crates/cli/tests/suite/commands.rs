//! The command as people use it: exit codes, streams, files.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::terminal::{code, command, epitome, stderr, stdout};

/// A chat of one user message and many tool exchanges, about 60 tokens each.
fn chat(exchanges: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Fix the build. Never push to main."}),
    ];
    for at in 0..exchanges {
        let id = format!("call_{at}");
        let arguments = format!("{{\"path\": \"src/part_{at}.rs\"}}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": format!(
            "line {at}: nothing is wrong in this part of the file, as far as anybody can see at a glance")}));
    }
    Value::Array(messages)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn with_chat(exchanges: usize) -> (Self, Vec<u8>) {
        let folder = Self(tempfile::tempdir().unwrap());
        let bytes = serde_json::to_vec_pretty(&chat(exchanges)).unwrap();
        fs::write(folder.0.path().join("session.json"), &bytes).unwrap();
        (folder, bytes)
    }

    fn run(&self, args: &[&str]) -> Output {
        epitome(self.0.path(), args, b"")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_session_that_fits_is_left_alone() {
    let (folder, _) = Folder::with_chat(20);
    let output = folder.run(&["compact", "session.json", "--model", "gpt-4o"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("left alone"));
    assert_eq!(folder.names(), ["session.json"]);
}

#[test]
fn a_full_session_is_compacted_into_a_new_file() {
    let (folder, before) = Folder::with_chat(60);
    let output = folder.run(&["compact", "session.json", "--window", "4000", "--json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(folder.read("session.json"), before, "the input is never touched");
    assert_eq!(folder.names(), ["session.compacted.json", "session.json"]);

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["outcome"], "compacted");
    assert_eq!(report["compaction"]["cut"], "inside_segment");
    assert!(report["compaction"]["after"]["tokens"].as_u64() < report["before"]["tokens"].as_u64());

    let after: Value = serde_json::from_slice(&folder.read("session.compacted.json")).unwrap();
    let messages = after.as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    let summary = messages[1]["content"].as_str().unwrap();
    assert!(summary.contains("Never push to main"), "{summary}");
    assert_eq!(messages[2]["content"], "Fix the build. Never push to main.");

    let measured = folder.run(&["measure", "session.compacted.json", "--window", "4000", "--json"]);
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!(measured["measurement"]["tokens"], report["compaction"]["after"]["tokens"]);
}

#[test]
fn kept_messages_are_byte_identical() {
    let (folder, before) = Folder::with_chat(60);
    folder.run(&["compact", "session.json", "--window", "4000", "--out", "out.json", "--quiet"]);
    let after = folder.read("out.json");
    let (before, after) = (String::from_utf8(before).unwrap(), String::from_utf8(after).unwrap());
    let last = before.rfind("    \"role\": \"tool\"").unwrap_or_else(|| before.rfind("\"tool\"").unwrap());
    let tail = before.get(last..before.len() - 2).unwrap().trim_end();
    assert!(after.contains(tail));
}

#[test]
fn a_dry_run_writes_nothing() {
    let (folder, _) = Folder::with_chat(60);
    let output = folder.run(&["compact", "session.json", "--window", "4000", "--dry-run"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("wrote     nothing"));
    assert_eq!(folder.names(), ["session.json"]);
}

#[test]
fn as_a_filter_the_session_goes_through() {
    let (folder, bytes) = Folder::with_chat(20);
    let output = epitome(folder.0.path(), &["compact", "-", "--window", "100000"], &bytes);
    assert_eq!(output.stdout, bytes, "what fits passes unchanged");
    assert!(stderr(&output).contains("left alone"));

    let output = epitome(folder.0.path(), &["compact", "-", "--window", "1600", "--quiet"], &bytes);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(output.stdout.len() < bytes.len());
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
    assert_eq!(stderr(&output), "");
}

#[test]
fn the_input_is_never_written_over() {
    let (folder, before) = Folder::with_chat(60);
    for out in ["session.json", "./session.json"] {
        let output = folder.run(&["compact", "session.json", "--window", "4000", "--out", out]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("never written over"));
    }
    assert_eq!(folder.read("session.json"), before);
}

#[cfg(unix)]
#[test]
fn a_redirected_input_is_never_written_over_either() {
    let (folder, before) = Folder::with_chat(60);
    let input = fs::File::open(folder.0.path().join("session.json")).unwrap();
    let status = command(folder.0.path())
        .args(["compact", "-", "--window", "4000", "--quiet", "--out", "session.json"])
        .stdin(input)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
    assert_eq!(folder.read("session.json"), before);
}

#[test]
fn instructions_alone_do_not_compact() {
    let (folder, _) = Folder::with_chat(20);
    let output =
        folder.run(&["compact", "session.json", "--model", "gpt-4o", "--instructions", "mind the build"]);
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("left alone"));
}

#[test]
fn a_session_cannot_speak_to_the_terminal() {
    let (folder, _) = Folder::with_chat(0);
    let session = json!({"model": "m\u{1b}]0;title\u{7}\nwrote nothing", "messages": chat(60)});
    fs::write(folder.0.path().join("m.json"), session.to_string()).unwrap();
    for command in ["compact", "measure"] {
        let output = folder.run(&[command, "m.json", "--window", "4000"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(!stdout(&output).contains('\u{7}') && !stdout(&output).contains("\u{1b}]"));
    }
}

#[test]
fn a_tail_larger_than_the_session_still_leaves_something_to_summarize() {
    let (folder, _) = Folder::with_chat(60);
    let kept = |tokens: &str| {
        let args = ["compact", "session.json", "--model", "gpt-4o", "--force", "--dry-run", "--json"];
        let output = folder.run(&[&args[..], &["--keep-recent-tokens", tokens]].concat());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["compaction"]["kept_messages"].as_u64().unwrap()
    };
    assert!(kept("100000") > 30, "about half stays");
    assert!(kept("1") < 10);
}

#[test]
fn without_a_window_there_is_advice() {
    let (folder, _) = Folder::with_chat(2);
    for args in [&["compact", "session.json"][..], &["measure", "session.json"]] {
        let output = folder.run(args);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("--window TOKENS") && stderr(&output).contains("--model NAME"));
    }
    let output = folder.run(&["measure", "session.json", "--model", "no-such-model"]);
    assert_eq!(code(&output), 2);
}

#[test]
fn bad_input_has_its_own_code_and_says_nothing_of_its_content() {
    let (folder, _) = Folder::with_chat(1);
    for (name, content) in [
        ("empty.json", ""),
        ("broken.json", "{\"canary\": "),
        ("unknown.json", "{\"canary\": [1, 2, 3]}"),
        ("role.json", r#"[{"role":"user","content":"canary"},{"role":"canary","content":"x"}]"#),
    ] {
        fs::write(folder.0.path().join(name), content).unwrap();
        let output = folder.run(&["measure", name, "--window", "1000"]);
        assert_eq!(code(&output), 3, "{name}: {}", stderr(&output));
        assert!(!stderr(&output).contains("canary"), "{}", stderr(&output));
        let output = folder.run(&["measure", name, "--window", "1000", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["failure"], "unreadable");
        assert!(!stdout(&output).contains("canary"));
    }
    assert_eq!(code(&folder.run(&["measure", "missing.json", "--window", "1000"])), 5);
}

#[test]
fn a_refusal_has_its_own_code_and_reason() {
    let (folder, before) = Folder::with_chat(0);
    let output = folder.run(&["compact", "session.json", "--window", "4000", "--force", "--json"]);
    assert_eq!(code(&output), 4);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["refusal"]["reason"], "unavailable");
    assert_eq!(report["refusal"]["detail"], "nothing_to_compact");
    assert_eq!(folder.read("session.json"), before);
    assert_eq!(folder.names(), ["session.json"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_output_failure() {
    let (folder, _) = Folder::with_chat(60);
    let output =
        folder.run(&["compact", "session.json", "--window", "4000", "--out", "no/such/folder/out.json"]);
    assert_eq!(code(&output), 5);
}

#[test]
fn summaries_are_checked() {
    let (folder, _) = Folder::with_chat(0);
    let good = "<conversation_summary><goal>g</goal><constraints>- a\n- b</constraints><decisions></decisions>\
                <state>s</state><open_items></open_items></conversation_summary>";
    let output = epitome(folder.0.path(), &["check", "summary", "-"], good.as_bytes());
    assert_eq!(code(&output), 0);
    assert!(stdout(&output).contains("constraints     2 items"));
    let output =
        epitome(folder.0.path(), &["check", "summary", "-", "--json"], format!("{good}\n").as_bytes());
    assert_eq!(code(&output), 3);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["reason"], "xml_structure");
    assert!(stderr(&output).contains("not even a line break"));
}

#[test]
fn the_stdio_contract_keeps_its_budget() {
    let (folder, bytes) = Folder::with_chat(60);
    for budget in ["300", "150"] {
        let output = epitome(folder.0.path(), &["compact", "--stdio-chat", budget], &bytes);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let messages: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sizes = messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap_or_default().len() + 16);
        let budget: usize = budget.parse().unwrap();
        assert!(sizes.sum::<usize>() <= 4 * budget);
        assert!(stdout(&output).contains("Never push to main"));
    }
    let output = epitome(folder.0.path(), &["compact", "--stdio-chat", "10"], &bytes);
    assert_eq!(code(&output), 4, "no summary fits into 40 bytes");
}

#[test]
fn a_second_compaction_folds_the_first_summary() {
    let (folder, _) = Folder::with_chat(60);
    let compact = |from: &str, kept: &str, to: &str| {
        let options = ["--window", "4000", "--force", "--keep-recent-tokens", kept, "--out", to, "--json"];
        let output = folder.run(&[&["compact", from][..], &options].concat());
        code(&output)
    };
    assert_eq!(compact("session.json", "800", "once.json"), 0);
    assert_eq!(compact("once.json", "800", "same.json"), 4, "what the policy keeps stays behind a summary");
    assert_eq!(compact("once.json", "100", "twice.json"), 0);
    let twice: Value = serde_json::from_slice(&folder.read("twice.json")).unwrap();
    let summaries = twice.as_array().unwrap().iter().filter_map(|message| message["content"].as_str());
    let summaries: Vec<&str> = summaries.filter(|text| text.contains("<conversation_summary>")).collect();
    assert_eq!(summaries.len(), 1, "folded, not nested");
    assert_eq!(summaries[0].matches("conversation_summary").count(), 2);
    assert!(summaries[0].contains("Never push to main"));
}

#[test]
fn help_teaches_and_completions_are_there() {
    let (folder, _) = Folder::with_chat(0);
    let help = folder.run(&["compact", "--help"]);
    assert!(stdout(&help).contains("Examples:"));
    assert!(stdout(&folder.run(&["--help"])).contains("Exit codes"));
    assert!(stdout(&folder.run(&["completions", "bash"])).contains("epitome"));
    assert!(stdout(&folder.run(&["models"])).contains("gpt-4o"));
    assert_eq!(code(&folder.run(&["compact"])), 2);
    assert_eq!(code(&folder.run(&["no-such-command"])), 2);
}

#[test]
fn pins_stay_verbatim_in_their_place_and_are_reported() {
    let (folder, before) = Folder::with_chat(60);
    let before: Vec<Value> = serde_json::from_slice(&before).unwrap();
    let pins = ["--pin", "#11", "--pin", "call_20", "--pin", "src/part_30.rs"];
    let args = [&["compact", "session.json", "--window", "4000", "--json"][..], &pins].concat();
    let output = folder.run(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["compaction"]["pins"][0], json!({"option": 1, "messages": [11]}));
    assert_eq!(report["compaction"]["pins"][1]["messages"], json!([42, 43]));
    assert_eq!(report["compaction"]["pins"][2]["messages"], json!([62]));
    assert_eq!(report["compaction"]["pinned_messages"], json!([10, 11, 42, 43, 62, 63]));
    assert!(report["compaction"]["pinned_tokens"].as_u64() > Some(100));

    let after: Vec<Value> = serde_json::from_slice(&folder.read("session.compacted.json")).unwrap();
    let at = |message: &Value| after.iter().position(|kept| kept == message);
    let places: Vec<Option<usize>> =
        [1, 10, 11, 42, 43, 62, 63].iter().map(|&index| at(&before[index])).collect();
    assert_eq!(places, (2..9).map(Some).collect::<Vec<_>>(), "behind the system message and the summary");
    assert_eq!(at(&before[12]), None);

    let words =
        folder.run(&[&["compact", "session.json", "--window", "4000", "--dry-run"][..], &pins].concat());
    assert!(stdout(&words).contains("pinned    6 messages of about "), "{}", stdout(&words));
    assert!(stdout(&words).contains(": #10, #11, #42, #43, #62, #63"), "{}", stdout(&words));
}

#[test]
fn pins_that_name_nothing_are_a_fault_of_usage() {
    let (folder, _) = Folder::with_chat(60);
    for (pin, why) in [
        ("canary-7f3a", "no message has this number, call id or text"),
        ("#122", "the session has no message #122; it has 122, counted from #0"),
    ] {
        let output = folder.run(&["compact", "session.json", "--window", "4000", "--json", "--pin", pin]);
        assert_eq!(code(&output), 2, "{pin}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(!stderr(&output).contains("canary"), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["failure"], "pin");
    }
    assert_eq!(code(&folder.run(&["compact", "session.json", "--window", "4000", "--pin", ""])), 2);
    assert_eq!(folder.names(), ["session.json"]);
}

#[test]
fn too_many_pins_are_refused_with_how_much_too_many() {
    let (folder, before) = Folder::with_chat(60);
    let args =
        ["compact", "session.json", "--window", "4000", "--json", "--pin", "nothing is wrong in this part"];
    let output = folder.run(&args);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["refusal"]["reason"], "retained_tail_too_large");
    assert_eq!(report["refusal"]["detail"], "pinned");
    let message = report["refusal"]["message"].as_str().unwrap();
    assert!(message.contains(" too many: with a summary"), "{message}");
    assert_eq!(folder.read("session.json"), before);
    assert_eq!(folder.names(), ["session.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_stays_a_link() {
    let (folder, _) = Folder::with_chat(20);
    let link = folder.0.path().join("link.json");
    std::os::unix::fs::symlink("target.json", &link).unwrap();
    let compact = ["compact", "session.json", "--model", "gpt-4o", "--force", "--quiet", "--out"];
    let done = folder.run(&[&compact[..], &["link.json"]].concat());
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::metadata(folder.0.path().join("target.json")).unwrap().is_file());
    std::os::unix::fs::symlink("circle.json", folder.0.path().join("circle.json")).unwrap();
    let refused = folder.run(&[&compact[..], &["circle.json"]].concat());
    assert_eq!(code(&refused), 5, "{}", stderr(&refused));
    let refused = folder.run(&[&compact[..], &["nowhere/x.json"]].concat());
    assert!(stderr(&refused).contains("its folder is not there"), "{}", stderr(&refused));
}

#[test]
fn a_session_file_has_one_conversation() {
    let (folder, _) = Folder::with_chat(2);
    let session = "{\"type\":\"session\",\"id\":\"1\",\"timestamp\":\"2026-01-05T10:00:00.000Z\",\"cwd\":\"/\"}\n{\"type\":\"message\",\"timestamp\":\"2026-01-05T10:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n";
    fs::write(folder.0.path().join("pi.jsonl"), session).unwrap();
    let measure = |number| folder.run(&["measure", "pi.jsonl", "--window", "9000", "--conversation", number]);
    assert_eq!(code(&measure("0")), 0, "{}", stderr(&measure("0")));
    assert_eq!(code(&measure("1")), 3, "{}", stderr(&measure("1")));
}
