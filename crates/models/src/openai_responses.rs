//! OpenAI's Responses.

mod answer;
mod request;
mod stream;

use epitome_loop::{ModelCall, ModelCallErrorKind, Request};
use serde::Deserialize;

use crate::answer::Draft;
use crate::dialect::{EventReader, Interface, KeyHeader, NoPlace, Outgoing};
use crate::wire_json::object;

/// The interface.
pub(crate) struct OpenAiResponses;

impl Interface for OpenAiResponses {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "authorization", prefix: "Bearer " }
    }

    fn request(&self, call: &ModelCall, streamed: bool, with_form: bool) -> Result<Outgoing, NoPlace> {
        let body = request::write(call, streamed, with_form)?;
        Ok(Outgoing { path: "/responses".to_owned(), body })
    }

    fn read(&self, body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
        answer::read(body)
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(stream::Reader::default())
    }

    fn count_request(&self, request: &Request) -> Option<Result<Outgoing, NoPlace>> {
        let body = request::write_count(request);
        Some(body.map(|body| Outgoing { path: "/responses/input_tokens".to_owned(), body }))
    }

    fn read_count(&self, body: &[u8]) -> Option<u64> {
        #[derive(Deserialize)]
        struct Count {
            object: String,
            input_tokens: u64,
        }
        let Count { object, input_tokens } = object(body).ok()?;
        (object == "response.input_tokens").then_some(input_tokens)
    }
}
