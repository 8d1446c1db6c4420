//! Which figures of a provider are the size of the context.

use epitome_transcripts::{ReadOptions, Session, read};
use serde_json::{Value, json};

fn parse(source: &Value) -> Session {
    read(source.to_string().as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap()
}

fn exchange(content: &Value, usage: &Value) -> Session {
    let request = json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]});
    let response = json!({"type": "message", "role": "assistant", "content": content, "usage": usage});
    parse(&json!([{"request": request, "response": response}]))
}

#[test]
fn sums_over_a_loop_of_the_provider_are_no_size() {
    let text = json!({"type": "text", "text": "done"});
    let usage =
        json!({"input_tokens": 900, "output_tokens": 10, "server_tool_use": {"web_search_requests": 0}});
    let plain = exchange(&json!([text]), &usage);
    assert_eq!(plain.reported_usage().map(|usage| usage.context_tokens.get()), Some(910));
    for ran in [
        json!({"type": "mcp_tool_use", "id": "m", "name": "find", "server_name": "s", "input": {}}),
        json!({"type": "mcp_tool_result", "tool_use_id": "m", "is_error": false, "content": []}),
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
    ] {
        assert!(exchange(&json!([ran, text]), &usage).reported_usage().is_none(), "{ran}");
        let mut listed = usage.clone();
        listed["iterations"] =
            json!([{"input_tokens": 300, "output_tokens": 5}, {"input_tokens": 400, "output_tokens": 5}]);
        let listed = exchange(&json!([ran, text]), &listed);
        assert_eq!(listed.reported_usage().map(|usage| usage.context_tokens.get()), Some(405), "{ran}");
    }
}

#[test]
fn iterations_about_another_context_are_no_size() {
    let text = json!([{"type": "text", "text": "done"}]);
    let listed = |iterations: Value| {
        let usage = json!({"input_tokens": 900, "output_tokens": 10, "iterations": iterations});
        exchange(&text, &usage).reported_usage().map(|usage| usage.context_tokens.get())
    };
    let iteration = |kind: &str, input: u64| json!({"type": kind, "input_tokens": input, "output_tokens": 5});
    let (message, compaction, adviser) =
        (iteration("message", 400), iteration("compaction", 180_000), iteration("advisor_message", 900));
    assert_eq!(listed(json!([compaction, message])), Some(405));
    assert_eq!(listed(json!([message, adviser])), Some(405));
    assert_eq!(listed(json!([{"type": null, "input_tokens": 300, "output_tokens": 5}])), Some(305));
    assert_eq!(listed(json!([compaction])), None);
    assert_eq!(listed(json!([])), Some(910));
    assert_eq!(listed(Value::Null), Some(910));
}

/// Each provider's words for 1,000 tokens of input, of which 600 came from a cache, and 50 of output, 30 of them
/// reasoning where that is told apart.
#[test]
fn the_same_request_is_the_same_size_in_the_words_of_each_provider() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "go"}]});
    let anthropic = exchange(
        &json!([{"type": "text", "text": "done"}]),
        &json!({"input_tokens": 300, "cache_read_input_tokens": 600, "cache_creation_input_tokens": 100, "output_tokens": 50}),
    );
    let chat = json!([{"request": request, "response": {"object": "chat.completion", "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "done"}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 600}}}}]);
    let responses = json!([{"request": {"model": "m", "input": "go"}, "response": {"object": "response", "model": "m",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}],
        "usage": {"input_tokens": 1000, "output_tokens": 50, "input_tokens_details": {"cached_tokens": 600},
            "output_tokens_details": {"reasoning_tokens": 30}}}}]);
    let gemini = json!([{"request": {"contents": [{"role": "user", "parts": [{"text": "go"}]}]},
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}}],
            "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 600, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 7000}}}]);
    for (name, session) in [
        ("anthropic", anthropic),
        ("chat", parse(&chat)),
        ("responses", parse(&responses)),
        ("gemini", parse(&gemini)),
    ] {
        let reported = session.reported_usage().map(|reported| {
            let usage = reported.usage;
            let cached = usage.cache_read.get();
            (usage.context_tokens().unwrap().get(), cached, usage.output.get(), reported.context_tokens.get())
        });
        assert_eq!(reported, Some((1_000, 600, 50, 1_050)), "{name}");
    }
}

/// A figure from before a compaction stands with no message that was kept, so that whoever takes the messages over
/// cannot take it for one about the context that they are in now.
#[test]
fn a_message_behind_a_summary_keeps_no_figure_from_before() {
    let message = |role: &str, text: &str, usage: Option<u64>| {
        let mut message = json!({"role": role, "content": [{"type": "text", "text": text}]});
        if let Some(input) = usage {
            message["usage"] = json!({"input": input, "output": 5, "cacheRead": 0, "cacheWrite": 0});
        }
        format!("{}\n", json!({"type": "message", "message": message}))
    };
    let compaction =
        json!({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 90_000});
    let log = format!("{}\n", json!({"type": "session", "id": "1", "cwd": "/"}))
        + &message("user", "one", None)
        + &message("assistant", "two", Some(90_000))
        + &format!("{compaction}\n")
        + &message("user", "three", None)
        + &message("assistant", "four", Some(2_000));
    let session = read(log.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
    let reports: Vec<Option<u64>> = session
        .messages()
        .iter()
        .filter_map(|message| match message {
            epitome_loop::Message::Assistant { usage, .. } => {
                Some(usage.map(|usage| usage.context_tokens().unwrap().get()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(reports, [None, Some(2_000)]);
    assert_eq!(session.reported_usage().unwrap().context_tokens.get(), 2_005);
}
