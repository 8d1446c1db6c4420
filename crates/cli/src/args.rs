//! The command line.

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use epitome_loop::BasisPoints;
use epitome_transcripts::Format;

use crate::agent_folders::Agent;
use crate::model_endpoint::{ModelEndpoint, parse_endpoint};
use crate::session_args::SessionCommand;
use crate::summarizer::SummarizerArgs;

/// Keeps an agent's context inside its window without losing what matters.
///
/// Epitome reads a session as agents store it, measures it against the model's window, and replaces its old
/// part by a summary that is proven before it is used: five sections under a strict grammar, the whole new
/// request counted, smaller than before and legal for the provider. What does not pass is refused and the
/// session stays as it was. No model and no network are needed.
#[derive(Debug, Parser)]
#[command(name = "epitome", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done or nothing to do, 2 usage, 3 bad input, 4 refused, 5 input or \
                        output failed.\nA FILE of - is standard input.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replace the old part of a session by a proven summary.
    Compact(Box<CompactArgs>),
    /// Show what a session takes: by role, by kind, and its largest messages.
    Measure(MeasureArgs),
    /// List the sessions of coding agents on this machine, newest first, and how full they are.
    Sessions(SessionsArgs),
    /// Keep sessions in a journal: every compaction recorded, the original always at hand.
    #[command(subcommand)]
    Session(Box<SessionCommand>),
    /// Check a summary against its grammar, or a rig's definitions against each other.
    #[command(subcommand)]
    Check(CheckCommand),
    /// Print and check the policies that decide when and how to compact.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// List the models whose windows and tokenizers are known, and the servers that could write summaries.
    Models(ModelsArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

impl Command {
    /// Whether standard output belongs to a report for a machine, and not to a session.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Compact(args) => {
                let target =
                    args.out.as_ref().or(args.session.as_ref().and_then(|session| session.file.as_ref()));
                args.json && target.is_none_or(|target| target.as_os_str() != "-")
            }
            Self::Measure(args) => args.json,
            Self::Sessions(args) => args.json,
            Self::Session(command) => command.wants_json(),
            Self::Check(CheckCommand::Summary { json, .. } | CheckCommand::Rig { json, .. }) => *json,
            Self::Policy(PolicyCommand::Check(args)) => args.json,
            Self::Models(args) => args.json,
            Self::Policy(PolicyCommand::Show { .. }) | Self::Completions { .. } => false,
        }
    }
}

