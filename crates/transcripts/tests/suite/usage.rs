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
