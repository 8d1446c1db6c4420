//! What the client needs of each interface.

use epitome_loop::{ModelCall, ModelCallErrorKind, Request};

use crate::answer::Draft;
use crate::anthropic::AnthropicMessages;
use crate::gemini::GeminiContents;
use crate::openai_chat::OpenAiChat;
use crate::openai_responses::OpenAiResponses;
use crate::{Dialect, ModelSettings};

/// A request as it is sent.
pub(crate) struct Outgoing {
    /// The path behind the base URL, a query included.
    pub(crate) path: String,
    /// The JSON.
    pub(crate) body: Vec<u8>,
}

/// Content that an interface has no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoPlace {
    /// Index of the message.
    pub(crate) message: usize,
    /// Kind of the block.
    pub(crate) kind: &'static str,
}

/// How a key stands in a request's headers.
#[derive(Clone, Copy)]
pub(crate) struct KeyHeader {
    pub(crate) name: &'static str,
    pub(crate) prefix: &'static str,
}

/// One interface: how requests are written and answers are read.
pub(crate) trait Interface: Send + Sync {
    /// Where the key goes.
    fn key_header(&self) -> KeyHeader;

    /// Headers that every request has.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Writes a request.
    fn request(&self, call: &ModelCall, streamed: bool, with_form: bool) -> Result<Outgoing, NoPlace>;

    /// Reads an answer in one piece.
    ///
    /// # Errors
    /// A status for an error object; [`ModelCallErrorKind::Malformed`] for what is no answer.
    fn read(&self, body: &[u8]) -> Result<Draft, ModelCallErrorKind>;

    /// A reader for an answer in events.
    fn reader(&self) -> Box<dyn EventReader>;

    /// Writes a request that asks how many tokens a request takes; `None` where there is no such service.
    fn count_request(&self, request: &Request) -> Option<Result<Outgoing, NoPlace>>;

    /// Reads the number of tokens.
    fn read_count(&self, body: &[u8]) -> Option<u64>;
}

/// Puts an answer together from events.
pub(crate) trait EventReader: Send {
    /// Takes the data of one event.
    ///
    /// # Errors
    /// As [`Interface::read`].
    fn take(&mut self, data: &[u8]) -> Result<(), ModelCallErrorKind>;

    /// The answer, once no more events come.
    ///
    /// # Errors
    /// [`ModelCallErrorKind::Network`] when the provider did not say that it is whole.
    fn end(self: Box<Self>) -> Result<Draft, ModelCallErrorKind>;
}

/// The interface that the settings name.
pub(crate) fn interface(settings: &ModelSettings) -> Box<dyn Interface> {
    match settings.dialect {
        Dialect::OpenAiChat(server) => Box::new(OpenAiChat::new(server)),
        Dialect::OpenAiResponses => Box::new(OpenAiResponses),
        Dialect::AnthropicMessages => Box::new(AnthropicMessages),
        Dialect::GeminiContents => Box::new(GeminiContents),
    }
}
