//! Sessions in a journal: imported, compacted, looked at, exported, removed.

use std::fs;
use std::path::Path;

use epitome_loop::{Message, SessionId};
use epitome_transcripts::{Format, ReadOptions};
use serde_json::Value;

use crate::journal_folder::{CANARY, Elsewhere, Folder, chat};
use crate::terminal::{code, command, epitome, json, stderr, stdout};

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../transcripts/tests/fixtures");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn every_format_comes_back_byte_for_byte() {
    let folder = Folder::with_chat(0);
    let mut formats: Vec<String> = Vec::new();
    for (name, bytes) in fixtures() {
        fs::write(folder.path(&name), &bytes).unwrap();
        let report = folder.report(&["import", &name, "--window", "100000"]);
        assert_eq!(
            (&report["outcome"], &report["bytes"]),
            (&"imported".into(), &bytes.len().into()),
            "{name}"
        );
        let format = report["format"].as_str().unwrap().to_owned();
        assert!(folder.export(&[]) == bytes, "{name}");
        assert!(folder.export(&["--to", &format, "--at", "0"]) == bytes, "{name}");
        // In another format it is another file, which can be read.
        let other = if format == "epitome" { Format::OpenAiChat } else { Format::EpitomeJson };
        let options = ReadOptions { format: Some(other), conversation: None };
        let exported = folder.export(&["--to", other.as_str()]);
        let exported = epitome_transcripts::read(&exported, &options, &mut |_| {}).unwrap();
        assert!(!exported.messages().is_empty(), "{name}");
        formats.push(format);
    }
    formats.sort();
    formats.dedup();
    assert_eq!(formats.len(), Format::ALL.len(), "{formats:?}");
    let verified = folder.report(&["verify"]);
    assert_eq!(verified["sessions"].as_array().unwrap().len(), fixtures().len());
}

#[test]
fn a_compaction_of_every_format_is_on_record_and_can_be_taken_back() {
    let folder = Folder::with_chat(0);
    let (mut compacted, mut refused, mut recorded) = (0, 0, Vec::new());
    for (name, bytes) in fixtures() {
        fs::write(folder.path(&name), &bytes).unwrap();
        let args = ["compact", &name, "--window", "100000", "--force", "--keep-recent-tokens", "1"];
        let output = folder.run(&[&args[..], &["--out", "out", "--journal", "s.db", "--json"]].concat());
        let report = json(&output);
        assert!(folder.export(&["--at", "0"]) == bytes, "{name}");
        match code(&output) {
            0 => {
                compacted += 1;
                assert!(folder.export(&[]) == folder.read("out"), "{name}");
                assert!(folder.export(&["--at", "1"]) == folder.read("out"), "{name}");
                let kinds = folder.kinds();
                let expected = ["opened", "imported", "appended", "measured", "started", "committed"];
                assert_eq!(kinds[..6], expected, "{name}");
            }
            4 => {
                refused += 1;
                assert_eq!(
                    folder.kinds(),
                    ["opened", "imported", "appended", "measured", "started", "rejected"]
                );
                let reason = &folder.log(&[])[5]["rejected"];
                assert_eq!(reason["reason"], report["refusal"]["reason"], "{name}");
                assert_eq!(reason["detail"], report["refusal"]["detail"], "{name}");
                assert!(folder.export(&[]) == bytes, "{name}");
            }
            other => panic!("{name}: {other}: {}", stderr(&output)),
        }
        recorded.extend(report["recorded"]["session"].as_str().map(str::to_owned));
    }
    let listed = folder.report(&["list"])["sessions"].clone();
    let listed = listed.as_array().unwrap().iter().map(|row| row["session"].as_str().unwrap().to_owned());
    assert_eq!(listed.filter(|id| recorded.contains(id)).count(), compacted + refused);
    assert!(compacted >= 5 && refused >= 1, "{compacted} {refused}");
    folder.report(&["verify"]);
}

