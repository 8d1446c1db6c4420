//! What all interfaces have in common: requests in their exact form, and readers that no bytes upset.

use epitome_loop::{
    AnswerForm, Audio, Block, FinishReason, Image, Message, ModelCall, ModelCallErrorKind, ModelKey, Opaque,
    RawJson, Request, Sampling, SharedBytes, Thinking, TokenCount, ToolResult, ToolUse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anthropic::AnthropicMessages;
use crate::dialect::{Interface, NoPlace};
use crate::gemini::GeminiContents;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::{ChatServer, WORDLESS_REFUSAL};

fn interfaces() -> [(&'static str, Box<dyn Interface>); 4] {
    [
        ("chat", Box::new(OpenAiChat::new(ChatServer::Compatible))),
        ("responses", Box::new(OpenAiResponses)),
        ("messages", Box::new(AnthropicMessages)),
        ("contents", Box::new(GeminiContents)),
    ]
}

fn json_of(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// A conversation with everything that every interface has a place for.
fn conversation() -> Vec<Message> {
    let picture =
        Image { media_type: "image/png".into(), data: Some(vec![1, 2, 3].into()), ..Image::default() };
    let linked = Image { url: "https://x/y.png".into(), ..Image::default() };
    vec![
        Message::system("rules"),
        Message::User {
            blocks: vec![Block::text("look"), Block::Image(picture), Block::Image(linked), Block::text("")]
                .into(),
        },
        Message::Assistant {
            blocks: vec![
                Block::Thinking(Thinking::new("hm", "sig", "anthropic", None)),
                Block::text("I run it"),
                Block::ToolUse(ToolUse::new("c1", "run", Some(json_of("{\"a\": 1}")), None)),
                Block::ToolUse(ToolUse::new("c2", "stop", None, None)),
            ]
            .into(),
            usage: None,
        },
        Message::tool_result("c1", "done", false),
        Message::User {
            blocks: vec![
                Block::ToolResult(ToolResult {
                    tool_use_id: "c2".into(),
                    content: vec![Block::text("no")].into(),
                    is_error: true,
                }),
                Block::text("go on"),
            ]
            .into(),
        },
        Message::Assistant { blocks: vec![Block::Refusal { text: "I will not".into() }].into(), usage: None },
        Message::user("why"),
    ]
}

fn call(messages: Vec<Message>) -> ModelCall {
    ModelCall {
        model: "m-1".into(),
        system: Some("be brief".into()),
        messages: messages.into(),
        max_output: Some(TokenCount(100)),
        sampling: Sampling {
            temperature: Some(0.5),
            top_p: Some(0.25),
            max_tokens: Some(TokenCount(90)),
            stop: Some(vec!["END".into()]),
            effort: "low".into(),
        },
        answer_form: Some(AnswerForm::JsonSchema {
            name: "s".into(),
            schema: json_of("{\"type\":\"object\"}"),
        }),
    }
}

fn written(interface: &dyn Interface, call: &ModelCall, streamed: bool) -> (String, Value) {
    let outgoing = interface.request(call, streamed, true).unwrap();
    (outgoing.path, serde_json::from_slice(&outgoing.body).unwrap())
}

#[test]
fn chat_requests_have_their_form() {
    let (path, body) = written(&OpenAiChat::new(ChatServer::Compatible), &call(conversation()), true);
    assert_eq!(path, "/chat/completions");
    assert_eq!(
        body,
        json!({
            "model": "m-1", "max_tokens": 90, "temperature": 0.5, "top_p": 0.25, "stop": ["END"],
            "reasoning_effort": "low", "stream": true, "stream_options": {"include_usage": true},
            "response_format": {"type": "json_schema",
                "json_schema": {"name": "s", "strict": true, "schema": {"type": "object"}}},
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "system", "content": "rules"},
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
                {"role": "assistant", "content": "I run it", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{\"a\": 1}"}},
                    {"id": "c2", "type": "function", "function": {"name": "stop", "arguments": "{}"}}]},
                {"role": "tool", "content": "done", "tool_call_id": "c1"},
                {"role": "tool", "content": "no", "tool_call_id": "c2"},
                {"role": "user", "content": "go on"},
                {"role": "assistant", "content": null, "refusal": "I will not"},
                {"role": "user", "content": "why"}],
        })
    );
    let (_, openai) = written(&OpenAiChat::new(ChatServer::OpenAi), &call(conversation()), false);
    assert_eq!(openai["max_completion_tokens"], 90);
    assert!(openai.get("max_tokens").is_none() && openai.get("stream").is_none());
}

