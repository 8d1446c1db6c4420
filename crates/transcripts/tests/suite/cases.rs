//! Inputs that users of other tools reported as faults, read and repaired here.

use std::path::Path;

use epitome_loop::{Block, Message, Role};
use epitome_transcripts::{
    Format, Note, ReadError, ReadOptions, Repair, Replacement, Session, read, repair, write,
};
use serde_json::{Value, json};

fn case(id: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(id).with_extension("json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The messages of a case as Epitome JSON.
fn document(case: &Value) -> Vec<u8> {
    let messages: Vec<Value> = case["messages"].as_array().unwrap().iter().flat_map(messages_of).collect();
    serde_json::to_vec(&json!({"epitome": 1, "messages": messages})).unwrap()
}

fn messages_of(message: &Value) -> Vec<Value> {
    let blocks = message["blocks"].as_array().unwrap();
    if message["role"] == "tool" {
        let results = blocks.iter().map(|block| {
            let mut result = block.clone();
            result["role"] = json!("tool");
            result
        });
        return results.collect();
    }
    let content: Vec<Value> = blocks
        .iter()
        .map(|block| match block["type"].as_str().unwrap() {
            "text" | "tool_use" => block.clone(),
            "thinking" => {
                let mut block = block.clone();
                block["signature_format"] = json!("anthropic");
                block
            }
            kind => json!({"type": "opaque", "kind": kind, "raw": block}),
        })
        .collect();
    let mut mapped = json!({"role": message["role"], "content": content});
    if let Some(summary) = message.get("summary") {
        mapped["summary"] = summary.clone();
    }
    vec![mapped]
}

fn parse(bytes: &[u8]) -> Session {
    read(bytes, &ReadOptions::default(), &mut |_| {}).unwrap()
}

/// Every call answered exactly once right behind its message, or open at the very end; the user first.
fn is_legal(messages: &[Message]) -> bool {
    let spoken = messages.iter().find(|message| message.role() != Role::System);
    let mut rest = messages;
    let mut legal = spoken.is_none_or(|message| message.role() == Role::User);
    while let Some((message, behind)) = rest.split_first() {
        legal &= message.role() != Role::Tool;
        let mut calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        let results = behind.iter().take_while(|message| message.role() == Role::Tool).count();
        let (results, behind) = behind.split_at(results);
        for result in results {
            let Message::ToolResult { tool_use_id, .. } = result else { unreachable!() };
            let open = calls.iter().position(|id| *id == tool_use_id.as_str());
            legal &= open.is_some();
            open.map(|at| calls.remove(at));
        }
        legal &= calls.is_empty() || behind.is_empty();
        rest = behind;
    }
    legal
}

fn holds(messages: &[Message], text: &str) -> bool {
    messages.iter().any(|message| format!("{:?}", texts(message)).contains(text))
}

fn texts(message: &Message) -> Vec<&str> {
    message.blocks().iter().filter_map(text_of).collect()
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

#[test]
fn calls_and_results_are_brought_together() {
    for (id, must_hold) in [
        ("orphan-mixed-parallel", "src/a.rs:10: TODO tidy"),
        ("orphan-ten-parallel", "Chapter 10 body."),
        ("orphan-use-in-tail", "Are you still there? Continue please."),
        ("pending-confirmation", "approved by the person"),
        ("pending-dead-call-blocks", "[summary] earlier"),
        ("dup-completed-and-aborted", "3 items saved"),
        ("servertool-in-turn-search", "Summarise the two fixes."),
        ("roles-first-must-be-user", "Step 7."),
        ("thinking-foreign-model", "Plan B is safer."),
    ] {
        let session = parse(&document(&case(id)));
        let (repaired, repairs) = repair(&session);
        assert!(is_legal(repaired.messages()), "{id}: {repairs:?}");
        assert!(holds(repaired.messages(), must_hold), "{id}");
        assert!(repair(&repaired).1.is_empty(), "{id} is repaired twice");
    }
}

#[test]
fn each_repair_is_told() {
    let repairs = |id| repair(&parse(&document(&case(id)))).1;
    assert_eq!(repairs("orphan-mixed-parallel"), [Repair::DroppedResult { message: 2 }]);
    assert_eq!(repairs("orphan-use-in-tail"), [Repair::ClosedCall { message: 7 }]);
    assert_eq!(repairs("pending-confirmation"), [Repair::MovedCall { message: 1 }]);
    assert_eq!(repairs("pending-dead-call-blocks"), [Repair::ClosedCall { message: 1 }]);
    assert_eq!(
        repairs("dup-completed-and-aborted"),
        [Repair::MergedCalls { message: 6 }, Repair::DroppedSecondResult { message: 8 }]
    );
    assert_eq!(repairs("servertool-in-turn-search"), []);
    assert_eq!(repairs("thinking-foreign-model"), []);
}

#[test]
fn a_call_that_waited_while_the_model_went_on_moves_down_to_its_result() {
    let call = |id: &str| {
        let call = format!(r#"{{"type":"tool_use","id":"{id}","name":"ask","input":{{}}}}"#);
        format!(r#"{{"role":"assistant","content":[{call}]}}"#)
    };
    let result = |id: &str| format!(r#"{{"role":"tool","tool_use_id":"{id}","content":"yes"}}"#);
    let said = |role: &str| format!(r#"{{"role":"{role}","content":"words"}}"#);
    let (user, model) = (said("user"), said("assistant"));
    for (messages, order, repairs) in [
        (
            vec![user.clone(), call("a"), user.clone(), model.clone(), result("a")],
            "user user assistant:words assistant:call tool",
            vec![Repair::MovedCall { message: 1 }],
        ),
        // The user spoke, but the model has not gone on: the result belongs to where it was asked for.
        (
            vec![user.clone(), call("a"), user.clone(), result("a")],
            "user assistant:call tool user",
            vec![Repair::MovedResult { message: 3 }],
        ),
        // Parallel calls that a log wrote as messages of their own.
        (
            vec![user.clone(), call("a"), call("b"), result("a"), result("b")],
            "user assistant:call tool assistant:call tool",
            vec![Repair::MovedResult { message: 3 }, Repair::MovedResult { message: 4 }],
        ),
    ] {
        let document = format!(r#"{{"epitome":1,"messages":[{}]}}"#, messages.join(","));
        let (repaired, told) = repair(&parse(document.as_bytes()));
        let found: Vec<String> = repaired.messages().iter().map(outline).collect();
        assert_eq!(told, repairs);
        assert_eq!(found.join(" "), order);
        assert!(is_legal(repaired.messages()));
        assert_eq!(repair(&repaired).1, []);
    }
}

fn outline(message: &Message) -> String {
    match (message.role(), message.tool_calls().next()) {
        (Role::Assistant, Some(_)) => "assistant:call".to_owned(),
        (Role::Assistant, None) => "assistant:words".to_owned(),
        (role, _) => role.as_str().to_owned(),
    }
}

#[test]
fn an_unknown_role_is_refused_by_its_index() {
    let refused = read(&document(&case("unknown-role")), &ReadOptions::default(), &mut |_| {});
    assert_eq!(refused.unwrap_err(), ReadError::UnknownRole { message: 1 });
}

#[test]
fn nothing_to_do_changes_nothing() {
    let bytes = document(&case("noop-must-be-identity"));
    let session = parse(&bytes);
    let (repaired, repairs) = repair(&session);
    assert_eq!(repairs, []);
    let all: Vec<usize> = (0..repaired.messages().len()).collect();
    let (written, _) =
        write(&repaired, &Replacement { summary: None, kept: &all }, Format::EpitomeJson).unwrap();
    assert!(written == bytes);
}

#[test]
fn signed_thinking_and_provider_items_stay_as_they_are() {
    for id in ["thinking-foreign-model", "servertool-in-turn-search"] {
        let bytes = document(&case(id));
        let session = parse(&bytes);
        let newest: Vec<usize> = (session.messages().len() - 2..session.messages().len()).collect();
        let kept = Replacement { summary: Some("s"), kept: &newest };
        let (written, report) = write(&session, &kept, Format::EpitomeJson).unwrap();
        assert_eq!((report.verbatim, report.encoded), (2, 1));
        let text = String::from_utf8(bytes).unwrap();
        let (_, last) =
            text.split_at(text.rfind("{\"content\":[{\"kind\"").or(text.rfind("{\"content\"")).unwrap());
        assert!(String::from_utf8(written).unwrap().ends_with(last), "{id}");
    }
}

/// Records of these cases have their text beside their role; a pi session carries them as labels, which
/// shows what is recovered and what is reported.
#[test]
fn torn_files_lose_only_what_is_torn() {
    for (id, damaged) in [
        ("torn-fused-line", vec![2]),
        ("torn-prefix-then-whole", vec![2]),
        ("torn-two-objects-one-line", vec![]),
    ] {
        let case = case(id);
        let lines: Vec<&str> =
            case["raw_lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let recovered = case["expect"]["recovered_ids"].as_array().unwrap().len();
        let session = parse(chat(&lines.join("\n")).as_bytes());
        assert_eq!(session.messages().len(), recovered, "{id}");
        assert_eq!(damaged_lines(&session), damaged, "{id}");
    }
}

#[test]
fn half_a_surrogate_pair_costs_one_character() {
    let case = case("lone-surrogate-input");
    let lines: Vec<&str> =
        case["raw_lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let session = parse(chat(&lines.join("\n")).as_bytes());
    assert_eq!(texts(&session.messages()[0]), ["status \u{fffd} ok"]);
    assert_eq!(session.notes(), [Note::LoneSurrogates { message: 0, count: 1 }]);
    let all = Replacement { summary: None, kept: &[0, 1] };
    let (written, report) = write(&session, &all, Format::OpenAiChat).unwrap();
    assert_eq!((report.verbatim, report.encoded), (1, 1));
    assert!(
        String::from_utf8(written)
            .unwrap()
            .starts_with("{\"role\":\"user\",\"content\":\"status \u{fffd} ok\"}\n{")
    );
}

/// The records as lines of chat messages.
fn chat(lines: &str) -> String {
    lines.replace("\"text\":", "\"content\":")
}

fn damaged_lines(session: &Session) -> Vec<u64> {
    let line = |note: &Note| match note {
        Note::Damaged { line, .. } => Some(*line),
        _ => None,
    };
    session.notes().iter().filter_map(line).collect()
}
