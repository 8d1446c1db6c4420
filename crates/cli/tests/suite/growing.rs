//! A session that an agent is still writing is read as it is at that moment.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::terminal::command;

fn record(at: usize) -> String {
    let parent = (at > 0).then(|| format!("u{}", at - 1));
    let kind = if at.is_multiple_of(2) { "user" } else { "assistant" };
    let content = [json!({"type": "text", "text": format!("message {at} \u{1f600}")})];
    let message =
        json!({"id": format!("msg_{at}"), "role": kind, "model": "claude-sonnet-4-5", "content": content});
    json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": kind, "message": message,
        "uuid": format!("u{at}"), "timestamp": "2026-03-01T10:00:00.000Z"})
    .to_string()
}

fn measure(path: &Path) -> Command {
    let mut command = command(path.parent().unwrap());
    command.arg("measure").arg(path).args(["--window", "200000"]);
    command
}

#[test]
fn a_session_under_way_can_be_measured_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let mut file = File::create(&path).unwrap();
    writeln!(file, "{}", record(0)).unwrap();
    let done = AtomicBool::new(false);
    let (mut reports, mut counts) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // In pieces that end anywhere, as buffers are flushed.
            for at in 1.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let line = record(at) + "\n";
                let (head, tail) = line.as_bytes().split_at(line.len() * (at % 7) / 7);
                file.write_all(head).unwrap();
                std::thread::sleep(Duration::from_millis(2));
                file.write_all(tail).unwrap();
            }
        });
        for _ in 0..8 {
            let measured = measure(&path).arg("--json").output().unwrap();
            reports.push(measured);
        }
        done.store(true, Ordering::Relaxed);
    });
    for measured in reports {
        assert_eq!(measured.status.code(), Some(0), "{}", String::from_utf8_lossy(&measured.stderr));
        let report: Value = serde_json::from_slice(&measured.stdout).unwrap();
        let notes = report["notes"].as_array().unwrap();
        let damage = notes.iter().any(|note| note.as_str().unwrap().contains("damaged"));
        assert!(!damage, "{notes:?}");
        counts.push(report["messages"].as_u64().unwrap());
    }
    assert!(counts.is_sorted() && counts.first() < counts.last(), "{counts:?}");
    // A file that ends inside of a record says so in words.
    let cut = folder.path().join("cut.jsonl");
    std::fs::write(&cut, format!("{}\n{}", record(0), record(1).split_at(60).0)).unwrap();
    let shown = measure(&cut).output().unwrap();
    assert_eq!(shown.status.code(), Some(0));
    let words =
        "the last record is unfinished (60 bytes) and was not read; another program may still be writing it";
    assert!(String::from_utf8(shown.stdout).unwrap().contains(words));
}