#[test]
fn responses_requests_have_their_form_and_ask_to_keep_nothing() {
    let (path, body) = written(&OpenAiResponses, &call(conversation()), false);
    assert_eq!(path, "/responses");
    assert_eq!(
        body,
        json!({
            "model": "m-1", "instructions": "be brief", "max_output_tokens": 90, "temperature": 0.5,
            "top_p": 0.25, "reasoning": {"effort": "low"}, "store": false,
            "text": {"format": {"type": "json_schema", "name": "s", "strict": true, "schema": {"type": "object"}}},
            "input": [
                {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "rules"}]},
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AQID"},
                    {"type": "input_image", "image_url": "https://x/y.png"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I run it"}]},
                {"type": "function_call", "call_id": "c1", "name": "run", "arguments": "{\"a\": 1}"},
                {"type": "function_call", "call_id": "c2", "name": "stop", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "done"}]},
                {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "no"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "why"}]}],
        })
    );
}

#[test]
fn messages_requests_have_their_form_and_alternate() {
    let (path, body) = written(&AnthropicMessages, &call(conversation()), true);
    assert_eq!(path, "/messages");
    let turns = json!([
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AQID"}},
            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I run it"},
            {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}},
            {"type": "tool_use", "id": "c2", "name": "stop", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "done"}]},
            {"type": "tool_result", "tool_use_id": "c2", "is_error": true, "content": [{"type": "text", "text": "no"}]},
            {"type": "text", "text": "go on"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I will not"}]},
        {"role": "user", "content": [{"type": "text", "text": "why"}]}]);
    let system = json!([{"type": "text", "text": "be brief"}, {"type": "text", "text": "rules"}]);
    assert_eq!(
        body,
        json!({
            "model": "m-1", "max_tokens": 90, "temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END"],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"},
            "stream": true, "system": system, "messages": turns,
        })
    );
}

#[test]
fn contents_requests_have_their_form_and_name_tools() {
    let (path, body) = written(&GeminiContents, &call(conversation()), true);
    assert_eq!(path, "/models/m-1:streamGenerateContent?alt=sse");
    assert_eq!(
        body,
        json!({
            "systemInstruction": {"parts": [{"text": "be brief"}, {"text": "rules"}]},
            "generationConfig": {"maxOutputTokens": 90, "temperature": 0.5, "topP": 0.25, "stopSequences": ["END"],
                "thinkingConfig": {"thinkingLevel": "low"}, "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object"}},
            "contents": [
                {"role": "user", "parts": [{"text": "look"},
                    {"inlineData": {"mimeType": "image/png", "data": "AQID"}},
                    {"fileData": {"fileUri": "https://x/y.png"}}]},
                {"role": "model", "parts": [{"text": "I run it"},
                    {"functionCall": {"name": "run", "args": {"a": 1}}}, {"functionCall": {"name": "stop"}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "run", "response": {"output": "done"}}},
                    {"functionResponse": {"name": "stop", "response": {"error": "no"}}}, {"text": "go on"}]},
                {"role": "model", "parts": [{"text": "I will not"}]},
                {"role": "user", "parts": [{"text": "why"}]}],
        })
    );
    assert_eq!(written(&GeminiContents, &call(vec![]), false).0, "/models/m-1:generateContent");
}

