//! Which models a server has, and how large their windows are where it says so.
//!
//! What a model was trained for is not its window: a server may have given it less (llama.cpp's `n_ctx` beside its
//! `n_ctx_train`, Ollama's and LM Studio's length of a loaded model beside the model's own). Only what holds for the
//! next request is taken.

use std::collections::BTreeMap;

use epitome_loop::{ModelCallError, ModelCallErrorKind, SharedText, TokenCount};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::Interface;
use crate::provider_error::error_in_answer;
use crate::transport::Transport;
use crate::wire_json::object;
use crate::{ChatServer, Dialect};

/// A model that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedModel {
    /// Its name, as calls name it.
    pub name: SharedText,
    /// How many tokens a request and its answer may take together, where the server says so. Anthropic and Gemini tell
    /// the input alone; that is taken, because it is the smaller one.
    pub window: Option<TokenCount>,
}

/// Names with their windows; the smallest where several are told.
type Found = BTreeMap<String, Option<u64>>;

/// Reads a list.
type Read = fn(&[u8]) -> Result<Found, ModelCallErrorKind>;

pub(crate) async fn ask(
    dialect: Dialect,
    interface: &dyn Interface,
    transport: &Transport,
) -> Result<Vec<ServedModel>, ModelCallError> {
    let (path, read): (_, Read) = match dialect {
        Dialect::OpenAiChat(_) | Dialect::OpenAiResponses => ("/models", read_openai),
        Dialect::AnthropicMessages => ("/models?limit=1000", read_openai),
        Dialect::GeminiContents => ("/models?pageSize=1000", read_gemini),
    };
    let url = transport.endpoint().service(path).ok_or(ModelCallErrorKind::Unsupported)?;
    let mut incoming = transport.get(interface, url).await?;
    let mut found = match incoming.whole().await.and_then(|body| read(&body)) {
        Ok(found) => found,
        Err(kind) => return Err(incoming.error(kind)),
    };
    if found.values().any(Option::is_none)
        && let Dialect::OpenAiChat(server) = dialect
    {
        // Windows are a help; without them the list is whole too.
        let _ = add_windows(server, interface, transport, &mut found).await;
    }
    let model = |(name, window): (String, Option<u64>)| ServedModel {
        name: name.into(),
        window: window.map(TokenCount),
    };
    Ok(found.into_iter().map(model).collect())
}

/// Asks a server for the windows in its own interface.
async fn add_windows(
    server: ChatServer,
    interface: &dyn Interface,
    transport: &Transport,
    found: &mut Found,
) -> Result<(), ModelCallError> {
    let path = match server {
        ChatServer::LlamaCpp => "/props",
        ChatServer::Ollama => "/api/ps",
        ChatServer::LmStudio => "/api/v0/models",
        ChatServer::OpenAi | ChatServer::Compatible => return Ok(()),
    };
    let url = transport.endpoint().beside(path).ok_or(ModelCallErrorKind::Unsupported)?;
    let body = transport.get(interface, url).await?.whole().await?;
    match server {
        ChatServer::LlamaCpp => {
            // What it says there is about the one model that it serves.
            if let (Some(window), 1) = (read_props(&body)?, found.len()) {
                found.values_mut().for_each(|known| *known = Some(window));
            }
        }
        ChatServer::Ollama => fill(found, read_ollama_loaded(&body)?),
        _ => fill(found, read_openai(&body)?),
    }
    Ok(())
}

fn fill(found: &mut Found, windows: Found) {
    for (name, window) in windows {
        if let Some(known @ None) = found.get_mut(&name) {
            *known = window;
        }
    }
}

/// A window; zero is none.
fn smallest(told: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    told.into_iter().flatten().filter(|window| *window > 0).min()
}

/// The list of OpenAI, and of all that answer in its form: vLLM adds `max_model_len`, llama.cpp `meta.n_ctx`, OpenRouter
/// `context_length` with that of its first choice, LM Studio (in its own interface) `loaded_context_length`, Anthropic
/// `max_input_tokens`.
fn read_openai(body: &[u8]) -> Result<Found, ModelCallErrorKind> {
    #[derive(Deserialize)]
    struct List<'a> {
        data: Option<Vec<Entry>>,
        #[serde(default, borrow)]
        error: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        max_model_len: Option<u64>,
        context_length: Option<u64>,
        loaded_context_length: Option<u64>,
        max_input_tokens: Option<u64>,
        meta: Option<Meta>,
        top_provider: Option<Provider>,
    }
    #[derive(Deserialize)]
    struct Meta {
        n_ctx: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Provider {
        context_length: Option<u64>,
    }
    let List { data, error } = object(body)?;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    let entries = data.ok_or(ModelCallErrorKind::Malformed)?.into_iter().map(|entry| {
        let window = smallest([
            entry.max_model_len,
            entry.context_length,
            entry.loaded_context_length,
            entry.max_input_tokens,
            entry.meta.and_then(|meta| meta.n_ctx),
            entry.top_provider.and_then(|provider| provider.context_length),
        ]);
        (entry.id, window)
    });
    Ok(named(entries))
}

