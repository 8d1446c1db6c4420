//! The options that say who writes the summary.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use epitome_loop::SharedText;
use epitome_rig::PolicyFile;

use super::SummarizerFault;
use crate::model_endpoint::{ModelEndpoint, parse_endpoint};

/// Who can write a summary for this command. The names are those of the hustles that a policy may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum SummarizerKind {
    /// Takes what the conversation itself says, word for word; no model, no network
    Extractive,
    /// A model over the network, or one that a server on this machine has
    Model,
    /// A program of yours
    Command,
}

impl SummarizerKind {
    pub(crate) const ALL: [Self; 3] = [Self::Extractive, Self::Model, Self::Command];

    /// The name, also that of the hustle.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Extractive => "extractive",
            Self::Model => "model",
            Self::Command => "command",
        }
    }

    /// The one that a policy asks for.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name.trim())
    }
}

/// What is done when the summarizer gave no valid summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FallbackKind {
    /// The embedded summarizer writes one, which is reported and recorded as degraded
    Extractive,
    /// The compaction is refused
    None,
}

/// In which form a model is held to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormKind {
    /// What the server has a place for: a grammar for llama.cpp, a schema elsewhere, XML at a bare address
    Auto,
    /// XML, by the words of the prompt alone
    Xml,
    /// A JSON schema
    Json,
    /// A grammar, which llama.cpp alone takes
    Grammar,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Who writes the summary")]
pub(crate) struct SummarizerArgs {
    /// Who writes the summary. [default: what the policy says; the built-in one says extractive]
    #[arg(long, value_name = "KIND")]
    pub(crate) summarizer: Option<SummarizerKind>,
    /// The server of the model: the name of a known kind (ollama, llama.cpp, openai, anthropic; `epitome models`
    /// lists them), an address of OpenAI-compatible chat completions (http://127.0.0.1:9000/v1), or both
    /// (llama.cpp=http://127.0.0.1:9000/v1). Keys are read from the environment.
    #[arg(long, value_name = "ENDPOINT", value_parser = parse_endpoint)]
    pub(crate) model_endpoint: Option<ModelEndpoint>,
    /// The model that writes the summary, as its server names it. May be left out where the server serves one alone.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) summarizer_model: Option<String>,
    /// The window of that model in tokens. [default: what a server on this machine says, what the table of known
    /// models says, or what a server elsewhere says]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) summarizer_window: Option<u64>,
    /// Take the key from this variable of the environment. [default: the one that `epitome models` names]
    #[arg(long, value_name = "VARIABLE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) model_key: Option<String>,
    /// The form that the model is held to. [default: auto]
    #[arg(long, value_name = "FORM")]
    pub(crate) summarizer_form: Option<FormKind>,
    /// Room for the model's reasoning in its answer. [default: an eighth of its window, at most 8192]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) summarizer_reasoning: Option<u64>,
    /// How long writing the summary may take, in seconds, a second try included. [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) summarizer_timeout: Option<u64>,
    /// What is done when there is no valid summary. [default: what the policy says; extractive where --summarizer
    /// names another one]
    #[arg(long, value_name = "KIND")]
    pub(crate) fallback: Option<FallbackKind>,
    /// The program of `--summarizer command`: a path, or a name that PATH leads to. It reads the conversation on
    /// standard input and writes the summary on standard output (docs/hustles.md).
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) command: Option<PathBuf>,
    /// An argument for the program; may be given several times.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) command_arg: Vec<OsString>,
    /// Pass this variable of the environment on to the program, beside PATH, HOME, LANG and TMPDIR; may be given
    /// several times.
    #[arg(long, value_name = "VARIABLE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) command_env: Vec<String>,
    /// Send keys, tokens and passwords to the model as they stand, instead of marks in their place.
    #[arg(long)]
    pub(crate) no_redact: bool,
    /// Leave out the user's rules that the model's summary lacks, instead of carrying them into it word for word.
    #[arg(long)]
    pub(crate) no_carry_constraints: bool,
}

impl SummarizerArgs {
    /// Lets the options outrank the policy's file.
    ///
    /// # Errors
    /// [`SummarizerFault`] when the policy asks for somebody whom this command does not have, or an option is for
    /// somebody whom nothing asks.
    pub(crate) fn apply(&self, policy: &mut PolicyFile) -> Result<(), SummarizerFault> {
        if let Some(kind) = self.summarizer {
            policy.hustle = kind.as_str().into();
        }
        policy.fallback = match (self.fallback, self.summarizer) {
            (Some(FallbackKind::None), _) => None,
            (Some(FallbackKind::Extractive), _) => {
                Some(SharedText::from(SummarizerKind::Extractive.as_str()))
            }
            // Who is asked first is no fallback.
            (None, Some(kind)) => {
                let fallback =
                    policy.fallback.take().filter(|name| SummarizerKind::named(name) != Some(kind));
                let embedded = SummarizerKind::Extractive;
                fallback.or_else(|| (kind != embedded).then(|| embedded.as_str().into()))
            }
            (None, None) => policy.fallback.take(),
        };
        if self.no_carry_constraints {
            policy.carry_constraints = false;
        }
        let asked = asked(policy)?;
        // Hustles are registered under these very names.
        for (name, kind) in std::iter::once(&mut policy.hustle).chain(&mut policy.fallback).zip(&asked) {
            *name = kind.as_str().into();
        }
        match self.unused(&asked) {
            Some((option, kind)) => Err(SummarizerFault::Unused { option, kind }),
            None => Ok(()),
        }
    }

