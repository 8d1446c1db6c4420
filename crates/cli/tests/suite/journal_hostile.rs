//! Journals that are damaged, are none, or are somebody else's.

use std::fs;

use epitome_loop::SessionId;
use epitome_sessionruntime::journal::EncodedRecord;
use serde_json::Value;

use crate::journal_folder::{CANARY, Elsewhere, Folder, chat};
use crate::terminal::{code, command, json, stderr, stdout};

/// Every command that only looks.
const LOOKS: [&[&str]; 5] = [&["list"], &["log"], &["show"], &["export"], &["verify"]];

/// Puts other bytes in the place of some that stand in the journal's file.
fn patch(folder: &Folder, found: &[u8], with: &[u8]) -> usize {
    assert_eq!(found.len(), with.len());
    let mut bytes = folder.read("s.db");
    let places: Vec<usize> =
        bytes.windows(found.len()).enumerate().filter(|(_, at)| *at == found).map(|(at, _)| at).collect();
    for at in &places {
        bytes[*at..*at + with.len()].copy_from_slice(with);
    }
    fs::write(folder.path("s.db"), bytes).unwrap();
    places.len()
}

#[test]
fn a_damaged_record_is_found_and_what_stands_before_it_can_be_had() {
    let folder = Folder::with_chat(60);
    folder.run(&["compact", "session.json", "--window", "4000", "--out", "out.json", "--journal", "s.db"]);
    assert_eq!(patch(&folder, b"\"kind\":\"measured\"", b"\"kind\":\"mossured\""), 1);

    let verified = folder.session(&["verify", "--json"]);
    assert_eq!(code(&verified), 3);
    let report = json(&verified);
    assert_eq!((&report["outcome"], &report["file_faults"]), (&"damaged".into(), &0.into()));
    let finding = &report["sessions"][0]["findings"][0];
    assert_eq!((&finding["record"], &finding["kind"]), (&4.into(), &"unreadable".into()));
    let words = folder.session(&["verify"]);
    assert_eq!(code(&words), 3);
    assert!(stdout(&words).contains("record 4: the checksum does not fit"), "{}", stdout(&words));
    assert!(stdout(&words).contains("--record 3"), "{}", stdout(&words));

    for args in [&["export"][..], &["show"], &["log"]] {
        let output = folder.session(args);
        assert_eq!(code(&output), 3, "{args:?}");
        assert!(stderr(&output).contains("record 4: the checksum does not fit"), "{}", stderr(&output));
    }
    let failed = folder.session(&["show", "--json"]);
    assert_eq!(json(&failed)["failure"], "damaged");
    // What the log can tell it tells, and the list goes on.
    assert!(stdout(&folder.session(&["log"])).contains("122 messages"));
    assert!(stdout(&folder.session(&["list"])).contains("damaged: record 4"));
    assert_eq!(folder.export(&["--record", "3"]), chat(60));
    assert_eq!(folder.report(&["show", "--record", "3"])["messages"], 122);
    // It need not make sense to be removed.
    let id = report["sessions"][0]["session"].as_str().unwrap();
    assert_eq!(folder.report(&["purge", "--session", id, "--yes"])["records"], 7);
}

#[test]
fn records_that_are_lost_are_missed() {
    let folder = Folder::with_chat(60);
    folder.run(&["compact", "session.json", "--window", "4000", "--out", "out.json", "--journal", "s.db"]);
    let id = folder.report(&["list"])["sessions"][0]["session"].as_str().unwrap().to_owned();
    let mut bytes = folder.read("s.db");
    // The leaf of a tree that holds the records: without its cells SQLite finds nothing in it, and no fault in a search.
    let holds = |page: &[u8]| page[0] == 0x0a && page.windows(15).any(|found| found == b"\"kind\":\"started");
    let leaves: Vec<usize> =
        (1..bytes.len() / 4_096).filter(|page| holds(&bytes[page * 4_096..][..4_096])).collect();
    assert_eq!(leaves.len(), 1);
    bytes[leaves[0] * 4_096 + 3..][..2].fill(0);
    fs::write(folder.path("s.db"), bytes).unwrap();

    let verified = folder.session(&["verify", "--json"]);
    assert_eq!(code(&verified), 3);
    let report = json(&verified);
    let finding = &report["sessions"][0]["findings"][0];
    assert_eq!((&finding["record"], &finding["kind"]), (&1.into(), &"incomplete".into()), "{finding}");
    for args in [&["export"][..], &["show"], &["log"], &["admit"], &["compact"]] {
        let output = folder.session(args);
        assert_eq!(code(&output), 3, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("should have 7 records, and 0 are found"), "{}", stderr(&output));
    }
    assert!(stdout(&folder.session(&["list"])).contains("damaged: the session should have 7 records"));
    assert_eq!(json(&folder.session(&["show", "--json"]))["failure"], "damaged");
    // It can be removed, as far as it can be found, and what comes then is whole.
    folder.report(&["purge", "--session", &id, "--yes"]);
    folder.import();
    assert_eq!(folder.export(&[]), chat(60));
}

