//! A case as it stands in its file, and its session as a transcript that our reader understands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_transcripts::Format;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// A case file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file or folder cannot be read.
    #[error("the case cannot be read")]
    Read,
    /// The file is not JSON.
    #[error("the case is not JSON")]
    Json,
    /// A macro is not one of the two forms.
    #[error("the case holds a macro that is not understood")]
    Macro,
    /// A part is missing or has another form.
    #[error("the case's {0} is not understood")]
    Part(&'static str),
    /// An expectation that no check exists for.
    #[error("the case expects `{0}`, for which there is no check")]
    Expectation(String),
    /// The table of models lacks the models that cases are run for.
    #[error("there is no counter for the model")]
    Model,
    /// The runtime for the asynchronous ports cannot be started.
    #[error("there is no runtime to run on")]
    Runtime,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The kind of fault.
    pub kind: String,
    pub(super) policy: Value,
    /// What the model answers, as the case gives it.
    pub(super) summary: Value,
    /// The text of what the model answers, when the case scripts it.
    pub(super) answer: Option<String>,
    /// How asking the model fails, when the case says that it does.
    pub(super) answer_error: Option<String>,
    /// The names of messages that are summaries of earlier compactions.
    pub(super) earlier: Vec<String>,
    pub(super) events: Vec<Value>,
    /// Sizes given directly, where content does not matter.
    pub(super) measured: Map<String, Value>,
    pub(super) expect: Map<String, Value>,
    /// The session, where our loader understands how the case gives it.
    pub(super) document: Result<Document, CaseError>,
}

/// The session of a case as a transcript, and the name that the case gives to each of its messages. A message
/// with several tool results becomes several messages of one name.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) format: Format,
    pub(super) bytes: Vec<u8>,
    pub(super) names: Vec<String>,
}

impl Case {
    pub(super) fn from_json(value: Value) -> Result<Self, CaseError> {
        let document = match (&value["raw_lines"], &value["raw_bytes_b64"]) {
            (Value::Array(lines), _) => {
                let lines = lines.iter().map(|line| line.as_str().ok_or(CaseError::Part("raw line")));
                lines.collect::<Result<Vec<_>, _>>().map(|lines| raw_document(lines.join("\n").as_bytes()))
            }
            (_, Value::String(content)) => {
                let content = STANDARD.decode(content).map_err(|_| CaseError::Part("raw bytes"));
                content.map(|content| raw_document(&content))
            }
            _ => document(list(&value["messages"])),
        };
        Ok(Self {
            id: string(&value, "id").ok_or(CaseError::Part("id"))?,
            kind: string(&value, "kind").ok_or(CaseError::Part("kind"))?,
            policy: value["policy"].clone(),
            summary: value["summary"].clone(),
            answer: answer(&value["summary"]),
            answer_error: string(&value["summary"], "transport_error"),
            earlier: list(&value["messages"])
                .iter()
                .filter(|message| message["summary"] == true)
                .filter_map(|message| string(message, "id"))
                .collect(),
            events: list(&value["events"]).to_vec(),
            measured: value["measured"].as_object().cloned().unwrap_or_default(),
            expect: value["expect"].as_object().cloned().unwrap_or_default(),
            document,
        })
    }

    /// Whether it says what a model answers.
    #[must_use]
    pub fn has_answer(&self) -> bool {
        !self.summary.is_null()
    }

    /// Whether it gives messages, and not sizes alone.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.passes().is_empty() && self.measured.is_empty()
    }

    /// Sizes before and after successive compactions, where the case gives only these.
    pub(super) fn passes(&self) -> Vec<(u64, u64)> {
        let passes = self.events.iter().filter(|event| event["op"] == "pass");
        passes.filter_map(|pass| Some((pass["before"].as_u64()?, pass["after"].as_u64()?))).collect()
    }
}

/// The text of a model's answer; an answer of other blocks has none, so it is empty.
fn answer(summary: &Value) -> Option<String> {
    string(summary, "text").or_else(|| {
        let texts = summary["blocks"].as_array()?.iter().filter_map(|block| string(block, "text"));
        Some(texts.collect())
    })
}

/// A whole message in the content of a file. Its text stays as it was escaped, broken escapes included.
#[derive(Deserialize)]
struct RawMessage<'a> {
    id: String,
    #[serde(borrow, rename = "text")]
    _text: &'a RawValue,
}