/// How to read the session and for which model it is.
#[derive(Debug, Default, Args)]
pub(crate) struct SessionArgs {
    #[arg(help = file_help(), conflicts_with = "latest")]
    pub(crate) file: Option<PathBuf>,
    /// Take the newest session of this agent instead of a FILE; `epitome sessions` lists them all.
    #[arg(long, value_name = "AGENT")]
    pub(crate) latest: Option<Agent>,
    /// Look for the newest session in this home folder. [default: yours, and where the agents were moved to]
    #[arg(long, value_name = "DIR", requires = "latest", conflicts_with = "file")]
    pub(crate) home: Option<PathBuf>,
    /// The model of the next call. Its window and tokenizer are looked up; `epitome models` lists them. Taken
    /// from the session when it names one.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's window in tokens, when the model is not known or its window differs.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Read the session as this format instead of finding it out.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) from: Option<Format>,
    /// Which conversation, counted from 0, when the file holds several.
    #[arg(long, value_name = "N")]
    pub(crate) conversation: Option<usize>,
    /// Tokens of what is sent but not in the file, such as the system prompt and the tools of a session log.
    /// [default: what the provider's last figure in the session shows beyond the messages it covers]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) unseen: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  epitome compact session.jsonl --model claude-sonnet-4-5
      Compacts if the session is at 85 % of the room or more; writes session.compacted.jsonl.
  epitome compact session.jsonl --force --dry-run
      Shows what a compaction would keep and cut, and writes nothing.
  epitome compact session.jsonl --pin '#94' --pin 'never touch prod'
      Keeps message #94 and every message with these words as they are.
  epitome compact - --window 128000 --quiet < session.json > shorter.json
      As a filter: the session goes to standard output, changed or not.
  epitome compact --latest claude-code
      The newest session of Claude Code; the result goes to the current folder, never into the agent's.
  epitome compact session.jsonl --summarizer model --model-endpoint ollama --summarizer-model llama3.2
      A model on this machine writes the summary; if it fails, the embedded summarizer does, and the report says so.
  epitome compact session.jsonl --summarizer model --model-endpoint anthropic --summarizer-model claude-haiku-4-5
      One elsewhere: the key is in ANTHROPIC_API_KEY, and keys and passwords of the session are replaced by marks.
  epitome compact session.jsonl --summarizer command --command ./summarize.sh --fallback none
      A program of yours does, or nobody.
  epitome compact session.jsonl --journal sessions.db
      Records the compaction as well: `epitome session export --journal sessions.db --at 0` gives the original back.")]
pub(crate) struct CompactArgs {
    /// Speak the contract of the offline yardsticks instead: chat messages on standard input, at most this
    /// many tokens of four bytes on standard output.
    #[arg(long, value_name = "BUDGET_TOKENS", exclusive = true)]
    pub(crate) stdio_chat: Option<u64>,
    #[command(flatten)]
    pub(crate) session: Option<SessionArgs>,
    /// Follow the policy of this file, in TOML or JSON, instead of the built-in one. Options outrank it.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Compact at this share of the room: a percentage (85% or 85) or basis points (8500). [default: what the
    /// policy says; the built-in one says 85%]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) compact_at: Option<BasisPoints>,
    /// Keep about this many tokens of the newest conversation verbatim. [default: what the policy says; the
    /// built-in one says a tenth of the window, at most 20000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_recent_tokens: Option<u64>,
    /// Let the summary take at most this many tokens. [default: what the policy says; the built-in one says a
    /// fifteenth of the window, at most 4000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_summary_tokens: Option<u64>,
    /// What the summary should pay attention to, in your words, if a compaction is due.
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    /// Keep this message verbatim, with what it needs to be legal (a result its call, a call its results). Give its
    /// number as `measure` shows it (#94), the id of a call, or text that the message holds; a text that several
    /// messages hold pins them all. May be given several times. Pins count against the limit.
    #[arg(long, value_name = "TEXT|ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) pin: Vec<String>,
    /// Compact now, however full the session is.
    #[arg(long)]
    pub(crate) force: bool,
    /// Do everything but write.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the session in this format. [default: as it was read]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) to: Option<Format>,
    /// Write the session here; - is standard output. [default: beside the input, with .compacted before the
    /// extension and a number where that name is taken; in the current folder for --latest; standard output for
    /// standard input]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Record what is done in this journal, as a session of its own, before the output is written. The journal is made
    /// if it is not there. `epitome session` looks into it.
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Report nothing but failures.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) summarizer: SummarizerArgs,
}

