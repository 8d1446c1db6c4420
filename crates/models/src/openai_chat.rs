//! OpenAI's chat completions, as OpenAI, Ollama, llama.cpp, vLLM, LM Studio and OpenRouter speak them.

mod answer;
mod request;
mod stream;
mod usage;

use epitome_loop::{ModelCall, ModelCallErrorKind, Request};

use crate::ChatServer;
use crate::answer::Draft;
use crate::dialect::{EventReader, Interface, KeyHeader, NoPlace, Outgoing};

/// The interface.
pub(crate) struct OpenAiChat {
    server: ChatServer,
}

impl OpenAiChat {
    pub(crate) fn new(server: ChatServer) -> Self {
        Self { server }
    }
}

impl Interface for OpenAiChat {
    fn key_header(&self) -> KeyHeader {
        KeyHeader { name: "authorization", prefix: "Bearer " }
    }

    fn request(&self, call: &ModelCall, streamed: bool, with_form: bool) -> Result<Outgoing, NoPlace> {
        let body = request::write(call, self.server, streamed, with_form)?;
        Ok(Outgoing { path: "/chat/completions".to_owned(), body })
    }

    fn read(&self, body: &[u8]) -> Result<Draft, ModelCallErrorKind> {
        answer::read(body)
    }

    fn reader(&self) -> Box<dyn EventReader> {
        Box::new(stream::Reader::default())
    }

    fn count_request(&self, _: &Request) -> Option<Result<Outgoing, NoPlace>> {
        None
    }

    fn read_count(&self, _: &[u8]) -> Option<u64> {
        None
    }
}
