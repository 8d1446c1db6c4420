//! What Claude Code prints.

use epitome_transcripts::{Format, Note, Replacement, write};
use serde_json::{Value, json};

use super::log::{has, outline, parse};

#[test]
fn a_stream_reports_what_its_last_request_took() {
    let record = |kind: &str, more: Value| {
        let mut record = json!({"type": kind, "session_id": "s", "parent_tool_use_id": null});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record.to_string() + "\n"
    };
    let usage = json!({"input_tokens": 7, "cache_read_input_tokens": 50, "output_tokens": 1});
    let message =
        json!({"id": "m", "role": "assistant", "content": [{"type": "text", "text": "one"}], "usage": usage});
    let stream = record("system", json!({"subtype": "init", "model": "claude-x", "cwd": "/mill"}))
        + &record("stream_event", json!({"event": {"type": "message_start"}}))
        + &record("assistant", json!({"message": message}));
    let tokens = |stream: &str| parse(stream.as_bytes()).reported_usage().unwrap().context_tokens.get();
    assert_eq!(tokens(&stream), 58);
    let total = json!({"input_tokens": 14, "cache_read_input_tokens": 100, "output_tokens": 9});
    let one = json!({"usage": total, "num_turns": 1});
    assert_eq!(tokens(&(stream.clone() + &record("result", one))), 123);
    // The figure of a run of several requests is a sum, unless they are listed.
    let mut several = json!({"usage": total, "num_turns": 2});
    assert_eq!(tokens(&(stream.clone() + &record("result", several.clone()))), 58);
    several["usage"]["iterations"] =
        json!([{"input_tokens": 7, "cache_read_input_tokens": 50, "output_tokens": 5}]);
    assert_eq!(tokens(&(stream.clone() + &record("result", several))), 62);
    let session = parse(stream.as_bytes());
    assert_eq!((session.cwd().unwrap().as_str(), session.format()), ("/mill", Format::ClaudeStreamJson));
    assert!(session.lacks_system_and_tools());
}

#[test]
fn the_stream_of_an_agent_stays_one() {
    let line = |kind: &str| {
        let message = json!({"role": kind, "content": "words"});
        json!({"type": kind, "parent_tool_use_id": "toolu_1", "message": message}).to_string() + "\n"
    };
    let source =
        "{\"type\":\"system\",\"subtype\":\"init\"}\n".to_owned() + &line("user") + &line("assistant");
    let kept = Replacement { summary: Some("s"), kept: &[0, 1] };
    let (written, _) = write(&parse(source.as_bytes()), &kept, Format::ClaudeStreamJson).unwrap();
    assert_eq!(outline(&parse(&written)), ["s", "words", "words"]);
}

#[test]
fn a_stream_that_was_compacted_begins_there() {
    let line = |kind: &str, text: &str, more: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"session_id\":\"s\",\"message\":{{\"role\":\"{kind}\",\"content\":\"{text}\"}}{more}}}\n"
        )
    };
    let cut = "{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"session_id\":\"s\",\"compact_metadata\":{\"trigger\":\"auto\",\"pre_tokens\":9}}\n";
    let before = line("user", "go", "") + &line("assistant", "one", "") + cut;
    let session = parse((before.clone() + &line("assistant", "two", "")).as_bytes());
    assert_eq!(outline(&session), ["two"]);
    assert!(has(&session, Note::SummaryNotInFile));
    let session = parse(
        (before + &line("user", "so far", ",\"isSynthetic\":true") + &line("assistant", "two", ""))
            .as_bytes(),
    );
    assert_eq!(
        (outline(&session), session.derived_prefix()),
        (vec!["so far".to_owned(), "two".to_owned()], 1)
    );
}
