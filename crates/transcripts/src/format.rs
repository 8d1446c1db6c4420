//! The formats by name.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A format that can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Epitome JSON, version 1: holds everything that a message can hold.
    EpitomeJson,
    /// OpenAI chat completions: an array of messages, a request, or a log of requests.
    OpenAiChat,
    /// Anthropic Messages: an array of messages, a request, or a list of exchanges.
    AnthropicMessages,
    /// OpenAI Responses: a list of items, a request, or a log of requests.
    OpenAiResponses,
    /// A session file of the coding agent pi, in JSON Lines.
    PiSession,
    /// A rollout file of Codex, in JSON Lines.
    CodexRollout,
    /// Contents of the Gemini API: a list, a request, a log of requests, or a session file of its command line.
    Gemini,
    /// A session file of Claude Code, in JSON Lines.
    ClaudeCode,
    /// What Claude Code prints as `stream-json`, in JSON Lines.
    ClaudeStreamJson,
}

impl Format {
    /// Every format, in the order in which they are listed to people.
    pub const ALL: [Self; 9] = [
        Self::EpitomeJson,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::ClaudeCode,
        Self::ClaudeStreamJson,
        Self::CodexRollout,
        Self::PiSession,
    ];

    /// The stable name, for example `openai-chat`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EpitomeJson => "epitome",
            Self::OpenAiChat => "openai-chat",
            Self::AnthropicMessages => "anthropic",
            Self::OpenAiResponses => "openai-responses",
            Self::PiSession => "pi",
            Self::CodexRollout => "codex",
            Self::Gemini => "gemini",
            Self::ClaudeCode => "claude-code",
            Self::ClaudeStreamJson => "claude-stream-json",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::EpitomeJson => "Epitome JSON",
            Self::OpenAiChat => "OpenAI chat",
            Self::AnthropicMessages => "Anthropic Messages",
            Self::OpenAiResponses => "OpenAI Responses",
            Self::PiSession => "pi session",
            Self::CodexRollout => "Codex rollout",
            Self::Gemini => "Gemini contents",
            Self::ClaudeCode => "Claude Code session",
            Self::ClaudeStreamJson => "Claude Code stream-json",
        }
    }

    /// The usual ending of a file in this format, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::EpitomeJson
            | Self::OpenAiChat
            | Self::AnthropicMessages
            | Self::OpenAiResponses
            | Self::Gemini => "json",
            Self::PiSession | Self::CodexRollout | Self::ClaudeCode | Self::ClaudeStreamJson => "jsonl",
        }
    }

    /// Whether its messages hold the blocks of Anthropic, so that the provider's own items may go from one
    /// such format to another.
    pub(crate) fn is_anthropic(self) -> bool {
        matches!(self, Self::AnthropicMessages | Self::ClaudeCode | Self::ClaudeStreamJson)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name is not that of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a format; the formats are {}", Format::ALL.map(Format::as_str).join(", "))]
pub struct FormatNameError;

impl FromStr for Format {
    type Err = FormatNameError;

    fn from_str(name: &str) -> Result<Self, FormatNameError> {
        Self::ALL.into_iter().find(|format| format.as_str() == name).ok_or(FormatNameError)
    }
}

/// A format that is recognized but cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ForeignFormat {
    /// What the Gemini command line prints as `stream-json`.
    GeminiStreamJson,
    /// A Bedrock Converse request.
    BedrockConverse,
    /// A SWE-agent trajectory.
    SweAgent,
    /// Events of OpenHands.
    OpenHands,
    /// A sample or log of Inspect.
    Inspect,
    /// A session or recording of goose.
    Goose,
    /// A dump of LangChain messages.
    LangChain,
    /// ShareGPT conversations.
    ShareGpt,
    /// A Harbor trajectory (ATIF).
    Atif,
    /// A provider's reply without the request that it answers.
    ReplyAlone,
}

impl ForeignFormat {
    /// The name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GeminiStreamJson => "Gemini stream-json",
            Self::BedrockConverse => "Bedrock Converse",
            Self::SweAgent => "SWE-agent trajectory",
            Self::OpenHands => "OpenHands events",
            Self::Inspect => "Inspect log",
            Self::Goose => "goose session",
            Self::LangChain => "LangChain messages",
            Self::ShareGpt => "ShareGPT",
            Self::Atif => "ATIF trajectory",
            Self::ReplyAlone => "reply without its request",
        }
    }
}

impl fmt::Display for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for format in Format::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        assert_eq!("PI".parse::<Format>(), Err(FormatNameError));
    }
}
