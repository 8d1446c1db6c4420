//! What can go wrong at the command line, and the exit code that says so.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use epitome_loop::{
    CompactionPolicyError, ContextLimitUnknown, CountError, InvalidSummary, ModelCallError, SummarizerError,
};
use epitome_loopruntime::Unavailable;
use epitome_models::SetupError;
use epitome_rig::FileError;
use epitome_sessionruntime::RefusalReason;
use epitome_transcripts::{Format, ReadError, WriteError};
use serde::Serialize;
use thiserror::Error;

use crate::agent_folders::Agent;
use crate::model_endpoint::server_advice;
use crate::pins::PinError;
use crate::report::{VERSION, harmless, print_json};
use crate::session_command::failure::JournalFailure;
use crate::summarizer::SummarizerFault;

/// A failure of a command. Paths are the user's own words; nothing of a session's content is in a message.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(
        "the model's window is not known, so there is no telling how full the session is\n\
         The session does not say, or says a model that is not in the table. Name it:\n  \
         --model NAME      for example --model claude-sonnet-4-5 (`epitome models` lists what is known)\n  \
         --window TOKENS   for example --window 128000"
    )]
    NoWindow,
    #[error("the model is not in the table; `epitome models` lists what is known, or give --window TOKENS")]
    UnknownModel,
    #[error("give a FILE, - for standard input, or --latest AGENT for the newest session of an agent")]
    NoFile,
    #[error("there is no home folder to look into; name one with --home DIR")]
    NoHome,
    #[error("no session of {} under {}", agent.as_str(), shown(folder))]
    NoSession { agent: Agent, folder: PathBuf },
    #[error("the current folder belongs to {}, and nothing is written there unasked; name a file with --out FILE", agent.as_str())]
    AgentsFolder { agent: Agent },
    #[error("{0}")]
    Policy(CompactionPolicyError),
    /// A policy file that is not valid; `reported` says that a report of its own was made.
    #[error(
        "{}: {fault}\n`epitome policy show` prints a complete policy; docs/policy.md explains every key",
        shown(path)
    )]
    PolicyFile { path: PathBuf, fault: FileError, reported: bool },
    /// A rig file that is not valid; a report of its own was made. `prompt` is the prompt file that could not be
    /// read, where that is the fault.
    #[error(
        "{}: {fault}{}\ndocs/rig-file.md explains every key",
        shown(path),
        prompt.as_ref().map_or_else(String::new, |(path, kind)| format!("\n{}: {kind}", shown(path)))
    )]
    RigFile { path: PathBuf, fault: Box<FileError>, prompt: Option<(PathBuf, io::Error)>, reported: bool },
    /// A server for models that cannot be asked. Its address is not repeated: it may hold a password.
    #[error("the server for models cannot be asked: {0}")]
    Endpoint(SetupError),
    #[error("{0}")]
    Summarizer(#[from] SummarizerFault),
    /// The one server that was asked about did not answer; a report was made.
    #[error("{}: {error}{}", harmless(endpoint), server_advice(*error))]
    NotReached { endpoint: String, error: ModelCallError },
    #[error("the policy leaves no room for input: {0}")]
    NoRoom(ContextLimitUnknown),
    /// The policy was judged and a report was made.
    #[error("refused: {0}")]
    PolicyRefused(String),
    #[error("the session and the policy cannot both come from standard input")]
    TwoInputs,
    #[error("{0}")]
    Pin(PinError),
    #[error("the output is the input itself; a session is never written over")]
    OverInput,
    #[error("the output is the journal itself, which is never written over")]
    OverJournal,
    #[error("{}: {reason}{}", shown(path), read_advice(*reason))]
    Read { path: PathBuf, reason: ReadError },
    #[error("{}: {}", shown(path), advice(*reason))]
    Summary { path: PathBuf, reason: InvalidSummary },
    #[error("the messages on standard input cannot be read: {0}")]
    StdioChat(ReadError),
    #[error("the budget cannot hold a summary: {0}")]
    StdioBudget(SummarizerError),
    #[error("the session cannot be counted: {0}")]
    Count(CountError),
    /// `summarizer` is what is to be said about the one that gave no summary.
    #[error("refused: {reason}{}{summarizer}\nThe session is unchanged.", refusal_advice(reason))]
    Refused { reason: Box<RefusalReason>, summarizer: String },
    #[error("the session cannot be written in this format: {0}")]
    Write(WriteError),
    #[error("{0}")]
    Journal(#[from] JournalFailure),
    #[error("{}: {kind}", shown(path))]
    Io { path: PathBuf, kind: io::Error },
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NoWindow
            | Self::UnknownModel
            | Self::NoFile
            | Self::NoHome
            | Self::AgentsFolder { .. }
            | Self::Policy(_)
            | Self::Endpoint(_)
            | Self::Summarizer(_)
            | Self::NoRoom(_)
            | Self::TwoInputs
            | Self::Pin(_)
            | Self::OverInput
            | Self::OverJournal => 2,
            Self::Read { .. }
            | Self::NoSession { .. }
            | Self::Summary { .. }
            | Self::PolicyFile { .. }
            | Self::RigFile { .. }
            | Self::StdioChat(_)
            | Self::Count(_) => 3,
            Self::Refused { .. } | Self::PolicyRefused(_) | Self::Write(_) | Self::StdioBudget(_) => 4,
            Self::Journal(failure) => failure.exit_code(),
            Self::NotReached { .. } | Self::Io { .. } => 5,
        })
    }

    /// The stable name of the failure; `None` where a report of its own was made.
    fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Refused { .. }
            | Self::NotReached { .. }
            | Self::Summary { .. }
            | Self::PolicyRefused(_)
            | Self::RigFile { reported: true, .. }
            | Self::PolicyFile { reported: true, .. } => return None,
            Self::NoWindow => "no_window",
            Self::UnknownModel => "unknown_model",
            Self::NoFile => "no_file",
            Self::NoHome => "no_home",
            Self::NoSession { .. } => "no_session",
            Self::AgentsFolder { .. } => "agents_folder",
            Self::Policy(_) => "policy",
            Self::PolicyFile { .. } => "policy_file",
            Self::RigFile { .. } => "rig_file",
            Self::Summarizer(fault) => fault.name(),
            Self::Endpoint(_) => "model_endpoint",
            Self::NoRoom(_) => "no_room",
            Self::TwoInputs => "two_inputs",
            Self::Pin(_) => "pin",
            Self::OverInput => "over_input",
            Self::OverJournal => "over_journal",
            Self::Read { .. } | Self::StdioChat(_) => "unreadable",
            Self::StdioBudget(_) => "budget_too_small",
            Self::Count(_) => "not_countable",
            Self::Write(_) => "not_writable_in_format",
            Self::Journal(failure) => return failure.name(),
            Self::Io { .. } => "io",
        })
    }

    /// Reports the failure as JSON on standard output.
    pub(crate) fn report(&self) {
        #[derive(Serialize)]
        struct Report {
            report: u32,
            outcome: &'static str,
            failure: &'static str,
            message: String,
        }
        if let Some(failure) = self.name() {
            let report = Report { report: VERSION, outcome: "failed", failure, message: self.to_string() };
            // The message still goes to standard error, and the exit code says what happened.
            let _ = print_json(&report);
        }
    }

    /// Whether the reader at the other end of a pipe went away.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Io { kind, .. } if kind.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |kind| Self::Io { path, kind }
    }
}

