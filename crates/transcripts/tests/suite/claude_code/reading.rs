//! Which messages are sent, and in which order.

use epitome_transcripts::{Format, Note, ReadError, ReadOptions, Replacement, read, repair, write};
use serde_json::{Value, json};

use super::log::{Log, call, has, outline, parse};

#[test]
fn results_follow_their_message_in_the_order_of_its_calls() {
    let mut log = Log::default();
    log.user("u", None, "go")
        .piece("a1", "u", "m", call("one"), 10)
        .result("r1", "a1", "one", "1")
        // Beside the way back: what follows hangs off the newest piece.
        .piece("a2", "a1", "m", call("two"), 10)
        .piece("a3", "a2", "m", call("three"), 10)
        .result("r3", "a3", "three", "3")
        .result("r2", "a2", "two", "2")
        .model("b", "r3", "done");
    let session = log.session();
    assert_eq!(outline(&session), ["go", ">one >two >three", "<one", "<two", "<three", "done"]);
    assert_eq!(repair(&session).1, []);
    assert!(!session.notes().iter().any(|note| matches!(note, Note::OtherBranches { .. })));
}

#[test]
fn a_result_may_stand_before_its_call() {
    // Without links the order of the file is all there is.
    let mut log = Log::default();
    log.user("u", None, "go").piece("a1", "u", "m", json!({"type": "text", "text": "both"}), 10);
    log.result("r2", "a2", "two", "2").piece("a2", "a1", "m", call("two"), 10).model("b", "a2", "done");
    for record in &mut log.0 {
        record["parentUuid"] = Value::Null;
    }
    assert_eq!(outline(&log.session()), ["go", "both >two", "<two", "done"]);
}

#[test]
fn one_message_id_on_both_sides_of_the_users_words_is_two_messages() {
    let mut log = Log::default();
    let text = |text: &str| json!({"type": "text", "text": text});
    log.user("u", None, "go").piece("a", "u", "same", text("one"), 10).user("v", Some("a"), "on");
    log.piece("b", "v", "same", text("two"), 10);
    assert_eq!(outline(&log.session()), ["go", "one", "on", "two"]);
    // What the program writes in between does not part a message.
    log.0[2]["isMeta"] = json!(true);
    assert_eq!(outline(&log.session()), ["go", "one two", "on"]);
}

#[test]
fn the_newest_message_that_nothing_follows_decides() {
    let mut log = Log::default();
    log.user("u", None, "go")
        .model("a", "u", "left")
        .user("v", Some("u"), "turned back")
        .model("b", "v", "new");
    // Notices hang off anything, at any time; they are no sign of where the conversation is.
    log.record("system", "n", Some("a"), json!({"subtype": "turn_duration"}));
    log.record("progress", "p", Some("a"), json!({"data": {}}));
    let session = log.session();
    assert_eq!(outline(&session), ["go", "turned back", "new"]);
    assert!(has(&session, Note::OtherBranches { count: 1 }));
    // A program that picks a session up may write its records again.
    let again = log.0[0].clone();
    log.0.push(again);
    let session = log.session();
    assert_eq!(outline(&session), ["go", "turned back", "new"]);
    assert!(has(&session, Note::RepeatedRecords { count: 1 }));
}

#[test]
fn messages_below_old_progress_records_are_found() {
    let mut log = Log::default();
    log.user("u", None, "go").piece("a", "u", "m", call("one"), 10);
    log.record("progress", "p", Some("a"), json!({"data": {}})).result("r", "a", "one", "1");
    log.model("b", "p", "done");
    assert_eq!(outline(&log.session()), ["go", ">one", "<one", "done"]);
}

#[test]
fn a_record_whose_parent_is_gone_continues_the_one_before_it() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("v", Some("gone"), "on").model("b", "v", "two");
    let session = log.session();
    assert_eq!(outline(&session), ["go", "one", "on", "two"]);
    assert!(has(&session, Note::MissingParents { count: 1 }));
}

#[test]
fn parents_in_a_circle_end() {
    let mut log = Log::default();
    log.user("u", Some("v"), "one").user("v", Some("u"), "two");
    assert!(log.session().messages().len() <= 2);
    let mut log = Log::default();
    log.user("u", Some("u"), "one");
    assert_eq!(outline(&log.session()), ["one"]);
}

