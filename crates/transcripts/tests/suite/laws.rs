//! Laws that hold for every transcript.

use std::path::Path;

use epitome_loop::{Block, Message, Role};
use epitome_transcripts::{Format, ReadOptions, Replacement, Session, read, repair, write};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// A message in the terms of the test.
#[derive(Clone, Debug)]
enum Said {
    System(String),
    User(String),
    Model(String, Vec<String>),
    Result(String, String),
    Nothing(bool),
}

fn said() -> impl Strategy<Value = Said> {
    let id = || prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let text = || "[a-z\u{e9}\u{1f600}\"\\\\\n]{1,8}";
    prop_oneof![
        1 => text().prop_map(Said::System),
        3 => text().prop_map(Said::User),
        4 => (text(), prop::collection::vec(id(), 0..3)).prop_map(|(text, ids)| Said::Model(text, ids)),
        5 => (id(), text()).prop_map(|(id, text)| Said::Result(id, text)),
        1 => any::<bool>().prop_map(Said::Nothing),
    ]
}

fn openai(said: &Said) -> Value {
    match said {
        Said::System(text) => json!({"role": "system", "content": text}),
        Said::User(text) => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
        Said::Model(text, ids) if ids.is_empty() => json!({"role": "assistant", "content": text}),
        Said::Model(text, ids) => {
            let call =
                |id| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": text}});
            json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
        }
        Said::Result(id, text) => json!({"role": "tool", "tool_call_id": id, "content": text}),
        Said::Nothing(true) => json!({"role": "user", "content": ""}),
        Said::Nothing(false) => json!({"role": "assistant", "content": []}),
    }
}

fn anthropic(said: &Said) -> Value {
    match said {
        Said::System(text) | Said::User(text) => json!({"role": "user", "content": text}),
        Said::Model(text, ids) => {
            let call = |id| json!({"type": "tool_use", "id": id, "name": "f", "input": {"text": text}});
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(ids.iter().map(call));
            json!({"role": "assistant", "content": content})
        }
        Said::Result(id, text) => json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text},
            {"type": "tool_result", "tool_use_id": "b", "is_error": true},
            {"type": "text", "text": text}]}),
        Said::Nothing(_) => json!({"role": "user", "content": [
            {"type": "text", "text": "first"}, {"type": "tool_result", "tool_use_id": "c"}]}),
    }
}

fn pi(said: &Said) -> Value {
    let message = match said {
        Said::System(text) | Said::User(text) => json!({"role": "user", "content": text}),
        Said::Model(text, ids) => {
            let call = |id| json!({"type": "toolCall", "id": id, "name": "f", "arguments": {"text": text}});
            let mut content = vec![json!({"type": "text", "text": text})];
            content.extend(ids.iter().map(call));
            json!({"role": "assistant", "content": content, "provider": "p", "model": "m"})
        }
        Said::Result(id, text) => {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "f",
                "content": [{"type": "text", "text": text}], "isError": text.len() > 3})
        }
        Said::Nothing(_) => return json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
    };
    json!({"type": "message", "timestamp": "2026-01-01T00:00:00.000Z", "message": message})
}

/// The items of the Responses API; what the model says in one go takes several.
fn items(said: &Said) -> Vec<Value> {
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    match said {
        Said::System(text) => vec![message("developer", "input_text", text)],
        Said::User(text) => vec![json!({"role": "user", "content": text})],
        Said::Model(text, ids) => {
            let call =
                |id: &String| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": text});
            let thought =
                json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2VhbA=="});
            let said = message("assistant", "output_text", text);
            [thought, said].into_iter().chain(ids.iter().map(call)).collect()
        }
        Said::Result(id, text) => {
            vec![json!({"type": "function_call_output", "call_id": id, "output": text})]
        }
        Said::Nothing(true) => vec![json!({"role": "user", "content": ""})],
        Said::Nothing(false) => vec![json!({"type": "web_search_call", "id": "ws", "status": "completed"})],
    }
}

/// A rollout of Codex, with events between the items.
fn codex(said: &[Said]) -> Vec<u8> {
    let record = |kind: &str, payload: Value| json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload});
    let mut records = vec![record("session_meta", json!({"id": "x", "base_instructions": {"text": "s"}}))];
    for item in said.iter().flat_map(items) {
        records.push(record("response_item", item));
        records.push(record("event_msg", json!({"type": "agent_message"})));
    }
    records.iter().map(|record| format!("{record}\n")).collect::<String>().into_bytes()
}

