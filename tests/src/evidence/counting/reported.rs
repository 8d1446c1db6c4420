//! What a provider says that a request took, in the words of each provider.

use serde_json::Value;

/// A provider's count of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    /// The whole input, cached or not.
    pub(super) input: u64,
    /// Of that, for recordings, where the provider says.
    pub(super) audio: Option<u64>,
    /// Of that, for pictures.
    pub(super) image: Option<u64>,
    /// Of that, for films.
    pub(super) video: Option<u64>,
    /// Whether a client worked it out by itself: it says that the reply took nothing.
    pub(super) is_clients: bool,
}

/// A figure that says nothing about the size of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Void {
    /// No figure in the reply.
    NoFigure,
    /// The provider called its own tools and summed over the requests that it made of it.
    SummedOverLoop,
    /// The conversation lies on the provider's side; the request holds only what is new.
    HistoryOnServer,
    /// Tools that the provider defines, or has a server list, are not in the request.
    ToolsOfProvider,
    /// The provider was asked to compact and added its own words.
    AskedToCompact,
}

impl Void {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NoFigure => "the reply holds no figure",
            Self::SummedOverLoop => "the provider ran tools in a loop; its figure is a sum over that loop",
            Self::HistoryOnServer => "the history lies on the server; the request holds only what is new",
            Self::ToolsOfProvider => "tools that the provider defines or lists are not in the request",
            Self::AskedToCompact => "the provider was asked to compact and added words of its own",
        }
    }
}

/// The figure in a reply to a request, or why it is void.
pub(super) fn reported(request: &Value, reply: &Value) -> Result<Reported, Void> {
    let usage = usage_of(reply).ok_or(Void::NoFigure)?;
    if is_set(&request["previous_response_id"]) || is_set(&request["conversation"]) {
        return Err(Void::HistoryOnServer);
    }
    if reply["object"] == "response.compaction" {
        return Err(Void::AskedToCompact);
    }
    let by_iteration = usage["iterations"].as_array().and_then(|list| list.last());
    if by_iteration.is_none() && ran_in_a_loop(usage, reply) {
        return Err(Void::SummedOverLoop);
    }
    if has_tools_of_provider(request) {
        return Err(Void::ToolsOfProvider);
    }
    let figure = count(by_iteration.unwrap_or(usage)).filter(|figure| figure.input > 0);
    let figure = figure.ok_or(Void::NoFigure)?;
    Ok(Reported { is_clients: is_clients(usage), ..figure })
}

fn usage_of(reply: &Value) -> Option<&Value> {
    ["usage", "usageMetadata", "usage_metadata"]
        .iter()
        .find_map(|key| reply.get(key))
        .filter(|u| u.is_object())
}

/// The input of a request by the convention of whoever counted it.
fn count(usage: &Value) -> Option<Reported> {
    let number = |key: &str| usage[key].as_u64();
    let sum = |keys: &[&str]| keys.iter().filter_map(|key| number(key)).fold(0, u64::saturating_add);
    if let Some(input) = number("prompt_tokens") {
        // OpenAI chat: cached tokens are among them.
        let details = &usage["prompt_tokens_details"];
        let part = |key: &str| details[key].as_u64().filter(|&tokens| tokens > 0);
        return Some(Reported {
            input,
            audio: part("audio_tokens"),
            image: part("image_tokens"),
            ..Reported::default()
        });
    }
    if let Some(input) = number("promptTokenCount") {
        // Gemini: cached tokens are among them.
        let details = usage["promptTokensDetails"].as_array();
        let part = |name: &str| {
            let of = details?.iter().find(|detail| detail["modality"] == name)?;
            of["tokenCount"].as_u64()
        };
        return Some(Reported {
            input,
            audio: part("AUDIO"),
            image: part("IMAGE"),
            video: part("VIDEO"),
            ..Reported::default()
        });
    }
    if let Some(input) = number("inputTokens") {
        // Bedrock: cached tokens come on top.
        let cached = sum(&["cacheReadInputTokens", "cacheWriteInputTokens"]);
        return Some(Reported { input: input.saturating_add(cached), ..Reported::default() });
    }
    let input = number("input_tokens")?;
    // OpenAI Responses says in its details what of it was cached; Anthropic counts cached tokens on top.
    let cached = sum(&["cache_creation_input_tokens", "cache_read_input_tokens"]);
    Some(Reported { input: input.saturating_add(cached), ..Reported::default() })
}

