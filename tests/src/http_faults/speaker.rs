//! The interfaces as servers speak them.

use epitome_models::{ChatServer, Dialect};
use serde_json::{Value, json};

use super::{CANARY_HEARD, MODEL};

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's contents.
    Contents,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// A text, to its end.
    Text,
    /// A text by another model.
    OtherModel,
    /// A text by a snapshot of the asked model.
    Snapshot,
    /// A text that is cut.
    CutText,
    /// A text, and then a failure of the server's.
    Failed,
    /// A refusal in words.
    Refusal,
    /// A refusal without any.
    WordlessRefusal,
    /// A call of a tool.
    Call,
}

impl Speaker {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Contents];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Contents => "contents",
        }
    }

    /// The client's word for it.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Chat => Dialect::OpenAiChat(ChatServer::Compatible),
            Self::Responses => Dialect::OpenAiResponses,
            Self::Messages => Dialect::AnthropicMessages,
            Self::Contents => Dialect::GeminiContents,
        }
    }

    /// An answer in one piece.
    pub(super) fn whole(self, says: Says) -> Value {
        let model = model(says);
        match self {
            Self::Chat => json!({"id": "c", "object": "chat.completion", "model": model, "choices": [
                {"index": 0, "message": chat_message(says), "finish_reason": chat_finish(says)}],
                "usage": chat_usage()}),
            Self::Responses => response(says),
            Self::Messages => json!({"id": "m", "type": "message", "role": "assistant", "model": model,
                "content": messages_content(says), "stop_reason": messages_stop(says), "stop_sequence": null,
                "usage": {"input_tokens": 7, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0,
                    "output_tokens": 5}}),
            Self::Contents => contents(says),
        }
    }

    /// The same answer in events.
    pub(super) fn events(self, says: Says) -> Vec<u8> {
        match self {
            Self::Chat => chat_events(says),
            Self::Responses => {
                let early = json!({"type": "response.output_text.delta", "delta": CANARY_HEARD});
                let kind = if says == Says::CutText { "response.incomplete" } else { "response.completed" };
                let last = json!({"type": kind, "response": response(says)});
                named_events(&[early, last])
            }
            Self::Messages => messages_events(says),
            Self::Contents => {
                let whole = contents(says);
                // Usage and the end come last; text comes in two pieces.
                let first = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}],
                    "modelVersion": model(says)});
                let events = if says == Says::Text { vec![first, continued(whole)] } else { vec![whole] };
                events.iter().flat_map(|event| format!("data: {event}\r\n\r\n").into_bytes()).collect()
            }
        }
    }

    /// An error object as this provider writes it.
    pub(super) fn error(self) -> Value {
        match self {
            Self::Chat => json!({"error": {"message": CANARY_HEARD, "type": "server_error", "code": null}}),
            Self::Responses => json!({"error": {"message": CANARY_HEARD, "code": "server_error"}}),
            Self::Messages => {
                json!({"type": "error", "error": {"type": "api_error", "message": CANARY_HEARD}})
            }
            Self::Contents => json!({"error": {"code": 500, "message": CANARY_HEARD, "status": "INTERNAL"}}),
        }
    }

    /// A piece of an answer in events that may be sent without end.
    pub(super) fn endless_piece(self) -> Vec<u8> {
        let event = match self {
            Self::Chat => json!({"choices": [{"index": 0, "delta": {"content": CANARY_HEARD}}]}),
            Self::Responses => json!({"type": "response.output_text.delta", "delta": CANARY_HEARD}),
            Self::Messages => json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": CANARY_HEARD}}),
            Self::Contents => {
                json!({"candidates": [{"content": {"parts": [{"text": CANARY_HEARD}]}}]})
            }
        };
        format!("data: {event}\n\n").into_bytes()
    }
}

fn model(says: Says) -> String {
    match says {
        Says::OtherModel => "another-model".to_owned(),
        Says::Snapshot => format!("gateway/{MODEL}-2026-01-31"),
        _ => MODEL.to_owned(),
    }
}

/// What is said.
fn text() -> String {
    format!("Hello {CANARY_HEARD}")
}

fn chat_message(says: Says) -> Value {
    match says {
        Says::Refusal => json!({"role": "assistant", "content": null, "refusal": text()}),
        Says::WordlessRefusal => json!({"role": "assistant", "content": ""}),
        Says::Call => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": "{\"a\":1}"}}]}),
        _ => json!({"role": "assistant", "content": text(), "refusal": null}),
    }
}

fn chat_finish(says: Says) -> &'static str {
    match says {
        Says::CutText => "length",
        Says::Failed => "error",
        Says::WordlessRefusal => "content_filter",
        Says::Call => "tool_calls",
        _ => "stop",
    }
}

