//! Clients for models, and counting by providers, against servers on this machine.

use std::time::{Duration, Instant};

use epitome_loop::{
    Block, CapabilityError, ContextCounter, CountError, CountQuality, CounterCapability, CounterIncompatible,
    InferenceTransport, Message, ModelAnswer, ModelCall, ModelCallErrorKind, ModelClient, ModelKey, RawJson,
    Request, Retention, TokenCount, compatible_counter,
};
use epitome_models::{
    AnswerMode, Bounds, ModelSettings, NetworkModel, PROFILES, ProviderCounter, SetupError, profile,
};
use epitome_tests::http_faults::{CANARY_KEY, CANARY_SAID, Speaker, call, cases, client, judge, leaks};
use epitome_tests::loopback::{Body, Loopback, Reply};

const BOUNDS: Bounds = Bounds {
    connect_timeout: Duration::from_secs(2),
    total_timeout: Duration::from_secs(2),
    answer_bytes: 1 << 16,
};

fn json(body: &str) -> Reply {
    let headers = vec![("content-type", "application/json".to_owned())];
    Reply { status: 200, headers, body: Body::Whole(body.as_bytes().to_vec()) }
}

fn key(name: &str) -> Option<String> {
    name.ends_with("_KEY").then(|| CANARY_KEY.to_owned())
}

