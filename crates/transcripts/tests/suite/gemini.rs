//! What Gemini would be sent, and what its command line would read from a compacted session.

use epitome_loop::{Block, Message, Role};
use epitome_transcripts::{Format, Note, ReadOptions, Replacement, Session, read, repair, write};
use proptest::prelude::*;
use serde_json::{Value, json};

fn parse(source: &str) -> Session {
    read(source.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap()
}

fn written(session: &Session, summary: Option<&str>, kept: &[usize]) -> String {
    let (bytes, _) = write(session, &Replacement { summary, kept }, session.format()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn texts(session: &Session) -> Vec<&str> {
    let text = |message: &'_ Message| match message.blocks().first() {
        Some(Block::Text { text }) => text.as_str().to_owned().leak() as &str,
        _ => "",
    };
    session.messages().iter().map(text).collect()
}

const HEADER: &str =
    "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"2026-01-01T00:00:00.000Z\"}\n";

fn record(id: &str, time: u32, kind: &str, rest: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:{time:02}.000Z\",\"type\":\"{kind}\",{rest}}}\n"
    )
}

fn said(id: &str, time: u32, kind: &str, text: &str) -> String {
    let tokens = if kind == "gemini" { ",\"tokens\":{\"input\":10,\"output\":1}" } else { "" };
    record(id, time, kind, &format!("\"content\":[{{\"text\":\"{text}\"}}]{tokens}"))
}

#[test]
fn later_records_replace_earlier_ones_and_rewinds_take_back() {
    let mut log = HEADER.to_owned() + &said("a", 1, "user", "one") + &said("b", 2, "gemini", "two");
    log += &said("a", 1, "user", "one, rather");
    log += "{\"$rewindTo\":\"nowhere\"}\n";
    assert_eq!(texts(&parse(&log)), ["one, rather", "two"]);
    let back = log.clone() + "{\"$rewindTo\":\"b\"}\n" + &said("c", 3, "user", "three");
    assert_eq!(texts(&parse(&back)), ["one, rather", "three"]);
    assert!(parse(&back).notes().contains(&Note::OtherBranches { count: 1 }));
    let set = log
        + "{\"$set\":{\"messages\":["
        + said("z", 4, "user", "all new").trim()
        + "]}}\n"
        + &said("c", 5, "user", "more");
    assert_eq!(texts(&parse(&set)), ["all new", "more"]);
}

#[test]
fn what_was_reported_before_a_compaction_is_void() {
    let log = HEADER.to_owned()
        + &said("a", 1, "user", "one")
        + &said("b", 2, "gemini", "two")
        + &said("c", 3, "user", "three")
        + &said("d", 4, "gemini", "four");
    let session = parse(&log);
    assert_eq!(session.reported_usage().unwrap().message, 3);
    let summary = "<conversation_summary><goal>g</goal></conversation_summary>";
    let compacted = written(&session, Some(summary), &[2, 3]);
    let back = parse(&compacted);
    assert_eq!(texts(&back), [summary, "three", "four"]);
    assert_eq!(back.reported_usage(), None);
    let later = parse(&(compacted + &said("e", 9, "gemini", "five")));
    assert_eq!(later.reported_usage().unwrap().message, 3);
}

#[test]
fn a_log_without_its_header_gets_a_new_one() {
    let torn =
        "{\"sessionId\":\"s\n".to_owned() + &said("a", 1, "user", "one") + &said("b", 2, "gemini", "two");
    let session = parse(&torn);
    let back = parse(&written(&session, Some("s"), &[1]));
    assert_eq!((texts(&back), back.notes()), (vec!["s", "two"], &[][..]));
    assert!(back.lacks_system_and_tools());
}

#[test]
fn results_beside_calls_and_in_messages_are_one() {
    let call = r#""content":[{"functionCall":{"id":"x","name":"f","args":{}}}],"toolCalls":[{"id":"x","name":"f","args":{},"result":[{"functionResponse":{"id":"x","name":"f","response":{"output":"masked"}}}]}]"#;
    let alone = HEADER.to_owned() + &said("a", 1, "user", "go") + &record("b", 2, "gemini", call);
    let session = parse(&alone);
    assert_eq!((texts(&session), repair(&session).1.len()), (vec!["go", "", "masked"], 0));
    let answer = r#""content":[{"functionResponse":{"id":"x","name":"f","response":{"output":"said"}}}]"#;
    let session = parse(&(alone + &record("c", 3, "user", answer)));
    assert_eq!((texts(&session), repair(&session).1.len()), (vec!["go", "", "said"], 0));
}

#[test]
fn signatures_go_back_to_their_parts() {
    let parts = concat!(
        r#"{"text":"think","thought":true,"thoughtSignature":"c2lnMA=="},{"text":"half \ud83d","thoughtSignature":"c2lnMQ=="},"#,
        r#"{"inlineData":{"mimeType":"image/png","data":"YQ=="},"thoughtSignature":"c2lnMg=="},"#,
        r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2lnMw=="},{"text":"","thoughtSignature":"c2lnNA=="}"#
    );
    let source =
        format!(r#"[{{"role":"user","parts":[{{"text":"go"}}]}},{{"role":"model","parts":[{parts}]}}]"#);
    let session = parse(&source);
    // Half a surrogate pair must not be sent, so the content is written anew.
    let out = written(&session, Some("s"), &[1]);
    assert!(
        out.ends_with(&format!(r#"{{"role":"model","parts":[{}]}}]"#, parts.replace("\\ud83d", "\u{fffd}"))),
        "{out}"
    );
}

#[test]
fn replies_are_read_in_every_form() {
    let request = r#""contents":[{"role":"user","parts":[{"text":"hi"}]}]"#;
    let content = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"ho"}]}}],"usageMetadata":{"promptTokenCount":3}}"#;
    let stream = json!(format!(
        "data: {content}\n\ndata: {{\"usageMetadata\":{{\"promptTokenCount\":4,\"candidatesTokenCount\":2}}}}\n\n"
    ));
    for (reply, expected, tokens) in [
        (content.to_owned(), "ho", Some(3)),
        (json!(content).to_string(), "ho", Some(3)),
        (format!("[{content}]"), "ho", Some(3)),
        (stream.to_string(), "ho", Some(6)),
    ] {
        let session = parse(&format!("{{\"request\":{{{request}}},\"response\":{reply}}}"));
        assert_eq!(texts(&session), ["hi", expected], "{reply}");
        assert_eq!(session.reported_usage().map(|usage| usage.context_tokens.get()), tokens);
        let out = written(&session, Some("s"), &[1]);
        assert_eq!(texts(&parse(&out)), ["s", "ho"]);
    }
    for (reply, note) in [
        (
            r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#,
            Note::AbortedMessages { count: 1 },
        ),
        (r#"{"error":{"code":500}}"#, Note::ReplyNotRead),
        ("[]", Note::ReplyNotRead),
    ] {
        let session = parse(&format!("{{{request},\"response\":{reply}}}"));
        assert_eq!((texts(&session), session.notes()), (vec!["hi"], &[note][..]), "{reply}");
    }
}

