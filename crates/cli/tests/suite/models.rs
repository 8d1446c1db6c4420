//! `epitome models`.

use serde_json::{Value, json};

use crate::model_server::{ModelServer, nobody};
use crate::terminal::{code, command, json as report, stderr, stdout};

fn models(args: &[&str], key: Option<&str>) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path());
    if let Some(key) = key {
        command.env("OPENAI_API_KEY", key);
    }
    command.arg("models").args(args).output().unwrap()
}

#[test]
fn known_models_and_servers_are_listed_and_keys_are_not_shown() {
    let listed = models(&["--json"], Some("sk-canary-0123456789"));
    assert_eq!(code(&listed), 0, "{}", stderr(&listed));
    assert!(!stdout(&listed).contains("canary") && !stderr(&listed).contains("canary"));
    let report = report(&listed);
    let known = report["models"].as_array().unwrap();
    assert!(known.iter().any(|model| model["model"] == "gpt-4o" && model["window"] == 128_000));
    let servers = report["servers"].as_array().unwrap();
    let server = |name: &str| servers.iter().find(|server| server["name"] == name).unwrap();
    assert_eq!(servers.len(), 9);
    // Configured, and not asked: that would leave the machine.
    let openai = server("openai");
    assert_eq!((&openai["key"], &openai["key_variable"]), (&json!("set"), &json!("OPENAI_API_KEY")));
    assert_eq!((&openai["asked"], &openai["reachable"]), (&json!(false), &Value::Null));
    assert_eq!((&server("gemini")["key"], &server("gemini")["asked"]), (&json!("not_set"), &json!(false)));
    let ollama = server("ollama");
    assert_eq!((&ollama["key"], &ollama["asked"]), (&json!("none_needed"), &json!(true)));
    assert!(ollama["reachable"].is_boolean());

    let words = models(&[], Some("sk-canary-0123456789"));
    let shown = stdout(&words);
    assert!(shown.contains("key in OPENAI_API_KEY") && shown.contains("no key in GEMINI_API_KEY"), "{shown}");
    assert!(!shown.contains("canary"));
}

#[test]
fn without_a_key_a_server_elsewhere_is_not_asked_even_with_check() {
    let report = report(&models(&["--json", "--check"], None));
    let servers = report["servers"].as_array().unwrap();
    let elsewhere: Vec<_> = servers.iter().filter(|server| server["key"] == "not_set").collect();
    assert_eq!(elsewhere.len(), 5);
    assert!(elsewhere.iter().all(|server| server["asked"] == false));
}

#[test]
fn one_server_is_looked_at_by_its_address() {
    let server = ModelServer::chat(8_192, |_| (500, String::new()));
    let looked = models(&["--model-endpoint", &server.url(), "--json"], None);
    assert_eq!(code(&looked), 0, "{}", stderr(&looked));
    let found = report(&looked);
    assert_eq!(found["servers"][0]["reachable"], true);
    assert_eq!(found["servers"][0]["models"], json!([{"name": "tiny", "window": 8192}]));
    assert!(found.get("models").is_none());
    let words = models(&["--model-endpoint", &format!("llama.cpp={}", server.url())], None);
    assert!(stdout(&words).contains("serves 1 model") && stdout(&words).contains("window 8,192"));

    let named =
        models(&["--model-endpoint", &format!("openai-chat={}", server.url()), "--json"], Some("sk-x"));
    assert_eq!(code(&named), 0, "{}", stderr(&named));
    let asked = server.asked();
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(asked.last().unwrap().header("authorization"), Some("Bearer sk-x"));
    let other = models(&["--model-endpoint", &server.url(), "--model-key", "OPENAI_API_KEY"], Some("sk-y"));
    assert_eq!(code(&other), 0);
    assert_eq!(server.asked().last().unwrap().header("authorization"), Some("Bearer sk-y"));
}

#[test]
fn a_server_that_does_not_answer_has_its_reason() {
    let down = models(&["--model-endpoint", &nobody(), "--json"], None);
    assert_eq!(code(&down), 5);
    let found = report(&down);
    assert_eq!(
        (&found["outcome"], &found["servers"][0]["reason"]),
        (&json!("not_reached"), &json!("network"))
    );
    assert!(stderr(&down).contains("is the server running"), "{}", stderr(&down));
    for (status, body, reason) in [
        (401, "{}", "not_authorized"),
        (404, "{}", "not_found"),
        (200, "<html>canary</html>", "malformed"),
        (200, "[]", "malformed"),
    ] {
        let server = ModelServer::start(move |_| (status, body.to_owned()));
        let refused = models(&["--model-endpoint", &server.url(), "--json"], None);
        assert_eq!((code(&refused), &report(&refused)["servers"][0]["reason"]), (5, &json!(reason)));
        assert!(!stdout(&refused).contains("canary") && !stderr(&refused).contains("canary"));
    }
    let keyless = models(&["--model-endpoint", "anthropic", "--json"], None);
    assert_eq!((code(&keyless), &report(&keyless)["servers"][0]["reason"]), (5, &json!("no_key")));
    for slip in ["nobody", "http://example.com/v1", "https://u:canary@example.com/v1"] {
        let refused = models(&["--model-endpoint", slip], None);
        assert_eq!(code(&refused), 2, "{slip}");
        assert!(!stderr(&refused).contains("canary"), "{}", stderr(&refused));
    }
}