/// The records of a pi session, each naming the one before it.
fn pi_tree(said: &[Said]) -> Vec<u8> {
    let mut session = b"{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"/\"}\n".to_vec();
    for (at, said) in said.iter().enumerate() {
        let mut record = pi(said);
        record["id"] = json!(format!("{at:08x}"));
        record["parentId"] = if at == 0 { Value::Null } else { json!(format!("{:08x}", at - 1)) };
        session.extend(serde_json::to_vec(&record).unwrap());
        session.push(b'\n');
    }
    session
}

fn gemini(said: &Said) -> Value {
    match said {
        Said::System(text) | Said::User(text) => json!({"role": "user", "parts": [{"text": text}]}),
        Said::Model(text, ids) => {
            let call = |id| json!({"functionCall": {"id": id, "name": "f", "args": {"text": text}}, "thoughtSignature": "c2ln"});
            let mut parts = vec![
                json!({"text": text, "thought": text.len() > 3}),
                json!({"text": text, "thoughtSignature": "c2ln"}),
            ];
            parts.extend(ids.iter().map(call));
            json!({"role": "model", "parts": parts})
        }
        Said::Result(id, text) => json!({"role": "user", "parts": [
            {"functionResponse": {"id": id, "name": "f", "response": {"output": text}}},
            {"function_response": {"id": "b", "name": "f", "response": {"a": 1, "b": text}, "parts": [{"inline_data": {"mime_type": "image/png", "data": "YQ=="}}]}},
            {"text": text}]}),
        Said::Nothing(true) => json!({"role": "model", "parts": []}),
        Said::Nothing(false) => json!({"role": "function", "parts": [
            {"text": "first"}, {"functionResponse": {"id": "c", "name": "f", "response": {"error": "e"}}}]}),
    }
}

/// A record of a session of the Gemini command line.
fn gemini_record(at: usize, said: &Said) -> Value {
    let mut record = match said {
        Said::System(text) | Said::User(text) => json!({"type": "user", "content": text}),
        Said::Model(text, ids) => {
            let call = |id: &String| {
                json!({"id": id, "name": "f", "args": {"text": text}, "status": "success",
                    "result": if id == "a" { Value::Null } else { json!([{"functionResponse": {"id": id, "name": "f", "response": {"output": text}}}]) }})
            };
            json!({"type": "gemini", "content": [{"text": text}], "toolCalls": ids.iter().map(call).collect::<Vec<_>>()})
        }
        // What stands beside its call is not said once more.
        Said::Result(id, _) if id != "a" => json!({"type": "error", "content": "x"}),
        Said::Result(id, text) => json!({"type": "user", "content": [
            {"functionResponse": {"id": id, "name": "f", "response": {"output": text}}}]}),
        Said::Nothing(true) => json!({"type": "info", "content": "x"}),
        Said::Nothing(false) => {
            json!({"type": "gemini", "content": "", "thoughts": [{"subject": "s", "description": "d"}]})
        }
    };
    record["id"] = json!(format!("r{at}"));
    record["timestamp"] = json!("2026-01-01T00:00:00.000Z");
    record
}

/// The content blocks of the records that Claude Code writes for a message.
fn claude_blocks(said: &Said) -> Vec<Value> {
    match said {
        Said::Model(text, ids) => {
            let call = |id| json!({"type": "tool_use", "id": id, "name": "f", "input": {"text": text}});
            std::iter::once(json!({"type": "text", "text": text})).chain(ids.iter().map(call)).collect()
        }
        Said::Result(id, text) => {
            vec![
                json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": text.len() > 3}),
            ]
        }
        _ => Vec::new(),
    }
}

