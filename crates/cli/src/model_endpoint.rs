//! Which server is asked for a model: one of a known kind, any address, or both.

use std::time::Duration;

use epitome_loop::{InferenceTransport, ModelCallError, ModelCallErrorKind, SharedText};
use epitome_models::{
    AnswerMode, Bounds, ChatServer, Dialect, ModelCheck, ModelSettings, NetworkModel, PROFILES, Profile,
    process_environment, profile,
};

use crate::failure::Failure;

/// A server as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelEndpoint {
    /// The known kind; `None` for an address of which nothing else is known.
    profile: Option<&'static Profile>,
    /// Another address than that of the known kind.
    address: Option<SharedText>,
}

/// Who serves at an address of which nothing else is known.
const ANY_PROVIDER: &str = "openai-compatible";

/// How long a server may take to say what it has.
pub(crate) const LOOK: Bounds = Bounds {
    connect_timeout: Duration::from_secs(2),
    total_timeout: Duration::from_secs(2),
    // OpenRouter describes some hundred models at length.
    answer_bytes: 16 << 20,
};

/// Reads `ollama`, `http://127.0.0.1:9000/v1` or `llama.cpp=http://127.0.0.1:9000/v1`.
pub(crate) fn parse_endpoint(text: &str) -> Result<ModelEndpoint, String> {
    let text = text.trim();
    if let Some(known) = profile(text) {
        return Ok(known.into());
    }
    let (profile, address) = match text.split_once('=') {
        Some((name, address)) if !name.contains("://") => {
            (Some(profile(name.trim()).ok_or_else(unknown)?), address.trim())
        }
        _ => (None, text),
    };
    if !address.contains("://") {
        return Err(unknown());
    }
    Ok(ModelEndpoint { profile, address: Some(address.into()) })
}

fn unknown() -> String {
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    format!("known are {}; or give an address, or NAME=ADDRESS", known.join(", "))
}

impl From<&'static Profile> for ModelEndpoint {
    fn from(profile: &'static Profile) -> Self {
        Self { profile: Some(profile), address: None }
    }
}

impl ModelEndpoint {
    /// A server of a known kind at another address, where one is given.
    pub(crate) fn at(profile: &'static Profile, address: &str) -> Self {
        let address = Some(address.trim()).filter(|address| !address.is_empty());
        Self { profile: Some(profile), address: address.map(SharedText::from) }
    }

    /// The kind, or the address where it is of none.
    pub(crate) fn name(&self) -> &str {
        match (self.profile, &self.address) {
            (Some(profile), _) => profile.name,
            (None, address) => address.as_deref().unwrap_or_default(),
        }
    }

    /// Who serves, as in a model's key.
    pub(crate) fn provider(&self) -> &'static str {
        self.profile.map_or(ANY_PROVIDER, |profile| profile.provider)
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &str {
        self.address.as_deref().unwrap_or_else(|| self.profile.map_or("", |profile| profile.base_url))
    }

    /// The variable in which its key is looked for; `None` where none is asked for.
    pub(crate) fn key_variable(&self) -> Option<&'static str> {
        self.profile.and_then(|profile| profile.key_variable)
    }

    /// The interface that it speaks.
    pub(crate) fn dialect(&self) -> Dialect {
        self.profile.map_or(Dialect::OpenAiChat(ChatServer::Compatible), |profile| profile.dialect)
    }

    /// Whether its models are known to be held to JSON schemas. Gateways and bare addresses have models of all kinds, and
    /// Anthropic's older models know no schemas.
    pub(crate) fn takes_schemas(&self) -> bool {
        self.profile.is_some_and(|profile| !["anthropic", "openrouter"].contains(&profile.name))
    }

    /// A client for it. `key` names another variable than the usual one.
    pub(crate) fn client(&self, key: Option<&str>, bounds: Bounds) -> Result<NetworkModel, Failure> {
        let settings = match self.profile {
            Some(profile) => profile.settings(bounds),
            None => ModelSettings {
                provider: ANY_PROVIDER.into(),
                dialect: self.dialect(),
                base_url: SharedText::default(),
                key_variable: None,
                answers: AnswerMode::Whole,
                model_check: ModelCheck::Same,
                answer_forms: true,
                bounds,
                retention: None,
            },
        };
        let settings = ModelSettings {
            base_url: self.address().into(),
            key_variable: key.map(SharedText::from).or(settings.key_variable),
            ..settings
        };
        let model = NetworkModel::new(settings, &process_environment).map_err(Failure::Endpoint)?;
        // What is replaced is up to whoever asks, who counts it too.
        Ok(model.without_redaction())
    }
}