#[test]
fn compacting_with_a_journal_is_compacting() {
    let folder = Folder::with_chat(60);
    let args = ["compact", "session.json", "--window", "4000", "--json"];
    let mut plain = json(&folder.run(&[&args[..], &["--out", "plain.json"]].concat()));
    let with = folder.run(&[&args[..], &["--out", "with.json", "--journal", "s.db"]].concat());
    let mut with = json(&with);
    assert_eq!(folder.read("plain.json"), folder.read("with.json"));
    let recorded = with.as_object_mut().unwrap().remove("recorded").unwrap();
    for report in [&mut plain, &mut with] {
        report["written"].as_object_mut().unwrap().remove("file");
    }
    assert_eq!(plain, with);
    let committed = &folder.log(&[])[5]["committed"];
    assert_eq!(committed["before"], plain["before"]);
    assert_eq!(committed["after"], plain["compaction"]["after"]);
    assert_eq!(committed["kept_messages"], plain["compaction"]["kept_messages"]);
    assert_eq!(folder.report(&["show"])["session"], recorded["session"]);

    // As a filter, too.
    let args = ["compact", "-", "--window", "4000", "--quiet", "--journal", "s.db"];
    let output = epitome(folder.root(), &args, &chat(60));
    assert_eq!((code(&output), stderr(&output)), (0, ""));
    assert_eq!(folder.export(&[]), output.stdout);
    assert_eq!(folder.export(&["--at", "0"]), chat(60));
}

#[test]
fn what_is_left_alone_is_measured_and_a_dry_run_writes_nothing() {
    let folder = Folder::with_chat(10);
    let args = ["compact", "session.json", "--model", "gpt-4o", "--journal", "s.db"];
    let output = folder.run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!((code(&output), folder.path("s.db").exists()), (0, false));
    let output = folder.run(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("recorded"), "{}", stdout(&output));
    assert_eq!(folder.kinds(), ["opened", "imported", "appended", "measured"]);
    assert_eq!(folder.export(&[]), chat(10));
    let asked = folder.session(&["export", "--at", "1"]);
    assert_eq!((code(&asked), stderr(&asked).contains("not at all")), (2, true), "{}", stderr(&asked));
}

#[test]
fn a_file_is_imported_once_unless_it_is_asked_for() {
    let folder = Folder::with_chat(3);
    let first = folder.import();
    fs::copy(folder.path("session.json"), folder.path("copy.json")).unwrap();
    let again = folder.report(&["import", "copy.json", "--window", "4000"]);
    assert_eq!((&again["outcome"], &again["session"]), (&"already_there".into(), &first.as_str().into()));
    let other = folder.report(&["import", "copy.json", "--window", "4000", "--again"]);
    assert_eq!(other["outcome"], "imported");
    assert_ne!(other["session"], again["session"]);
    let sessions = folder.report(&["list"])["sessions"].clone();
    let listed: Vec<&Value> = sessions.as_array().unwrap().iter().map(|row| &row["session"]).collect();
    assert_eq!(listed, [&again["session"], &other["session"]], "the newest is the last");
    assert_eq!((&sessions[0]["source"], &sessions[0]["messages"]), (&"session.json".into(), &8.into()));
    // A file with one more message is another one.
    fs::write(folder.path("session.json"), chat(4)).unwrap();
    folder.import();
    // Without a choice, the newest is meant.
    assert_eq!(folder.export(&[]), chat(4));
    assert_eq!(folder.export(&["--session", &first]), chat(3));
}

#[test]
fn the_conversations_of_one_file_are_sessions_of_their_own() {
    let folder = Folder::with_chat(0);
    let log = "[[{\"role\":\"user\",\"content\":\"one\"}], [{\"role\":\"user\",\"content\":\"two\"}]]";
    fs::write(folder.path("log.json"), log).unwrap();
    let import =
        |number: &str| folder.report(&["import", "log.json", "--window", "4000", "--conversation", number]);
    assert_eq!(import("0")["outcome"], "imported");
    assert_eq!(import("1")["outcome"], "imported");
    assert_eq!(import("1")["outcome"], "already_there");
    let exported = String::from_utf8(folder.export(&["--to", "epitome"])).unwrap();
    assert!(exported.contains("two") && !exported.contains("one"), "{exported}");
    assert_eq!(folder.export(&[]), log.as_bytes());
}

#[test]
fn repairs_are_told_and_the_file_stays_as_it_was() {
    let folder = Folder::with_chat(0);
    let broken = "[ {\"role\":\"user\",\"content\":\"x\"}, {\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"r\"} ]";
    fs::write(folder.path("broken.json"), broken).unwrap();
    let report = folder.report(&["import", "broken.json", "--window", "4000"]);
    assert_eq!((report["repairs"].as_array().unwrap().len(), &report["messages"]), (1, &1.into()));
    assert_eq!(folder.export(&[]), broken.as_bytes());
    assert_eq!(folder.report(&["show"])["source"]["repairs"], 1);
}