/// The records that Claude Code writes: one for each block of the model, results below the record of their call,
/// and what follows below the newest of them, so that the way back misses pieces.
fn claude_session(said: &[Said]) -> Vec<u8> {
    let mut records: Vec<Value> =
        vec![json!({"type": "permission-mode", "permissionMode": "plan", "sessionId": "s"})];
    let mut below = Value::Null;
    let mut calls: Vec<(String, Value)> = Vec::new();
    for (at, said) in said.iter().enumerate() {
        let mut add = |kind: &str, message: Value, parent: &Value| {
            let uuid = json!(format!("u{}", records.len()));
            records.push(
                json!({"parentUuid": parent, "isSidechain": false, "type": kind, "message": message,
                "uuid": uuid, "sessionId": "s",
                "timestamp": format!("2026-01-01T00:{:02}:{:02}Z", records.len() / 60, records.len() % 60)}),
            );
            uuid
        };
        match said {
            Said::System(text) | Said::User(text) => {
                below = add("user", json!({"role": "user", "content": text}), &below);
            }
            Said::Model(..) => {
                calls.clear();
                for block in claude_blocks(said) {
                    let id = block["id"].as_str().unwrap_or_default().to_owned();
                    let message = json!({"id": format!("msg_{at}"), "role": "assistant", "model": "claude-x",
                        "content": [block], "usage": {"input_tokens": at + 1, "output_tokens": 1}});
                    below = add("assistant", message, &below);
                    calls.push((id, below.clone()));
                }
            }
            Said::Result(id, _) => {
                let call = calls.iter().position(|(call, _)| call == id).map(|at| calls.remove(at).1);
                let message = json!({"role": "user", "content": claude_blocks(said)});
                below = add("user", message, call.as_ref().unwrap_or(&below));
            }
            Said::Nothing(true) => {
                below = add(
                    "user",
                    json!({"role": "user", "content": [
                    {"type": "text", "text": "first"}, {"type": "tool_result", "tool_use_id": "c"}]}),
                    &below,
                );
            }
            Said::Nothing(false) => {
                let message = json!({"id": format!("msg_{at}"), "role": "assistant", "content": []});
                below = add("assistant", message, &below);
            }
        }
    }
    lines(&records)
}

/// What Claude Code prints of the same.
fn claude_stream(said: &[Said]) -> Vec<u8> {
    let mut records =
        vec![json!({"type": "system", "subtype": "init", "model": "claude-x", "session_id": "s"})];
    for (at, said) in said.iter().enumerate() {
        let mut add = |kind: &str, message: Value| {
            let uuid = format!("u{}", records.len());
            records.push(json!({"type": kind, "message": message, "parent_tool_use_id": null, "uuid": uuid,
                "session_id": "s"}));
        };
        match said {
            Said::System(text) | Said::User(text) => add("user", json!({"role": "user", "content": text})),
            Said::Model(..) => {
                for block in claude_blocks(said) {
                    add(
                        "assistant",
                        json!({"id": format!("msg_{at}"), "role": "assistant", "content": [block]}),
                    );
                }
            }
            Said::Result(..) => add("user", json!({"role": "user", "content": claude_blocks(said)})),
            Said::Nothing(_) => records.push(json!({"type": "stream_event", "event": {}, "session_id": "s"})),
        }
    }
    lines(&records)
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().flat_map(|record| (record.to_string() + "\n").into_bytes()).collect()
}

/// A source in each format that holds the messages, the list not empty.
fn sources(said: &[Said], pretty: bool) -> Vec<Vec<u8>> {
    let text =
        |value: &Value| if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    let list = |map: fn(&Said) -> Value| said.iter().map(map).collect::<Vec<Value>>();
    let chat = json!({"model": "gpt-4.1", "messages": list(openai), "n": 1.50, "response": null});
    let claude =
        json!({"system": "s", "max_tokens": 9, "messages": list(anthropic), "tools": [{"input_schema": {}}]});
    let lines = list(openai).iter().map(Value::to_string).collect::<Vec<_>>().join("\n").into_bytes();
    let input: Vec<Value> = said.iter().flat_map(items).collect();
    let responses = json!({"model": "gpt-5", "instructions": "s", "input": input, "top_p": 1.50});
    let mut session = b"{\"type\":\"session\",\"id\":\"x\",\"cwd\":\"/\"}\n".to_vec();
    for record in list(pi) {
        session.extend(serde_json::to_vec(&record).unwrap());
        session.push(b'\n');
    }
    let contents =
        json!({"contents": list(gemini), "tools": [], "systemInstruction": {"parts": [{"text": "s"}]}});
    let records: Vec<Value> = said.iter().enumerate().map(|(at, said)| gemini_record(at, said)).collect();
    let document = json!({"sessionId": "s", "projectHash": "h", "messages": records, "startTime": "t"});
    let mut log = b"{\"sessionId\":\"s\",\"projectHash\":\"h\"}\n{\"$set\":{\"summary\":\"t\"}}\n".to_vec();
    for record in &records {
        log.extend(serde_json::to_vec(record).unwrap());
        log.push(b'\n');
    }
    let (translated, _) =
        write(&parse(&text(&chat).unwrap()), &everything(said.len()), Format::EpitomeJson).unwrap();
    vec![
        text(&chat).unwrap(),
        text(&json!(list(openai))).unwrap(),
        text(&claude).unwrap(),
        lines,
        session,
        pi_tree(said),
        text(&responses).unwrap(),
        text(&json!(input)).unwrap(),
        codex(said),
        claude_session(said),
        claude_stream(said),
        translated,
        text(&contents).unwrap(),
        text(&document).unwrap(),
        log,
    ]
}

