//! Servers that are known by name.

use epitome_loop::SharedText;

use crate::{AnswerMode, Bounds, ChatServer, Dialect, ModelCheck, ModelSettings};

/// What is known of a kind of server. A host turns it into settings and changes what it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// Who serves, as in a model's key.
    pub provider: &'static str,
    /// The interface.
    pub dialect: Dialect,
    /// The address by its makers' documents.
    pub base_url: &'static str,
    /// The variable in which its users keep the key; `None` where none is asked for.
    pub key_variable: Option<&'static str>,
    /// Whether it says truthfully which model answered.
    pub model_check: ModelCheck,
}

/// Every known kind of server, sorted by name.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "anthropic",
        provider: "anthropic",
        dialect: Dialect::AnthropicMessages,
        base_url: "https://api.anthropic.com/v1",
        key_variable: Some("ANTHROPIC_API_KEY"),
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "gemini",
        provider: "google",
        dialect: Dialect::GeminiContents,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_variable: Some("GEMINI_API_KEY"),
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "llama.cpp",
        provider: "llama.cpp",
        dialect: Dialect::OpenAiChat(ChatServer::LlamaCpp),
        base_url: "http://127.0.0.1:8080/v1",
        key_variable: None,
        // It serves one model, whatever is asked for.
        model_check: ModelCheck::Any,
    },
    Profile {
        name: "lm-studio",
        provider: "lm-studio",
        dialect: Dialect::OpenAiChat(ChatServer::LmStudio),
        base_url: "http://127.0.0.1:1234/v1",
        key_variable: None,
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "ollama",
        provider: "ollama",
        dialect: Dialect::OpenAiChat(ChatServer::Ollama),
        base_url: "http://127.0.0.1:11434/v1",
        key_variable: None,
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "openai",
        provider: "openai",
        dialect: Dialect::OpenAiResponses,
        base_url: "https://api.openai.com/v1",
        key_variable: Some("OPENAI_API_KEY"),
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "openai-chat",
        provider: "openai",
        dialect: Dialect::OpenAiChat(ChatServer::OpenAi),
        base_url: "https://api.openai.com/v1",
        key_variable: Some("OPENAI_API_KEY"),
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "openrouter",
        provider: "openrouter",
        dialect: Dialect::OpenAiChat(ChatServer::Compatible),
        base_url: "https://openrouter.ai/api/v1",
        key_variable: Some("OPENROUTER_API_KEY"),
        model_check: ModelCheck::Same,
    },
    Profile {
        name: "vllm",
        provider: "vllm",
        dialect: Dialect::OpenAiChat(ChatServer::Compatible),
        base_url: "http://127.0.0.1:8000/v1",
        key_variable: None,
        model_check: ModelCheck::Same,
    },
];

/// The profile of this name.
#[must_use]
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

impl Profile {
    /// Settings for this server: answers in one piece, forms sent, nothing assumed about what it keeps.
    #[must_use]
    pub fn settings(&self, bounds: Bounds) -> ModelSettings {
        let Self { name: _, provider, dialect, base_url, key_variable, model_check } = *self;
        ModelSettings {
            provider: provider.into(),
            dialect,
            base_url: base_url.into(),
            key_variable: key_variable.map(SharedText::from),
            answers: AnswerMode::Whole,
            model_check,
            answer_forms: true,
            bounds,
            retention: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;

    #[test]
    fn profiles_are_sorted_and_usable() {
        assert!(PROFILES.is_sorted_by(|left, right| left.name < right.name));
        for known in PROFILES {
            let endpoint = Endpoint::parse(known.base_url).unwrap();
            // A server on this machine asks for no key; any other does.
            assert_eq!(endpoint.is_local(), known.key_variable.is_none(), "{}", known.name);
            assert_eq!(profile(known.name), Some(known));
        }
        assert_eq!(profile("nobody"), None);
    }
}
