//! What stays of a session, and what Claude Code picks up from it.

use std::collections::{HashMap, HashSet};

use epitome_transcripts::{Format, Replacement, write};
use serde_json::{Value, json};

use super::log::{Log, call, outline, parse};

#[test]
fn what_stays_is_one_way_and_differs_in_its_parents_alone() {
    let mut log = Log::default();
    log.user("u", None, "go")
        .piece("a1", "u", "m", call("one"), 10)
        .piece("a2", "a1", "m", call("two"), 10)
        .result("r1", "a1", "one", "1")
        .result("r2", "a2", "two", "2")
        .model("b", "r2", "done");
    let source = String::from_utf8(log.bytes()).unwrap();
    let kept = Replacement { summary: Some("what was before"), kept: &[1, 2, 3, 4] };
    let (written, report) = write(&parse(source.as_bytes()), &kept, Format::ClaudeCode).unwrap();
    assert_eq!((report.verbatim, report.encoded), (4, 1));
    let written = String::from_utf8(written).unwrap();
    let parents = [("a1", r#""u""#, "null"), ("r1", r#""a1""#, r#""a2""#), ("r2", r#""a2""#, r#""r1""#)];
    let mut expected: Vec<String> = source.lines().skip(1).map(str::to_owned).collect();
    for (id, old, new) in parents {
        let own = format!("\"uuid\":\"{id}\"");
        let line = expected.iter_mut().find(|line| line.contains(&own)).unwrap();
        *line = line.replace(&format!("\"parentUuid\":{old}"), &format!("\"parentUuid\":{new}"));
    }
    assert_eq!(written.lines().take(5).collect::<Vec<_>>(), expected);
    assert_eq!(outline(&parse(written.as_bytes())), ["what was before", ">one >two", "<one", "<two", "done"]);
}

#[test]
fn compacting_again_and_again_stays_readable() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("v", Some("a"), "on").model("b", "v", "two");
    let mut source = log.bytes();
    for round in 0..5 {
        let session = parse(&source);
        let newest = session.messages().len() - 1;
        let summary = format!("summary {round}");
        let kept = Replacement { summary: Some(&summary), kept: &[newest] };
        source = write(&session, &kept, Format::ClaudeCode).unwrap().0;
        assert_eq!(outline(&parse(&source)), [summary.as_str(), "two"]);
        assert_eq!(source.iter().filter(|byte| **byte == b'\n').count(), 3);
        assert_eq!(parse(&source).reported_usage(), None);
    }
}

#[test]
fn a_kept_summary_stays_one() {
    let mut log = Log::default();
    log.user("u", None, "go")
        .boundary("B", "u", json!({}))
        .summary("S", "B", "so far")
        .model("a", "S", "one");
    log.user("v", Some("a"), "on");
    let kept = Replacement { summary: None, kept: &[0, 2] };
    let session = parse(&write(&log.session(), &kept, Format::ClaudeCode).unwrap().0);
    assert_eq!(
        (outline(&session), session.derived_prefix()),
        (vec!["so far".to_owned(), "on".to_owned()], 1)
    );
    // Beside a new summary it is what the user said.
    let kept = Replacement { summary: Some("new"), kept: &[0, 2] };
    let session = parse(&write(&log.session(), &kept, Format::ClaudeCode).unwrap().0);
    assert_eq!(outline(&session), ["new", "so far", "on"]);
    assert_eq!(session.derived_prefix(), 1);
}

#[test]
fn attachments_stay_with_what_they_follow() {
    let mut log = Log::default();
    let attachment = |name: &str| json!({"attachment": {"type": name}});
    log.user("u", None, "go").record("attachment", "t1", Some("u"), attachment("first"));
    log.piece("a1", "t1", "m", call("one"), 10).result("r1", "a1", "one", "1");
    log.record("attachment", "t2", Some("r1"), attachment("second")).piece("a2", "t2", "m", call("two"), 10);
    log.record("attachment", "t3", Some("a2"), attachment("third")).result("r2", "t3", "two", "2");
    let session = log.session();
    assert_eq!(outline(&session), ["go", ">one >two", "<one", "<two"]);
    let written = |kept: &[usize]| {
        let kept = Replacement { summary: Some("s"), kept };
        let (written, _) = write(&session, &kept, Format::ClaudeCode).unwrap();
        String::from_utf8(written).unwrap()
    };
    let names =
        |written: &str| ["first", "second", "third"].map(|name| written.contains(&format!("\"{name}\"")));
    assert_eq!(names(&written(&[1, 2, 3])), [false, true, true]);
    assert_eq!(names(&written(&[0])), [true, false, false]);
    assert_eq!(picked_up(written(&[1, 2, 3]).as_bytes()).len(), 5);
}

#[test]
fn messages_with_one_id_stay_apart() {
    let mut log = Log::default();
    let text = |text: &str| json!({"type": "text", "text": text});
    log.user("u", None, "go").piece("a", "u", "same", text("one"), 10).user("v", Some("a"), "on");
    log.piece("b", "v", "same", text("two"), 10).piece("c", "b", "same", text("three"), 10);
    let kept = Replacement { summary: Some("s"), kept: &[1, 3] };
    let (written, _) = write(&log.session(), &kept, Format::ClaudeCode).unwrap();
    assert_eq!(outline(&parse(&written)), ["s", "one", "two three"]);
    // Without ids there is nothing to be mistaken.
    for record in &mut log.0 {
        record["message"].as_object_mut().unwrap().remove("id");
    }
    let (written, _) = write(&log.session(), &kept, Format::ClaudeCode).unwrap();
    assert_eq!(outline(&parse(&written)), ["s", "one", "two"]);
}

#[test]
fn the_file_of_an_agent_stays_one() {
    let mut log = Log::default();
    log.user("u", None, "find oak").model("a", "u", "found").user("v", Some("a"), "more");
    for record in &mut log.0 {
        record["isSidechain"] = json!(true);
        record["agentId"] = json!("a7");
    }
    let kept = Replacement { summary: Some("s"), kept: &[1, 2] };
    let (written, _) = write(&log.session(), &kept, Format::ClaudeCode).unwrap();
    assert_eq!(outline(&parse(&written)), ["s", "found", "more"]);
    let written = String::from_utf8(written).unwrap();
    assert!(
        written
            .lines()
            .all(|line| line.contains("\"isSidechain\":true") && line.contains("\"agentId\":\"a7\""))
    );
}

#[test]
fn records_without_ids_get_some() {
    let mut log = Log::default();
    log.user("u", None, "go").user("u", None, "on");
    for record in &mut log.0 {
        record.as_object_mut().unwrap().remove("parentUuid");
    }
    log.0.push(json!({"type": "user", "sessionId": "s", "message": {"role": "user", "content": "last"}}));
    for no_id in [json!(null), json!(7), json!("")] {
        log.0.push(json!({"type": "user", "sessionId": "s", "uuid": no_id,
            "message": {"role": "user", "content": "no id"}}));
    }
    let session = log.session();
    assert_eq!(outline(&session), ["go", "on", "last", "no id", "no id", "no id"]);
    let kept = Replacement { summary: Some("s"), kept: &[0, 1, 2, 3, 4, 5] };
    let (written, _) = write(&session, &kept, Format::ClaudeCode).unwrap();
    assert_eq!(outline(&parse(&written)), ["s", "go", "on", "last", "no id", "no id", "no id"]);
    assert_eq!(picked_up(&written).len(), 7);
}

/// What Claude Code picks up from a session file: of the messages that nothing follows, the newest, and the way
/// from it to the root, after what the last compaction kept was hung behind it. The rules are those of Claude
/// Code's own loader, written down once more without any of the reader's code.
fn picked_up(source: &[u8]) -> Vec<String> {
    let records: Vec<Value> = source
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let is_linked = |record: &&Value| {
        ["user", "assistant", "system", "attachment"].contains(&record["type"].as_str().unwrap())
            && record["uuid"].is_string()
    };
    let id = |value: &Value| value.as_str().map(str::to_owned);
    let linked: Vec<&Value> = records.iter().filter(is_linked).collect();
    let mut parents: HashMap<String, Option<String>> =
        linked.iter().map(|record| (id(&record["uuid"]).unwrap(), id(&record["parentUuid"]))).collect();
    let boundary = linked.iter().rposition(|record| record["subtype"] == "compact_boundary");
    let mut pruned: HashSet<String> = HashSet::new();
    if let Some(boundary) = boundary {
        let segment = &linked[boundary]["compactMetadata"]["preservedSegment"];
        let ends = (id(&segment["headUuid"]), id(&segment["tailUuid"]), id(&segment["anchorUuid"]));
        if let (Some(head), Some(tail), Some(anchor)) = ends {
            let mut kept = vec![tail.clone()];
            while kept.last() != Some(&head) {
                kept.push(parents[kept.last().unwrap()].clone().unwrap());
            }
            for (record, parent) in &mut parents {
                if parent.as_ref() == Some(&anchor) && *record != head {
                    *parent = Some(tail.clone());
                }
            }
            parents.insert(head, Some(anchor));
            let before = linked[..boundary].iter().map(|record| id(&record["uuid"]).unwrap());
            pruned.extend(before.filter(|id| !kept.contains(id)));
        }
    }
    let followed: HashSet<String> = parents.values().flatten().cloned().collect();
    let is_message = |record: &&&Value| record["type"] == "user" || record["type"] == "assistant";
    let ends = linked.iter().filter(is_message).filter(|record| {
        let id = id(&record["uuid"]).unwrap();
        !followed.contains(&id) && !pruned.contains(&id)
    });
    let newest = ends.max_by_key(|record| record["timestamp"].as_str().unwrap_or_default().to_owned());
    let mut way = Vec::new();
    let mut next = newest.and_then(|record| id(&record["uuid"]));
    while let Some(at) = next {
        next = parents.get(&at).cloned().flatten();
        way.push(at);
    }
    way.reverse();
    let messages: HashSet<String> =
        linked.iter().filter(is_message).map(|record| id(&record["uuid"]).unwrap()).collect();
    way.retain(|id| messages.contains(id));
    way
}

#[test]
fn claude_code_picks_up_what_was_kept() {
    let mut log = Log::default();
    log.user("u", None, "go").user("v", Some("u"), "left").user("w", Some("u"), "on");
    log.record("attachment", "t", Some("w"), json!({"attachment": {"type": "skill_listing"}}));
    log.piece("a1", "t", "m", call("one"), 10)
        .piece("a2", "a1", "m", call("two"), 10)
        .result("r1", "a1", "one", "1")
        .result("r2", "a2", "two", "2")
        .model("b", "r2", "done")
        .user("x", Some("b"), "more")
        .model("c", "x", "yes");
    let session = log.session();
    assert_eq!(outline(&session), ["go", "on", ">one >two", "<one", "<two", "done", "more", "yes"]);
    for from in 0..=session.messages().len() {
        let kept: Vec<usize> = (from..session.messages().len()).collect();
        let (written, _) =
            write(&session, &Replacement { summary: Some("s"), kept: &kept }, Format::ClaudeCode).unwrap();
        let ids = picked_up(&written);
        let own = ["u", "w", "a1", "a2", "r1", "r2", "b", "x", "c"];
        // A message of two pieces is one message and two records.
        let skipped = if from > 2 { from + 1 } else { from };
        assert_eq!(ids[1..], own[skipped..], "{from}");
        let summary = format!("\"uuid\":\"{}\"", ids[0]);
        let written = String::from_utf8(written).unwrap();
        let line = written.lines().find(|line| line.contains(&summary)).unwrap();
        assert!(line.contains("\"isCompactSummary\":true"));
    }
}
