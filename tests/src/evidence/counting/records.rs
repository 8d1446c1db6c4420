//! Requests beside their replies, wherever a file holds them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::reported::reply_of_stream;
use crate::evidence::EvidenceError;

/// A request and the reply to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exchange {
    /// The file, and which exchange of it.
    pub(super) place: String,
    pub(super) request: Value,
    pub(super) reply: Value,
}

/// The end of the name of a file with a request; its reply lies beside it.
const REQUEST: &str = ".request.json";
const REPLY: &str = ".response.json";

/// Every exchange in a folder of transcripts, by file.
pub(super) fn exchanges(files: &[PathBuf]) -> Result<Vec<Exchange>, EvidenceError> {
    let mut found = Vec::new();
    for file in files {
        let name = name_of(file);
        if name.ends_with(REPLY) {
            continue;
        }
        if let Some(stem) = name.strip_suffix(REQUEST) {
            let reply = file.with_file_name(format!("{stem}{REPLY}"));
            if reply.is_file()
                && let (Some(request), Some(reply)) = (values(file)?.pop(), values(&reply)?.pop())
            {
                found.push(Exchange { place: stem.to_owned(), request, reply });
            }
            continue;
        }
        let mut at = 0;
        let mut pending = None;
        for value in values(file)? {
            let records = match value {
                Value::Array(records) => records,
                one => vec![one],
            };
            for record in records {
                for (request, reply) in in_record(record, &mut pending) {
                    found.push(Exchange { place: format!("{name}#{at}"), request, reply });
                    at += 1;
                }
            }
        }
    }
    Ok(found)
}

pub(super) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The file of a place, without which figure of it.
pub(super) fn file_of(place: &str) -> &str {
    let place = place.split_once(" at ").map_or(place, |(file, _)| file);
    place.split_once('#').map_or(place, |(file, _)| file)
}

/// The JSON values of a file; a damaged line costs that line, and a file that is not text has none.
fn values(file: &Path) -> Result<Vec<Value>, EvidenceError> {
    let bytes = fs::read(file)?;
    let mut values = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        let mut read = 0;
        while let Some(Ok(value)) = stream.next() {
            values.push(value);
            read = stream.byte_offset();
        }
        rest = rest.get(read..).unwrap_or_default();
        let line_end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        rest = rest.get(line_end..).unwrap_or_default();
    }
    Ok(values)
}

/// The exchanges in one record of a log. Some logs write the request and its reply as records of their own.
fn in_record(record: Value, pending: &mut Option<Value>) -> Vec<(Value, Value)> {
    if let Some(events) = record.get("events").and_then(Value::as_array)
        && let Some(attachments) = record.get("attachments")
    {
        return inspect_events(events, attachments);
    }
    let inner = ["request", "request_params", "body"].iter().find_map(|key| record.get(key));
    let request = inner.or(Some(&record)).filter(|request| is_request(request)).cloned();
    let reply = record.get("response").map(|reply| match reply {
        Value::String(stream) => reply_of_stream(stream),
        reply => reply.clone(),
    });
    match (request, reply) {
        (Some(request), Some(reply)) => vec![(request, reply)],
        (Some(request), None) => {
            *pending = Some(request);
            Vec::new()
        }
        (None, Some(reply)) => pending.take().map(|request| (request, reply)).into_iter().collect(),
        (None, None) => Vec::new(),
    }
}

fn is_request(value: &Value) -> bool {
    value.get("messages").is_some_and(Value::is_array)
        || value.get("contents").is_some_and(Value::is_array)
        || value.get("input").is_some_and(|input| input.is_array() || input.is_string())
            && value.get("model").is_some()
}

/// Inspect logs each call of a model as an event; long texts stand aside under their hash.
fn inspect_events(events: &[Value], attachments: &Value) -> Vec<(Value, Value)> {
    let model_calls = events.iter().filter(|event| event["event"] == "model");
    let calls = model_calls.map(|event| &event["call"]).filter(|call| is_request(&call["request"]));
    calls.map(|call| (attached(&call["request"], attachments), call["response"].clone())).collect()
}

/// A value with its attachments in place. The depth is that of the reader, which is bounded.
fn attached(value: &Value, attachments: &Value) -> Value {
    match value {
        Value::String(text) => {
            let text = text.strip_prefix("attachment://").and_then(|hash| attachments[hash].as_str());
            text.map_or_else(|| value.clone(), |text| Value::String(text.to_owned()))
        }
        Value::Array(items) => items.iter().map(|item| attached(item, attachments)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), attached(value, attachments))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_file(name: &str, text: &str) -> Vec<Exchange> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        exchanges(&[file]).unwrap()
    }

    #[test]
    fn exchanges_are_found_in_every_container() {
        let request = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
        let together = format!(r#"[{{"request":{request},"response":{{"usage":{{"prompt_tokens":9}}}}}}]"#);
        let apart = format!("{{\"request_params\":{request}}}\n{{\"response\":{{\"id\":1}}}}\n");
        let damaged = format!("{{\"a\":\n{apart}");
        let within = r#"{"messages":[{"role":"user"}],"response":{"id":1}}"#;
        let inspect = format!(
            r#"{{"messages":[],"attachments":{{"h":"long"}},"events":[{{"event":"model","call":{{"request":
            {},"response":{{"id":2}}}}}},{{"event":"info"}}]}}"#,
            request.replace("\"x\"", "\"attachment://h\"")
        );
        for text in [together.as_str(), &apart, &damaged, within, &inspect] {
            assert_eq!(in_file("log.json", text).len(), 1, "{text}");
        }
        let found = in_file("log.json", &inspect);
        assert_eq!(found[0].request["messages"][0]["content"], "long");
        assert_eq!(in_file("log.json", request), []);
        assert_eq!(in_file("log.eval", "PK\u{3}\u{4}\u{0}"), []);
    }

    #[test]
    fn a_request_has_its_reply_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let (request, reply) = (folder.path().join("a.request.json"), folder.path().join("a.response.json"));
        fs::write(&request, r#"{"messages":[]}"#).unwrap();
        assert_eq!(exchanges(std::slice::from_ref(&request)).unwrap(), []);
        fs::write(&reply, r#"{"usage":{}}"#).unwrap();
        let found = exchanges(&[request, reply]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "a");
    }
}
