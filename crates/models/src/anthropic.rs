//! Anthropic's Messages.

mod answer;
mod request;
mod stream;

use epitome_loop::{ModelCall, ModelCallErrorKind, Request};
use serde::Deserialize;

use crate::answer::Draft;
use crate::dialect::{EventReader, Interface, KeyHeader, NoPlace, Outgoing};
use crate::wire_json::object;

/// The interface.
pub(crate) struct AnthropicMessages;

/// Whose signatures reasoning bears.
const SIGNATURE: &str = "anthropic";

impl Interface for AnthropicMessages {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "x-api-key", prefix: "" }
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn request(&self, call: &ModelCall, streamed: bool, with_form: bool) -> Result<Outgoing, NoPlace> {
        let body = request::write(call, streamed, with_form)?;
        Ok(Outgoing { path: "/messages".to_owned(), body })
    }

    fn read(&self, body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
        answer::read(body)
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(stream::Reader::default())
    }

    fn count_request(&self, request: &Request) -> Option<Result<Outgoing, NoPlace>> {
        let body = request::write_count(request);
        Some(body.map(|body| Outgoing { path: "/messages/count_tokens".to_owned(), body }))
    }

    fn read_count(&self, body: &[u8]) -> Option<u64> {
        #[derive(Deserialize)]
        struct Count {
            input_tokens: u64,
        }
        object(body).ok().map(|Count { input_tokens }| input_tokens)
    }
}