#[test]
fn what_came_behind_the_file_stands_behind_it() {
    let folder = Folder::with_chat(2);
    let session = SessionId::parse(&folder.import()).unwrap();
    let further = vec![Message::user("one more question"), Message::assistant("an answer")];
    folder.elsewhere(session).append(6, further);
    let exported = String::from_utf8(folder.export(&[])).unwrap();
    let before = String::from_utf8(chat(2)).unwrap();
    let unchanged = before.trim_end_matches(['\n', ']']);
    assert!(exported.starts_with(unchanged), "{exported}");
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(exported.as_array().unwrap().len(), 8);
    assert_eq!(exported[6]["content"], "one more question");
    // Behind the third record nothing more had come.
    assert_eq!(folder.export(&["--record", "3"]), chat(2));
    let past = folder.session(&["export", "--record", "9"]);
    assert_eq!((code(&past), stderr(&past).contains("4 records")), (2, true), "{}", stderr(&past));
}

#[test]
fn a_session_without_a_file_can_be_exported() {
    let folder = Folder::with_chat(0);
    let mut elsewhere = folder.elsewhere(SessionId::from_bytes([1; 16]));
    elsewhere.open();
    elsewhere.append(0, vec![Message::system("Be brief."), Message::user("a question")]);
    elsewhere.append(2, vec![Message::assistant("an answer")]);
    let exported: Value = serde_json::from_slice(&folder.export(&[])).unwrap();
    assert_eq!((&exported["epitome"], exported["messages"].as_array().unwrap().len()), (&1.into(), 3));
    let exported: Value = serde_json::from_slice(&folder.export(&["--to", "openai-chat"])).unwrap();
    assert_eq!(exported["messages"][2]["content"], "an answer");
    for format in Format::ALL {
        assert!(!folder.export(&["--to", format.as_str()]).is_empty(), "{format}");
    }
    let shown = folder.report(&["show"]);
    assert_eq!((&shown["source"], &shown["messages"]), (&Value::Null, &3.into()));
    assert!(shown["size"]["tokens"].as_u64().unwrap() > 5);
}

#[test]
fn what_stands_in_the_context_is_shown_for_any_moment() {
    let folder = Folder::with_chat(60);
    folder.run(&["compact", "session.json", "--model", "gpt-4o", "--force", "--journal", "s.db"]);
    let now = folder.report(&["show"]);
    assert_eq!((&now["compactions_in_force"], &now["messages"]), (&1.into(), &122.into()));
    assert_eq!(now["summary"]["sections"].as_array().unwrap().len(), 5);
    assert_eq!(now["leading"], serde_json::json!([[0, 1]]));
    let kept = now["kept_messages"].as_u64().unwrap();
    let roles: u64 =
        now["by_role"].as_array().unwrap().iter().map(|row| row["messages"].as_u64().unwrap()).sum();
    assert!(kept < 122 && kept == roles);
    assert_eq!(now["size"]["tokens"], now["measured"]["tokens"]);

    let before = folder.report(&["show", "--at", "0"]);
    assert_eq!((&before["compactions_in_force"], &before["summary"]), (&0.into(), &Value::Null));
    assert_eq!((&before["kept_messages"], &before["attempt_under_way"]), (&122.into(), &false.into()));
    assert!(before["size"]["tokens"].as_u64() > now["size"]["tokens"].as_u64());
    let under_way = folder.report(&["show", "--record", "5"]);
    assert_eq!(under_way["attempt_under_way"], true);

    let words = folder.session(&["show"]);
    for word in ["session", "moment", "summary", "open_items", "kept", "assistant", "size", "latch"] {
        assert!(stdout(&words).contains(word), "{word}");
    }
    assert!(!stdout(&words).contains(CANARY));
}

#[test]
fn a_look_neither_waits_for_a_writer_nor_makes_it_stale() {
    let folder = Folder::with_chat(5);
    let session = SessionId::parse(&folder.import()).unwrap();
    let mut writer = folder.elsewhere(session);
    for args in [&["list"][..], &["log"], &["show"], &["export"], &["verify"], &["purge", "--session", "0"]] {
        let output = folder.session(args);
        assert_eq!(code(&output), if args[0] == "purge" { 2 } else { 0 }, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).is_empty() || args[0] == "purge", "{}", stderr(&output));
    }
    writer.append(12, vec![Message::user("it is still mine")]);
    assert_eq!(folder.report(&["show"])["messages"], 13);
}

