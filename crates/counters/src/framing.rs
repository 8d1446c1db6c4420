//! What a request takes beside its content: the marks around messages, calls and tools.

use crate::models::Family;

/// Tokens around the content of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Once for each request.
    pub(crate) request: u64,
    /// For each message, its role among them.
    pub(crate) message: u64,
    /// For each call of a tool, beside its name and arguments.
    pub(crate) tool_call: u64,
    /// For each result of a tool, beside its content.
    pub(crate) tool_result: u64,
    /// Once for a request that defines tools.
    pub(crate) tools: u64,
    /// For each tool, beside its definition.
    pub(crate) tool: u64,
}

impl Framing {
    pub(crate) fn of(family: Family) -> Self {
        match family {
            Family::OpenAi => Self::OPENAI,
            Family::Anthropic => Self::ANTHROPIC,
            Family::Gemini | Family::Other => Self::UNKNOWN,
        }
    }

    /// OpenAI publishes three tokens for each message, one for its role, and three that open the reply. The
    /// marks around calls and tools are not published; these are on the high side of what requests with
    /// provider figures show.
    pub(crate) const OPENAI: Self =
        Self { request: 3, message: 3 + 1, tool_call: 16, tool_result: 6, tools: 12, tool: 4 };

    /// Anthropic publishes 346 tokens for the system text that comes with tools (Claude 4, tool choice
    /// `auto`) and nothing else; the rest is on the high side of what sessions with provider figures show.
    const ANTHROPIC: Self =
        Self { request: 8, message: 4, tool_call: 40, tool_result: 30, tools: 346, tool: 20 };

    /// Nothing is published; the figures are those of a talkative chat template.
    const UNKNOWN: Self =
        Self { request: 8, message: 6, tool_call: 24, tool_result: 16, tools: 100, tool: 12 };
}