fn everything(len: usize) -> Replacement<'static> {
    let all: Vec<usize> = (0..len).collect();
    Replacement { summary: None, kept: all.leak() }
}

fn parse(bytes: &[u8]) -> Session {
    read(bytes, &ReadOptions::default(), &mut |_| {}).unwrap()
}

fn without_report(message: &Message) -> Message {
    match message {
        Message::Assistant { blocks, usage: _ } => Message::Assistant { blocks: blocks.clone(), usage: None },
        other => other.clone(),
    }
}

/// The messages as the format of a session can hold them: those of OpenAI do not mark errors, where messages are
/// made of items, what the model says in a row is one message, and results in records of Claude Code are read in the
/// order of their calls.
fn held(session: &Session, messages: Vec<Message>) -> Vec<Message> {
    let of_items = matches!(session.format(), Format::OpenAiResponses | Format::CodexRollout);
    let mut held: Vec<Message> = Vec::new();
    for message in messages {
        match (held.last_mut(), message) {
            (_, Message::ToolResult { blocks, tool_use_id, .. })
                if of_items || session.format() == Format::OpenAiChat =>
            {
                held.push(Message::ToolResult { blocks, tool_use_id, is_error: false });
            }
            (Some(Message::Assistant { blocks: said, .. }), Message::Assistant { blocks, .. })
                if of_items =>
            {
                *said = said.iter().chain(blocks.iter()).cloned().collect();
            }
            (_, message) => held.push(message),
        }
    }
    if matches!(session.format(), Format::ClaudeCode | Format::ClaudeStreamJson) {
        let mut calls: Vec<String> = Vec::new();
        for run in held.chunk_by_mut(|one, other| one.role() == Role::Tool && other.role() == Role::Tool) {
            // Where results without a call stand among the others says nothing.
            let mut place = |message: &Message| match message {
                Message::ToolResult { tool_use_id, blocks, .. } => {
                    let at = calls.iter().position(|id| *id == tool_use_id.as_str());
                    let at = at.inspect(|at| calls[*at].push('!')).unwrap_or(usize::MAX);
                    (at, tool_use_id.as_str().to_owned(), blocks.first().and_then(text_of))
                }
                _ => (0, String::new(), None),
            };
            let places: Vec<_> = run.iter().map(&mut place).collect();
            let mut order: Vec<usize> = (0..run.len()).collect();
            order.sort_by_key(|at| &places[*at]);
            let sorted: Vec<Message> = order.into_iter().map(|at| run[at].clone()).collect();
            run.clone_from_slice(&sorted);
            if run[0].role() != Role::Tool {
                calls = run[0].tool_calls().map(|call| call.id.as_str().to_owned()).collect();
            }
        }
    }
    held
}

fn text_of(block: &Block) -> Option<String> {
    match block {
        Block::Text { text } => Some(text.as_str().to_owned()),
        _ => None,
    }
}

/// Why the order of messages is not one that providers accept.
fn fault(messages: &[Message]) -> Option<&'static str> {
    let spoken = messages.iter().find(|message| message.role() != Role::System);
    if spoken.is_some_and(|message| message.role() != Role::User) {
        return Some("the user does not begin");
    }
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        let results = behind.iter().take_while(|message| message.role() == Role::Tool).count();
        let (results, behind) = behind.split_at(results);
        let mut open: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        let mut ids = open.clone();
        ids.sort_unstable();
        ids.dedup();
        if message.blocks().is_empty() || ids.len() != open.len() {
            return Some("a message is empty or has two calls with one id");
        }
        for result in results {
            let Message::ToolResult { tool_use_id, .. } = result else { return Some("not a result") };
            match open.iter().position(|id| *id == tool_use_id.as_str()) {
                Some(at) => drop(open.remove(at)),
                None => return Some("a result without a call"),
            }
        }
        if !open.is_empty() && !behind.is_empty() {
            return Some("a call without a result");
        }
        rest = behind;
    }
    None
}

