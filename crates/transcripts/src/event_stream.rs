//! Replies that a log holds as the event stream in which they came.

use std::collections::BTreeMap;

use crate::faults::Faults;
use crate::gemini;
use crate::json::{Found, Value, Values, array, object};

/// The reply, as it would have come in one piece; `None` when the text is no event stream of a reply.
pub(crate) fn assemble(text: &str) -> Option<Vec<u8>> {
    let mut reply = Reply::default();
    let mut chunks = Vec::new();
    for line in text.lines() {
        let Some(data) = line.strip_prefix("data:") else { continue };
        let mut values = Values::new(data.as_bytes(), 0);
        if let Some(Found::Value(range)) = values.next() {
            let source = values.into_source();
            let event = source.value(range);
            if event.has("candidates") || event.has("usageMetadata") {
                chunks.push(data.as_bytes());
            } else {
                reply.take(event);
            }
        }
    }
    if chunks.is_empty() { reply.whole() } else { gemini::assemble(&chunks) }
}

/// What has come so far.
#[derive(Default)]
struct Reply {
    faults: Faults,
    /// Of a chat completion.
    text: String,
    refusal: String,
    calls: BTreeMap<u64, Call>,
    is_chat: bool,
    /// Of an Anthropic message.
    blocks: BTreeMap<u64, Block>,
    /// Of the Responses API: the whole reply, which the last event repeats.
    response: Option<Vec<u8>>,
    /// Its items so far, where no event has repeated it.
    items: Vec<Vec<u8>>,
    /// The fields of the usage, the newest of each name.
    usage: BTreeMap<String, Vec<u8>>,
}

#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

/// A block under way: the fields it started with, as JSON, and the text that came for some of them.
#[derive(Default)]
struct Block {
    fields: BTreeMap<String, Vec<u8>>,
    added: BTreeMap<&'static str, String>,
}

impl Reply {
    fn take(&mut self, event: Value<'_>) {
        let [choices, kind, index, block, delta, message, usage] = self
            .faults
            .pick(event, ["choices", "type", "index", "content_block", "delta", "message", "usage"]);
        self.take_usage(usage.or_else(|| message?.get("usage")));
        self.take_response(event, kind);
        if let Some(choices) = choices {
            self.is_chat = true;
            if let Some(delta) = choices.elements().next().and_then(|choice| choice.get("delta")) {
                self.take_chunk(delta);
            }
        }
        let Some(index) = index.and_then(Value::number) else { return };
        if kind.is_some_and(|kind| kind.is_text("content_block_start")) {
            let fields = block.into_iter().flat_map(Value::fields);
            let text = &mut self.faults.text;
            let fields =
                fields.map(|(key, value)| (text.decode(key).into_owned(), value.bytes().to_vec())).collect();
            self.blocks.insert(index, Block { fields, added: BTreeMap::new() });
        } else if let (Some(block), Some(delta)) = (self.blocks.get_mut(&index), delta) {
            for (from, field) in [
                ("text", "text"),
                ("thinking", "thinking"),
                ("signature", "signature"),
                ("partial_json", "input"),
            ] {
                if let Some(more) = delta.get(from) {
                    block.added.entry(field).or_default().push_str(&self.faults.string(Some(more)));
                }
            }
        }
    }

    fn take_response(&mut self, event: Value<'_>, kind: Option<Value<'_>>) {
        let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
        let [response, item] = self.faults.pick(event, ["response", "item"]);
        if is("response.completed") || is("response.done") || is("response.incomplete") {
            let whole = response.filter(|response| response.get("output").is_some_and(Value::is_array));
            self.response = whole.map(|response| response.bytes().to_vec()).or(self.response.take());
            self.take_usage(response.and_then(|response| response.get("usage")));
        } else if is("response.output_item.done")
            && let Some(item) = item
        {
            self.items.push(item.bytes().to_vec());
        }
    }

    fn take_usage(&mut self, usage: Option<Value<'_>>) {
        for (key, value) in usage.into_iter().flat_map(Value::fields) {
            let key = self.faults.text.decode(key).into_owned();
            self.usage.insert(key, value.bytes().to_vec());
        }
    }

