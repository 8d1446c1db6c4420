//! The command line of `epitome session`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use epitome_transcripts::Format;

use crate::args::{SessionArgs, parse_format};
use crate::summarizer::SummarizerArgs;

/// The exit codes of these commands, for their help.
const EXIT_CODES: &str = "Exit codes: 0 done, 2 usage, 3 bad input or a damaged journal, 4 refused, 5 input or output \
                          failed.";

#[derive(Debug, Subcommand)]
#[command(after_help = EXIT_CODES)]
pub(crate) enum SessionCommand {
    /// List the sessions of a journal, oldest first.
    List(ListArgs),
    /// Take a session file into a journal, byte for byte.
    Import(ImportArgs),
    /// Add messages behind those of a session.
    Append(AppendArgs),
    /// Ask for leave to send the next request: measure it, compact first if that is due, and say what was decided.
    Admit(AdmitArgs),
    /// Compact a session now, however full it is.
    Compact(CompactNowArgs),
    /// Take the newest compaction of a session back.
    Undo(RewindArgs),
    /// Put the compaction that was taken back last in force again.
    Redo(RewindArgs),
    /// Show what happened to a session: every decision and every change, with its numbers and its reason.
    Log(LogArgs),
    /// Show what a session's context is made of, now or at an earlier point.
    Show(ShowArgs),
    /// Write a session as a file, as it is now or was at an earlier point.
    Export(ExportArgs),
    /// Check that a journal is whole: its file, and every record of its sessions.
    Verify(VerifyArgs),
    /// Remove a session from a journal for good.
    Purge(PurgeArgs),
}

impl SessionCommand {
    /// Whether standard output belongs to a report for a machine.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::List(ListArgs { json, .. })
            | Self::Import(ImportArgs { json, .. })
            | Self::Log(LogArgs { json, .. })
            | Self::Show(ShowArgs { json, .. })
            | Self::Verify(VerifyArgs { json, .. })
            | Self::Append(AppendArgs { json, .. })
            | Self::Admit(AdmitArgs { json, .. })
            | Self::Compact(CompactNowArgs { json, .. })
            | Self::Undo(RewindArgs { json, .. })
            | Self::Redo(RewindArgs { json, .. })
            | Self::Purge(PurgeArgs { json, .. }) => *json,
            Self::Export(_) => false,
        }
    }
}

/// Which journal.
#[derive(Debug, Args)]
pub(crate) struct JournalArg {
    /// The journal's file.
    #[arg(id = "journal", long, value_name = "FILE", env = "EPITOME_JOURNAL")]
    pub(crate) file: PathBuf,
}

/// Which session of which journal.
#[derive(Debug, Args)]
pub(crate) struct KeptArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArg,
    /// Which session: its id, or as much of the id's beginning as no other session shares. [default: the newest]
    #[arg(id = "kept", long = "session", value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// Which moment of a session.
