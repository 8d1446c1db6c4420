//! Why nobody can be asked for a summary as the user wants it.

use std::path::PathBuf;

use epitome_models::PROFILES;
use epitome_rig::RigErrorKind;
use epitome_sessionruntime::{CommandError, HustleSetupError};
use epitome_summarizers::ModelSummarizerError;
use thiserror::Error;

use super::SummarizerKind;
use crate::failure::shown;
use crate::report::printable;

/// A summarizer that cannot be asked. The user can put it right.
#[derive(Debug, Error)]
pub(crate) enum SummarizerFault {
    #[error("the policy names another hustle than {}, and this command has no other", known())]
    UnknownHustle,
    #[error("{option} is for a summarizer that nothing asks here; --summarizer {kind} does")]
    Unused { option: &'static str, kind: &'static str },
    #[error("{option} does not go with --rig; the rig's file says it")]
    InARig { option: &'static str },
    #[error(
        "the summarizer `model` needs a server: --model-endpoint ENDPOINT; `epitome models` lists those that are known, \
         and what they serve"
    )]
    NoEndpoint,
    #[error(
        "{}: which model is to write the summary? --summarizer-model NAME{}",
        printable(endpoint),
        served_words(served)
    )]
    NoModel { endpoint: String, served: Vec<String> },
    #[error(
        "the hustle {} asks a model of which this command has no client; known are {}",
        printable(hustle),
        clients()
    )]
    NoClient { hustle: String },
    #[error(
        "the hustle {} would send the conversation over a less protected way than the one that the rig declares for the \
         loop's own requests (loops.inference.transport)",
        printable(hustle)
    )]
    Weaker { hustle: String },
    #[error(
        "{}: the window of the summarizing model is not known: neither the server nor the table says it\n  \
         --summarizer-window TOKENS   for example --summarizer-window 8192{}",
        printable(endpoint),
        window_hint(endpoint)
    )]
    NoWindow { endpoint: String },
    #[error(
        "{}: there is no key in the variable {}; keys come from the environment alone",
        printable(endpoint),
        shown_variable(variable)
    )]
    NoKey { endpoint: String, variable: String },
    #[error("{}: grammars are for llama.cpp; say llama.cpp=ADDRESS if it is one", printable(endpoint))]
    NoGrammar { endpoint: String },
    #[error("{0}; --summarizer-window TOKENS says it")]
    Model(ModelSummarizerError),
    #[error(
        "the summarizer `command` needs a program: --command PROGRAM; docs/hustles.md says what it reads and writes"
    )]
    NoProgram,
    #[error("{}: there is no such program", shown(program))]
    NotFound { program: PathBuf },
    #[error("{0}")]
    Program(CommandError),
    #[error("the summarizer does not fit the policy: {0}")]
    Rig(RigErrorKind),
    #[error("{0}")]
    Setup(HustleSetupError),
}

impl SummarizerFault {
    /// The stable name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::UnknownHustle => "unknown_hustle",
            Self::Unused { .. } => "unused_option",
            Self::InARig { .. } => "option_beside_rig",
            Self::NoEndpoint => "no_model_endpoint",
            Self::NoModel { .. } => "no_summarizer_model",
            Self::NoWindow { .. } => "no_summarizer_window",
            Self::NoKey { .. } => "no_key",
            Self::NoClient { .. } => "unknown_client",
            Self::Weaker { .. } => "weaker_way",
            Self::NoGrammar { .. } => "no_grammar",
            Self::Model(_) => "summarizer_model",
            Self::NoProgram => "no_command",
            Self::NotFound { .. } | Self::Program(_) => "command",
            Self::Rig(_) | Self::Setup(_) => "definition",
        }
    }
}

fn known() -> String {
    SummarizerKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ")
}

fn clients() -> String {
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    known.join(", ")
}

/// The name of a variable. What does not look like one may be a key that was given in its place.
fn shown_variable(name: &str) -> String {
    let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_name {
        printable(name)
    } else {
        "that --model-key names (a name is wanted, not the key)".to_owned()
    }
}

fn served_words(served: &[String]) -> String {
    const SHOWN: usize = 8;
    if served.is_empty() {
        return String::new();
    }
    let names: Vec<String> = served.iter().take(SHOWN).map(|name| printable(name)).collect();
    let more = if served.len() > SHOWN { ", ..." } else { "" };
    format!("; it serves {}{more}", names.join(", "))
}

fn window_hint(endpoint: &str) -> &'static str {
    match endpoint {
        "ollama" => {
            "\nFor a model that is loaded, `ollama ps` shows it as CONTEXT; a longer prompt would be cut without a word."
        }
        "lm-studio" => "\nLM Studio tells it once the model is loaded.",
        _ => "",
    }
}