    /// The first option that is for a summarizer which is not among these.
    fn unused(&self, asked: &[SummarizerKind]) -> Option<(&'static str, &'static str)> {
        let model = [
            ("--model-endpoint", self.model_endpoint.is_some()),
            ("--summarizer-model", self.summarizer_model.is_some()),
            ("--summarizer-window", self.summarizer_window.is_some()),
            ("--model-key", self.model_key.is_some()),
            ("--summarizer-form", self.summarizer_form.is_some()),
            ("--summarizer-reasoning", self.summarizer_reasoning.is_some()),
            ("--no-redact", self.no_redact),
        ];
        let command = [
            ("--command", self.command.is_some()),
            ("--command-arg", !self.command_arg.is_empty()),
            ("--command-env", !self.command_env.is_empty()),
        ];
        let of = |kind: SummarizerKind, options: &[(&'static str, bool)]| {
            let given = options.iter().find(|(_, given)| *given && !asked.contains(&kind));
            given.map(|(option, _)| (*option, kind.as_str()))
        };
        of(SummarizerKind::Model, &model).or_else(|| of(SummarizerKind::Command, &command))
    }

    /// The first option that a rig's file has a key for. What is about the way to a model stays.
    pub(crate) fn in_a_rig(&self) -> Option<&'static str> {
        let options = [
            ("--summarizer", self.summarizer.is_some()),
            ("--model-endpoint", self.model_endpoint.is_some()),
            ("--summarizer-model", self.summarizer_model.is_some()),
            ("--summarizer-timeout", self.summarizer_timeout.is_some()),
            ("--fallback", self.fallback.is_some()),
            ("--command", self.command.is_some()),
            ("--command-arg", !self.command_arg.is_empty()),
            ("--command-env", !self.command_env.is_empty()),
            ("--no-carry-constraints", self.no_carry_constraints),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// Whom a policy asks: the first choice, and the fallback where there is one.
pub(super) fn asked(policy: &PolicyFile) -> Result<Vec<SummarizerKind>, SummarizerFault> {
    let names = std::iter::once(&policy.hustle).chain(&policy.fallback);
    names.map(|name| SummarizerKind::named(name).ok_or(SummarizerFault::UnknownHustle)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::built_in;

    fn applied(
        args: &SummarizerArgs,
        hustle: &str,
        fallback: Option<&str>,
    ) -> Result<(String, Option<String>), SummarizerFault> {
        let mut policy = built_in().unwrap();
        policy.hustle = hustle.into();
        policy.fallback = fallback.map(Into::into);
        args.apply(&mut policy)?;
        Ok((policy.hustle.to_string(), policy.fallback.map(|name| name.to_string())))
    }

    #[test]
    fn options_outrank_the_policy_and_another_summarizer_gets_a_fallback() {
        use FallbackKind as Fallback;
        use SummarizerKind::{Command, Extractive, Model};
        let args =
            |summarizer, fallback| SummarizerArgs { summarizer, fallback, ..SummarizerArgs::default() };
        for (summarizer, fallback, policy, expected) in [
            (None, None, ("extractive", None), ("extractive", None)),
            (None, None, ("model", None), ("model", None)),
            (None, None, ("model", Some("command")), ("model", Some("command"))),
            (Some(Model), None, ("extractive", None), ("model", Some("extractive"))),
            (Some(Command), None, ("extractive", Some("model")), ("command", Some("model"))),
            (Some(Model), None, ("extractive", Some("model")), ("model", Some("extractive"))),
            (Some(Model), Some(Fallback::None), ("extractive", Some("command")), ("model", None)),
            (Some(Extractive), None, ("model", Some("extractive")), ("extractive", None)),
            (None, Some(Fallback::Extractive), (" model ", None), ("model", Some("extractive"))),
        ] {
            let found = applied(&args(summarizer, fallback), policy.0, policy.1).unwrap();
            assert_eq!(
                (found.0.as_str(), found.1.as_deref()),
                expected,
                "{summarizer:?} {fallback:?} {policy:?}"
            );
        }
        let unknown = SummarizerArgs::default();
        assert!(matches!(applied(&unknown, "another", None), Err(SummarizerFault::UnknownHustle)));
        assert!(matches!(
            applied(&unknown, "extractive", Some("another")),
            Err(SummarizerFault::UnknownHustle)
        ));
    }

    #[test]
    fn an_option_for_somebody_whom_nothing_asks_is_a_slip() {
        let args = SummarizerArgs { no_redact: true, ..SummarizerArgs::default() };
        let slip = applied(&args, "extractive", None).unwrap_err();
        assert!(matches!(slip, SummarizerFault::Unused { option: "--no-redact", kind: "model" }));
        assert!(applied(&args, "model", None).is_ok() && applied(&args, "command", Some("model")).is_ok());
        let args = SummarizerArgs { command_arg: vec!["-x".into()], ..SummarizerArgs::default() };
        assert!(matches!(
            applied(&args, "model", None),
            Err(SummarizerFault::Unused { option: "--command-arg", .. })
        ));
    }
}
