//! Sessions in a journal whose summaries a model writes.

use std::fs;

use serde_json::{Value, json};

use crate::journal_folder::{CANARY, Folder, chat};
use crate::model_server::{ModelServer, nobody, said};
use crate::summarizer::SUMMARY;
use crate::terminal::{code, json as report, stderr, stdout};

fn due() -> Folder {
    let folder = Folder::with_chat(60);
    folder.import();
    folder
}

fn committed(folder: &Folder) -> Value {
    folder.log(&[]).into_iter().rfind(|line| line["kind"] == "committed").unwrap()
}

#[test]
fn the_log_keeps_what_was_mended_and_what_was_weaker() {
    let server = ModelServer::chat(32_768, |_| said("tiny", &format!("```xml\n{SUMMARY}\n```")));
    let folder = due();
    let args = ["--summarizer", "model", "--model-endpoint", &server.url()].map(str::to_owned);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = folder.report(&[&["compact"], args.as_slice()].concat());
    assert_eq!(done["outcome"], "compacted");
    let compacted = &done["compacted"];
    assert!(!compacted["answer_repairs"].as_array().unwrap().is_empty(), "{compacted}");
    assert!(compacted["carried_constraints"][0].as_str().unwrap().contains(CANARY));
    assert_eq!((&compacted["usage"]["output"], &compacted["degraded"]), (&json!(60), &Value::Null));
    assert_eq!(done["summarizer"]["model"]["name"], "tiny");
    let line = committed(&folder);
    assert_eq!(line["committed"]["repairs"], compacted["answer_repairs"]);
    assert_eq!(line["committed"]["usage"]["input"], 700);
    assert!(line["words"].as_str().unwrap().contains("repaired in the answer"));
    let shown = folder.report(&["show"]);
    assert_eq!(shown["summary"]["repairs"], compacted["answer_repairs"]);
    assert_eq!(shown["summary"]["degraded"], Value::Null);

    folder.report(&["undo"]);
    let down = nobody();
    let weaker = folder.session(&[
        "admit",
        "--summarizer",
        "model",
        "--model-endpoint",
        &down,
        "--summarizer-model",
        "tiny",
    ]);
    assert_eq!(code(&weaker), 0, "{}", stderr(&weaker));
    assert!(stdout(&weaker).contains("DEGRADED  tiny at "), "{}", stdout(&weaker));
    let line = committed(&folder);
    assert_eq!(line["committed"]["degraded"], "network");
    assert!(line["words"].as_str().unwrap().contains("a weaker summary was taken (network)"));
    assert_eq!(folder.report(&["show"])["summary"]["degraded"], "network");
    let words = folder.session(&["show"]);
    assert!(stdout(&words).contains("degraded: network"), "{}", stdout(&words));
    // Neither appending nor taking back asks anybody.
    folder.report(&["undo"]);
    assert_eq!(folder.export(&["--at", "0"]), chat(60));
    assert_eq!(folder.report(&["verify"])["outcome"], "whole");
}

#[test]
fn a_refused_compaction_leaves_the_session_and_says_what_to_do() {
    let folder = due();
    let args =
        ["compact", "--summarizer", "model", "--model-endpoint", &nobody(), "--fallback", "none", "--json"]
            .map(str::to_owned);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let refused = folder.session(&args);
    assert_eq!(code(&refused), 4);
    assert_eq!(report(&refused)["refused"]["detail"], "network");
    assert!(stderr(&refused).contains("is the server running"), "{}", stderr(&refused));
    assert_eq!(folder.export(&[]), chat(60));
    let recorded = folder.log(&[]).into_iter().rfind(|line| line["kind"] == "rejected").unwrap();
    assert_eq!(recorded["rejected"]["detail"], "network");
}

#[test]
fn a_policy_that_names_a_model_is_one_and_the_same_to_every_command() {
    let server = ModelServer::chat(32_768, |_| said("tiny", SUMMARY));
    let folder = due();
    let policy = stdout(&folder.run(&["policy", "show"])).to_owned();
    let named = policy.replace("hustle = \"extractive\"", "hustle = \"model\"\nfallback = \"extractive\"");
    fs::write(folder.path("p.toml"), named).unwrap();
    let opened = || folder.kinds().iter().filter(|kind| *kind == "opened").count();
    let url = server.url();
    folder.report(&["compact", "--policy", "p.toml", "--model-endpoint", &url]);
    let before = opened();
    // Nobody is asked for a summary, so nothing is said about a server.
    folder.report(&["undo", "--policy", "p.toml"]);
    fs::write(folder.path("turn.json"), "[{\"role\": \"user\", \"content\": \"go on\"}]").unwrap();
    folder.report(&["append", "turn.json", "--policy", "p.toml"]);
    assert_eq!((opened(), server.chats().len()), (before, 1));
}

#[test]
fn a_compaction_of_a_file_is_recorded_with_its_reason() {
    let folder = Folder::with_chat(60);
    let down = nobody();
    let done = folder.run(&[
        "compact",
        "session.json",
        "--window",
        "4000",
        "--journal",
        "s.db",
        "--summarizer",
        "model",
        "--model-endpoint",
        &down,
        "--json",
    ]);
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert_eq!(committed(&folder)["committed"]["degraded"], "network");
}