#[test]
fn counts_are_asked_for_the_whole_request() {
    let request = Request {
        model: ModelKey::new("p", "m-1"),
        tools: vec![json_of("{\"name\": \"t\"}")].into(),
        messages: conversation().into(),
        unseen_tokens: TokenCount(0),
    };
    let asked = |interface: &dyn Interface| {
        let outgoing = interface.count_request(&request)?.unwrap();
        Some((outgoing.path, serde_json::from_slice::<Value>(&outgoing.body).unwrap()))
    };
    assert!(asked(&OpenAiChat::new(ChatServer::OpenAi)).is_none());
    let (path, body) = asked(&OpenAiResponses).unwrap();
    assert_eq!((path.as_str(), &body["tools"]), ("/responses/input_tokens", &json!([{"name": "t"}])));
    assert_eq!(body["input"], written(&OpenAiResponses, &call(conversation()), false).1["input"]);
    assert_eq!(body.as_object().unwrap().len(), 3);
    let (path, body) = asked(&AnthropicMessages).unwrap();
    assert_eq!((path.as_str(), &body["tools"]), ("/messages/count_tokens", &json!([{"name": "t"}])));
    // The model's own request holds its signed reasoning, so the count does.
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    assert_eq!(body["messages"][1]["content"][0], thinking);
    assert!(body.get("max_tokens").is_none() && body["system"].is_array());
    let (path, body) = asked(&GeminiContents).unwrap();
    assert_eq!(path, "/models/m-1:countTokens");
    assert_eq!(body["generateContentRequest"]["model"], "models/m-1");

    assert_eq!(
        OpenAiResponses.read_count(br#"{"object":"response.input_tokens","input_tokens":7}"#),
        Some(7)
    );
    assert_eq!(OpenAiResponses.read_count(br#"{"input_tokens":7}"#), None);
    assert_eq!(AnthropicMessages.read_count(br#"{"input_tokens":7}"#), Some(7));
    assert_eq!(GeminiContents.read_count(br#"{"totalTokens":7}"#), Some(7));
    for (name, interface) in interfaces() {
        for wrong in [&b"{}"[..], b"", br#"{"input_tokens":-1}"#, br#"{"totalTokens":"7"}"#, b"[7]"] {
            assert_eq!(interface.read_count(wrong), None, "{name}");
        }
    }
}

#[test]
fn what_has_no_place_is_refused_and_named() {
    let refused = |interface: &dyn Interface, message: Message| {
        let call = call(vec![Message::user("a"), message]);
        interface.request(&call, false, true).map(|_| ()).unwrap_err()
    };
    let user = |block: Block| Message::User { blocks: vec![block].into() };
    let sound = || Block::Audio(Audio { media_type: "audio/wav".into(), data: Some(SharedBytes::default()) });
    let opaque = || Block::Opaque(Opaque { kind: "k".into(), raw: json_of("1") });
    for (name, interface) in interfaces() {
        for (block, kind) in
            [(sound(), "audio"), (opaque(), "opaque"), (Block::Image(Image::default()), "image")]
        {
            assert_eq!(refused(&*interface, user(block)), NoPlace { message: 1, kind }, "{name}");
        }
        let assistant = Message::Assistant { blocks: vec![opaque()].into(), usage: None };
        assert_eq!(refused(&*interface, assistant), NoPlace { message: 1, kind: "opaque" }, "{name}");
    }
    let late = Message::system("late");
    assert_eq!(refused(&AnthropicMessages, late.clone()), NoPlace { message: 1, kind: "system" });
    assert_eq!(refused(&GeminiContents, late), NoPlace { message: 1, kind: "system" });
    let orphan = Message::tool_result("nobody", "x", false);
    assert_eq!(refused(&GeminiContents, orphan), NoPlace { message: 1, kind: "tool_result" });
    let text_call = Block::ToolUse(ToolUse::new("i", "n", Some(json_of("\"text\"")), None));
    let text_call = Message::Assistant { blocks: vec![text_call].into(), usage: None };
    assert_eq!(refused(&AnthropicMessages, text_call), NoPlace { message: 1, kind: "tool_use" });
}

#[test]
fn grammars_go_to_llama_cpp_alone() {
    let call = ModelCall { answer_form: Some(AnswerForm::Gbnf("root ::= \"a\"".into())), ..call(vec![]) };
    let (_, body) = written(&OpenAiChat::new(ChatServer::LlamaCpp), &call, false);
    assert_eq!(body["grammar"], "root ::= \"a\"");
    for (name, interface) in interfaces() {
        let (_, body) = written(&*interface, &call, false);
        assert!(!body.to_string().contains("root ::="), "{name}");
        let without = interface.request(&self::call(vec![]), false, false).unwrap();
        assert!(!String::from_utf8(without.body).unwrap().contains("\"object\""), "{name}");
    }
}

#[test]
fn blank_turns_are_left_out() {
    let blank = vec![
        Message::user(""),
        Message::Assistant { blocks: vec![Block::Thinking(Thinking::default())].into(), usage: None },
        Message::user("a"),
    ];
    for (name, field) in
        [("chat", "messages"), ("responses", "input"), ("messages", "messages"), ("contents", "contents")]
    {
        let interfaces = interfaces();
        let (_, interface) = interfaces.iter().find(|(known, _)| *known == name).unwrap();
        let call = ModelCall { system: None, ..call(blank.clone()) };
        let (_, body) = written(&**interface, &call, false);
        assert_eq!(body[field].as_array().unwrap().len(), 1, "{name}");
    }
}

#[test]
fn answers_that_servers_write_their_own_way_are_understood() {
    let read = |interface: &dyn Interface, body: Value| {
        interface.read(body.to_string().as_bytes()).and_then(|draft| draft.finish(Some("m"))).unwrap()
    };
    let chat = OpenAiChat::new(ChatServer::Compatible);
    // Content in parts; reasoning by either name; an older call; a call whose end is called a stop.
    let answer = read(
        &chat,
        json!({"choices": [{"finish_reason": "stop", "message": {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "reasoning": "r"}}]}),
    );
    assert!(matches!(&*answer.blocks, [Block::Thinking(words), Block::Text { text }]
        if words.thinking == "r" && *text == "ab"));
    let answer = read(
        &chat,
        json!({"choices": [{"finish_reason": "stop", "message": {"content": null,
        "reasoning_content": "only", "function_call": {"name": "f", "arguments": "not json"}}}]}),
    );
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert!(
        matches!(&answer.blocks[1], Block::ToolUse(call) if call.input.as_ref().unwrap().as_str() == "\"not json\"")
    );
    // Nothing is an answer too: who asked judges it.
    let answer = read(&chat, json!({"choices": [{"finish_reason": "stop", "message": {"content": ""}}]}));
    assert_eq!((answer.blocks.len(), answer.finish), (0, FinishReason::Stop));
    let answer = read(
        &OpenAiResponses,
        json!({"status": "completed", "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "e"},
        {"type": "web_search_call", "id": "w"},
        {"type": "custom_tool_call", "call_id": "i", "name": "n", "input": "free text"}]}),
    );
    assert!(matches!(&*answer.blocks, [Block::Thinking(_), Block::ToolUse(call)]
        if call.input.as_ref().unwrap().as_str() == "\"free text\""));
    let answer = read(
        &AnthropicMessages,
        json!({"type": "message", "stop_reason": "refusal",
        "stop_details": {"explanation": "unsafe"}, "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"}]}),
    );
    assert!(matches!(&*answer.blocks, [Block::Thinking(first), Block::Thinking(_), Block::Refusal { text }]
        if first.signature_format == "anthropic" && *text == "unsafe"));
    let answer = read(
        &GeminiContents,
        json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [
        {"text": "t", "thought": true, "thoughtSignature": "s"}, {"text": "a"}, {"text": "b"}]}}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}),
    );
    assert!(
        matches!(&*answer.blocks, [Block::Thinking(_), Block::Text { text }, Block::Refusal { text: refusal }]
        if *text == "ab" && *refusal == WORDLESS_REFUSAL)
    );
    let usage = answer.usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (TokenCount(5), TokenCount(3)));
}

