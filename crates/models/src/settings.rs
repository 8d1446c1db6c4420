//! What a client for a model has to be told.

use std::time::Duration;

use epitome_loop::{Retention, SharedText};
use thiserror::Error;

/// How a model is reached and what it is held to. It holds the name of the variable with the key, never a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSettings {
    /// Who serves the model, as in [`ModelKey::provider`](epitome_loop::ModelKey).
    pub provider: SharedText,
    /// The interface that is spoken there.
    pub dialect: Dialect,
    /// The address in front of the interface's paths, its version included: `https://api.openai.com/v1`. Https, or
    /// http on this machine; without credentials.
    pub base_url: SharedText,
    /// The variable of the environment that holds the key; `None` for a server that asks for none.
    pub key_variable: Option<SharedText>,
    /// Whether an answer is sent in one piece.
    pub answers: AnswerMode,
    /// Whether the answering model must be the asked one.
    pub model_check: ModelCheck,
    /// Whether a form for the answer is sent where the interface has one. Older models refuse such requests.
    pub answer_forms: bool,
    /// Limits of time and size.
    pub bounds: Bounds,
    /// What the provider keeps of a request, by the user's word; `None` when that is not known.
    pub retention: Option<Retention>,
}

/// The interface that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's chat completions, which most servers speak.
    OpenAiChat(ChatServer),
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    AnthropicMessages,
    /// Google's `generateContent`.
    GeminiContents,
}

/// What kind of server speaks chat completions, as far as requests and what is told of windows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChatServer {
    /// OpenAI itself: the largest answer is named `max_completion_tokens`.
    OpenAi,
    /// llama.cpp: it takes grammars too.
    LlamaCpp,
    /// Ollama: as any other, and it tells the windows of loaded models in an interface of its own.
    Ollama,
    /// LM Studio: as any other, and it tells the windows of loaded models in an interface of its own.
    LmStudio,
    /// Any other: the largest answer is named `max_tokens`.
    Compatible,
}

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnswerMode {
    /// In one piece.
    Whole,
    /// In events, while it is made. Nothing is shown before it is whole.
    Streamed,
}

/// What is made of the name of the model that answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelCheck {
    /// It must be the asked one, see [`is_same_model`](crate::is_same_model).
    Same,
    /// It may be any: for servers with one model, which call it what they like.
    Any,
}

/// Limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a call may take, from its start to the answer's last byte.
    pub total_timeout: Duration,
    /// How many bytes an answer may have as it is sent, events and all.
    pub answer_bytes: u64,
}

/// A client cannot be made of these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The provider has no name.
    #[error("the provider has no name")]
    Provider,
    /// The address is neither https nor http on this machine, or it holds credentials, a query or a fragment.
    #[error("the base URL must be https, or http on this machine, without credentials and query")]
    BaseUrl,
    /// The variable for the key has no name.
    #[error("the variable that holds the key has no name")]
    KeyVariable,
    /// A limit is zero.
    #[error("a limit of time or size is zero")]
    Bounds,
    /// TLS cannot be set up: the system has no certificates of authorities.
    #[error("TLS cannot be set up; are certificates of authorities installed?")]
    Tls,
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client,
    /// The provider has no service that counts.
    #[error("this provider has no service that counts tokens")]
    NoCounting,
}

impl ModelSettings {
    /// Checks what can be checked without the system.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if self.provider.trim().is_empty() {
            return Err(SetupError::Provider);
        }
        if self.key_variable.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err(SetupError::KeyVariable);
        }
        let Bounds { connect_timeout, total_timeout, answer_bytes } = self.bounds;
        if connect_timeout.is_zero() || total_timeout.is_zero() || answer_bytes == 0 {
            return Err(SetupError::Bounds);
        }
        Ok(())
    }
}
