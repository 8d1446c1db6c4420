//! What would be sent next of Responses logs and Codex rollouts, and what is read from compacted ones.

use std::fmt::Write as _;

use epitome_loop::{Block, Message, Role};
use epitome_transcripts::{Format, Note, ReadError, ReadOptions, Replacement, Session, read, repair, write};

fn try_parse(source: &str) -> Result<Session, ReadError> {
    read(source.as_bytes(), &ReadOptions::default(), &mut |_| {})
}

fn parse(source: &str) -> Session {
    try_parse(source).unwrap()
}

/// Every message in a few letters: its role, then its text, calls and kinds of opaque items.
fn outline(session: &Session) -> String {
    let mut text = String::new();
    for message in session.messages().iter() {
        write!(text, "{}{}", if text.is_empty() { "" } else { " | " }, message.role().as_str()).unwrap();
        for block in message.blocks().iter() {
            match block {
                Block::Text { text: words } => write!(text, " {}", words.as_str()).unwrap(),
                Block::ToolUse(call) => write!(text, " {}()", call.id.as_str()).unwrap(),
                Block::Opaque(opaque) => write!(text, " [{}]", opaque.kind.as_str()).unwrap(),
                block => write!(text, " <{}>", block.kind()).unwrap(),
            }
        }
    }
    text
}