const RIG: &str = r#"
[hustle_limits]
blocking = { concurrent = 1, queued = 8 }
background = { concurrent = 1, queued = 8 }
audit_timeout = "5s"
finalization_timeout = "5s"
worker_drain_timeout = "5s"

[[hustles]]
name = "context.compact"
participation = "blocking"
timeout = "30s"
input_bytes = 1048576
output_bytes = 65536
model = MODEL
prompt = { text = "Summarize as we do.", revision = "7" }
policy_revision = "1"
retry = "classified_once"
identity = "host"

[[hustles]]
name = "context.extract"
participation = "blocking"
timeout = "30s"
input_bytes = 1048576
output_bytes = 65536
model = { source = "embedded" }
policy_revision = "1"
retry = "none"
identity = "host"

[[loops]]
name = "porter"
model = { provider = "PROVIDER", name = "tiny", window = 6000, base_url = "ADDRESS" }
counter = { transport = "local", retention = "none", tokenizer_rev = "mine", quality = "heuristic_estimate" }
inference = { provider = "PROVIDER", transport = "local" }
compaction = { automatic = true, counter_policy = "allow_conservative", compact_at = "70%", rearm_below = "50%", reserved_output = 500, safety_margin = 100, max_summary_tokens = 400, count_timeout = "2s", hustle = "context.compact", fallback = "context.extract", keep_recent = { tokens = 600 } }
"#;

fn rig(model: &str, provider: &str, address: &str) -> String {
    RIG.replace("MODEL", model).replace("PROVIDER", provider).replace("ADDRESS", address)
}

#[test]
fn a_rig_may_ask_the_model_of_its_loop() {
    let server = ModelServer::chat(32_768, |_| said("tiny", SUMMARY));
    let folder = due();
    fs::write(folder.path("rig.toml"), rig("{ source = \"current_loop\" }", "vllm", &server.url())).unwrap();
    let done = folder.report(&["compact", "--rig", "rig.toml"]);
    assert_eq!(
        (&done["compacted"]["degraded"], &done["summarizer"]["kind"]),
        (&Value::Null, &json!("model"))
    );
    // The window is the loop's own, the prompt the rig's.
    assert_eq!(done["summarizer"]["model"]["window"], 6_000);
    let [chat] = server.chats().try_into().unwrap();
    assert!(chat["messages"][0]["content"].as_str().unwrap().contains("Summarize as we do."), "{chat}");
    folder.report(&["undo", "--rig", "rig.toml"]);

    // Down: the rig's own fallback.
    fs::write(folder.path("rig.toml"), rig("{ source = \"current_loop\" }", "vllm", &nobody())).unwrap();
    let weaker = folder.report(&["compact", "--rig", "rig.toml"]);
    assert_eq!(weaker["compacted"]["degraded"], "network");
    assert_eq!(weaker["summarizer"]["fallback"], "extractive");
}

#[test]
fn a_rig_may_name_a_client_and_weakens_no_way() {
    let folder = due();
    let named = |client: &str| {
        format!(
            "{{ source = \"named\", client = \"{client}\", provider = \"p\", name = \"gpt-4o\", revision = \"1\" }}"
        )
    };
    let refused = |text: &str, more: &[&str]| {
        fs::write(folder.path("rig.toml"), text).unwrap();
        let output = folder.session(&[&["compact", "--rig", "rig.toml", "--json"], more].concat());
        (
            code(&output),
            report(&output)["failure"].as_str().unwrap_or_default().to_owned(),
            stderr(&output).to_owned(),
        )
    };
    let here = "http://127.0.0.1:9/v1";
    let (exit, failure, said) = refused(&rig(&named("nobody"), "vllm", here), &[]);
    assert_eq!((exit, failure.as_str()), (2, "unknown_client"));
    assert!(said.contains("known are anthropic"), "{said}");
    assert_eq!(refused(&rig("{ source = \"current_loop\" }", "nobody", here), &[]).1, "unknown_client");
    // A client elsewhere wants its key, and a loop whose requests stay here is not summarized elsewhere.
    assert_eq!(refused(&rig(&named("openai"), "vllm", here), &[]).1, "no_key");
    let output = crate::terminal::command(folder.root())
        .args(["session", "compact", "--rig", "rig.toml", "--journal", "s.db", "--json"])
        .env("OPENAI_API_KEY", "sk-x")
        .output()
        .unwrap();
    assert_eq!(
        (code(&output), &report(&output)["failure"]),
        (2, &json!("weaker_way")),
        "{}",
        stderr(&output)
    );
    // What the rig says is not said again.
    let (exit, failure, _) = refused(&rig(&named("vllm"), "vllm", here), &["--summarizer", "extractive"]);
    assert_eq!((exit, failure.as_str()), (2, "option_beside_rig"));
    assert_eq!(folder.export(&[]), chat(60));
}