fn chat_usage() -> Value {
    json!({"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 4}})
}

fn chat_events(says: Says) -> Vec<u8> {
    let chunk = |delta: Value, finish: Value| {
        json!({"object": "chat.completion.chunk", "model": model(says),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    match says {
        Says::Refusal => chunks.push(chunk(json!({"refusal": text()}), Value::Null)),
        Says::WordlessRefusal => {}
        Says::Call => {
            let start = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "run", "arguments": "{\"a\""}}]});
            let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]});
            chunks.extend([chunk(start, Value::Null), chunk(rest, Value::Null)]);
        }
        _ => {
            chunks.push(chunk(json!({"content": "Hello "}), Value::Null));
            chunks.push(chunk(json!({"content": CANARY_HEARD}), Value::Null));
        }
    }
    chunks.push(chunk(json!({}), json!(chat_finish(says))));
    chunks.push(json!({"choices": [], "usage": chat_usage()}));
    let mut events: Vec<u8> = b": comment\n\n".to_vec();
    events.extend(chunks.iter().flat_map(|chunk| format!("data: {chunk}\n\n").into_bytes()));
    events.extend(b"data: [DONE]\n\n");
    events
}

fn response(says: Says) -> Value {
    let output = match says {
        Says::Refusal => json!([{"type": "message", "role": "assistant",
            "content": [{"type": "refusal", "refusal": text()}]}]),
        Says::WordlessRefusal => json!([]),
        Says::Call => json!([{"type": "function_call", "call_id": "call_1", "name": "run",
            "arguments": "{\"a\":1}"}]),
        _ => json!([{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text(), "annotations": []}]}]),
    };
    let cut = match says {
        Says::CutText => json!({"reason": "max_output_tokens"}),
        Says::WordlessRefusal => json!({"reason": "content_filter"}),
        _ => Value::Null,
    };
    let status = match says {
        Says::Failed => "failed",
        _ if cut.is_null() => "completed",
        _ => "incomplete",
    };
    json!({"id": "r", "object": "response", "status": status,
        "error": null, "incomplete_details": cut, "model": model(says), "output": output,
        "usage": {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16}})
}

fn messages_content(says: Says) -> Value {
    match says {
        Says::Refusal | Says::WordlessRefusal => json!([]),
        Says::Call => json!([{"type": "tool_use", "id": "call_1", "name": "run", "input": {"a": 1}}]),
        _ => json!([{"type": "text", "text": text()}]),
    }
}

fn messages_stop(says: Says) -> &'static str {
    match says {
        Says::CutText => "max_tokens",
        Says::Failed => "error",
        Says::Refusal | Says::WordlessRefusal => "refusal",
        Says::Call => "tool_use",
        _ => "end_turn",
    }
}

fn messages_events(says: Says) -> Vec<u8> {
    let mut events =
        vec![json!({"type": "message_start", "message": {"type": "message", "model": model(says),
        "content": [], "usage": {"input_tokens": 7, "cache_read_input_tokens": 4, "output_tokens": 1}}})];
    let start = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    match says {
        Says::Refusal | Says::WordlessRefusal => {}
        Says::Call => {
            events.push(start(json!({"type": "tool_use", "id": "call_1", "name": "run", "input": {}})));
            for piece in ["{\"a\"", ":1}"] {
                events.push(delta(json!({"type": "input_json_delta", "partial_json": piece})));
            }
        }
        _ => {
            events.push(start(json!({"type": "text", "text": ""})));
            events.push(json!({"type": "ping"}));
            for piece in ["Hello ", CANARY_HEARD] {
                events.push(delta(json!({"type": "text_delta", "text": piece})));
            }
        }
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": messages_stop(says)},
        "usage": {"output_tokens": 5}}));
    events.push(json!({"type": "message_stop"}));
    named_events(&events)
}

fn named_events(events: &[Value]) -> Vec<u8> {
    let named = events.iter().map(|event| {
        format!("event: {}\ndata: {event}\n\n", event.get("type").and_then(Value::as_str).unwrap_or_default())
    });
    named.collect::<String>().into_bytes()
}

fn contents(says: Says) -> Value {
    if says == Says::Refusal {
        return json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": text()},
            "modelVersion": model(says)});
    }
    let (parts, finish) = match says {
        Says::WordlessRefusal => (json!([]), "SAFETY"),
        Says::CutText => (json!([{"text": text()}]), "MAX_TOKENS"),
        Says::Failed => (json!([{"text": text()}]), "OTHER"),
        Says::Call => (json!([{"functionCall": {"id": "call_1", "name": "run", "args": {"a": 1}}}]), "STOP"),
        _ => (json!([{"text": text()}]), "STOP"),
    };
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
        "modelVersion": model(says), "usageMetadata": {"promptTokenCount": 11, "cachedContentTokenCount": 4,
            "candidatesTokenCount": 5, "totalTokenCount": 16}})
}

/// The whole answer without what its first piece said already.
fn continued(mut whole: Value) -> Value {
    if let Some(text) = whole.pointer_mut("/candidates/0/content/parts/0/text") {
        *text = json!(format!("lo {CANARY_HEARD}"));
    }
    whole
}