fn compacted(session: &Session, kept: &[usize], to: Format) -> String {
    let (bytes, _) = write(session, &Replacement { summary: Some("so far"), kept }, to).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn record(kind: &str, payload: &str) -> String {
    format!("{{\"timestamp\":\"t\",\"type\":\"{kind}\",\"payload\":{payload}}}\n")
}

fn meta() -> String {
    record("session_meta", r#"{"id":"s","cwd":"/srv"}"#)
}

fn said(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
}

fn item(role: &str, text: &str) -> String {
    record("response_item", &said(role, text))
}

fn rolled_back(turns: u64) -> String {
    record("event_msg", &format!(r#"{{"type":"thread_rolled_back","num_turns":{turns}}}"#))
}

fn tokens(input: u64, cached: u64, output: u64) -> String {
    record(
        "event_msg",
        &format!(
            r#"{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"reasoning_output_tokens":0,"total_tokens":7}}}}}}"#
        ),
    )
}

#[test]
fn a_request_that_holds_the_newest_part_only_is_refused() {
    for source in [
        r#"{"model":"gpt-5","previous_response_id":"resp_1","input":"And 3+3?"}"#,
        r#"{"model":"gpt-5","conversation":"conv_1","input":[{"role":"user","content":"x"}]}"#,
        r#"{"model":"gpt-5","conversation":{"id":"conv_1"},"input":[{"role":"user","content":"x"}]}"#,
        r#"[{"request":{"previous_response_id":"gone","input":"x"},"response":{"id":"a","output":[]}},
            {"request":{"previous_response_id":"a","input":"y"},"response":{"id":"b","output":[]}}]"#,
    ] {
        assert_eq!(try_parse(source).unwrap_err(), ReadError::HistoryOnServer, "{source}");
    }
    let whole = r#"{"model":"gpt-5","previous_response_id":null,"input":"And 3+3?"}"#;
    assert_eq!(outline(&parse(whole)), "user And 3+3?");
}

/// A log in which the provider keeps the conversation until its compact endpoint hands it over.
const COMPACTED_LOG: &str = r#"[
{"request":{"input":[{"role":"user","content":"one"}]},"response":{"id":"r1","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"1"}]}]}},
{"request":{"previous_response_id":"r1","input":[{"role":"user","content":"two"}]},"response":{"id":"r2","object":"response","previous_response_id":"r1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"2"}]}]}},
{"request":{"previous_response_id":"r2","model":"gpt-5"},"response":{"id":"r3","object":"response.compaction","output":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"id":"cmp_1","type":"compaction","encrypted_content":"c2VhbGVk"}]}},
{"request":{"model":"gpt-5","input":[{"encrypted_content":"c2VhbGVk","id":"cmp_1","type":"compaction"},{"role":"user","content":"three"}]},"response":{"id":"r4","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"3"}]}],"usage":{"input_tokens":276,"input_tokens_details":{"cached_tokens":256},"output_tokens":8}}}
]"#;

/// The first exchanges of the log.
fn log(exchanges: usize) -> String {
    let lines: Vec<&str> = COMPACTED_LOG.lines().skip(1).take(exchanges).collect();
    format!("[{}]", lines.join("\n").trim_end_matches(','))
}

#[test]
fn a_log_is_followed_by_the_ids_of_its_replies_and_over_compactions() {
    assert_eq!(outline(&parse(&log(1))), "user one | assistant 1");
    assert_eq!(outline(&parse(&log(2))), "user one | assistant 1 | user two | assistant 2");
    let handed_over = parse(&log(3));
    assert_eq!(outline(&handed_over), "system [compaction]");
    assert_eq!(handed_over.notes()[1], Note::BeforeCompaction { count: 1 });
    let session = parse(&log(4));
    assert_eq!(outline(&session), "system [compaction] | user three | assistant 3");
    assert_eq!(session.notes(), [Note::RepeatedHistory { requests: 4 }]);
    let usage = session.reported_usage().unwrap();
    assert_eq!((usage.message, usage.context_tokens.get(), usage.usage.cache_read.get()), (2, 284, 256));
    assert_eq!(
        compacted(&session, &[0, 2], session.format()),
        r#"{"model":"gpt-5","input":[{"encrypted_content":"c2VhbGVk","id":"cmp_1","type":"compaction"},{"type":"message","role":"user","content":[{"type":"input_text","text":"so far"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"3"}]}]}"#
    );
    // What a conversation was before its newest reply cannot be told.
    let branch = log(2)
        .replace("\"previous_response_id\":\"r1\",\"input\"", "\"previous_response_id\":\"r0\",\"input\"");
    assert_eq!(try_parse(&branch).unwrap_err(), ReadError::Conversations { count: 2 });
}

#[test]
fn a_request_without_input_is_written_as_a_list() {
    let source = r#"[{"request":{"input":"one"},"response":{"id":"r1","output":[]}},
        {"request":{"model":"gpt-5","instructions":"s","previous_response_id":"r1"},"response":{"id":"r2","output":[{"type":"message","role":"assistant","content":"1"}]}}]"#;
    let session = parse(source);
    assert_eq!(outline(&session), "user one | assistant 1");
    let written = compacted(&session, &[0, 1], session.format());
    assert!(
        written.starts_with(r#"[{"type":"message","role":"user""#) && written.ends_with("\"1\"}]"),
        "{written}"
    );
    assert_eq!(outline(&parse(&written)), "user so far | user one | assistant 1");
}

#[test]
fn a_string_is_one_message_of_the_user() {
    let source = r#"{"model":"gpt-5","input":"How \"far\"?","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Far."}]}]}}"#;
    let session = parse(source);
    assert_eq!(outline(&session), "user How \"far\"? | assistant Far.");
    assert_eq!(
        compacted(&session, &[0], session.format()),
        r#"{"model":"gpt-5","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"so far"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"How \"far\"?"}]}]}"#
    );
    assert_eq!(
        outline(&parse(&compacted(&session, &[0, 1], session.format()))),
        "user so far | user How \"far\"? | assistant Far."
    );
}

#[test]
fn instructions_may_be_dropped_and_repaired() {
    let session = parse(r#"{"instructions":"a\ud83d","input":"x"}"#);
    assert_eq!(session.notes(), [Note::LoneSurrogates { message: 0, count: 1 }]);
    assert!(
        compacted(&session, &[0, 1], session.format())
            .starts_with("{\"instructions\":\"a\u{fffd}\",\"input\":[{")
    );
    assert!(compacted(&session, &[1], session.format()).starts_with(r#"{"instructions":null,"input":[{"#));
}

#[test]
fn usage_of_a_loop_at_the_provider_or_from_before_a_compaction_is_no_context() {
    let reply = |output: &str| {
        let request = r#"{"model":"gpt-5","input":"x"}"#;
        parse(&format!(
            r#"[{{"request":{request},"response":{{"output":[{output}],"usage":{{"input_tokens":43902,"input_tokens_details":{{"cached_tokens":4352}},"output_tokens":4474}}}}}}]"#
        ))
    };
    let words = said("assistant", "y");
    assert_eq!(reply(&words).reported_usage().unwrap().context_tokens.get(), 48_376);
    assert!(reply(&format!(r#"{{"type":"web_search_call","id":"ws"}},{words}"#)).reported_usage().is_none());
    let compacted = reply(&format!(r#"{words},{{"type":"compaction","encrypted_content":"eA=="}}"#));
    assert!(compacted.reported_usage().is_none());
    assert_eq!(outline(&compacted), "system [compaction]");
}

#[test]
fn a_rollback_takes_turns_with_what_was_put_before_them() {
    let two_turns = meta()
        + &item("user", "<environment_context>a</environment_context>")
        + &item("user", "one")
        + &item("assistant", "1")
        + &item("developer", "<model_switch>b</model_switch>")
        + &item("user", "<environment_context>b</environment_context>")
        + &item("user", "two")
        + &item("assistant", "2");
    let context = "user <environment_context>a</environment_context>";
    let after = |turns: u64| parse(&(two_turns.clone() + &rolled_back(turns)));
    assert_eq!(outline(&after(1)), format!("{context} | user one | assistant 1"));
    assert!(after(1).notes().contains(&Note::RolledBack { count: 4 }));
    for all in [2, 3, u64::MAX] {
        assert_eq!(outline(&after(all)), context, "{all}");
    }
    assert_eq!(after(0).messages().len(), 7);
    let nothing = parse(&(meta() + &rolled_back(1) + &item("user", "one")));
    assert_eq!(outline(&nothing), "user one");
}

#[test]
fn a_rollback_reaches_what_a_compaction_kept() {
    let history = format!("[{},{}]", said("user", "one"), said("user", "two"));
    let compaction = format!(r#"{{"message":"","replacement_history":{history}}}"#);
    let source = meta() + &item("user", "zero") + &record("compacted", &compaction) + &item("assistant", "2");
    assert_eq!(outline(&parse(&source)), "user one | user two | assistant 2");
    assert_eq!(outline(&parse(&(source + &rolled_back(1)))), "user one");
}

#[test]
fn reports_count_once_for_what_the_model_just_said() {
    let usage = |source: String| {
        parse(&source).reported_usage().map(|usage| (usage.message, usage.context_tokens.get()))
    };
    let first = meta() + &item("user", "one") + &item("assistant", "1") + &tokens(184_704, 183_936, 49);
    assert_eq!(usage(first.clone()), Some((1, 184_753)));
    // A result, and a report that repeats the old one.
    let result = record("response_item", r#"{"type":"function_call_output","call_id":"c","output":"r"}"#);
    assert_eq!(usage(first.clone() + &result + &tokens(9, 0, 9)), Some((1, 184_753)));
    let second = first.clone() + &item("user", "two") + &item("assistant", "2") + &tokens(200_000, 0, 1);
    assert_eq!(usage(second.clone()), Some((3, 200_001)));
    assert_eq!(usage(second.clone() + &rolled_back(1) + &tokens(200_000, 0, 1)), Some((1, 184_753)));
    // Behind a compaction older reports are void, and zeros are Codex's guess.
    let compaction =
        record("compacted", &format!(r#"{{"message":"","replacement_history":[{}]}}"#, said("user", "two")));
    let behind = second + &compaction + &tokens(0, 0, 0);
    assert_eq!(usage(behind.clone()), None);
    assert_eq!(usage(behind.clone() + &item("assistant", "3") + &tokens(0, 0, 0)), None);
    assert_eq!(usage(behind + &item("assistant", "3") + &tokens(400, 100, 2)), Some((1, 402)));
}

#[test]
fn an_old_compaction_keeps_the_newest_words_of_the_user() {
    let long = "w".repeat(50_000);
    let source = meta()
        + &item("user", "<user_instructions>u</user_instructions>")
        + &item("user", "first")
        + &item("user", &long)
        + &item("assistant", "a")
        + &item("user", &long)
        + &item("user", "last")
        + &record("compacted", r#"{"message":"summary"}"#)
        + &item("assistant", "b");
    let session = parse(&source);
    let texts: Vec<usize> = session.messages().iter().map(outline_len).collect();
    assert_eq!(texts, [40, 50_000, 50_000, 4, 7, 1]);
    assert_eq!(session.derived_prefix(), 5);
}

fn outline_len(message: &Message) -> usize {
    match &**message.blocks() {
        [Block::Text { text }] => text.len(),
        _ => 0,
    }
}

const SEALED: &str = r#"{"encrypted_content": "c2VhbGVk",  "type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"text":"b","type":"summary_text"}]}"#;
const OPAQUE: &str = r#"{"id":"ws_1", "type":"web_search_call","action":{"x":1.50}}"#;
const COMPACTION: &str = r#"{ "type":"compaction","encrypted_content":"b3BhcXVl"}"#;

#[test]
fn sealed_items_stay_byte_for_byte_in_both_formats_of_openai() {
    let items = format!(
        "{COMPACTION},{},{SEALED},{OPAQUE},{},{}",
        said("user", "one"),
        said("assistant", "1"),
        said("user", "two")
    );
    let request = format!(r#"{{"model":"gpt-5","instructions":"s","input":[{items}]}}"#);
    let rollout = record("session_meta", r#"{"id":"s","base_instructions":{"text":"s"}}"#)
        + &[COMPACTION, &said("user", "one"), SEALED, OPAQUE, &said("assistant", "1"), &said("user", "two")]
            .map(|item| record("response_item", item))
            .concat();
    for source in [&request, &rollout] {
        let session = parse(source);
        let (_, repairs) = repair(&session);
        assert_eq!(repairs, []);
        assert_eq!(session.leading_system(), 2);
        for to in [Format::OpenAiResponses, Format::CodexRollout] {
            let written = compacted(&session, &[0, 1, 3, 4], to);
            for raw in [SEALED, OPAQUE, COMPACTION] {
                assert!(written.contains(raw), "{written}");
            }
            let back = parse(&written);
            assert_eq!(back.format(), to);
            assert_eq!(
                outline(&back),
                "system s | system [compaction] | user so far | assistant <thinking> [web_search_call] 1 | user two"
            );
            assert_eq!(back.messages()[3..], session.messages()[3..]);
        }
        let whole: Vec<usize> = (0..session.messages().len()).collect();
        let (to_other, report) =
            write(&session, &Replacement { summary: None, kept: &whole }, Format::EpitomeJson).unwrap();
        assert_eq!(report.losses, []);
        let (back, report) = write(
            &parse(std::str::from_utf8(&to_other).unwrap()),
            &Replacement { summary: None, kept: &whole },
            Format::OpenAiResponses,
        )
        .unwrap();
        // Opaque items are known to come from this API only in a source of this API.
        assert!(report.losses.iter().all(|loss| loss.kind.as_str() == "opaque"));
        assert!(String::from_utf8(back).unwrap().contains(r#""encrypted_content":"c2VhbGVk""#));
    }
}

#[test]
fn a_compacted_rollout_reads_as_one_again_and_again() {
    let source = meta()
        + &item("user", "one")
        + &item("assistant", "1")
        + &item("user", "two")
        + &item("assistant", "2");
    let first = parse(&compacted(&parse(&source), &[2, 3], Format::CodexRollout));
    assert_eq!(outline(&first), "user so far | user two | assistant 2");
    assert_eq!(first.derived_prefix(), 1);
    let more = compacted(&parse(&source), &[2, 3], Format::CodexRollout) + &item("user", "three");
    let second = parse(&more);
    assert_eq!(outline(&second), "user so far | user two | assistant 2 | user three");
    // Without a new summary the old one is still marked.
    let (kept, _) =
        write(&second, &Replacement { summary: None, kept: &[0, 3] }, Format::CodexRollout).unwrap();
    let third = parse(std::str::from_utf8(&kept).unwrap());
    assert_eq!((outline(&third).as_str(), third.derived_prefix()), ("user so far | user three", 1));
    // A translation keeps the mark.
    let (pi, _) = write(&second, &Replacement { summary: None, kept: &[0, 3] }, Format::PiSession).unwrap();
    assert_eq!(parse(std::str::from_utf8(&pi).unwrap()).derived_prefix(), 1);
}

#[test]
fn without_a_compaction_records_stay_as_they_are() {
    let source = meta() + &item("user", "one") + &item("assistant", "1") + &item("user", "two");
    let session = parse(&source);
    let (kept, report) =
        write(&session, &Replacement { summary: None, kept: &[0, 2] }, session.format()).unwrap();
    assert_eq!(String::from_utf8(kept).unwrap(), meta() + &item("user", "one") + &item("user", "two"));
    assert_eq!((report.verbatim, report.encoded), (2, 0));
}

#[test]
fn a_damaged_rollout_is_read_up_to_its_last_whole_record() {
    let torn = meta() + "{\"timestamp\":\"t\",\"type\":\"response_item\",\"pay\n" + &item("user", "one");
    let cut = item("assistant", "1");
    let session = parse(&(torn + cut.get(..60).unwrap()));
    assert_eq!(outline(&session), "user one");
    assert!(matches!(session.notes(), [Note::Damaged { line: 2, .. }, _, Note::SideRecords { count: 1 }]));
    let headless = parse(&("{\"type\":\"session_me\n".to_owned() + &item("user", "one")));
    let written = compacted(&headless, &[0], Format::CodexRollout);
    assert!(written.starts_with(r#"{"timestamp":"t","type":"session_meta","payload":{"id":""#), "{written}");
    assert_eq!(outline(&parse(&written)), "user so far | user one");
    let bare = "{\"id\":\"x\n{\"record_type\":\"state\"}\n".to_owned() + &said("user", "one") + "\n";
    let written = compacted(&parse(&bare), &[0], Format::CodexRollout);
    let back = parse(&written);
    assert_eq!((outline(&back).as_str(), back.format()), ("user so far | user one", Format::CodexRollout));
}

#[test]
fn a_session_that_was_forked_is_that_of_its_first_header() {
    let source = record("session_meta", r#"{"id":"new","cwd":"/new","base_instructions":{"text":"n"}}"#)
        + &record("session_meta", r#"{"id":"old","cwd":"/old","base_instructions":{"text":"o"}}"#)
        + &item("user", "one");
    let session = parse(&source);
    assert_eq!(outline(&session), "system n | user one");
    assert_eq!(session.cwd().unwrap().as_str(), "/new");
    assert!(session.lacks_system_and_tools());
}

#[test]
fn unknown_roles_are_refused_by_their_place() {
    let request = r#"{"input":[{"role":"user","content":"x"},{"role":"asst","content":"x"}]}"#;
    assert_eq!(try_parse(request).unwrap_err(), ReadError::UnknownRole { message: 1 });
    let rollout = meta() + &item("user", "x") + &item("asst", "x");
    assert_eq!(try_parse(&rollout).unwrap_err(), ReadError::UnknownRole { message: 2 });
}

#[test]
fn abandoned_calls_are_answered_in_their_own_form() {
    let calls = [
        r#"{"type":"custom_tool_call","call_id":"a","name":"patch","input":"x"}"#,
        r#"{"type":"local_shell_call","id":"l","call_id":"b","action":{}}"#,
        r#"{"type":"shell_call","call_id":"c","action":{"commands":[]}}"#,
        r#"{"type":"apply_patch_call","call_id":"d","operation":{}}"#,
        r#"{"type":"function_call","call_id":"e","name":"f","arguments":"{}"}"#,
    ];
    let source =
        format!(r#"{{"input":[{},{},{}]}}"#, said("user", "one"), calls.join(","), said("user", "two"));
    let (session, _) = repair(&parse(&source));
    let all: Vec<usize> = (0..session.messages().len()).collect();
    let (written, _) = write(&session, &Replacement { summary: None, kept: &all }, session.format()).unwrap();
    let written = String::from_utf8(written).unwrap();
    for answer in [
        r#"{"type":"custom_tool_call_output","call_id":"a","output":"no result recorded"}"#,
        r#"{"type":"local_shell_call_output","id":"b","output":"no result recorded"}"#,
        r#"{"type":"shell_call_output","call_id":"c","output":[{"stdout":"no result recorded","stderr":"","outcome":{"type":"exit","exit_code":1}}]}"#,
        r#"{"type":"apply_patch_call_output","call_id":"d","status":"failed","output":"no result recorded"}"#,
        r#"{"type":"function_call_output","call_id":"e","output":"no result recorded"}"#,
    ] {
        assert!(written.contains(answer), "{answer}\n{written}");
    }
    assert!(calls.iter().all(|call| written.contains(call)));
    assert_eq!(repair(&parse(&written)).1, []);
    let roles: Vec<Role> = parse(&written).messages().iter().map(Message::role).collect();
    assert_eq!(roles.iter().filter(|role| **role == Role::Tool).count(), 5);
}