/// The content of a file of messages `{"id", "role", "text"}`, one a line or not quite, as chat messages.
fn raw_document(content: &[u8]) -> Document {
    const BEGIN: &str = "{\"id\":";
    let text = String::from_utf8_lossy(content);
    // Each message is looked at from where it begins to where the next one does.
    let whole = text.split(BEGIN).skip(1).filter_map(|rest| {
        let (message, _) = rest.rsplit_once('}')?;
        let message = format!("{BEGIN}{message}}}");
        Some(serde_json::from_str::<RawMessage<'_>>(&message).ok()?.id)
    });
    let names = whole.collect();
    Document { bytes: replaced(content, b"\"text\":", b"\"content\":"), names, format: Format::OpenAiChat }
}

/// The bytes with one piece of them put in place of another, wherever it stands.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        match rest.strip_prefix(old) {
            Some(after) => {
                out.extend_from_slice(new);
                rest = after;
            }
            None => {
                out.push(*first);
                rest = rest.split_first().map_or(&[], |(_, after)| after);
            }
        }
    }
    out
}

/// Messages of a case as a transcript of their own.
pub(super) fn document(messages: &[Value]) -> Result<Document, CaseError> {
    let mut names = Vec::new();
    let mut written = Vec::new();
    for message in messages {
        let name = string(message, "id").ok_or(CaseError::Part("message id"))?;
        for part in parts(message)? {
            names.push(name.clone());
            written.push(part);
        }
    }
    let bytes = json!({"epitome": 1, "messages": written}).to_string().into_bytes();
    Ok(Document { format: Format::EpitomeJson, bytes, names })
}

/// The messages of Epitome JSON that a message of a case stands for: each tool result is one of its own.
fn parts(message: &Value) -> Result<Vec<Value>, CaseError> {
    let role = match message["role"].as_str() {
        // A word of one provider for the same thing.
        Some("developer") => "system",
        Some(role) => role,
        None => return Err(CaseError::Part("message role")),
    };
    let is_result = |block: &Value| block["type"] == "tool_result";
    let blocks = list(&message["blocks"]);
    let mut parts = Vec::new();
    for run in blocks.chunk_by(|left, right| !is_result(left) && !is_result(right)) {
        parts.push(match run {
            [result] if is_result(result) => json!({
                "role": "tool",
                "tool_use_id": result["tool_use_id"],
                "is_error": result["is_error"] == true,
                "content": list(&result["content"]).iter().map(block).collect::<Vec<_>>(),
            }),
            run => json!({"role": role, "content": run.iter().map(block).collect::<Vec<_>>()}),
        });
    }
    if parts.is_empty() {
        parts.push(json!({"role": role, "content": []}));
    }
    if let Some(usage) = usage(&message["usage"])
        && let Some(last) = parts.last_mut()
    {
        last["usage"] = usage;
    }
    Ok(parts)
}

/// What a provider reported with a message, in our words: input without what was cached.
fn usage(reported: &Value) -> Option<Value> {
    let number = |keys: [&str; 2]| keys.iter().find_map(|key| reported[*key].as_u64()).unwrap_or(0);
    let input = reported["input_tokens"].as_u64()?;
    let read = number(["cached_input_tokens", "cache_read_input_tokens"]);
    let written = number(["cache_creation_input_tokens", "cache_creation_tokens"]);
    let includes_cached = reported["convention"] == "input_includes_cached";
    let input = if includes_cached { input.saturating_sub(read).saturating_sub(written) } else { input };
    Some(json!({
        "input": input,
        "output": number(["output_tokens", "completion_tokens"]),
        "cache_read": read,
        "cache_creation": written,
    }))
}

/// The words for blocks are the same, but for what only one provider has.
fn block(block: &Value) -> Value {
    match block["type"].as_str() {
        Some("text" | "refusal" | "image" | "audio" | "document" | "thinking" | "tool_use") => block.clone(),
        Some("tool_result") => {
            let mut result = block.clone();
            result["content"] = list(&block["content"]).iter().map(self::block).collect();
            result
        }
        Some("json") => json!({"type": "text", "text": block["value"].to_string()}),
        kind => json!({"type": "opaque", "kind": kind, "raw": block}),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_messages_of_their_own() {
        let message = json!({"role": "user", "blocks": [
            {"type": "tool_result", "tool_use_id": "a", "content": []},
            {"type": "tool_result", "tool_use_id": "b", "content": []},
            {"type": "text", "text": "x"},
            {"type": "json", "value": {"n": 1}},
        ]});
        let parts = parts(&message).unwrap();
        let roles: Vec<_> = parts.iter().map(|part| part["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["tool", "tool", "user"]);
        assert_eq!(parts[2]["content"][1]["text"], "{\"n\":1}");
    }

    #[test]
    fn raw_content_keeps_its_broken_escapes_and_names_what_is_whole() {
        let content = concat!(
            r#"{"id":"m1","role":"user","text":"a \ud83d b"}"#,
            "\n",
            r#"{"id":"m2","role":"assis{"id":"m3","role":"user","text":"c"}"#
        );
        let document = raw_document(content.as_bytes());
        assert_eq!(document.names, ["m1", "m3"]);
        assert!(String::from_utf8(document.bytes).unwrap().contains(r#""content":"a \ud83d b""#));
    }
}
