//! What can go wrong between a client and a provider, as cases that can be played: each with a server that does it,
//! a client, and what must come of it.
//!
//! The cases are played by the evidence `http-faults` and by the suite; whoever has more to hold true around a call,
//! such as a session whose history must stay as it was, starts the same cases with [`FaultCase::start`].

mod cases;
mod session;
mod speaker;

use std::io;
use std::time::Duration;

use epitome_loop::{FinishReason, Message, ModelAnswer, ModelCall, ModelCallError, Sampling, TokenCount};
use epitome_models::{AnswerMode, Bounds, ModelCheck, ModelSettings, NetworkModel};

pub use cases::{FaultCase, Wanted, cases};
pub use session::faults_in_a_session;
pub use speaker::Speaker;

use crate::loopback::Loopback;

/// The key of every client here. It must stand nowhere but in one header.
pub const CANARY_KEY: &str = "sk-canary-key-0123456789abcdef";
/// It stands in every request.
pub const CANARY_SAID: &str = "canary-said-45-6789";
/// It stands in every answer and every body of an error.
pub const CANARY_HEARD: &str = "canary-heard-45-6789";
/// The model that is asked for.
pub const MODEL: &str = "scripted-model";

/// Answers larger than this are refused.
pub const MOST_BYTES: u64 = 1 << 20;
/// Calls that take longer are given up.
pub const PATIENCE: Duration = Duration::from_millis(400);

/// A server and a client that talks to it.
#[derive(Debug)]
pub struct Played {
    /// The server; `None` where nobody listens.
    pub server: Option<Loopback>,
    /// Another server, to which nobody may come.
    pub elsewhere: Option<Loopback>,
    /// The client.
    pub model: NetworkModel,
}

/// The request of every case.
#[must_use]
pub fn call() -> ModelCall {
    ModelCall {
        model: MODEL.into(),
        system: Some("Summarize.".into()),
        messages: vec![Message::user(CANARY_SAID)].into(),
        max_output: Some(TokenCount(64)),
        sampling: Sampling::default(),
        answer_form: None,
    }
}

/// A client for a server at this address. Its key is the canary.
///
/// # Errors
/// When it cannot be set up.
pub fn client(speaker: Speaker, base_url: &str, answers: AnswerMode) -> io::Result<NetworkModel> {
    let settings = ModelSettings {
        provider: speaker.name().into(),
        dialect: speaker.dialect(),
        base_url: format!("{base_url}/v1").into(),
        key_variable: Some("SCRIPTED_KEY".into()),
        answers,
        model_check: ModelCheck::Same,
        answer_forms: true,
        bounds: Bounds {
            connect_timeout: Duration::from_secs(2),
            total_timeout: PATIENCE,
            answer_bytes: MOST_BYTES,
        },
        retention: None,
    };
    let environment = |name: &str| (name == "SCRIPTED_KEY").then(|| CANARY_KEY.to_owned());
    NetworkModel::new(settings, &environment).map_err(io::Error::other)
}

/// What is wrong with how a case ended; nothing when it ended as it must.
#[must_use]
pub fn judge(
    case: &FaultCase,
    played: &Played,
    outcome: &Result<ModelAnswer, ModelCallError>,
) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(fault) = case.wanted.mismatch(outcome) {
        faults.push(fault);
    }
    let shown = match outcome {
        Ok(answer) => format!("{answer:?} {answer:#?}"),
        Err(error) => {
            format!("{error} {error:#} {error:?} {error:#?} {:?}", std::error::Error::source(error).is_some())
        }
    };
    faults.extend(leaks(&format!("{shown} {:?}", played.model)));
    if let Ok(answer) = outcome
        && answer.finish == FinishReason::Refused
        && answer.blocks.is_empty()
    {
        faults.push("a refusal without a word".to_owned());
    }
    for request in played.server.iter().flat_map(Loopback::received) {
        let keys = request.headers.iter().filter(|(_, value)| value.contains(CANARY_KEY)).count();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        if keys != 1 || request.line.contains("canary") || body.contains(CANARY_KEY) {
            faults.push("the key does not stand in one header alone".to_owned());
        }
        if !body.contains(CANARY_SAID) {
            faults.push("the request does not hold what was said".to_owned());
        }
    }
    let asked = played.server.as_ref().map_or(0, |server| server.received().len());
    if asked > 1 {
        faults.push(format!("{asked} requests for one call"));
    }
    if played.elsewhere.as_ref().is_some_and(|elsewhere| !elsewhere.received().is_empty()) {
        faults.push("a redirect was followed".to_owned());
    }
    faults
}

/// Canaries in what is shown.
#[must_use]
pub fn leaks(shown: &str) -> Vec<String> {
    // Parts too, but none that a port or a time could be by chance.
    let canaries = [CANARY_KEY, CANARY_SAID, CANARY_HEARD, "45-6789", "0123456789abcdef"];
    let found = canaries.into_iter().filter(|canary| shown.contains(canary));
    found.map(|canary| format!("{} bytes that must stay hidden are shown", canary.len())).collect()
}