/// Google's list: those of its models that answer.
fn read_gemini(body: &[u8]) -> Result<Found, ModelCallErrorKind> {
    #[derive(Deserialize)]
    struct List<'a> {
        models: Option<Vec<Entry>>,
        #[serde(default, borrow)]
        error: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        name: String,
        input_token_limit: Option<u64>,
        supported_generation_methods: Option<Vec<String>>,
    }
    let List { models, error } = object(body)?;
    if let Some(kind) = error_in_answer(error) {
        return Err(kind);
    }
    let answers = |entry: &Entry| match &entry.supported_generation_methods {
        Some(methods) => methods.iter().any(|method| method == "generateContent"),
        None => true,
    };
    let entries = models.ok_or(ModelCallErrorKind::Malformed)?.into_iter().filter(answers);
    Ok(named(entries.map(|entry| {
        let name = entry.name.strip_prefix("models/").map(str::to_owned).unwrap_or(entry.name);
        (name, smallest([entry.input_token_limit]))
    })))
}

/// The window that llama.cpp gives to one request.
fn read_props(body: &[u8]) -> Result<Option<u64>, ModelCallErrorKind> {
    #[derive(Deserialize)]
    struct Props {
        default_generation_settings: Option<Defaults>,
    }
    #[derive(Deserialize)]
    struct Defaults {
        n_ctx: Option<u64>,
    }
    let Props { default_generation_settings } = object(body)?;
    Ok(smallest([default_generation_settings.and_then(|defaults| defaults.n_ctx)]))
}

/// The models that Ollama has loaded.
fn read_ollama_loaded(body: &[u8]) -> Result<Found, ModelCallErrorKind> {
    #[derive(Deserialize)]
    struct Loaded {
        models: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        name: String,
        context_length: Option<u64>,
    }
    let Loaded { models } = object(body)?;
    Ok(named(models.into_iter().map(|entry| (entry.name, smallest([entry.context_length])))))
}

/// Blank names are none.
fn named(entries: impl Iterator<Item = (String, Option<u64>)>) -> Found {
    let mut found = Found::new();
    for (name, window) in entries.filter(|(name, _)| !name.trim().is_empty()) {
        let known = found.entry(name).or_default();
        *known = smallest([*known, window]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(found: &Found) -> Vec<(&str, Option<u64>)> {
        found.iter().map(|(name, window)| (name.as_str(), *window)).collect()
    }

    #[test]
    fn windows_are_read_as_each_server_tells_them() {
        let body = br#"{"object":"list","data":[
            {"id":"vllm","object":"model","owned_by":"vllm","max_model_len":4096,"parent":null},
            {"id":"router","context_length":200000,"top_provider":{"context_length":32768,"is_moderated":true}},
            {"id":"llama","meta":{"n_ctx":8192,"n_ctx_train":131072}},
            {"id":"trained","meta":{"n_ctx_train":131072}},
            {"id":"claude","type":"model","max_input_tokens":200000,"max_tokens":64000},
            {"id":"studio","state":"loaded","max_context_length":131072,"loaded_context_length":4096},
            {"id":"unloaded","state":"not-loaded","max_context_length":131072},
            {"id":"plain","object":"model","created":1},
            {"id":"none","meta":null,"max_model_len":null,"context_length":0},
            {"id":"  "},{"id":"vllm","max_model_len":2048}]}"#;
        assert_eq!(
            listed(&read_openai(body).unwrap()),
            [
                ("claude", Some(200_000)),
                ("llama", Some(8_192)),
                ("none", None),
                ("plain", None),
                ("router", Some(32_768)),
                ("studio", Some(4_096)),
                ("trained", None),
                ("unloaded", None),
                ("vllm", Some(2_048)),
            ]
        );
        let body = br#"{"models":[
            {"name":"models/gemini-x","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent"]},
            {"name":"models/embed","inputTokenLimit":2048,"supportedGenerationMethods":["embedContent"]},
            {"name":"tuned"}],"nextPageToken":"t"}"#;
        assert_eq!(listed(&read_gemini(body).unwrap()), [("gemini-x", Some(1_048_576)), ("tuned", None)]);
        let loaded =
            read_ollama_loaded(br#"{"models":[{"name":"m:latest","context_length":4096},{"name":"n"}]}"#);
        assert_eq!(listed(&loaded.unwrap()), [("m:latest", Some(4_096)), ("n", None)]);
        assert_eq!(
            read_props(br#"{"default_generation_settings":{"n_ctx":2048,"params":{}}}"#),
            Ok(Some(2_048))
        );
        assert_eq!(read_props(b"{}"), Ok(None));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for body in ["", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[{"name":"x"}]}"#, r#"{"data":[{"id":1}]}"#]
        {
            assert_eq!(read_openai(body.as_bytes()), Err(ModelCallErrorKind::Malformed), "{body}");
            assert_eq!(read_gemini(body.as_bytes()), Err(ModelCallErrorKind::Malformed), "{body}");
        }
        let refused = br#"{"error":{"type":"authentication_error","message":"canary"}}"#;
        assert_eq!(read_openai(refused), Err(ModelCallErrorKind::Status(401)));
        assert_eq!(read_gemini(refused), Err(ModelCallErrorKind::Status(401)));
    }

    proptest::proptest! {
        /// No bytes upset a reader.
        #[test]
        fn no_bytes_upset_a_reader(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = (read_openai(&body), read_gemini(&body), read_props(&body), read_ollama_loaded(&body));
        }
    }
}