/// A refused summary with what to do about it.
fn advice(fault: InvalidSummary) -> String {
    use epitome_loop::InvalidSummaryReason as Reason;
    let hint = match fault.reason {
        Reason::XmlSyntax => {
            "it is not well-formed XML; escape & as &amp; and < as &lt;, and close every element"
        }
        Reason::XmlRoot => "its root must be conversation_summary",
        Reason::XmlStructure => {
            "it must hold goal, constraints, decisions, state and open_items in this order, with text only and \
             nothing around the root, not even a line break at the end"
        }
        Reason::XmlContent => "goal and state must say something",
        _ => "it is not a summary",
    };
    format!("{fault}: {hint}")
}

/// What to do about a session that cannot be read.
fn read_advice(reason: ReadError) -> String {
    match reason {
        ReadError::Conversations { .. } => ": --conversation N, counted from 0".to_owned(),
        ReadError::UnknownFormat | ReadError::NotThisFormat { .. } => {
            let known = Format::ALL.map(Format::as_str).join(", ");
            format!("; known are {known}, and --from FORMAT reads it as one of them")
        }
        _ => String::new(),
    }
}

/// What to do about a refused compaction.
fn refusal_advice(reason: &RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Unavailable(Unavailable::NothingToCompact) => {
            ": what there is belongs to the newest turn, or behind an earlier summary to what the policy keeps, and stays"
        }
        RefusalReason::PinnedTooLarge { .. } => {
            "; fewer or shorter pins, a smaller --max-summary-tokens, or a model with a larger window, would make \
             room"
        }
        RefusalReason::RetainedTailTooLarge { .. } => {
            "; a smaller --max-summary-tokens, or a model with a larger window, would make room"
        }
        RefusalReason::RetainedTailOverBytes { .. } => {
            "; a smaller --max-summary-tokens, or a larger max_request_bytes in the policy, would make room"
        }
        RefusalReason::SummaryTooLarge(_) => {
            "; it is already small, or a smaller --max-summary-tokens may help"
        }
        RefusalReason::ExecutionFailed(_) => "; a larger --max-summary-tokens makes room for one",
        _ => "",
    }
}

/// A path as it may be shown.
pub(crate) fn shown(path: &Path) -> String {
    harmless(&path.display().to_string())
}