fn settings(name: &str) -> ModelSettings {
    profile(name).unwrap().settings(BOUNDS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_provider_does_ends_with_the_right_reason() {
    // The large ones are for the evidence, which measures memory too.
    for case in cases().into_iter().filter(|case| !case.is_flood()) {
        let played = case.start().unwrap();
        let outcome = played.model.call(call()).await;
        assert_eq!(judge(&case, &played, &outcome), Vec::<String>::new(), "{}", case.title());
    }
}

#[tokio::test]
async fn without_its_key_nothing_is_sent() {
    let server = Loopback::start(json("{}")).unwrap();
    let settings = ModelSettings { base_url: server.base_url().into(), ..settings("openai") };
    let model = NetworkModel::new(settings, &|_| None).unwrap();
    assert!(!model.has_key());
    assert_eq!(model.call(call()).await, Err(ModelCallErrorKind::NoKey.into()));
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn a_server_that_asks_for_no_key_gets_none() {
    let answer = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"model":"whatever"}"#;
    let server = Loopback::start(json(answer)).unwrap();
    let base_url = format!("{}/v1/", server.base_url()).into();
    let model = NetworkModel::new(ModelSettings { base_url, ..settings("llama.cpp") }, &key).unwrap();
    assert_eq!(model.call(call()).await.unwrap().model.as_deref(), Some("whatever"));
    let [request] = server.received().try_into().unwrap();
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
}

#[tokio::test]
async fn each_provider_gets_the_key_in_its_own_header() {
    for (speaker, header, value) in [
        (Speaker::Chat, "authorization", format!("Bearer {CANARY_KEY}")),
        (Speaker::Responses, "authorization", format!("Bearer {CANARY_KEY}")),
        (Speaker::Messages, "x-api-key", CANARY_KEY.to_owned()),
        (Speaker::Contents, "x-goog-api-key", CANARY_KEY.to_owned()),
    ] {
        let server = Loopback::start(json("{}")).unwrap();
        let model = client(speaker, &server.base_url(), AnswerMode::Streamed).unwrap();
        assert_eq!(model.call(call()).await, Err(ModelCallErrorKind::Malformed.into()));
        let [request] = server.received().try_into().unwrap();
        assert_eq!(request.header(header), Some(value.as_str()), "{speaker:?}");
        assert_eq!(request.header("accept"), Some("text/event-stream"));
        let version = (speaker == Speaker::Messages).then_some("2023-06-01");
        assert_eq!(request.header("anthropic-version"), version);
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_given_up() {
    let silent = Reply { body: Body::Silence, ..json("") };
    let server = Loopback::start(silent).unwrap();
    let model = client(Speaker::Chat, &server.base_url(), AnswerMode::Whole).unwrap();
    let begun = Instant::now();
    let waited = tokio::time::timeout(Duration::from_millis(100), model.call(call())).await;
    assert!(waited.is_err() && begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn tls_is_spoken_without_a_provider_that_somebody_installed() {
    // A server that speaks no TLS: the connection fails, and nothing was said before that.
    let server = Loopback::start(json("{}")).unwrap();
    let base_url = server.base_url().replace("http:", "https:").into();
    match NetworkModel::new(ModelSettings { base_url, ..settings("openai") }, &key) {
        Ok(model) => assert_eq!(model.call(call()).await, Err(ModelCallErrorKind::Network.into())),
        // A system without any certificates says so.
        Err(error) => assert_eq!(error, SetupError::Tls),
    }
    for request in server.received() {
        assert_eq!(leaks(&format!("{} {}", request.line, String::from_utf8_lossy(&request.body))), [""; 0]);
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut ModelSettings)| {
        let mut settings = settings("ollama");
        change(&mut settings);
        NetworkModel::new(settings, &key).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(|settings| settings.provider = " ".into()), SetupError::Provider);
    assert_eq!(refused(|settings| settings.base_url = "http://example.com".into()), SetupError::BaseUrl);
    assert_eq!(refused(|settings| settings.key_variable = Some("".into())), SetupError::KeyVariable);
    assert_eq!(refused(|settings| settings.bounds.answer_bytes = 0), SetupError::Bounds);
    assert_eq!(refused(|settings| settings.bounds.total_timeout = Duration::ZERO), SetupError::Bounds);
    let chat = ProviderCounter::new(&settings("ollama"), &key, Retention::None).map(|_| ());
    assert_eq!(chat.unwrap_err(), SetupError::NoCounting);
}

fn request(provider: &str) -> Request {
    Request {
        model: ModelKey::new(provider, "scripted-model"),
        tools: vec![RawJson::parse("{\"name\":\"t\"}").unwrap()].into(),
        messages: vec![Message::system("rules"), Message::user(CANARY_SAID)].into(),
        unseen_tokens: TokenCount(5),
    }
}

#[tokio::test]
async fn providers_count_the_whole_request() {
    for (name, path, answer) in [
        ("openai", "/v1/responses/input_tokens", r#"{"object":"response.input_tokens","input_tokens":37}"#),
        ("anthropic", "/v1/messages/count_tokens", r#"{"input_tokens":37}"#),
        ("gemini", "/v1/models/scripted-model:countTokens", r#"{"totalTokens":37}"#),
    ] {
        let server = Loopback::start(json(answer)).unwrap();
        let base_url = format!("{}/v1", server.base_url()).into();
        let settings = ModelSettings { base_url, ..settings(name) };
        let counter = ProviderCounter::new(&settings, &key, Retention::None).unwrap();
        let count = counter.count(&request(&settings.provider)).await.unwrap();
        assert_eq!(count.input_tokens, TokenCount(42), "what is stated as unseen is added");
        assert_eq!(count.quality, CountQuality::ExactProvider);
        let [received] = server.received().try_into().unwrap();
        assert_eq!(received.line, format!("POST {path} HTTP/1.1"));
        let body = String::from_utf8(received.body).unwrap();
        assert!(["rules", CANARY_SAID, "{\"name\":\"t\"}"].iter().all(|part| body.contains(part)), "{name}");
        assert_eq!(counter.count(&request("somebody")).await, Err(CountError::UnknownModel));
        assert_eq!(server.received().len(), 1, "what is not for this provider is not shown to it");
        assert_eq!(leaks(&format!("{counter:?} {:?}", counter.capability())), [""; 0]);
    }
}

#[tokio::test]
async fn a_count_that_cannot_be_had_is_none() {
    let silent = Reply { body: Body::Silence, ..json("") };
    let large = Body::Flood { piece: vec![b' '; 4096], bytes: 1 << 20, announced: false };
    for reply in
        [json("{}"), json(""), Reply { status: 429, ..json("{}") }, silent, Reply { body: large, ..json("") }]
    {
        let server = Loopback::start(reply).unwrap();
        let mut settings = ModelSettings { base_url: server.base_url().into(), ..settings("anthropic") };
        settings.bounds.total_timeout = Duration::from_millis(300);
        let counter = ProviderCounter::new(&settings, &key, Retention::None).unwrap();
        assert_eq!(counter.count(&request("anthropic")).await, Err(CountError::Unavailable));
    }
    let counter = ProviderCounter::new(&settings("anthropic"), &key, Retention::None);
    let sound = epitome_loop::Block::Audio(epitome_loop::Audio::default());
    let message = Message::User { blocks: vec![sound].into() };
    let request = Request { messages: vec![message].into(), ..request("anthropic") };
    if let Ok(counter) = counter {
        let refused = Err(CountError::NotExact { message: 0, kind: "audio" });
        assert_eq!(counter.count(&request).await, refused);
    }
}

/// The provider's counter for a model must be on the model's own way, or on one that is as good.
#[test]
fn a_counter_is_accepted_only_where_it_weakens_nothing() {
    let remote = |retention, key: &'static str, base_url: &str| {
        let settings = ModelSettings { base_url: base_url.into(), retention, ..settings("anthropic") };
        NetworkModel::new(settings, &move |_| Some(key.to_owned()))
    };
    const ADDRESS: &str = "https://api.anthropic.com/v1";
    let Ok(model) = remote(Some(Retention::Ephemeral), "key-one", ADDRESS) else {
        // Without certificates of authorities there is no way over TLS to be judged.
        return;
    };
    let path = model.inference_capability();
    assert_eq!((path.validate(), path.transport), (Ok(()), InferenceTransport::Tls));
    let verdict = |counter: &CounterCapability| compatible_counter(&path, counter);
    let of = |model: &NetworkModel, kept| model.counter(kept).unwrap().capability();
    // On the same way, keeping no more.
    assert_eq!(verdict(&of(&model, Retention::None)), Ok(()));
    assert_eq!(verdict(&of(&model, Retention::Ephemeral)), Ok(()));
    assert_eq!(verdict(&of(&model, Retention::Logged)), Err(CounterIncompatible::Retention));
    // With a slash more it is the same address; with another key or host it is another way.
    let same = remote(None, "key-one", "https://api.anthropic.com/v1/").unwrap();
    assert_eq!(verdict(&of(&same, Retention::None)), Ok(()));
    for other in [remote(None, "key-two", ADDRESS), remote(None, "key-one", "https://gateway.example/v1")] {
        let counter = of(&other.unwrap(), Retention::None);
        assert_eq!(verdict(&counter), Err(CounterIncompatible::SecurityIdentity));
    }
    // Another provider's counter.
    let stranger = NetworkModel::new(settings("openai"), &key).unwrap();
    assert_eq!(verdict(&of(&stranger, Retention::None)), Err(CounterIncompatible::Provider));
    // A path that does not say what it keeps is taken to keep nothing, and a counter that would know is refused.
    let silent = remote(None, "key-one", ADDRESS).unwrap().inference_capability();
    let counter = of(&model, Retention::None);
    assert_eq!(compatible_counter(&silent, &counter), Err(CounterIncompatible::Retention));
    // What stays on this machine must not leave it to be counted.
    let local = NetworkModel::new(
        ModelSettings { base_url: "http://127.0.0.1:9/v1".into(), ..settings("anthropic") },
        &key,
    );
    let local = local.unwrap();
    assert_eq!(local.inference_capability().validate(), Ok::<(), CapabilityError>(()));
    let refused = compatible_counter(&local.inference_capability(), &counter);
    assert_eq!(refused, Err(CounterIncompatible::Transport));
}

/// The page shows the profiles that there are.
#[test]
fn the_page_names_every_profile() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/models.md")).unwrap();
    for known in PROFILES {
        let key = known.key_variable.map_or("none".to_owned(), |name| format!("`{name}`"));
        let row = format!("| `{}` | `{}` | {key} |", known.name, known.base_url);
        assert!(page.contains(&row), "{row}");
    }
}

#[tokio::test]
async fn secrets_stay_at_home_unless_somebody_says_otherwise() {
    let secret = "sk-ant-api03-0123456789abcdef";
    let answer =
        format!(r#"{{"choices":[{{"message":{{"content":"it is {secret}"}},"finish_reason":"stop"}}]}}"#);
    let server = Loopback::start(json(&answer)).unwrap();
    let settings = ModelSettings { base_url: server.base_url().into(), ..settings("llama.cpp") };
    let model = NetworkModel::new(settings, &key).unwrap();
    let asked = || ModelCall { messages: [Message::user(format!("Use {secret}."))].into(), ..call() };
    let said = |answer: ModelAnswer| match &answer.blocks[0] {
        Block::Text { text } => text.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(model.call(asked()).await.unwrap()), "it is [redacted:provider_key]");
    let told = model.redactions().unwrap();
    assert_eq!((told.sent.total(), told.received.total()), (1, 1));
    // Clones share their counts.
    assert_eq!(model.clone().redactions(), Some(told));
    let open = model.without_redaction();
    assert_eq!(said(open.call(asked()).await.unwrap()), format!("it is {secret}"));
    assert_eq!(open.redactions(), None);
    let bodies: Vec<bool> = server
        .received()
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).contains(secret))
        .collect();
    assert_eq!(bodies, [false, true]);
}