#[test]
fn errors_in_events_are_errors() {
    for (name, interface) in interfaces() {
        let mut reader = interface.reader();
        let taken = reader.take(br#"{"error":{"code":429,"type":"rate_limit_error","message":"m"}}"#);
        assert_eq!(taken, Err(ModelCallErrorKind::Status(429)), "{name}");
        assert_eq!(interface.reader().take(b"{"), Err(ModelCallErrorKind::Malformed), "{name}");
        assert_eq!(interface.reader().end().map(|_| ()), Err(ModelCallErrorKind::Network), "{name}");
    }
    let failed =
        br#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}"#;
    assert_eq!(OpenAiResponses.reader().take(failed), Err(ModelCallErrorKind::Status(500)));
    let failed = br#"{"type":"error","code":"rate_limit_exceeded","message":"m"}"#;
    assert_eq!(OpenAiResponses.reader().take(failed), Err(ModelCallErrorKind::Status(429)));
}

proptest! {
    /// Pieces of JSON that the readers know, in any order, whole or broken.
    #[test]
    fn no_bytes_upset_a_reader(
        pieces in prop::collection::vec(prop_oneof![
            Just("{"), Just("}"), Just("["), Just("]"), Just(":"), Just(","), Just("null"), Just("1"), Just("\"x\""),
            Just("\"choices\""), Just("\"message\""), Just("\"delta\""), Just("\"content\""), Just("\"type\""),
            Just("\"error\""), Just("\"tool_calls\""), Just("\"output\""), Just("\"status\""), Just("\"completed\""),
            Just("\"candidates\""), Just("\"parts\""), Just("\"usage\""), Just("\"content_block_delta\""),
            Just("\"index\""), Just("\"message_start\""), Just("\"text\""), Just("-1"), Just("1e99"), Just("\"\\ud800\""),
        ], 0..40),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        for (_, interface) in interfaces() {
            let text = pieces.concat();
            for body in [text.as_bytes(), &bytes] {
                let _ = interface.read(body).map(|draft| draft.finish(Some("m")));
                let mut reader = interface.reader();
                let _ = reader.take(body);
                let _ = reader.take(body);
                let _ = reader.end().map(|draft| draft.finish(None));
            }
        }
    }
}