#[test]
fn only_what_is_no_request_lacks_its_prompt() {
    let content = r#"[{"role":"user","parts":[{"text":"hi"}]}]"#;
    assert!(parse(content).lacks_system_and_tools());
    assert!(parse(&format!("{{\"history\":{content}}}")).lacks_system_and_tools());
    assert!(!parse(&format!("{{\"contents\":{content}}}")).lacks_system_and_tools());
}

#[test]
fn the_snapshot_is_the_summary_wherever_it_goes() {
    let session = parse(include_str!("../fixtures/gemini-checkpoint.json"));
    let all: Vec<usize> = (0..session.messages().len()).collect();
    let whole = Replacement { summary: None, kept: &all };
    let (pi, _) = write(&session, &whole, Format::PiSession).unwrap();
    let back = read(&pi, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(back.derived_prefix(), 1);
    assert!(
        texts(&back)[0].starts_with("<state_snapshot>") && texts(&back)[1].starts_with("<session_context>")
    );
    let (epitome, _) = write(&session, &whole, Format::EpitomeJson).unwrap();
    assert_eq!(read(&epitome, &ReadOptions::default(), &mut |_| {}).unwrap().derived_prefix(), 2);
}

#[test]
fn hostile_sources_take_linear_time() {
    let many = 40_000;
    let call = r#"{"functionCall":{"name":"f"}}"#;
    let response = r#"{"functionResponse":{"name":"f","response":{"output":"x"}}}"#;
    let list = |part: &str| vec![part; many].join(",");
    let source = format!(
        r#"[{{"role":"model","parts":[{}]}},{{"role":"user","parts":[{}]}}]"#,
        list(call),
        list(response)
    );
    assert_eq!(parse(&source).messages().len(), many + 1);
    let mut log = HEADER.to_owned();
    for at in 0..many {
        log += &said(&format!("m{at}"), 1, "user", "x");
    }
    for at in (1..many).rev() {
        log += &format!("{{\"$rewindTo\":\"m{at}\"}}\n");
    }
    assert_eq!(parse(&log).messages().len(), 1);
}

/// A content in short: words of the user, or of the model with calls of these functions, or responses of them.
#[derive(Clone, Debug)]
enum Short {
    User,
    Model(Vec<u8>),
    Responses(Vec<u8>),
}

fn short() -> impl Strategy<Value = Short> {
    let names = || prop::collection::vec(0_u8..3, 1..4);
    prop_oneof![
        2 => Just(Short::User),
        1 => Just(Short::Model(Vec::new())),
        4 => names().prop_map(Short::Model),
        5 => names().prop_map(Short::Responses),
    ]
}

/// Without ids, with ids on the responses alone, or with ids on both sides.
fn content(short: &Short, ids: u8, at: usize) -> Value {
    let named = |name: &u8, has_id: bool| {
        let mut value = json!({"name": format!("f{name}")});
        if has_id {
            value["id"] = json!(format!("id{}_{name}", if ids == 1 { at } else { 0 }));
        }
        value
    };
    match short {
        Short::User => json!({"role": "user", "parts": [{"text": "go"}]}),
        Short::Model(names) => {
            let mut parts = vec![json!({"text": "so"})];
            parts.extend(names.iter().map(|name| json!({"functionCall": named(name, ids > 1)})));
            json!({"role": "model", "parts": parts})
        }
        Short::Responses(names) => {
            let response = |name: &u8| {
                let mut response = named(name, ids > 0);
                response["response"] = json!({"output": "x"});
                json!({"functionResponse": response})
            };
            json!({"role": "user", "parts": names.iter().map(response).collect::<Vec<_>>()})
        }
    }
}

/// Why contents are not ones that the API takes.
fn fault(contents: &[Value]) -> Option<String> {
    let names = |content: &Value, kind: &str| -> Vec<String> {
        let parts = content["parts"].as_array().unwrap();
        parts.iter().filter_map(|part| Some(part.get(kind)?["name"].as_str()?.to_owned())).collect()
    };
    if contents.first().is_some_and(|first| first["role"] != "user") {
        return Some("the user does not begin".to_owned());
    }
    for (at, content) in contents.iter().enumerate() {
        if content["parts"].as_array().unwrap().is_empty() {
            return Some(format!("{at} is empty"));
        }
        let mut calls = names(content, "functionCall");
        let responses = contents.get(at + 1).map(|next| names(next, "functionResponse")).unwrap_or_default();
        // The newest exchange may be open; then nothing is behind what has come.
        let is_open = at + 2 >= contents.len();
        for response in &responses {
            match calls.iter().position(|call| call == response) {
                Some(found) => drop(calls.remove(found)),
                None => return Some(format!("{at}: a response without a call")),
            }
        }
        if !calls.is_empty() && !is_open {
            return Some(format!("{at}: no response to {calls:?}"));
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_legal(shorts in prop::collection::vec(short(), 1..14), ids in 0_u8..3, from: prop::sample::Index) {
        let contents: Vec<Value> = shorts.iter().enumerate().map(|(at, short)| content(short, ids, at)).collect();
        let (session, repairs) = repair(&parse(&json!({"contents": contents}).to_string()));
        let messages = session.messages();
        // From any message that is no result on.
        let mut from = from.index(messages.len() + 1);
        while messages.get(from).is_some_and(|message| message.role() == Role::Tool) {
            from += 1;
        }
        let kept: Vec<usize> = (from..messages.len()).collect();
        let out: Value = serde_json::from_str(&written(&session, Some("before"), &kept)).unwrap();
        let out = out["contents"].as_array().unwrap();
        prop_assert_eq!(fault(out), None, "{}", json!(out));
        // Nothing is written anew without a reason.
        let split = shorts.windows(2).any(|two| matches!(two, [Short::Responses(_), Short::Responses(_)]));
        if repairs.is_empty() && !split {
            let verbatim = out.iter().filter(|content| contents.contains(content)).count();
            prop_assert_eq!(verbatim + 1, out.len());
        }
    }
}