#[derive(Debug, Args)]
pub(crate) struct MomentArgs {
    /// As it was left by the Nth compaction; 0 is before the first one. [default: as it is now]
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u64>,
    /// As it was behind this record; `epitome session log` numbers them.
    #[arg(long, value_name = "NUMBER", conflicts_with = "at", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) record: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArg,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session import session.jsonl --journal sessions.db
      Makes the journal if it is not there, and prints the id of the new session.
  epitome session import --latest claude-code --journal sessions.db
      The newest session of Claude Code.

{EXIT_CODES}"))]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) source: SessionArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArg,
    /// Import the file although a session of the journal came from the same bytes.
    #[arg(long)]
    pub(crate) again: bool,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session log --journal sessions.db
      The newest session of the journal: measured, started, committed or rejected, and why.
  epitome session log --journal sessions.db --json | jq -c 'select(.kind == \"rejected\")'
      One JSON object for each record that is shown, one on a line; --all shows every one.

{EXIT_CODES}"))]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    /// Show the answers to commands that waited as well.
    #[arg(long)]
    pub(crate) all: bool,
    /// Report as JSON, one object on a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session show --journal sessions.db
      What would be sent now: the summary's sections, the messages that stay, and what they take.
  epitome session show --journal sessions.db --at 0
      What would have been sent before the first compaction.

{EXIT_CODES}"))]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) moment: MomentArgs,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session export --journal sessions.db --at 0 --out original.jsonl
      The session as it was before the first compaction: byte for byte the file that was imported.
  epitome session export --journal sessions.db --to openai-chat > now.json
      The session as it is now, in another format.

{EXIT_CODES}"))]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) moment: MomentArgs,
    /// Write the session in this format. [default: as it was imported; Epitome JSON where nothing was]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) to: Option<Format>,
    /// Write the session here; - is standard output. [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session verify --journal sessions.db
      Checks the file and every session in it.

Exit code 3 says that something is damaged; what, and what to do about it, is in the report.
{EXIT_CODES}"))]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArg,
    /// Check this session alone, and the file. [default: every session]
    #[arg(long = "session", value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session purge --journal sessions.db --session 01978c3e
      Says what would go, and removes nothing.
  epitome session purge --journal sessions.db --session 01978c3e --yes
      Removes the session. There is no way back, and copies of the journal are not reached.

{EXIT_CODES}"))]
pub(crate) struct PurgeArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArg,
    /// Which session: its id, or as much of the id's beginning as no other session shares.
    #[arg(long = "session", value_name = "ID", required = true)]
    pub(crate) id: String,
    /// Remove it. Without this, the command says what would go.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which loop a session runs in while a command does something with it.
#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    /// Follow the policy of this file, in TOML or JSON, instead of the built-in one.
    #[arg(long, value_name = "FILE", conflicts_with = "rig")]
    pub(crate) policy: Option<PathBuf>,
    /// Run the session in a loop of this rig file, with its model and its policy. A hustle that asks a model asks it
    /// through the client of that name (docs/rig-file.md); the counter must be a local one.
    #[arg(long, value_name = "FILE")]
    pub(crate) rig: Option<PathBuf>,
    /// Which loop of the rig. [default: the only one]
    #[arg(id = "agent_loop", long = "loop", value_name = "NAME", requires = "rig")]
    pub(crate) name: Option<String>,
    /// Tokens of what is sent but not in the session, such as a system prompt that the host adds.
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    pub(crate) unseen: u64,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session append turn.json --journal sessions.db
      A file of messages in any known format, such as a JSON array of chat messages.
  echo '[{{\"role\":\"user\",\"content\":\"go on\"}}]' | epitome session append - --journal sessions.db

{EXIT_CODES}"))]
pub(crate) struct AppendArgs {
    /// The messages, in a format found out by their content; - is standard input.
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Read the messages as this format instead of finding it out.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) from: Option<Format>,
    /// Which conversation, counted from 0, when the file holds several.
    #[arg(long, value_name = "N")]
    pub(crate) conversation: Option<usize>,
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) agent_loop: LoopArgs,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session admit --journal sessions.db && epitome session export --journal sessions.db > request.json
      Exit code 0 says that the request may be sent; the context may have been compacted for it.

Exit code 4 says that it may not: it does not fit and no compaction makes it fit, or the journal failed.
{EXIT_CODES}"))]
pub(crate) struct AdmitArgs {
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) agent_loop: LoopArgs,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) summarizer: SummarizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session compact --journal sessions.db --instructions 'keep what was said about the schema'
  epitome session compact --journal sessions.db --summarizer model --model-endpoint ollama --summarizer-model llama3.2
      A model writes the summary; if it fails, the embedded summarizer does, and the log says so for ever.

{EXIT_CODES}"))]
pub(crate) struct CompactNowArgs {
    /// What the summary should pay attention to, in your words.
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) agent_loop: LoopArgs,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) summarizer: SummarizerArgs,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, after_long_help = format!("\
Examples:
  epitome session undo --journal sessions.db
      The newest compaction is taken back; what was appended since stays.
  epitome session undo --journal sessions.db --to 0
      All of them. Originals are never deleted, so `epitome session redo` puts them in force again.

{EXIT_CODES}"))]
pub(crate) struct RewindArgs {
    /// Go to so many compactions in force. [default: one fewer for undo, one more for redo]
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u64>,
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    #[command(flatten)]
    pub(crate) agent_loop: LoopArgs,
    /// Report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
