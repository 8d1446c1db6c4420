//! Policies as files, at the terminal.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::terminal::{self, code, epitome, stderr, stdout};

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with a session of about 4,600 tokens.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        let mut messages = vec![json!({"role": "user", "content": "Fix the build. Never push to main."})];
        for at in 0..120 {
            let content = format!(
                "Part {at} is read and nothing is wrong in it, as far as anybody can see at a glance."
            );
            messages.push(json!({"role": "assistant", "content": content}));
            messages.push(json!({"role": "user", "content": format!("Go on with part {at}.")}));
        }
        folder.write("session.json", &Value::Array(messages).to_string());
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn run_with(&self, args: &[&str], input: &str) -> Output {
        epitome(self.0.path(), args, input.as_bytes())
    }

    fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, "")
    }

    fn json(&self, args: &[&str]) -> Value {
        terminal::json(&self.run(args))
    }
}

/// The built-in policy with one line changed.
fn changed(folder: &Folder, key: &str, line: &str) -> String {
    let shown = folder.run(&["policy", "show"]);
    let lines = stdout(&shown).lines();
    let start = format!("{key} =");
    let text =
        lines.map(|old| if old.starts_with(&start) { line } else { old }).collect::<Vec<_>>().join("\n");
    assert!(text.contains(line), "{key}");
    text
}

#[test]
fn what_is_shown_is_valid_and_changes_nothing() {
    let folder = Folder::new();
    for (name, args) in [("p.toml", &["policy", "show"][..]), ("p.json", &["policy", "show", "--json"])] {
        let shown = folder.run(args);
        assert_eq!(code(&shown), 0);
        let checked = folder.run_with(&["policy", "check", "-"], stdout(&shown));
        assert_eq!(code(&checked), 0, "{}", stderr(&checked));
        assert!(stdout(&checked).contains("valid policy"));
        folder.write(name, stdout(&shown));
    }
    for command in [
        &["measure", "session.json", "--window", "20000", "--json"][..],
        &["measure", "session.json", "--model", "gpt-4o"],
        &["compact", "session.json", "--window", "6000", "--dry-run", "--json"],
        &["compact", "session.json", "--window", "6000", "--dry-run", "--compact-at", "50%"],
    ] {
        let built_in = folder.run(command);
        assert_eq!(code(&built_in), 0, "{}", stderr(&built_in));
        for file in ["p.toml", "p.json"] {
            let by_file = folder.run(&[command, &["--policy", file]].concat());
            assert_eq!(stdout(&by_file), stdout(&built_in), "{command:?}");
        }
    }
}

#[test]
fn a_policy_file_decides_and_options_outrank_it() {
    let folder = Folder::new();
    folder.write("early.toml", &changed(&folder, "compact_at", "compact_at = \"20%\""));
    let dry = ["compact", "session.json", "--window", "16000", "--dry-run", "--json"];
    let report = |more: &[&str]| folder.json(&[&dry[..], more].concat());
    assert_eq!(report(&[])["outcome"], "left_alone");
    let early = report(&["--policy", "early.toml"]);
    assert_eq!(early["outcome"], "compacted");
    assert_eq!(early["compact_at_basis_points"], 2_000);
    let late = report(&["--policy", "early.toml", "--compact-at", "90%"]);
    assert_eq!(late["outcome"], "left_alone");

    let kept =
        |more: &[&str]| report(&[&["--force"][..], more].concat())["compaction"]["kept_messages"].clone();
    folder.write("nothing.toml", &changed(&folder, "keep_recent", "max_request_bytes = 10000000"));
    assert_eq!(kept(&["--policy", "nothing.toml"]), 0);
    assert!(kept(&["--policy", "nothing.toml", "--keep-recent-tokens", "300"]).as_u64().unwrap() > 2);

    folder.write("room.toml", &changed(&folder, "reserved_output", "reserved_output = 10000"));
    let limit = |policy: &str| {
        let measured =
            folder.json(&["measure", "session.json", "--model", "gpt-4o", "--json", "--policy", policy]);
        measured["measurement"]["limit"].clone()
    };
    assert_eq!(limit("early.toml"), 128_000 - 16_000);
    assert_eq!(limit("room.toml"), 128_000 - 10_000);
}