#[test]
fn other_agents_are_left_out_unless_the_file_is_theirs() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("x", None, "find oak").model("y", "x", "found");
    log.0[2]["isSidechain"] = json!(true);
    log.0[3]["agentId"] = json!("a7");
    let session = log.session();
    assert_eq!(outline(&session), ["go", "one"]);
    assert!(has(&session, Note::SubAgentRecords { count: 2 }));
    log.0.drain(..2);
    assert_eq!(outline(&log.session()), ["find oak", "found"]);
}

#[test]
fn what_the_program_wrote_in_the_models_name_is_not_sent() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "API Error").model("b", "a", "one");
    log.0[1]["message"]["model"] = json!("<synthetic>");
    // Some writers escape the signs.
    let source = String::from_utf8(log.bytes()).unwrap().replace("<synthetic>", "\\u003csynthetic\\u003e");
    for source in [log.bytes(), source.into_bytes()] {
        let session = parse(&source);
        assert_eq!(outline(&session), ["go", "one"]);
        assert!(has(&session, Note::SyntheticMessages { count: 1 }));
        let kept = Replacement { summary: Some("s"), kept: &[0, 1] };
        let (written, _) = write(&session, &kept, Format::ClaudeCode).unwrap();
        assert_eq!(outline(&parse(&written)), ["s", "go", "one"]);
    }
}

#[test]
fn titles_of_the_session_itself_count() {
    let mut log = Log::default();
    log.user("u", None, "go");
    let title = |log: &Log| log.session().title().map(|title| title.as_str().to_owned());
    log.0.push(json!({"type": "summary", "summary": "of another", "leafUuid": "elsewhere"}));
    assert_eq!(title(&log), None);
    log.0.push(json!({"type": "summary", "summary": "its own", "leafUuid": "u"}));
    assert_eq!(title(&log).as_deref(), Some("its own"));
    log.0.push(json!({"type": "ai-title", "aiTitle": "by the model", "sessionId": "s"}));
    log.0.push(json!({"type": "custom-title", "customTitle": "by the user", "sessionId": "s"}));
    log.0.push(json!({"type": "ai-title", "aiTitle": "by the model again", "sessionId": "s"}));
    assert_eq!(title(&log).as_deref(), Some("by the user"));
    let session = log.session();
    assert_eq!(session.cwd().unwrap().as_str(), "/mill");
    assert_eq!(session.first_timestamp().unwrap().as_str(), "2026-03-01T10:00:00.000Z");
    assert_eq!(session.last_timestamp(), session.first_timestamp());
}

#[test]
fn records_are_read_however_they_are_parted() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("v", Some("a"), "on");
    let expected = ["go", "one", "on"];
    let glued: String = log.0.iter().map(Value::to_string).collect();
    let pretty: String =
        log.0.iter().map(|record| serde_json::to_string_pretty(record).unwrap() + "\n").collect();
    let list = serde_json::to_string(&log.0).unwrap();
    for source in [glued, pretty, list] {
        let session = parse(source.as_bytes());
        assert_eq!(outline(&session), expected, "{source}");
        let kept = Replacement { summary: Some("s"), kept: &[1, 2] };
        let (written, report) = write(&session, &kept, Format::ClaudeCode).unwrap();
        assert_eq!(
            (report.verbatim, outline(&parse(&written))),
            (2, ["s", "one", "on"].map(str::to_owned).to_vec())
        );
    }
}

#[test]
fn records_without_a_message_are_told_and_an_unknown_role_is_refused() {
    let mut log = Log::default();
    log.user("u", None, "go").user("v", Some("u"), "on");
    log.0[1]["message"] = Value::Null;
    let session = log.session();
    assert_eq!(outline(&session), ["go"]);
    assert!(has(&session, Note::StrayValues { count: 1 }));
    log.0[1]["message"] = json!({"role": "oracle", "content": "doom"});
    let refused = read(&log.bytes(), &ReadOptions::default(), &mut |_| {});
    assert_eq!(refused.unwrap_err(), ReadError::UnknownRole { message: 1 });
}