impl SessionArgs {
    /// The session's file; `-` is standard input.
    pub(crate) fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  epitome sessions
      The newest sessions of all agents, with project, model, tokens and share of the model's window.
  epitome sessions --agent claude-code --all --json
      Every session of Claude Code, for a machine.")]
pub(crate) struct SessionsArgs {
    /// Only sessions of this agent; may be given more than once.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Vec<Agent>,
    /// Show at most this many sessions, the newest.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: usize,
    /// Show every session.
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Look into this home folder. [default: yours, and where the agents were moved to by CLAUDE_CONFIG_DIR,
    /// CODEX_HOME, PI_CODING_AGENT_DIR or GEMINI_CLI_HOME]
    #[arg(long, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  epitome models
      The table of known models, and the servers that are known by name: which of those on this machine run, and
      what they serve. Nothing leaves the machine.
  epitome models --check
      Asks the servers elsewhere too, as far as a variable holds a key for them.
  epitome models --model-endpoint http://127.0.0.1:9000/v1
      Looks at one server alone.

Exit codes: 0 done, 2 usage, 5 the server of --model-endpoint was not reached or did not answer.")]
pub(crate) struct ModelsArgs {
    /// Look at this server alone: the name of a known kind (ollama), an address of OpenAI-compatible chat
    /// completions (http://127.0.0.1:9000/v1), or both (llama.cpp=http://127.0.0.1:9000/v1).
    #[arg(long, value_name = "ENDPOINT", value_parser = parse_endpoint)]
    pub(crate) model_endpoint: Option<ModelEndpoint>,
    /// Take the key for that server from this variable of the environment.
    #[arg(long, value_name = "VARIABLE", requires = "model_endpoint",
          value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) model_key: Option<String>,
    /// Ask servers elsewhere too, where a variable holds the key that they want.
    #[arg(long, conflicts_with = "model_endpoint")]
    pub(crate) check: bool,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Take the room for the answer and the margin from the policy of this file, instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Check a summary against the strict grammar.
    Summary {
        /// The summary; - is standard input.
        file: PathBuf,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check a rig file: whether its loops, its hustles and their lanes are valid and fit each other.
    #[command(after_help = "Exit codes: 0 valid, 3 not a valid rig, 5 the file cannot be opened.\n\
                            docs/rig-file.md explains every key.")]
    Rig {
        /// The rig, in TOML or JSON; - is standard input. Prompt files are looked for beside it.
        file: PathBuf,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print the built-in policy as a file: a start for one of your own.
    Show {
        /// As JSON instead of TOML.
        #[arg(long)]
        json: bool,
    },
    /// Check a policy file, and work out its numbers for a model.
    Check(PolicyCheckArgs),
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  epitome policy show > my.toml
      A copy of the built-in policy, to be changed.
  epitome policy check my.toml --model claude-sonnet-4-5 --system-tokens 3000 --tool-tokens 12000
      Says what the policy comes to for this model, and whether a compaction can land low enough.

Exit codes: 0 valid, 2 usage, 3 not a valid policy, 4 no compaction could do its work, 5 not readable.")]
pub(crate) struct PolicyCheckArgs {
    /// The policy, in TOML or JSON; - is standard input.
    pub(crate) file: PathBuf,
    /// Work out the numbers for this model; `epitome models` lists what is known.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Work out the numbers for a window of this many tokens.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Tokens of the system prompt, for the check whether a compaction can land low enough.
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub(crate) system_tokens: u64,
    /// Tokens of the tool definitions, for the same check.
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub(crate) tool_tokens: u64,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn file_help() -> String {
    let formats = Format::ALL.map(Format::title).join(", ");
    format!("The session, in a format found out by its content ({formats}); - is standard input")
}

pub(crate) fn parse_format(text: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(Format::as_str).join(", ");
    text.parse::<Format>().map_err(|_| format!("not a known format; known are {}", known()))
}

/// A share of the room: `85%`, `87.5%`, `85` or `8500`. Up to 100 it is a percentage, with or without sign.
fn parse_share(text: &str) -> Result<BasisPoints, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let number: f64 = number
        .parse()
        .map_err(|_| "give a percentage such as 85% or basis points such as 8500".to_owned())?;
    let points = if text.ends_with('%') || number <= 100.0 { number * 100.0 } else { number };
    if (100.0..10_000.0).contains(&points) {
        // In range, so the rounded value fits.
        Ok(BasisPoints(points.round() as u16))
    } else {
        Err("the share must be at least 1 % and below 100 %".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_format_is_named_in_the_help() {
        let help = Cli::command().find_subcommand_mut("compact").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for format in Format::ALL {
            assert!(help.contains(format.title()), "{format}");
        }
    }

    #[test]
    fn shares_are_percentages_or_basis_points() {
        assert_eq!(parse_share("85%"), Ok(BasisPoints(8_500)));
        assert_eq!(parse_share("87.5 %"), Ok(BasisPoints(8_750)));
        assert_eq!(parse_share("8500"), Ok(BasisPoints(8_500)));
        assert_eq!(parse_share("85"), Ok(BasisPoints(8_500)));
        for bad in ["0", "0.5%", "100", "100%", "10000", "-1%", "x", "NaN%"] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }
}