#[test]
fn a_policy_may_wait_to_be_asked() {
    let folder = Folder::new();
    folder.write("manual.toml", &changed(&folder, "automatic", "automatic = false"));
    let compact = ["compact", "session.json", "--window", "4000", "--dry-run", "--policy", "manual.toml"];
    let waits = folder.run(&compact);
    assert_eq!(code(&waits), 0, "{}", stderr(&waits));
    assert!(stdout(&waits).contains("left alone: the policy compacts only when asked"));
    let report = folder.json(&[&compact[..], &["--json"]].concat());
    assert_eq!(report["compact_at_basis_points"], Value::Null);
    for asked in [&["--force"][..], &["--compact-at", "50%"]] {
        assert!(stdout(&folder.run(&[&compact[..], asked].concat())).contains("replaced"));
    }
    let bare = "automatic = false\nreserved_output = 100\nsafety_margin = 100\nmax_summary_tokens = 500\n\
                count_timeout = '2s'\nhustle = 'extractive'\nkeep_recent = { tokens = 100 }";
    folder.write("manual.toml", bare);
    assert!(
        stdout(&folder.run(&[&compact[..], &["--compact-at", "50%"]].concat())).contains("at or above 50 %")
    );
}

#[test]
fn a_request_may_be_too_large_in_bytes() {
    let folder = Folder::new();
    folder.write(
        "bytes.toml",
        &changed(&folder, "hustle", "hustle = \"extractive\"\nmax_request_bytes = 9000"),
    );
    let output =
        folder.run(&["compact", "session.json", "--window", "100000", "--dry-run", "--policy", "bytes.toml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("larger than the policy's max_request_bytes"), "{}", stdout(&output));
}

#[test]
fn a_wrong_policy_is_placed_and_not_quoted() {
    let folder = Folder::new();
    folder.write("p.toml", &changed(&folder, "compact_at", "compact_at = \"canary\""));
    for args in [
        &["policy", "check", "p.toml"][..],
        &["compact", "session.json", "--window", "4000", "--policy", "p.toml"],
        &["measure", "session.json", "--window", "4000", "--policy", "p.toml"],
    ] {
        let output = folder.run(args);
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        assert!(stderr(&output).contains("p.toml: line 10, column 14, compact_at: expected a share"));
        assert!(stderr(&output).contains("epitome policy show"));
        assert!(!stderr(&output).contains("canary"));
        let output = folder.run(&[args, &["--json"]].concat());
        assert_eq!(code(&output), 3);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        match args[0] {
            "policy" => {
                assert_eq!(report["outcome"], "invalid");
                assert_eq!(report["problem"], "unexpected_value");
                assert_eq!((&report["line"], &report["column"]), (&json!(10), &json!(14)));
                assert_eq!(report["place"], "compact_at");
            }
            _ => assert_eq!(report["failure"], "policy_file"),
        }
    }
    assert_eq!(code(&folder.run(&["policy", "check", "missing.toml"])), 5);
    assert_eq!(code(&folder.run(&["policy", "check", "."])), 5);
    assert_eq!(code(&folder.run_with(&["policy", "check", "-"], &"#".repeat(2_000_000))), 3);
}

#[test]
fn a_policy_that_does_not_fit_the_run_is_refused() {
    let folder = Folder::new();
    let compact = |policy: &str, more: &[&str]| {
        folder.write("p.toml", policy);
        let base = ["compact", "session.json", "--window", "4000", "--dry-run", "--policy", "p.toml"];
        folder.run(&[&base[..], more].concat())
    };
    let fixed = changed(&folder, "rearm_below", "rearm_below = \"60%\"");
    for (policy, more, says) in [
        (fixed, &["--compact-at", "50%"][..], "RearmBelow"),
        (changed(&folder, "counter_policy", "counter_policy = \"require_exact\""), &[], "CounterPolicy"),
        (
            changed(&folder, "hustle", "hustle = \"context.compact\""),
            &[],
            "another hustle than `extractive`, `model`, `command`",
        ),
    ] {
        let output = compact(&policy, more);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    folder.write("p.toml", &changed(&folder, "reserved_output", "reserved_output = 5000"));
    for args in [&["--window", "4000", "--policy", "p.toml"][..], &["--window", "1"]] {
        for command in [&["measure", "session.json"][..], &["compact", "session.json", "--dry-run"]] {
            let output = folder.run(&[command, args].concat());
            assert_eq!(code(&output), 2, "{command:?} {args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("leaves no room"), "{}", stderr(&output));
            let report = folder.run(&[command, args, &["--json"]].concat());
            assert_eq!((code(&report), &terminal::json(&report)["failure"]), (2, &json!("no_room")));
        }
    }
    for command in ["compact", "measure"] {
        let output = folder.run(&[command, "-", "--window", "4000", "--policy", "-"]);
        assert_eq!(code(&output), 2);
        assert!(stderr(&output).contains("both"), "{}", stderr(&output));
    }
}

/// Who would summarize, and whether the count would be allowed to start that, is nothing to a measurement.
#[test]
fn a_measurement_asks_for_the_room_alone() {
    let folder = Folder::new();
    let measure = ["measure", "session.json", "--window", "4000", "--json"];
    let built_in = folder.json(&measure);
    for (key, line) in [
        ("hustle", "hustle = \"context.compact\""),
        ("counter_policy", "counter_policy = \"require_exact\""),
        ("safety_margin_if_exact", "max_request_bytes = 1"),
    ] {
        folder.write("p.toml", &changed(&folder, key, line));
        let output = folder.run(&[&measure[..], &["--policy", "p.toml"]].concat());
        assert_eq!(code(&output), 0, "{line}: {}", stderr(&output));
        assert_eq!(terminal::json(&output), built_in, "{line}");
    }
}

#[test]
fn a_check_works_out_the_numbers_and_the_floor() {
    let folder = Folder::new();
    folder.write("p.toml", stdout(&folder.run(&["policy", "show"])));
    let check = |more: &[&str]| {
        let base = ["policy", "check", "p.toml", "--window", "100000", "--json"];
        let output = folder.run(&[&base[..], more].concat());
        (code(&output), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (status, report) = check(&[]);
    assert_eq!(status, 0);
    let exact = &report["counters"][0]["numbers"];
    let estimated = &report["counters"][1]["numbers"];
    assert_eq!((&exact["input_limit"], &estimated["input_limit"]), (&json!(87_500), &json!(85_500)));
    assert_eq!(exact["compact_at"], json!({"basis_points": 8_500, "tokens": 74_375}));
    assert_eq!(estimated["rearm_below"], json!({"basis_points": 5_950, "tokens": 50_873}));
    assert_eq!(exact["floor"], json!({"basis_points": 1_600, "tokens": 14_000}));

    // 14,000 tokens of summary and tail, and 36,873 of 85,500 more are 59.5 %.
    let (status, report) = check(&["--system-tokens", "6873", "--tool-tokens", "30000"]);
    assert_eq!((status, &report["outcome"]), (0, &json!("valid")));
    assert_eq!(report["counters"][0]["warning"], Value::Null);
    assert!(report["counters"][1]["warning"].as_str().unwrap().contains("rearm_below, 59.50%"));

    let (status, report) = check(&["--tool-tokens", "60375"]);
    assert_eq!((status, &report["outcome"]), (4, &json!("refused")));
    assert!(report["counters"][0]["refused"].as_str().unwrap().contains("tools 60375"));

    let words = folder.run(&["policy", "check", "p.toml", "--model", "gpt-4o"]);
    assert!(stdout(&words).contains("for gpt-4o (openai), a window of 128,000 tokens"));
    assert!(stdout(&words).contains("compacts at                      95,200  85.00%"), "{}", stdout(&words));
    assert_eq!(code(&folder.run(&["policy", "check", "p.toml", "--model", "no-such-model"])), 2);

    folder.write("p.toml", &changed(&folder, "hustle", "hustle = \"context.compact\""));
    let noted = folder.run(&["policy", "check", "p.toml"]);
    assert_eq!(code(&noted), 0);
    assert!(stdout(&noted).contains("note: a hustle is another than `extractive`, `model`, `command`"));
}