fn ran_in_a_loop(usage: &Value, reply: &Value) -> bool {
    const CALLS: [&str; 8] = [
        "server_tool_use",
        "mcp_tool_use",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "computer_call",
    ];
    let counted = usage["server_tool_use"].as_object().into_iter().flatten();
    let counted = counted.into_iter().any(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
    let parts = ["content", "output"].iter().filter_map(|key| reply[key].as_array()).flatten();
    let mut kinds = parts.filter_map(|part| part["type"].as_str());
    // A result without its call belongs to a call of the reply before.
    counted || kinds.any(|kind| CALLS.contains(&kind) || kind.ends_with("_tool_result"))
}

fn has_tools_of_provider(request: &Value) -> bool {
    let listed = request["mcp_servers"].as_array().is_some_and(|servers| !servers.is_empty());
    let own = |tool: &Value| match tool["type"].as_str() {
        None => {
            // Gemini: a key for each kind, and one for the functions of the user.
            let functions = ["functionDeclarations", "function_declarations"];
            let is_gemini = tool.get("name").is_none() && tool.get("toolSpec").is_none();
            is_gemini
                && tool
                    .as_object()
                    .is_some_and(|keys| keys.keys().any(|key| !functions.contains(&key.as_str())))
        }
        Some("function" | "custom") => false,
        Some(_) => true,
    };
    listed || request["tools"].as_array().is_some_and(|tools| tools.iter().any(own))
}

/// Even an empty reply took a token that ends it; who says that it took none did not ask the provider.
fn is_clients(usage: &Value) -> bool {
    usage["completion_tokens"] == 0
}

fn is_set(value: &Value) -> bool {
    !value.is_null()
}

/// A reply that came as a stream of events: the object that holds its figure, with what else the stream shows.
pub(super) fn reply_of_stream(stream: &str) -> Value {
    let mut reply = Value::Null;
    for line in stream.lines() {
        let Some(event) = line.strip_prefix("data:") else { continue };
        let Ok(event) = serde_json::from_str::<Value>(event.trim()) else { continue };
        // OpenAI chat states it in its last chunk, Responses in its last event, Anthropic in its first.
        let holders = [&event, &event["response"], &event["message"]];
        if let Some(holder) = holders.into_iter().find(|holder| usage_of(holder).is_some()) {
            let is_first = usage_of(&reply).is_none();
            if is_first || event.get("choices").is_some() || event.get("response").is_some() {
                reply = holder.clone();
            }
        }
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_convention_is_the_whole_input() {
        let input = |usage: Value| reported(&json!({}), &usage).map(|reported| reported.input);
        let openai = json!({"usage":{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":90}}});
        assert_eq!(input(openai), Ok(100));
        let responses = json!({"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":90}}});
        assert_eq!(input(responses), Ok(100));
        let anthropic =
            json!({"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":77}});
        assert_eq!(input(anthropic), Ok(100));
        let bedrock = json!({"usage":{"inputTokens":3,"cacheReadInputTokens":90,"cacheWriteInputTokens":7}});
        assert_eq!(input(bedrock), Ok(100));
        let gemini = json!({"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":90,
            "promptTokensDetails":[{"modality":"VIDEO","tokenCount":60}]}});
        let reported = reported(&json!({}), &gemini).unwrap();
        assert_eq!((reported.input, reported.video, reported.audio), (100, Some(60), None));
        assert_eq!(input(json!({"usage":null})), Err(Void::NoFigure));
        let listed = json!({"usage":{"input_tokens":900,"server_tool_use":{"web_search_requests":2},
            "iterations":[{"input_tokens":400},{"input_tokens":100}]}});
        assert_eq!(input(listed), Ok(100));
    }

    #[test]
    fn void_figures_are_told_by_what_they_are() {
        let figure = json!({"usage":{"input_tokens":100}});
        let void = |request: Value, reply: Value| reported(&request, &reply).unwrap_err();
        assert_eq!(void(json!({"previous_response_id":"x"}), figure.clone()), Void::HistoryOnServer);
        let looped = json!({"usage":{"input_tokens":9,"server_tool_use":{"web_search_requests":1}}});
        assert_eq!(void(json!({}), looped), Void::SummedOverLoop);
        let looped = json!({"usage":{"input_tokens":9},"content":[{"type":"mcp_tool_result"}]});
        assert_eq!(void(json!({}), looped), Void::SummedOverLoop);
        for tools in [json!([{"type":"web_search_20250305"}]), json!([{"googleSearch":{}}])] {
            assert_eq!(void(json!({"tools":tools}), figure.clone()), Void::ToolsOfProvider);
        }
        for tools in [
            json!([{"type":"function","function":{}}]),
            json!([{"name":"a","input_schema":{}}]),
            json!([{"functionDeclarations":[]}]),
        ] {
            assert!(reported(&json!({"tools":tools}), &figure).is_ok());
        }
        let clients = json!({"usage":{"prompt_tokens":9,"completion_tokens":0},"choices":[{"message":{"content":"x"}}]});
        assert!(reported(&json!({}), &clients).unwrap().is_clients);
    }

    #[test]
    fn streams_state_their_figure_once() {
        let openai = "data: {\"choices\":[],\"usage\":null}\n\ndata: \
                      {\"choices\":[],\"usage\":{\"prompt_tokens\":7}}\n\ndata: [DONE]\n";
        assert_eq!(reply_of_stream(openai)["usage"]["prompt_tokens"], 7);
        let anthropic = "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":7}}}\ndata: \
                         {\"usage\":{\"output_tokens\":3}}\n";
        assert_eq!(reply_of_stream(anthropic)["usage"]["input_tokens"], 7);
    }
}