#[test]
fn a_damaged_file_of_an_import_is_found_and_its_messages_are_written_anew() {
    let folder = Folder::with_chat(3);
    folder.import();
    // With a space behind the colon it stands in the file alone; in records there is none.
    assert_eq!(patch(&folder, b"\"role\": \"system\"", b"\"role\": \"sistem\""), 1);
    let verified = folder.session(&["verify", "--json"]);
    assert_eq!(code(&verified), 3);
    let finding = &json(&verified)["sessions"][0]["findings"][0];
    assert_eq!((&finding["record"], &finding["kind"]), (&2.into(), &"media".into()));
    let output = folder.session(&["export"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("damaged in the journal"), "{}", stderr(&output));
    let (exported, before): (Value, Value) =
        (serde_json::from_slice(&output.stdout).unwrap(), serde_json::from_slice(&chat(3)).unwrap());
    assert_eq!(exported["messages"][1]["content"], before[1]["content"]);
    assert_eq!(exported["messages"].as_array().unwrap().len(), 8);
    assert_eq!(folder.report(&["show"])["source"]["bytes"], Value::Null);
}

#[test]
fn a_file_whose_pages_are_damaged_is_found() {
    let folder = Folder::with_chat(60);
    folder.import();
    let mut bytes = folder.read("s.db");
    let pages = bytes.len() / 4_096;
    for page in 2..pages {
        bytes[page * 4_096..page * 4_096 + 64].fill(0xff);
    }
    fs::write(folder.path("s.db"), bytes).unwrap();
    for args in LOOKS {
        let output = folder.session(args);
        assert_eq!(code(&output), 3, "{args:?}: {}{}", stdout(&output), stderr(&output));
        assert!(!stdout(&output).contains(CANARY));
    }
}

#[test]
fn what_is_no_journal_is_left_as_it_is() {
    let folder = Folder::with_chat(3);
    let text = format!("{CANARY}, and this is no journal. ").repeat(300);
    for content in [text.as_bytes(), b"x", b"SQLite format 3\0"] {
        fs::write(folder.path("s.db"), content).unwrap();
        for args in LOOKS {
            let output = folder.session(args);
            assert_eq!(code(&output), 3, "{args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains("not a journal"), "{}", stderr(&output));
        }
        let import = folder.session(&["import", "session.json", "--window", "4000", "--json"]);
        assert_eq!((code(&import), &json(&import)["failure"]), (3, &"not_a_journal".into()));
        let args = ["compact", "session.json", "--window", "600", "--journal", "s.db", "--out", "out.json"];
        let compact = folder.run(&args);
        assert_eq!((code(&compact), folder.path("out.json").exists()), (3, false), "{}", stderr(&compact));
        assert_eq!(folder.read("s.db"), content);
    }
    // A session is no journal, and a journal no session.
    let output = folder.run(&["session", "list", "--journal", "session.json"]);
    assert_eq!(code(&output), 3);
    fs::remove_file(folder.path("s.db")).unwrap();
    folder.import();
    assert_eq!(code(&folder.session(&["import", "s.db", "--window", "4000"])), 3);
}

#[test]
fn what_is_not_there_is_not_made_by_looking() {
    let folder = Folder::with_chat(3);
    for args in [LOOKS[0], LOOKS[3], &["purge", "--session", "0", "--yes"]] {
        let output = folder.session(args);
        assert_eq!(code(&output), 5, "{args:?}");
        assert!(stderr(&output).contains("no such journal"), "{}", stderr(&output));
    }
    assert!(!folder.path("s.db").exists());
    for args in LOOKS {
        let output = folder.run(&[&["session"], args, &["--journal", "."]].concat());
        assert_eq!((code(&output), stderr(&output).contains("folder")), (5, true), "{}", stderr(&output));
    }
    let args = ["session", "import", "session.json", "--window", "4000", "--journal"];
    assert_eq!(code(&folder.run(&[&args[..], &["."]].concat())), 5);
    assert_eq!(code(&folder.run(&[&args[..], &["session.json/s.db"]].concat())), 5);
    assert_eq!(code(&folder.run(&[&args[..], &["-"]].concat())), 2);
    // A folder that is not there is made.
    assert_eq!(code(&folder.run(&[&args[..], &["new/s.db"]].concat())), 0);
}

#[test]
fn an_empty_journal_says_so() {
    let folder = Folder::with_chat(3);
    fs::write(folder.path("s.db"), "").unwrap();
    for args in LOOKS {
        let output = folder.session(args);
        assert_eq!((code(&output), stderr(&output).contains("no session")), (3, true), "{args:?}");
    }
    assert_eq!(folder.read("s.db"), b"");
    // A session that somebody has opened and never written to is none to look at.
    drop(folder.elsewhere(SessionId::from_bytes([1; 16])));
    assert_eq!(code(&folder.session(&["show"])), 3);
    let named = folder.session(&["show", "--session", "01"]);
    assert_eq!((code(&named), stderr(&named).contains("no record")), (3, true), "{}", stderr(&named));
    folder.import();
    assert_eq!(folder.export(&[]), chat(3));
}

#[test]
fn a_newer_journal_is_left_as_it_is() {
    let folder = Folder::with_chat(3);
    folder.import();
    // The one row of its table of versions: three bytes, row 1, a header of two, an integer, 3.
    let mut bytes = folder.read("s.db");
    let row = [3, 1, 2, 1, 3];
    let rows: Vec<usize> = (1..=bytes.len() / 4_096)
        .map(|page| page * 4_096)
        .filter(|end| bytes[..*end].ends_with(&row))
        .collect();
    assert_eq!(rows.len(), 1);
    bytes[rows[0] - 1] = 99;
    fs::write(folder.path("s.db"), &bytes).unwrap();
    for args in LOOKS {
        let output = folder.session(args);
        assert_eq!((code(&output), stderr(&output).contains("version 99")), (3, true), "{}", stderr(&output));
    }
    let import = folder.session(&["import", "session.json", "--window", "4000", "--json"]);
    assert_eq!((code(&import), &json(&import)["failure"]), (3, &"newer_journal".into()));
    assert_eq!(folder.read("s.db"), bytes);
}

#[test]
fn a_newer_record_is_not_guessed_at() {
    let folder = Folder::with_chat(0);
    let mut session = folder.elsewhere(SessionId::from_bytes([1; 16]));
    session.open();
    let body = format!("{{\"version\":99,\"kind\":\"{CANARY}\",\"body\":[]}}").into_bytes();
    session.write_encoded(EncodedRecord { id: Elsewhere::event(99), body: body.into(), blobs: Vec::new() });
    for args in [LOOKS[1], LOOKS[2], LOOKS[3]] {
        let output = folder.session(args);
        assert_eq!((code(&output), stderr(&output).contains("version 99")), (3, true), "{}", stderr(&output));
    }
    let verified = folder.session(&["verify", "--json"]);
    assert_eq!(code(&verified), 3);
    assert_eq!(json(&verified)["sessions"][0]["findings"][0]["kind"], "newer_version");
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::with_chat(3);
    let (journal, source) = (OsStr::from_bytes(b"jour\xffnal.db"), OsStr::from_bytes(b"ses\xffsion.json"));
    fs::copy(folder.path("session.json"), folder.root().join(source)).unwrap();
    let run = |args: &[&str], last: &[&OsStr]| {
        command(folder.root())
            .arg("session")
            .args(args)
            .args(last)
            .arg("--journal")
            .arg(journal)
            .output()
            .unwrap()
    };
    let output = run(&["import", "--window", "4000"], &[source]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(run(&["export"], &[]).stdout, chat(3));
    assert!(stdout(&run(&["list"], &[])).contains("ses\u{fffd}sion.json"));
    assert_eq!(code(&run(&["show", "--session"], &[OsStr::from_bytes(b"\xff")])), 2);
    assert_eq!(code(&run(&["show", "--session", "not-an-id"], &[])), 2);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_to_can_be_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::with_chat(3);
    folder.import();
    fs::set_permissions(folder.path("s.db"), fs::Permissions::from_mode(0o400)).unwrap();
    for args in LOOKS {
        let output = folder.session(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
    }
    // Whoever may do everything may write to it all the same.
    let may_write = fs::OpenOptions::new().write(true).open(folder.path("s.db")).is_ok();
    let output = folder.session(&["import", "session.json", "--window", "4000", "--again"]);
    assert_eq!(code(&output), if may_write { 0 } else { 5 }, "{}", stderr(&output));
}

#[test]
fn a_file_that_is_no_rig_is_a_failure_like_any_other() {
    let folder = Folder::with_chat(0);
    folder.import();
    fs::write(folder.path("bad.toml"), "bad = [").unwrap();
    for args in [&["admit"][..], &["compact"], &["undo"], &["append", "session.json"]] {
        let output = folder.session(&[args, &["--rig", "bad.toml", "--json"]].concat());
        assert_eq!(code(&output), 3, "{args:?}");
        let report = json(&output);
        assert_eq!(
            (&report["outcome"], &report["failure"]),
            (&"failed".into(), &"rig_file".into()),
            "{args:?}"
        );
    }
}