#[test]
fn many_processes_import_into_one_journal() {
    let folder = Folder::with_chat(3);
    let children: Vec<_> = (0..6)
        .map(|at| {
            fs::write(folder.path(&format!("{at}.json")), chat(at)).unwrap();
            let file = format!("{at}.json");
            let args = ["session", "import", &file, "--window", "4000", "--journal", "s.db", "--json"];
            command(folder.root()).args(args).stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let report = folder.report(&["verify"]);
    assert_eq!(report["sessions"].as_array().unwrap().len(), 6);
}

#[test]
fn a_purge_needs_a_yes_and_a_name() {
    let folder = Folder::with_chat(3);
    let first = folder.import();
    fs::write(folder.path("session.json"), chat(4)).unwrap();
    let second = folder.import();

    let unnamed = folder.session(&["purge", "--yes"]);
    assert_eq!(code(&unnamed), 2);
    let unsure = folder.session(&["purge", "--session", &first]);
    assert_eq!(code(&unsure), 2);
    assert!(
        stdout(&unsure).contains("would go") && stdout(&unsure).contains("3 records"),
        "{}",
        stdout(&unsure)
    );
    let unsure = folder.session(&["purge", "--session", &first, "--json"]);
    assert_eq!((code(&unsure), &json(&unsure)["outcome"]), (2, &"not_confirmed".into()));
    assert_eq!(folder.export(&["--session", &first]), chat(3));

    let report = folder.report(&["purge", "--session", &first, "--yes"]);
    assert_eq!(
        (&report["outcome"], &report["records"], &report["blobs"]),
        (&"purged".into(), &3.into(), &1.into())
    );
    let gone = folder.session(&["export", "--session", &first]);
    assert_eq!((code(&gone), stderr(&gone).contains("no session")), (2, true), "{}", stderr(&gone));
    assert_eq!(folder.export(&[]), chat(4));
    folder.report(&["purge", "--session", &second, "--yes"]);
    let bytes = folder.read("s.db");
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(!holds(CANARY.as_bytes()), "what is purged is overwritten");
    assert_eq!(code(&folder.session(&["show"])), 3);
    assert!(stdout(&folder.session(&["list"])).contains("no sessions"));
}

#[test]
fn the_journal_may_stand_in_the_environment_and_an_id_be_short() {
    let folder = Folder::with_chat(3);
    let first = Elsewhere::event(7);
    let mut one = folder.elsewhere(SessionId::from_bytes(*first.as_bytes()));
    one.open();
    let id = folder.import();
    let run = |args: &[&str]| {
        command(folder.root()).env("EPITOME_JOURNAL", "s.db").arg("session").args(args).output().unwrap()
    };
    let shown = run(&["show", "--json", "--session", id.get(..4).unwrap()]);
    assert_eq!((code(&shown), &json(&shown)["session"]), (0, &id.as_str().into()));
    let shown = run(&["show", "--json", "--session", "0000000000"]);
    assert_eq!(json(&shown)["session"], first.to_string());
    let ambiguous = run(&["show", "--session", "0"]);
    assert_eq!((code(&ambiguous), stderr(&ambiguous).contains("2 sessions")), (2, true));
    let unnamed = folder.run(&["session", "list"]);
    assert_eq!((code(&unnamed), stderr(&unnamed).contains("--journal")), (2, true));
}

#[test]
fn an_export_goes_where_it_is_told_but_never_into_the_journal() {
    let folder = Folder::with_chat(3);
    folder.import();
    let output = folder.session(&["export", "--out", "back.json"]);
    assert_eq!((code(&output), stdout(&output)), (0, ""));
    assert_eq!(folder.read("back.json"), chat(3));
    for out in ["s.db", "./s.db-wal", "s.db-shm"] {
        let output = folder.session(&["export", "--out", out]);
        assert_eq!((code(&output), stderr(&output).contains("never written over")), (2, true), "{out}");
        let args = ["compact", "session.json", "--window", "4000", "--journal", "s.db", "--out", out];
        assert_eq!(code(&folder.run(&args)), 2, "{out}");
    }
    assert_eq!(folder.report(&["verify"])["outcome"], "whole");
}
