//! Sessions that go on: messages come in, requests are admitted, compactions are made and taken back.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use epitome_loop::{AttemptId, ContextBasis, ContextRevision, Message, SessionId};
use epitome_loopruntime::decision::AttemptReason;
use epitome_sessionruntime::journal::{AttemptStart, RecordBody};
use serde_json::{Value, json as value};

use crate::journal_folder::{CANARY, Elsewhere, Folder, chat};
use crate::terminal::{code, epitome, json, stderr, stdout};

fn write(folder: &Folder, name: &str, messages: &Value) {
    fs::write(folder.path(name), serde_json::to_vec(messages).unwrap()).unwrap();
}

fn kinds(folder: &Folder) -> Vec<String> {
    folder.kinds().into_iter().filter(|kind| kind != "latched").collect()
}

/// A session of 60 exchanges in a window of 4,000 tokens: it is due.
fn due() -> Folder {
    let folder = Folder::with_chat(60);
    folder.import();
    folder
}

#[test]
fn a_request_that_is_due_is_compacted_and_may_be_sent() {
    let folder = due();
    let report = folder.report(&["admit"]);
    assert_eq!((&report["outcome"], &report["refused"]), (&"admitted".into(), &Value::Null));
    let rules: Vec<&str> =
        report["decisions"].as_array().unwrap().iter().map(|at| at["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["at_threshold", "below_rearm"]);
    let compacted = &report["compacted"];
    assert!(compacted["after"]["tokens"].as_u64() < compacted["before"]["tokens"].as_u64());
    assert_eq!(compacted["after"], report["measurement"]);
    let expected = ["opened", "imported", "appended", "measured", "started", "committed", "answered"];
    assert_eq!(kinds(&folder), expected);
    // What is exported now is what may be sent.
    let exported: Value = serde_json::from_slice(&folder.export(&[])).unwrap();
    assert_eq!(exported.as_array().unwrap().len() as u64, report["messages"].as_u64().unwrap());
    assert_eq!(folder.export(&["--at", "0"]), chat(60));
    // A second request needs no compaction.
    let again = folder.session(&["admit"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).contains("may be sent: it is below rearm_below"), "{}", stdout(&again));
    assert_eq!(folder.report(&["verify"])["outcome"], "whole");
}

#[test]
fn messages_are_appended_in_whatever_format_they_come() {
    let folder = Folder::with_chat(2);
    folder.import();
    write(&folder, "turn.json", &value!([{"role": "user", "content": "a further question"}]));
    let report = folder.report(&["append", "turn.json"]);
    assert_eq!((&report["first"], &report["messages"]), (&6.into(), &1.into()));
    // A result alone answers a call that came before it.
    write(
        &folder,
        "call.json",
        &value!([{"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]),
    );
    write(
        &folder,
        "result.json",
        &value!([{"role": "tool", "tool_call_id": "c", "content": "a further result"}]),
    );
    folder.report(&["append", "call.json"]);
    folder.report(&["append", "result.json"]);
    let stdin = br#"[{"role":"assistant","content":[{"type":"text","text":"from another provider"}]}]"#;
    let output =
        epitome(folder.root(), &["session", "append", "--from", "anthropic", "--journal", "s.db"], stdin);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("1 message (anthropic): #9"), "{}", stdout(&output));

    let exported: Value = serde_json::from_slice(&folder.export(&[])).unwrap();
    assert_eq!(exported.as_array().unwrap().len(), 10);
    assert_eq!(
        (&exported[6]["content"], &exported[8]["tool_call_id"]),
        (&"a further question".into(), &"c".into())
    );
    assert_eq!(exported[9]["content"], "from another provider");
    assert_eq!(folder.export(&["--record", "3"]), chat(2));
    // One record for each append, and no other settings than those of the import.
    assert_eq!(
        kinds(&folder),
        ["opened", "imported", "appended", "appended", "appended", "appended", "appended"]
    );
}

#[test]
fn what_cannot_be_appended_is_not() {
    let folder = Folder::with_chat(2);
    folder.import();
    fs::write(folder.path("bad.json"), format!("{{\"{CANARY}\": 1}}")).unwrap();
    fs::write(folder.path("none.json"), "[]").unwrap();
    for name in ["bad.json", "none.json", "s.db"] {
        let output = folder.session(&["append", name]);
        assert_eq!(code(&output), 3, "{name}: {}", stderr(&output));
    }
    assert_eq!(code(&folder.session(&["append", "not-there.json"])), 5);
    assert_eq!(code(&folder.session(&["append", "session.json", "--session", "ffff"])), 2);
    let elsewhere = folder.run(&["session", "append", "session.json", "--journal", "other.db"]);
    assert_eq!((code(&elsewhere), folder.path("other.db").exists()), (5, false));
    assert_eq!(folder.kinds().len(), 3);
}

#[test]
fn compactions_are_taken_back_and_put_in_force_again() {
    let folder = due();
    let asked = folder.report(&["compact", "--instructions", "mind the build"]);
    assert_eq!((&asked["outcome"], &asked["in_force"]), (&"compacted".into(), &1.into()));
    let compacted = folder.export(&[]);
    let undone = folder.report(&["undo"]);
    assert_eq!(
        (&undone["in_force_before"], &undone["in_force"], &undone["messages"]),
        (&1.into(), &0.into(), &122.into())
    );
    assert_eq!(folder.export(&[]), chat(60));
    // It would not come back by itself; below the limit it would go out, and here it does not fit.
    let held = folder.session(&["admit", "--json"]);
    assert_eq!(code(&held), 4, "{}", stderr(&held));
    let held = json(&held);
    assert_eq!((&held["outcome"], &held["exhausted"]), (&"context_limit".into(), &true.into()));
    assert_eq!(held["decisions"][0]["rule"], "disarmed_undone");

    assert_eq!(folder.report(&["redo"])["in_force"], 1);
    assert_eq!(folder.export(&[]), compacted);
    for (args, said) in [
        (&["redo"][..], "no such compaction"),
        (&["undo", "--to", "1"], "not fewer"),
        (&["redo", "--to", "1"], "not more"),
        (&["redo", "--to", "9"], "no such compaction"),
    ] {
        let output = folder.session(args);
        assert_eq!(
            (code(&output), stderr(&output).contains(said)),
            (2, true),
            "{args:?}: {}",
            stderr(&output)
        );
    }
    let words = folder.session(&["undo", "--to", "0"]);
    assert!(stdout(&words).contains("from 1 to 0 compactions"), "{}", stdout(&words));
    let log = folder.session(&["log"]);
    for said in ["asked for it", "taken back", "put back", "the user took one back"] {
        assert!(stdout(&log).contains(said), "{said}: {}", stdout(&log));
    }
    assert_eq!(folder.report(&["verify"])["outcome"], "whole");
}

#[test]
fn what_is_refused_changes_nothing() {
    let folder = Folder::with_chat(0);
    write(&folder, "session.json", &value!([{"role": "user", "content": CANARY}]));
    folder.import();
    let output = folder.session(&["compact", "--json"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(
        (&report["outcome"], &report["refused"]["reason"]),
        (&"refused".into(), &"unavailable".into())
    );
    assert_eq!(report["refused"]["detail"], "nothing_to_compact");
    let words = folder.session(&["compact"]);
    assert!(stdout(&words).contains("nothing to compact") && stderr(&words).contains("unchanged"));
    assert_eq!(code(&folder.session(&["undo"])), 2);
    assert_eq!(folder.report(&["show"])["messages"], 1);
}

#[test]
fn a_request_that_no_compaction_makes_fit_is_held_back() {
    let folder = Folder::with_chat(0);
    write(
        &folder,
        "session.json",
        &value!([{"role": "user", "content": format!("{CANARY} {}", "many words ".repeat(3_000))}]),
    );
    folder.import();
    let output = folder.session(&["admit"]);
    assert_eq!(code(&output), 4, "{}", stdout(&output));
    assert!(stdout(&output).contains("may not be sent"), "{}", stdout(&output));
    assert!(!stdout(&output).contains(CANARY));
    let report = json(&folder.session(&["admit", "--json"]));
    assert_eq!((&report["outcome"], &report["exhausted"]), (&"context_limit".into(), &true.into()));
    assert!(report["measurement"]["tokens"].as_u64() > report["measurement"]["limit"].as_u64());
}

#[test]
fn a_command_that_writes_takes_the_session_over_and_ends_what_a_crash_left() {
    let folder = Folder::with_chat(0);
    let mut elsewhere = folder.elsewhere(SessionId::from_bytes([1; 16]));
    elsewhere.open();
    elsewhere.append(0, vec![Message::user("a question")]);
    elsewhere.write(RecordBody::Started(AttemptStart {
        attempt: AttemptId::from_bytes([1; 16]),
        reason: AttemptReason::Automatic,
        basis: ContextBasis { revision: ContextRevision(1), through_event_id: Elsewhere::event(2) },
        waiters: Arc::from([]),
    }));
    write(&folder, "turn.json", &value!([{"role": "assistant", "content": "an answer"}]));
    folder.report(&["append", "turn.json"]);
    assert!(elsewhere.is_stale());
    let rejected = folder.log(&[]).into_iter().find(|line| line["kind"] == "rejected").unwrap();
    assert_eq!(
        (&rejected["rejected"]["reason"], &rejected["rejected"]["detail"]),
        (&"internal".into(), &"crashed".into())
    );
    assert_eq!(folder.report(&["show"])["messages"], 2);
    // Messages that came from no file count as well.
    assert_eq!(folder.report(&["admit"])["messages"], 2);
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
model = { source = "embedded" }
policy_revision = "1"
retry = "none"
identity = "host"

[[loops]]
name = "porter"
model = { provider = "local", name = "scripted", window = 6000 }
counter = { transport = "local", retention = "none", tokenizer_rev = "mine", quality = "heuristic_estimate" }
inference = { provider = "local", transport = "local" }
compaction = { automatic = true, counter_policy = "allow_conservative", compact_at = "70%", rearm_below = "50%", reserved_output = 500, safety_margin = 100, max_summary_tokens = 400, count_timeout = "2s", hustle = "context.compact", keep_recent = { tokens = 600 } }
"#;

#[test]
fn a_session_may_run_in_a_loop_of_a_rig() {
    let folder = due();
    fs::write(folder.path("rig.toml"), RIG).unwrap();
    let report = folder.report(&["admit", "--rig", "rig.toml"]);
    assert_eq!(report["compacted"]["before"]["limit"], 5_400);
    let opened = folder.log(&[]).into_iter().rfind(|line| line["kind"] == "opened").unwrap();
    assert_eq!(
        (&opened["opened"]["model"], &opened["opened"]["window"]),
        (&"scripted".into(), &6_000.into())
    );
    folder.report(&["undo", "--rig", "rig.toml", "--loop", "porter"]);
    assert_eq!(folder.export(&[]), chat(60));

    let refused = |text: &str, args: &[&str]| {
        fs::write(folder.path("other.toml"), text).unwrap();
        let output = folder.session(&[&["admit", "--rig", "other.toml"], args].concat());
        (code(&output), stderr(&output).to_owned())
    };
    let second = RIG.split("[[loops]]").nth(1).unwrap().replace("porter", "other");
    let two = format!("{RIG}\n[[loops]]{second}");
    assert_eq!(refused(&two, &[]).0, 2);
    assert_eq!(refused(&two, &["--loop", "third"]).0, 2);
    assert_eq!(refused(&two, &["--loop", "other"]).0, 0);
    let exact = RIG.replace("quality = \"heuristic_estimate\"", "quality = \"exact_local\"");
    let (exit, said) = refused(&exact, &[]);
    assert_eq!((exit, said.contains("can only estimate")), (2, true), "{said}");
    assert_eq!(refused("not a rig", &[]).0, 3);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rig/tests/files/agents.toml");
    let (exit, said) = refused(&fs::read_to_string(model).unwrap(), &[]);
    assert_eq!((exit, said.contains("known are anthropic, gemini")), (2, true), "{said}");
}

#[test]
fn a_session_may_follow_a_policy_of_its_own() {
    let folder = due();
    let policy = stdout(&folder.run(&["policy", "show"])).to_owned();
    fs::write(folder.path("asked.toml"), policy.replace("automatic = true", "automatic = false")).unwrap();
    let held = folder.session(&["admit", "--policy", "asked.toml", "--json"]);
    assert_eq!(code(&held), 4, "{}", stderr(&held));
    assert_eq!(json(&held)["decisions"][0]["rule"], "not_automatic");
    fs::write(folder.path("other.toml"), policy.replace("hustle = \"extractive\"", "hustle = \"another\""))
        .unwrap();
    assert_eq!(code(&folder.session(&["admit", "--policy", "other.toml"])), 2);
    assert_eq!(code(&folder.session(&["admit", "--policy", "other.toml", "--rig", "rig.toml"])), 2);
    let bytes = format!("max_request_bytes = 500\n{policy}").replace("automatic = true", "automatic = false");
    fs::write(folder.path("bytes.toml"), bytes).unwrap();
    let over = folder.session(&["admit", "--policy", "bytes.toml"]);
    assert_eq!(
        (code(&over), stdout(&over).contains("where the policy allows 500")),
        (4, true),
        "{}",
        stderr(&over)
    );
    let more = folder.session(&["admit", "--json", "--unseen", "100000"]);
    assert_eq!((code(&more), &json(&more)["outcome"]), (4, &"context_limit".into()));
}

/// What the provider reported for a session counts in a journal as it does in the file.
#[test]
fn a_request_counts_by_what_the_provider_reported() {
    let message = |message: Value| format!("{}\n", value!({"type": "message", "message": message}));
    let mut log = format!("{}\n", value!({"type": "session", "id": "1", "cwd": "/"}));
    for at in 0..10 {
        log += &message(value!({"role": "user", "content": format!("Go on with step {at}. {CANARY}.")}));
        log += &message(
            value!({"role": "assistant", "content": [{"type": "text", "text": "Done. ".repeat(200)}],
            "provider": "anthropic", "model": "claude-opus-4-5",
            "usage": {"input": 9, "output": 400, "cacheRead": 12_000 + 450 * at, "cacheWrite": 100}}),
        );
    }
    let folder = Folder::with_chat(1);
    fs::write(folder.path("session.json"), log).unwrap();
    folder.report(&["import", "session.json"]);
    let of_file = json(&folder.run(&["measure", "session.json", "--json"]));
    let report = folder.report(&["admit"]);
    // The last message is the answer that came with the newest figure.
    let reported = 12_000 + 450 * 9 + 100 + 9 + 400;
    assert_eq!(report["measurement"]["tokens"], reported);
    assert_eq!(of_file["measurement"]["tokens"], reported);
    let calibration = &report["calibration"];
    assert_eq!(calibration["reported_tokens"], reported);
    let number = |name: &str| calibration[name].as_u64().unwrap();
    assert!(number("beside_tokens") > 8_000 && number("counted_tokens") < 8_000, "{calibration}");
    assert!(stdout(&folder.session(&["admit"])).contains("counted   by the provider's 16,559"));

    // A further answer with a figure, in another process.
    let turn = message(value!({"role": "user", "content": "And the last one."}))
        + &message(value!({"role": "assistant", "content": [{"type": "text", "text": "Done."}],
            "provider": "anthropic", "model": "claude-opus-4-5",
            "usage": {"input": 17_000, "output": 4, "cacheRead": 0, "cacheWrite": 0}}));
    let head = format!("{}\n", value!({"type": "session", "id": "2", "cwd": "/"}));
    fs::write(folder.path("turn.jsonl"), head + &turn).unwrap();
    folder.report(&["append", "turn.jsonl"]);
    assert_eq!(folder.report(&["admit"])["measurement"]["tokens"], 17_004);
    // Without one, nothing is said of it.
    let plain = due();
    assert_eq!(plain.report(&["admit"])["calibration"], Value::Null);
}
