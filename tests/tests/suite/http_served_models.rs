//! Asking servers on this machine which models they have.

use std::time::{Duration, Instant};

use epitome_loop::{ModelCallErrorKind, TokenCount};
use epitome_models::{Bounds, ModelSettings, NetworkModel, ServedModel, profile};
use epitome_tests::http_faults::{CANARY_HEARD, CANARY_KEY, leaks};
use epitome_tests::loopback::{Body, Loopback, Received, Reply, nobody};

const BOUNDS: Bounds = Bounds {
    connect_timeout: Duration::from_millis(500),
    total_timeout: Duration::from_millis(500),
    answer_bytes: 1 << 16,
};

fn json(body: &str) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply { status: 200, headers, body: Body::Whole(body.as_bytes().to_vec()) }
}

/// Answers by the path that is asked for; 404 for any other.
fn routes(routes: &'static [(&'static str, &'static str)]) -> impl Fn(&Received) -> Reply + Send + 'static {
    move |received| {
        let found = routes.iter().find(|(path, _)| received.line == format!("GET {path} HTTP/1.1"));
        found.map_or_else(|| Reply { status: 404, ..json("{}") }, |(_, body)| json(body))
    }
}

fn client(name: &str, base_url: String) -> NetworkModel {
    let settings = ModelSettings { base_url: base_url.into(), ..profile(name).unwrap().settings(BOUNDS) };
    NetworkModel::new(settings, &|name| name.ends_with("_KEY").then(|| CANARY_KEY.to_owned())).unwrap()
}

fn served(models: &[(&str, Option<u64>)]) -> Vec<ServedModel> {
    let model = |(name, window): &(&str, Option<u64>)| ServedModel {
        name: (*name).into(),
        window: window.map(TokenCount),
    };
    models.iter().map(model).collect()
}

#[tokio::test]
async fn each_kind_of_server_is_asked_in_its_own_way() {
    type Row = (
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [(&'static str, Option<u64>)],
    );
    let rows: [Row; 8] = [
        (
            "vllm",
            "/v1",
            &[("/v1/models", r#"{"data":[{"id":"b"},{"id":"a","max_model_len":4096}]}"#)],
            &[("a", Some(4_096)), ("b", None)],
        ),
        (
            "llama.cpp",
            "/v1",
            &[
                ("/v1/models", r#"{"data":[{"id":"m.gguf","meta":{"n_ctx_train":131072}}]}"#),
                ("/props", r#"{"default_generation_settings":{"n_ctx":8192}}"#),
            ],
            &[("m.gguf", Some(8_192))],
        ),
        // Two models, and one window that could be either's.
        (
            "llama.cpp",
            "/v1",
            &[
                ("/v1/models", r#"{"data":[{"id":"m"},{"id":"n"}]}"#),
                ("/props", r#"{"default_generation_settings":{"n_ctx":8192}}"#),
            ],
            &[("m", None), ("n", None)],
        ),
        (
            "ollama",
            "/v1",
            &[
                ("/v1/models", r#"{"object":"list","data":[{"id":"a:latest"},{"id":"b:8b"}]}"#),
                ("/api/ps", r#"{"models":[{"name":"b:8b","model":"b:8b","context_length":4096}]}"#),
            ],
            &[("a:latest", None), ("b:8b", Some(4_096))],
        ),
        // A server that has nothing in its own interface.
        ("ollama", "/v1", &[("/v1/models", r#"{"data":[{"id":"a"}]}"#)], &[("a", None)]),
        (
            "lm-studio",
            "/v1",
            &[
                ("/v1/models", r#"{"data":[{"id":"a"},{"id":"b"}]}"#),
                (
                    "/api/v0/models",
                    r#"{"data":[{"id":"a","max_context_length":9000,"loaded_context_length":4096},{"id":"c"}]}"#,
                ),
            ],
            &[("a", Some(4_096)), ("b", None)],
        ),
        (
            "anthropic",
            "/v1",
            &[("/v1/models?limit=1000", r#"{"data":[{"id":"claude-x","max_input_tokens":200000}]}"#)],
            &[("claude-x", Some(200_000))],
        ),
        (
            "gemini",
            "/v1beta",
            &[("/v1beta/models?pageSize=1000", r#"{"models":[{"name":"models/g","inputTokenLimit":1000}]}"#)],
            &[("g", Some(1_000))],
        ),
    ];
    for (name, base, paths, expected) in rows {
        let server = Loopback::answering(routes(paths)).unwrap();
        let found = client(name, format!("{}{base}", server.base_url())).served_models().await;
        assert_eq!(found, Ok(served(expected)), "{name}");
        for request in server.received() {
            assert!(request.line.starts_with("GET ") && request.body.is_empty(), "{name}");
        }
    }
}

#[tokio::test]
async fn the_key_goes_along_in_its_header_alone() {
    let server = Loopback::start(json(r#"{"data":[]}"#)).unwrap();
    let found = client("anthropic", server.base_url()).served_models().await;
    assert_eq!(found, Ok(Vec::new()));
    let [request] = server.received().try_into().unwrap();
    assert_eq!(request.header("x-api-key"), Some(CANARY_KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert!(!request.line.contains(CANARY_KEY));

    let settings =
        ModelSettings { base_url: server.base_url().into(), ..profile("openai").unwrap().settings(BOUNDS) };
    let keyless = NetworkModel::new(settings, &|_| None).unwrap();
    assert_eq!(keyless.served_models().await, Err(ModelCallErrorKind::NoKey.into()));
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn whatever_goes_wrong_has_its_reason_and_says_nothing_else() {
    let heard = format!(r#"{{"error":"{CANARY_HEARD}"}}"#);
    let status = |status, body: &str| Reply { status, ..json(body) };
    let flood = Body::Flood { piece: vec![b' '; 1024], bytes: 50 << 20, announced: false };
    let rows = [
        (status(401, &heard), ModelCallErrorKind::Status(401)),
        (status(302, &heard), ModelCallErrorKind::Status(302)),
        (status(404, &heard), ModelCallErrorKind::Status(404)),
        (json(&heard), ModelCallErrorKind::Status(200)),
        (json(&format!("<html>{CANARY_HEARD}</html>")), ModelCallErrorKind::Malformed),
        (Reply { body: flood, ..json("") }, ModelCallErrorKind::TooLarge { limit: BOUNDS.answer_bytes }),
        (Reply { body: Body::Silence, ..json("") }, ModelCallErrorKind::Timeout),
        (Reply { body: Body::Hangup, ..json("") }, ModelCallErrorKind::Network),
        (Reply { body: Body::Cut(heard.clone().into_bytes()), ..json("") }, ModelCallErrorKind::Network),
    ];
    for (reply, kind) in rows {
        let server = Loopback::start(reply).unwrap();
        let begun = Instant::now();
        let error = client("vllm", server.base_url()).served_models().await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(begun.elapsed() < Duration::from_secs(2));
        assert_eq!(leaks(&format!("{error} {error:?}")), [""; 0]);
    }
    let down = client("ollama", nobody().unwrap()).served_models().await;
    assert_eq!(down, Err(ModelCallErrorKind::Network.into()));
}
