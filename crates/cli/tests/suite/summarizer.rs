//! `epitome compact` with a model or a program that writes the summary.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::journal_folder::{CANARY, Folder, chat};
use crate::model_server::{ModelServer, Reply, nobody, refusal, said};
use crate::terminal::{code, command, json as report, stderr, stdout};

/// A summary that says nothing of the user's rule.
pub(crate) const SUMMARY: &str = "<conversation_summary><goal>Fix the build.</goal><constraints></constraints><decisions>\
                                  </decisions><state>All parts were read.</state><open_items></open_items>\
                                  </conversation_summary>";

const DUE: [&str; 4] = ["compact", "session.json", "--window", "4000"];

fn compact(folder: &Folder, args: &[&str]) -> Output {
    folder.run(&[&DUE, args].concat())
}

fn by_model(folder: &Folder, url: &str, args: &[&str]) -> Output {
    compact(folder, &[&["--summarizer", "model", "--model-endpoint", url, "--json"], args].concat())
}

fn is_untouched(folder: &Folder) -> bool {
    folder.read("session.json") == chat(60) && !folder.path("session.compacted.json").exists()
}

fn summary_of(folder: &Folder) -> String {
    let compacted: Value = serde_json::from_slice(&folder.read("session.compacted.json")).unwrap();
    compacted[1]["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_model_writes_the_summary_and_the_report_says_how() {
    let server =
        ModelServer::chat(32_768, |_| said("tiny", &format!("Here it is:\n```xml\n{SUMMARY}\n```\n")));
    let folder = Folder::with_chat(60);
    // Name and window are the server's word.
    let done = by_model(&folder, &format!("llama.cpp={}", server.url()), &[]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let told = report(&done);
    assert_eq!(told["outcome"], "compacted");
    let summarizer = &told["summarizer"];
    assert_eq!((&summarizer["kind"], &summarizer["fallback"]), (&json!("model"), &json!("extractive")));
    assert_eq!((&summarizer["tries"], &summarizer["model"]["calls"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&summarizer["model"]["name"], &summarizer["model"]["window"]),
        (&json!("tiny"), &json!(32_768))
    );
    assert_eq!(summarizer["model"]["redacted"], json!({"sent": {}, "received": {}}));
    assert_eq!(summarizer["model"]["usage"]["output"], 60);
    let compaction = &told["compaction"];
    assert_eq!((&compaction["degraded"], &compaction["usage"]["input"]), (&Value::Null, &json!(700)));
    assert!(!compaction["answer_repairs"].as_array().unwrap().is_empty(), "{compaction}");
    // The user's rule, which the model forgot, is in the summary.
    assert!(compaction["carried_constraints"][0].as_str().unwrap().contains(CANARY), "{compaction}");
    assert!(summary_of(&folder).contains(CANARY) && summary_of(&folder).contains("All parts were read."));

    let [chat] = server.chats().try_into().unwrap();
    assert_eq!(chat["model"], "tiny");
    assert!(chat["grammar"].is_string(), "llama.cpp takes grammars");
    assert!(chat.get("tools").is_none());

    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    let words = compact(
        &folder,
        &["--summarizer", "model", "--model-endpoint", &server.url(), "--summarizer-model", "tiny"],
    );
    let shown = stdout(&words);
    assert!(shown.contains("by tiny at http://127.0.0.1:") && shown.contains("in one try"), "{shown}");
    assert!(shown.contains("spent     700 tokens in, 60 out"), "{shown}");
    assert!(
        shown.contains("mended ") && shown.contains(&format!("carried   Fix the build. {CANARY}.")),
        "{shown}"
    );
    assert!(server.chats()[1].get("grammar").is_none(), "nothing is known of a bare address");
}

#[test]
fn rules_are_left_out_where_the_user_says_so() {
    let server = ModelServer::chat(32_768, |_| said("tiny", SUMMARY));
    let folder = Folder::with_chat(60);
    let done = by_model(&folder, &server.url(), &["--no-carry-constraints"]);
    let told = report(&done);
    assert_eq!(told["compaction"]["carried_constraints"], json!([]));
    assert_eq!(told["summarizer"]["carries_constraints"], false);
    assert!(!summary_of(&folder).contains(CANARY));
}

#[test]
fn secrets_are_counted_and_stay_at_home() {
    const KEY: &str = "sk-ant-api03-canary0123456789";
    let server = ModelServer::chat(32_768, |_| {
        said("tiny", &SUMMARY.replace("All parts were read.", "The key is sk-ant-api03-canary0123456789."))
    });
    let folder = Folder::with_chat(60);
    let text = String::from_utf8(chat(60))
        .unwrap()
        .replace("Fix the build.", &format!("Fix the build. The key is {KEY}."));
    fs::write(folder.path("session.json"), &text).unwrap();
    let done = by_model(&folder, &server.url(), &[]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let redacted = &report(&done)["summarizer"]["model"]["redacted"];
    assert!(redacted["sent"]["provider_key"].as_u64() >= Some(1), "{redacted}");
    assert_eq!(redacted["received"], json!({"provider_key": 1}));
    assert!(!server.chats()[0].to_string().contains("canary0123"));
    assert!(!stdout(&done).contains("canary0123") && !stderr(&done).contains("canary0123"));

    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    let open = by_model(&folder, &server.url(), &["--no-redact"]);
    assert_eq!(report(&open)["summarizer"]["model"]["redacted"], Value::Null);
    assert!(server.chats()[1].to_string().contains(KEY));
}

#[test]
fn a_model_that_is_down_degrades_visibly_or_is_refused() {
    let folder = Folder::with_chat(60);
    let down = nobody();
    let done = by_model(&folder, &down, &["--summarizer-model", "tiny", "--summarizer-window", "8000"]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let told = report(&done);
    assert_eq!((&told["outcome"], &told["compaction"]["degraded"]), (&json!("compacted"), &json!("network")));
    // A passing failure is tried a second time.
    assert_eq!(
        (&told["summarizer"]["tries"], &told["summarizer"]["error"]["reason"]),
        (&json!(2), &json!("network"))
    );
    assert!(summary_of(&folder).contains(CANARY));

    // Neither name nor window is known, and nobody is there to ask.
    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    let words = compact(&folder, &["--summarizer", "model", "--model-endpoint", &format!("ollama={down}")]);
    assert_eq!(code(&words), 0, "{}", stderr(&words));
    let shown = stdout(&words);
    assert!(
        shown.contains("DEGRADED  a model at ollama gave none in 2 tries (network); extractive wrote"),
        "{shown}"
    );
    assert!(shown.contains("is the server running"), "{shown}");

    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    let quiet = compact(&folder, &["--summarizer", "model", "--model-endpoint", &down, "--quiet"]);
    assert_eq!((code(&quiet), stdout(&quiet)), (0, ""));
    assert_eq!(stderr(&quiet), "epitome: degraded (network): the fallback wrote the summary\n");

    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    let refused = by_model(&folder, &down, &["--summarizer-model", "tiny", "--fallback", "none"]);
    assert_eq!(code(&refused), 4);
    let told = report(&refused);
    assert_eq!((&told["outcome"], &told["refusal"]["detail"]), (&json!("refused"), &json!("network")));
    assert!(
        stderr(&refused).contains("is the server running")
            && stderr(&refused).contains("--fallback extractive")
    );
    assert!(is_untouched(&folder));
}

#[test]
fn what_a_model_does_wrong_has_its_reason() {
    type Row = (fn() -> Reply, &'static str, &'static str, u64);
    let rows: [Row; 6] = [
        (|| said("another", SUMMARY), "output", "other_model", 1),
        (|| refusal("tiny"), "refused", "", 1),
        (|| (401, "{\"error\": \"canary\"}".to_owned()), "not_authorized", "not_authorized", 1),
        (|| (404, "{\"error\": \"canary\"}".to_owned()), "provider_error", "not_found", 1),
        (|| (500, "canary".to_owned()), "provider_error", "status", 2),
        (|| said("tiny", "I read all of it, canary."), "xml_root", "", 2),
    ];
    for (reply, degraded, reason, tries) in rows {
        let server = ModelServer::chat(32_768, move |_| reply());
        let folder = Folder::with_chat(60);
        let done = by_model(&folder, &server.url(), &[]);
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        let told = report(&done);
        assert_eq!(told["compaction"]["degraded"], degraded, "{reason}");
        assert_eq!(told["summarizer"]["tries"], tries, "{degraded}");
        assert_eq!(told["summarizer"]["error"]["reason"].as_str().unwrap_or_default(), reason);
        assert!(!stdout(&done).contains("canary") && !stderr(&done).contains("canary"));
        assert!(summary_of(&folder).contains(CANARY), "the fallback's own words");

        let refused = by_model(&Folder::with_chat(60), &server.url(), &["--fallback", "none"]);
        assert_eq!((code(&refused), &report(&refused)["refusal"]["detail"]), (4, &json!(degraded)));
    }
}

#[test]
fn a_second_try_is_told_what_was_wrong() {
    let first = std::sync::atomic::AtomicBool::new(true);
    let server = ModelServer::chat(32_768, move |_| {
        let is_first = first.swap(false, std::sync::atomic::Ordering::SeqCst);
        said("tiny", if is_first { "no" } else { SUMMARY })
    });
    let folder = Folder::with_chat(60);
    let told = report(&by_model(&folder, &server.url(), &[]));
    assert_eq!((&told["compaction"]["degraded"], &told["summarizer"]["tries"]), (&Value::Null, &json!(2)));
    // All calls are paid for.
    assert_eq!(told["summarizer"]["model"]["usage"]["output"], 120);
    assert_eq!(told["compaction"]["usage"]["output"], 120);
}

#[test]
fn what_is_missing_is_said_before_anything_is_done() {
    let folder = Folder::with_chat(60);
    let two = ModelServer::start(|asked| {
        assert!(asked.line.starts_with("GET "), "{}", asked.line);
        (200, json!({"data": [{"id": "one"}, {"id": "two"}]}).to_string())
    });
    let url = two.url();
    let model =
        |more: &[&str]| [&["--summarizer", "model"], more].concat().into_iter().map(str::to_owned).collect();
    let rows: [(Vec<String>, &str, &str); 11] = [
        (model(&[]), "no_model_endpoint", "--model-endpoint ENDPOINT"),
        (
            model(&["--model-endpoint", "anthropic", "--summarizer-model", "claude-haiku-4-5"]),
            "no_key",
            "ANTHROPIC_API_KEY",
        ),
        (model(&["--model-endpoint", &url, "--model-key", "MY_KEY"]), "no_key", "MY_KEY"),
        (model(&["--model-endpoint", &url]), "no_summarizer_model", "it serves one, two"),
        (
            model(&["--model-endpoint", &url, "--summarizer-model", "one"]),
            "no_summarizer_window",
            "--summarizer-window",
        ),
        (
            model(&[
                "--model-endpoint",
                &url,
                "--summarizer-model",
                "one",
                "--summarizer-window",
                "9000",
                "--summarizer-form",
                "grammar",
            ]),
            "no_grammar",
            "llama.cpp=ADDRESS",
        ),
        (vec!["--no-redact".to_owned()], "unused_option", "--summarizer model"),
        (vec!["--command".to_owned(), "x".to_owned()], "unused_option", "--summarizer command"),
        (vec!["--summarizer".to_owned(), "command".to_owned()], "no_command", "--command PROGRAM"),
        (
            ["--summarizer", "command", "--command", "./none"].map(str::to_owned).to_vec(),
            "command",
            "no such program",
        ),
        (
            model(&["--model-endpoint", "http://example.com/v1", "--summarizer-model", "m"]),
            "model_endpoint",
            "must be https",
        ),
    ];
    for (args, failure, says) in rows {
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--json"]).collect();
        let refused = compact(&folder, &args);
        assert_eq!(code(&refused), 2, "{args:?}: {}", stderr(&refused));
        assert_eq!(report(&refused)["failure"], failure, "{args:?}");
        assert!(stderr(&refused).contains(says), "{args:?}: {}", stderr(&refused));
        assert!(is_untouched(&folder));
    }
}

#[test]
fn a_key_goes_into_its_header_and_nowhere_else() {
    const KEY: &str = "sk-canary-0123456789abcdef";
    let server = ModelServer::start(|asked| {
        assert_eq!(asked.line, "POST /v1/messages HTTP/1.1");
        let usage = json!({"input_tokens": 500, "output_tokens": 40, "cache_read_input_tokens": 100});
        let block = json!({"type": "text", "text": SUMMARY});
        let answer = json!({"type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
            "content": [block], "stop_reason": "end_turn", "usage": usage});
        (200, answer.to_string())
    });
    let folder = Folder::with_chat(60);
    let endpoint = format!("anthropic={}", server.url());
    let args = [
        "--summarizer",
        "model",
        "--model-endpoint",
        &endpoint,
        "--summarizer-model",
        "claude-haiku-4-5",
        "--summarizer-window",
        "200000",
    ];
    let done = command(folder.root()).args(DUE).args(args).env("ANTHROPIC_API_KEY", KEY).output().unwrap();
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert!(
        stdout(&done).contains("spent     600 tokens in, 40 out, 100 of the input from the cache"),
        "{}",
        stdout(&done)
    );
    let [asked] = server.asked().try_into().unwrap();
    assert_eq!(asked.header("x-api-key"), Some(KEY));
    assert!(!asked.body.contains("canary-0123"));
    assert!(!stdout(&done).contains("canary-0123") && !stderr(&done).contains("canary-0123"));
}

#[test]
fn a_session_that_is_not_due_asks_for_no_summary() {
    let server = ModelServer::chat(32_768, |_| said("tiny", SUMMARY));
    let folder = Folder::with_chat(3);
    let left = by_model(&folder, &server.url(), &[]);
    assert_eq!((code(&left), &report(&left)["outcome"]), (0, &json!("left_alone")), "{}", stderr(&left));
    assert_eq!(report(&left)["summarizer"]["tries"], 0);
    assert_eq!(server.chats(), Vec::<Value>::new());
}

#[test]
fn a_policy_may_name_the_summarizer_and_its_fallback() {
    let server = ModelServer::chat(32_768, |_| said("tiny", "no"));
    let folder = Folder::with_chat(60);
    let policy = stdout(&folder.run(&["policy", "show"])).to_owned();
    let named = policy.replace("hustle = \"extractive\"", "hustle = \"model\"\nfallback = \"extractive\"");
    fs::write(folder.path("p.toml"), &named).unwrap();
    let url = server.url();
    let done = compact(&folder, &["--policy", "p.toml", "--model-endpoint", &url, "--json"]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert_eq!(report(&done)["compaction"]["degraded"], "xml_root");
    fs::remove_file(folder.path("session.compacted.json")).unwrap();
    // An option outranks the file; a file that names no fallback has none.
    let refused = compact(&folder, &["--policy", "p.toml", "--model-endpoint", &url, "--fallback", "none"]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    fs::write(folder.path("p.toml"), named.replace("fallback = \"extractive\"\n", "")).unwrap();
    let refused = compact(&folder, &["--policy", "p.toml", "--model-endpoint", &url]);
    assert_eq!(code(&refused), 4, "{}", stderr(&refused));
    let asked = server.chats().len();
    let embedded = compact(&folder, &["--policy", "p.toml", "--summarizer", "extractive", "--json"]);
    assert_eq!((code(&embedded), &report(&embedded)["summarizer"]["kind"]), (0, &json!("extractive")));
    assert_eq!(server.chats().len(), asked);
    let noted = folder.run(&["policy", "check", "p.toml"]);
    assert!(stdout(&noted).contains("note: a model is asked for summaries"), "{}", stdout(&noted));
}

#[cfg(unix)]
mod programs {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    fn program(folder: &Folder, script: &str) {
        let path = folder.path("summarize.sh");
        fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn by_program(folder: &Folder, args: &[&str]) -> Output {
        compact(
            folder,
            &[&["--summarizer", "command", "--command", "./summarize.sh", "--json"], args].concat(),
        )
    }

    /// Answers with the identity of its input.
    const GOOD: &str = r#"input=$(cat)
identity=${input%%,\"transcript\":*}
[ "$1" = "-x" ] && [ "$GIVEN" = "yes" ] && [ -z "$HELD" ] || exit 64
printf '%s,"summary":"<conversation_summary><goal>Fix it.</goal><constraints></constraints><decisions></decisions><state>By a program.</state><open_items></open_items></conversation_summary>"}\n' "$identity"
"#;

    #[test]
    fn a_program_writes_the_summary() {
        let folder = Folder::with_chat(60);
        program(&folder, GOOD);
        let args = [
            &DUE,
            &[
                "--summarizer",
                "command",
                "--command",
                "./summarize.sh",
                "--command-arg",
                "-x",
                "--command-env",
                "GIVEN",
                "--json",
            ][..],
        ]
        .concat();
        let done =
            command(folder.root()).args(args).env("GIVEN", "yes").env("HELD", "back").output().unwrap();
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        let told = report(&done);
        assert_eq!(told["compaction"]["degraded"], Value::Null, "{told}");
        assert_eq!(
            (&told["summarizer"]["kind"], &told["summarizer"]["tries"]),
            (&json!("command"), &json!(1))
        );
        assert!(summary_of(&folder).contains("By a program."));
    }

    /// Whether a process is there and no zombie.
    fn is_alive(process: &str) -> bool {
        let state = Command::new("ps").args(["-o", "stat=", "-p", process]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }

    #[test]
    fn a_signal_ends_the_program_and_what_it_started() {
        let folder = Folder::with_chat(60);
        program(
            &folder,
            "sleep 600 &\necho $! > child.tmp\necho $$ > leader.tmp\nmv child.tmp child\nmv leader.tmp leader\nsleep 600\n",
        );
        for (signal, number) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
            let args = [&DUE, &["--summarizer", "command", "--command", "./summarize.sh"][..]].concat();
            let mut running =
                command(folder.root()).args(args).stderr(std::process::Stdio::null()).spawn().unwrap();
            while !folder.path("leader").exists() {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let of = |name: &str| fs::read_to_string(folder.path(name)).unwrap().trim().to_owned();
            let (leader, child) = (of("leader"), of("child"));
            assert!(is_alive(&leader) && is_alive(&child));
            assert!(
                Command::new("kill").args([signal, &running.id().to_string()]).status().unwrap().success()
            );
            assert_eq!(running.wait().unwrap().code(), Some(number));
            while is_alive(&leader) || is_alive(&child) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            fs::remove_file(folder.path("leader")).unwrap();
        }
    }

    #[test]
    fn a_program_that_fails_degrades_or_is_refused_with_its_last_words() {
        let folder = Folder::with_chat(60);
        program(&folder, "cat > /dev/null\necho 'no licence found' >&2\nexit 3\n");
        let told = report(&by_program(&folder, &[]));
        assert_eq!(
            (&told["compaction"]["degraded"], &told["summarizer"]["error"]["reason"]),
            (&json!("inference"), &json!("exit"))
        );
        fs::remove_file(folder.path("session.compacted.json")).unwrap();
        let refused = by_program(&folder, &["--fallback", "none"]);
        assert_eq!(code(&refused), 4);
        assert!(
            stderr(&refused).contains("exit status: 3") && stderr(&refused).contains("| no licence found"),
            "{}",
            stderr(&refused)
        );
        assert!(is_untouched(&folder));
        program(&folder, "sleep 60\n");
        let slow = by_program(&folder, &["--fallback", "none", "--summarizer-timeout", "1"]);
        assert_eq!((code(&slow), &report(&slow)["refusal"]["detail"]), (4, &json!("timed_out")));
    }
}
