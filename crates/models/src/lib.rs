#![doc = include_str!("../README.md")]

mod answer;
mod anthropic;
mod api_key;
mod capability;
mod dialect;
mod endpoint;
mod finish_word;
mod gemini;
mod http_date;
#[cfg(test)]
mod interface_tests;
mod network_model;
mod openai_chat;
mod openai_responses;
mod profile;
mod provider_counter;
mod provider_error;
mod redacting;
mod redaction;
mod request_parts;
mod retry_after;
mod same_model;
mod served_models;
mod server_events;
mod settings;
mod tls;
mod transport;
mod wire_json;

pub use answer::WORDLESS_REFUSAL;
pub use api_key::process_environment;
pub use network_model::NetworkModel;
pub use profile::{PROFILES, Profile, profile};
pub use provider_counter::ProviderCounter;
pub use redacting::{Redacting, RedactionReport};
pub use redaction::{Redacted, RedactionCounts, SecretKind, redact};
pub use same_model::is_same_model;
pub use served_models::ServedModel;
pub use settings::{AnswerMode, Bounds, ChatServer, Dialect, ModelCheck, ModelSettings, SetupError};