#[test]
fn a_file_that_is_still_being_written_is_read_up_to_its_last_whole_record() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("v", Some("a"), "on \u{1f600}");
    let bytes = log.bytes();
    let line = bytes.iter().take(bytes.len() - 1).rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in line + 1..bytes.len() - 1 {
        let session = parse(&bytes[..end]);
        assert_eq!(outline(&session), ["go", "one"], "{end}");
        let unfinished = Note::UnfinishedTail { offset: line as u64, bytes: (end - line) as u64 };
        assert_eq!(session.notes(), [unfinished], "{end}");
    }
    // Whole, with its line break still to come.
    for end in [bytes.len() - 1, bytes.len()] {
        assert_eq!(parse(&bytes[..end]).messages().len(), 3);
    }
}

#[test]
fn torn_lines_lose_only_what_is_torn() {
    let mut log = Log::default();
    log.user("u", None, "go").model("a", "u", "one").user("v", Some("a"), "on").model("b", "v", "two");
    let lines: Vec<String> = log.0.iter().map(Value::to_string).collect();
    let [one, two, three, four] = lines.as_slice() else { unreachable!() };
    let torn = |line: &str| line.split_at(line.len() / 2).0.to_owned();
    // A record that broke off with the next one behind it, and one that was begun twice.
    for (fused, outlined, lost) in [
        (format!("{one}\n{}{three}\n{four}\n", torn(two)), vec!["go", "on", "two"], 1),
        (format!("{one}\n{}{two}\n{three}\n{four}\n", torn(two)), vec!["go", "one", "on", "two"], 0),
        (format!("{one}\n{two}{three}\n{four}"), vec!["go", "one", "on", "two"], 0),
        (format!("{one}\n{two}\n\0\0\0\0{three}\n{four}\n"), vec!["go", "one", "on", "two"], 0),
    ] {
        let session = parse(fused.as_bytes());
        assert_eq!(outline(&session), outlined, "{fused}");
        let damaged = session.notes().iter().any(|note| matches!(note, Note::Damaged { line: 2 | 3, .. }));
        assert_eq!(damaged, !fused.contains(&format!("{two}{three}")), "{fused}");
        let parents = session.notes().iter().any(|note| matches!(note, Note::MissingParents { count: 1 }));
        assert_eq!(parents, lost == 1, "{fused}");
    }
}

#[test]
fn signed_and_opaque_items_stay_as_they_are() {
    let mut log = Log::default();
    let blocks = [
        json!({"type": "thinking", "thinking": "", "signature": "c2lnbmVk"}),
        json!({"type": "thinking", "thinking": "unsigned", "signature": ""}),
        json!({"type": "redacted_thinking", "data": "openrouter.reasoning:eyJ9"}),
        json!({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "q"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"encrypted_content": "QUJD"}]}),
        json!({"type": "text", "text": "found"}),
    ];
    log.user("u", None, "go");
    for (at, block) in blocks.iter().enumerate() {
        let parent = if at == 0 { "u".to_owned() } else { format!("a{}", at - 1) };
        log.piece(&format!("a{at}"), &parent, "m", block.clone(), 10);
    }
    let session = log.session();
    assert_eq!(outline(&session), ["go", "thinking thinking opaque opaque opaque found"]);
    let kept = Replacement { summary: Some("s"), kept: &[1] };
    let (written, report) = write(&session, &kept, Format::ClaudeCode).unwrap();
    assert_eq!(report.verbatim, 1);
    let written = String::from_utf8(written).unwrap();
    assert!(blocks.iter().all(|block| written.contains(&block.to_string())));
    // What only Anthropic's own models and programs know goes along to Anthropic Messages.
    let kept = Replacement { summary: None, kept: &[0, 1] };
    let (request, report) = write(&session, &kept, Format::AnthropicMessages).unwrap();
    let request = String::from_utf8(request).unwrap();
    assert_eq!(report.losses.len(), 1, "unsigned reasoning is not sent");
    for at in [0, 2, 3, 4, 5] {
        let block: Value = blocks[at].clone();
        let request: Value = serde_json::from_str(&request).unwrap();
        assert!(request["messages"][1]["content"].as_array().unwrap().contains(&block), "{block}");
    }
}