/// Whether requests of a client stay on this machine.
pub(crate) fn is_local(client: &NetworkModel) -> bool {
    client.inference_capability().transport == InferenceTransport::Local
}

/// The stable name of what a server did.
pub(crate) fn reason_name(kind: ModelCallErrorKind) -> &'static str {
    match kind {
        ModelCallErrorKind::Network => "network",
        ModelCallErrorKind::Timeout => "timed_out",
        ModelCallErrorKind::Status(401 | 403) => "not_authorized",
        ModelCallErrorKind::Status(404) => "not_found",
        ModelCallErrorKind::Status(429) => "rate_limited",
        ModelCallErrorKind::Status(_) => "status",
        ModelCallErrorKind::TooLarge { .. } => "too_large",
        ModelCallErrorKind::Malformed => "malformed",
        ModelCallErrorKind::OtherModel => "other_model",
        ModelCallErrorKind::Unsupported => "unsupported",
        ModelCallErrorKind::NoKey => "no_key",
        _ => "other",
    }
}

/// What to do about a server that did not answer as it should.
pub(crate) fn server_advice(error: ModelCallError) -> &'static str {
    match error.kind {
        ModelCallErrorKind::Network => "; is the server running, and is this its address?",
        ModelCallErrorKind::Timeout => "; it is there and slow, or something else listens there",
        ModelCallErrorKind::Status(401 | 403) => {
            "; does the variable hold the right key? `epitome models` names it"
        }
        ModelCallErrorKind::Status(404) => {
            "; it has no such model or no such interface: `epitome models --model-endpoint ENDPOINT` lists what it \
             serves, and most addresses end in /v1"
        }
        ModelCallErrorKind::Status(429) => "; it asks to wait, or the account has no credit left",
        ModelCallErrorKind::OtherModel => "; `epitome models --model-endpoint ENDPOINT` lists what it serves",
        ModelCallErrorKind::Malformed => "; what answers there speaks another interface",
        ModelCallErrorKind::NoKey => "; `epitome models` names the variable in which it is looked for",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_kind_an_address_or_both() {
        let ollama = parse_endpoint("ollama").unwrap();
        assert_eq!((ollama.name(), ollama.address()), ("ollama", "http://127.0.0.1:11434/v1"));
        let address = parse_endpoint("http://127.0.0.1:9/v1").unwrap();
        assert_eq!((address.name(), address.provider()), ("http://127.0.0.1:9/v1", ANY_PROVIDER));
        assert_eq!(
            (address.key_variable(), address.dialect()),
            (None, Dialect::OpenAiChat(ChatServer::Compatible))
        );
        let both = parse_endpoint("anthropic=http://127.0.0.1:9/v1?a=b").unwrap();
        assert_eq!((both.name(), both.address()), ("anthropic", "http://127.0.0.1:9/v1?a=b"));
        assert_eq!(both.key_variable(), Some("ANTHROPIC_API_KEY"));
        assert_eq!(parse_endpoint("http://x/?a=b").unwrap().address(), "http://x/?a=b");
        for bad in ["", "nobody", "nobody=http://127.0.0.1:9", "ollama=", "ollama=127.0.0.1:9", "127.0.0.1:9"]
        {
            assert!(parse_endpoint(bad).unwrap_err().contains("llama.cpp, lm-studio"), "{bad}");
        }
    }

    #[test]
    fn an_address_that_may_not_be_used_is_refused_when_a_client_is_made() {
        for bad in ["http://example.com/v1", "https://user:secret@x/v1", "https://x/v1?key=secret"] {
            let refused = parse_endpoint(bad).unwrap().client(None, LOOK).unwrap_err();
            assert!(matches!(refused, Failure::Endpoint(_)), "{bad}");
        }
    }
}