    fn take_chunk(&mut self, delta: Value<'_>) {
        let [content, refusal, calls] = self.faults.pick(delta, ["content", "refusal", "tool_calls"]);
        self.text.push_str(&self.faults.string(content));
        self.refusal.push_str(&self.faults.string(refusal));
        for part in calls.into_iter().flat_map(Value::elements) {
            let [index, id, function] = self.faults.pick(part, ["index", "id", "function"]);
            let [name, arguments] =
                function.map_or([None, None], |function| self.faults.pick(function, ["name", "arguments"]));
            let call = self.calls.entry(index.and_then(Value::number).unwrap_or(0)).or_default();
            call.id.push_str(&self.faults.string(id));
            call.name.push_str(&self.faults.string(name));
            call.arguments.push_str(&self.faults.string(arguments));
        }
    }

    fn whole(self) -> Option<Vec<u8>> {
        if let Some(response) = self.response {
            return Some(response);
        }
        if !self.is_chat && self.blocks.is_empty() && self.items.is_empty() {
            return None;
        }
        Some(object(|out| {
            if self.is_chat {
                let message = self.chat_message();
                let choice = object(|out| out.raw("message", &message));
                out.array("choices", |list| list.raw(&choice));
            } else if !self.items.is_empty() {
                out.array("output", |list| self.items.iter().for_each(|item| list.raw(item)));
            } else {
                let blocks = array(|list| self.blocks.values().for_each(|block| list.raw(&block.whole())));
                out.raw("content", &blocks);
            }
            out.object("usage", |out| {
                for (key, value) in &self.usage {
                    out.raw(key, value);
                }
            });
        }))
    }

    fn chat_message(&self) -> Vec<u8> {
        object(|out| {
            out.text("role", "assistant");
            out.text("content", &self.text);
            out.text_if_any("refusal", &self.refusal);
            out.array("tool_calls", |list| {
                for call in self.calls.values() {
                    list.object(|out| {
                        out.text("id", &call.id);
                        out.object("function", |out| {
                            out.text("name", &call.name);
                            out.text("arguments", &call.arguments);
                        });
                    });
                }
            });
        })
    }
}

impl Block {
    fn whole(&self) -> Vec<u8> {
        object(|out| {
            for (key, value) in &self.fields {
                if !self.added.contains_key(key.as_str()) {
                    out.raw(key, value);
                }
            }
            for (field, text) in &self.added {
                if *field == "input" && is_json(text) {
                    out.raw(field, text.as_bytes());
                } else {
                    out.text(field, text);
                }
            }
        })
    }
}

fn is_json(text: &str) -> bool {
    let mut values = Values::new(text.as_bytes(), 0);
    matches!(values.next(), Some(Found::Value(_))) && values.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(events: &[&str]) -> String {
        let text: String = events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
        String::from_utf8(assemble(&text).unwrap()).unwrap()
    }

    #[test]
    fn chunks_become_a_chat_completion() {
        let reply = assembled(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":"Loo","refusal":null}}],"usage":null}"#,
            r#"{"choices":[{"delta":{"content":"king."}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}"#,
            "[DONE]",
        ]);
        assert_eq!(
            reply,
            r#"{"choices":[{"message":{"role":"assistant","content":"Looking.","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":""}}]}}],"usage":{"completion_tokens":2,"prompt_tokens":7}}"#
        );
    }

    #[test]
    fn events_become_an_anthropic_message() {
        let reply = assembled(&[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"So"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"[1]}"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        ]);
        assert_eq!(
            reply,
            r#"{"content":[{"type":"thinking","signature":"c2ln","thinking":"So"},{"id":"t","name":"f","type":"tool_use","input":{"a":[1]}}],"usage":{"input_tokens":5,"output_tokens":9}}"#
        );
    }

    #[test]
    fn events_become_a_response() {
        let item = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}"#;
        let created = r#"{"type":"response.created","response":{"id":"r","output":[]}}"#;
        assert_eq!(
            assembled(&[
                created,
                item,
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":4}}}"#
            ]),
            r#"{"output":[{"type":"message","role":"assistant","content":[]}],"usage":{"input_tokens":4}}"#
        );
        assert_eq!(
            assembled(&[
                created,
                item,
                r#"{"type":"response.completed","response":{"id":"r","output":[7]}}"#
            ]),
            r#"{"id":"r","output":[7]}"#
        );
    }

    #[test]
    fn other_text_is_no_reply() {
        for text in ["", "four", "data: 4", "data: {\"canary\":1}", "{\"choices\":[]}"] {
            assert_eq!(assemble(text), None, "{text}");
        }
    }
}