/// Whether a result is kept without the message that it answers.
fn parts_exchange(messages: &[Message], kept: &[usize], at: usize) -> bool {
    let call = (0..at).rev().find(|&at| messages[at].role() != Role::Tool);
    messages[at].role() == Role::Tool && call.is_some_and(|call| !kept.contains(&call))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_written_byte_for_byte(said in prop::collection::vec(said(), 1..12), pretty: bool) {
        for source in sources(&said, pretty) {
            let session = parse(&source);
            let (written, _) =
                write(&session, &everything(session.messages().len()), session.format()).unwrap();
            prop_assert!(written == source);
        }
    }

    #[test]
    fn a_repaired_order_is_legal_and_stays(said in prop::collection::vec(said(), 1..16)) {
        for source in sources(&said, false) {
            let (repaired, repairs) = repair(&parse(&source));
            prop_assert_eq!(fault(repaired.messages()), None, "{:?}", repairs);
            let (_, again) = repair(&repaired);
            prop_assert_eq!(again, vec![]);
            if !repaired.messages().is_empty() {
                let (written, _) =
                    write(&repaired, &everything(repaired.messages().len()), repaired.format()).unwrap();
                let back = parse(&written);
                let expected = held(&repaired, repaired.messages().to_vec());
                prop_assert!(held(&back, back.messages().to_vec()) == expected, "{}", String::from_utf8_lossy(&written));
                prop_assert_eq!(repair(&back).1, vec![]);
            }
        }
    }

    #[test]
    fn a_compacted_session_reads_as_summary_and_what_was_kept(
        said in prop::collection::vec(said(), 1..12),
        holes in prop::collection::vec(any::<Index>(), 0..5),
        pretty: bool,
    ) {
        for source in sources(&said, pretty) {
            let (session, _) = repair(&parse(&source));
            let mut kept: Vec<usize> = (0..session.messages().len()).collect();
            for hole in &holes {
                if kept.len() > session.leading_system() {
                    let span = session.leading_system()..kept.len();
                    kept.remove(span.start + hole.index(span.len()));
                }
            }
            // A record that holds call and result brings the call back with it.
            let is_log = source.windows(11).any(|window| window == b"\"sessionId\"");
            if is_log && kept.iter().any(|&at| parts_exchange(session.messages(), &kept, at)) {
                continue;
            }
            // System messages of a source that holds them as messages may stand anywhere.
            // What was reported before is void behind a summary.
            let mut expected: Vec<Message> =
                kept.iter().map(|&index| without_report(&session.messages()[index])).collect();
            let summary = Replacement { summary: Some("what <was> \"before\""), kept: &kept };
            let (written, report) = write(&session, &summary, session.format()).unwrap();
            prop_assert!(report.losses.iter().all(|loss| loss.kind.as_str() == "error_flag"));
            let back = read(&written, &ReadOptions { format: Some(session.format()), conversation: None }, &mut |_| {}).unwrap();
            let lead = expected.iter().take_while(|message| message.role() == Role::System).count();
            expected.insert(lead, Message::user("what <was> \"before\""));
            let expected = held(&session, expected);
            prop_assert!(held(&back, back.messages().to_vec()) == expected, "{}", String::from_utf8_lossy(&written));
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        which: Index,
        changes in prop::collection::vec((any::<Index>(), 0_usize..5, any::<u8>()), 1..6),
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.is_file());
        paths.sort();
        let mut bytes = std::fs::read(which.get(&paths)).unwrap();
        for (place, kind, byte) in changes {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 => bytes.truncate(at.max(1)),
                _ => bytes[at..].fill(0),
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        for format in std::iter::once(None).chain(Format::ALL.map(Some)) {
            let Ok(session) = read(&bytes, &ReadOptions { format, conversation: Some(0) }, &mut |_| {}) else { continue };
            let (repaired, _) = repair(&session);
            prop_assert_eq!(fault(repaired.messages()), None);
            let kept: Vec<usize> = (0..repaired.messages().len()).step_by(2).collect();
            for target in Format::ALL {
                write(&repaired, &Replacement { summary: Some("s"), kept: &kept }, target).unwrap();
            }
        }
    }
}
