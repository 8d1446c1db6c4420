//! Google's `generateContent`.

mod answer;
mod request;
mod stream;

use epitome_loop::{ModelCall, ModelCallErrorKind, Request};
use serde::Deserialize;

use crate::answer::Draft;
use crate::dialect::{EventReader, Interface, KeyHeader, NoPlace, Outgoing};
use crate::wire_json::object;

/// The interface.
pub(crate) struct GeminiContents;

/// Whose signatures reasoning and calls bear.
const SIGNATURE: &str = "gemini";

impl Interface for GeminiContents {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "x-goog-api-key", prefix: "" }
    }

    fn request(&self, call: &ModelCall, streamed: bool, with_form: bool) -> Result<Outgoing, NoPlace> {
        let service = if streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let path = path(&call.model, service)?;
        Ok(Outgoing { path, body: request::write(call, with_form)? })
    }

    fn read(&self, body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
        answer::read(body)
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(stream::Reader::default())
    }

    fn count_request(&self, request: &Request) -> Option<Result<Outgoing, NoPlace>> {
        let outgoing = path(&request.model.model, "countTokens")
            .and_then(|path| Ok(Outgoing { path, body: request::write_count(request)? }));
        Some(outgoing)
    }

    fn read_count(&self, body: &[u8]) -> Option<u64> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Count {
            total_tokens: u64,
        }
        object(body).ok().map(|Count { total_tokens }| total_tokens)
    }
}

/// The model stands in the path, so its name must be one step of a path.
fn path(model: &str, service: &str) -> Result<String, NoPlace> {
    let name = model.strip_prefix("models/").unwrap_or(model);
    let fits = !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte));
    if fits {
        Ok(format!("/models/{name}:{service}"))
    } else {
        Err(NoPlace { message: 0, kind: "model name" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_name_is_one_step_of_the_path() {
        assert_eq!(path("gemini-2.5-pro", "g").unwrap(), "/models/gemini-2.5-pro:g");
        assert_eq!(path("models/gemini-2.5-pro", "g").unwrap(), "/models/gemini-2.5-pro:g");
        for bad in ["", "models/", "../x", "a/b", "a?b", "a#b", "a%2f", "..", "\u{e9}"] {
            assert!(path(bad, "g").is_err(), "{bad}");
        }
    }
}
