//! What a request takes beside its content: the marks around messages, calls and tools.

use epitome_loop::{Block, Message, Role};

use crate::error_band::{Amount, ErrorBand};
use crate::models::Family;

/// Tokens around the content of a request. `docs/counting.md` says where each figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Framing {
    /// Once for each request.
    pub(crate) request: u64,
    /// For each message, its role among them.
    pub(crate) message: u64,
    /// For each call of a tool, beside its name and arguments.
    pub(crate) tool_call: u64,
    /// How the arguments of a call are written.
    pub(crate) arguments: Arguments,
    /// For a message that holds both text and calls.
    pub(crate) text_beside_calls: u64,
    /// For a message with several calls.
    pub(crate) parallel: u64,
    /// For each of several calls in one message.
    pub(crate) parallel_call: u64,
    /// For each result of a tool, beside its content.
    pub(crate) tool_result: u64,
    /// For a result that says the tool failed.
    pub(crate) failed_result: u64,
    /// Once for a request that defines tools.
    pub(crate) tools: u64,
    /// What is saved of that when the request has a system message.
    pub(crate) tools_beside_system: u64,
    /// For each tool, beside its definition.
    pub(crate) tool: u64,
    /// How the definition of a tool is written.
    pub(crate) definition: Definition,
    /// How far off `request` and `message` may be.
    pub(crate) plain_band: ErrorBand,
    /// How far off everything else may be, which no provider publishes.
    pub(crate) measured_band: ErrorBand,
}

/// How a provider writes the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// As the JSON that they are.
    Json,
    /// One by one, text without its escapes, each with marks and its name that take so many tokens.
    OneByOne { each: u64 },
}

/// How a provider writes the definition of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// As JSON, or in a form of about the same length.
    Json,
    /// As the signature of a function in TypeScript.
    Signature,
}

impl Framing {
    pub(crate) const fn of(family: Family) -> Self {
        match family {
            Family::OpenAi => Self::OPENAI,
            Family::Anthropic => Self::ANTHROPIC,
            Family::Gemini => Self::GEMINI,
            Family::Other => Self::UNKNOWN,
        }
    }

    /// For a model of the family whose own framing is not published: that of the family's other models.
    pub(crate) const fn inherited(family: Family) -> Self {
        let framing = Self::of(family);
        Self { plain_band: framing.measured_band, ..framing }
    }

    /// For a model of which no more is known than whose form its requests have.
    pub(crate) const fn guessed(family: Family) -> Self {
        let band = Self::UNKNOWN.measured_band;
        match family {
            // Many models are spoken to in OpenAI's form that are not OpenAI's.
            Family::OpenAi => Self { plain_band: band, measured_band: band, ..Self::OPENAI },
            Family::Anthropic | Family::Gemini | Family::Other => Self::inherited(family),
        }
    }

    /// The marks around a request.
    pub(crate) const fn around_request(&self) -> Amount {
        self.plain_band.around(self.request)
    }

    /// The marks around a message.
    pub(crate) fn around(&self, message: &Message) -> Amount {
        let own = match message {
            Message::ToolResult { is_error, .. } => self.result(*is_error),
            Message::Assistant { blocks, .. } => self.measured_band.around(self.calls(blocks)),
            _ => Amount::default(),
        };
        self.plain_band.around(self.message).plus(own)
    }

    /// The marks around a result.
    pub(crate) fn result(&self, is_error: bool) -> Amount {
        let failed = if is_error { self.failed_result } else { 0 };
        self.measured_band.around(self.tool_result.saturating_add(failed))
    }

    /// What calls in one message take beside what each of them takes.
    fn calls(&self, blocks: &[Block]) -> u64 {
        let is_call = |block: &&Block| matches!(block, Block::ToolUse(_));
        let calls = u64::try_from(blocks.iter().filter(is_call).count()).unwrap_or(u64::MAX);
        let has_text = blocks.iter().any(|block| matches!(block, Block::Text { .. }));
        let beside = if has_text && calls > 0 { self.text_beside_calls } else { 0 };
        let parallel = if calls > 1 {
            self.parallel.saturating_add(self.parallel_call.saturating_mul(calls))
        } else {
            0
        };
        beside.saturating_add(parallel)
    }

    /// What is saved in a request with these messages and with tools.
    pub(crate) fn saved(&self, messages: &[Message], has_tools: bool) -> u64 {
        let has_system = messages.iter().any(|message| message.role() == Role::System);
        if has_tools && has_system { self.tools_beside_system } else { 0 }
    }

    /// OpenAI publishes three tokens for each message, one for its role, and three that open the reply; the
    /// marks around tools and calls are measured.
    const OPENAI: Self = Self {
        request: 3,
        message: 3 + 1,
        tool_call: 4,
        arguments: Arguments::Json,
        text_beside_calls: 4,
        parallel: 5,
        parallel_call: 9,
        tool_result: 2,
        failed_result: 0,
        tools: 9,
        tools_beside_system: 4,
        tool: 0,
        definition: Definition::Signature,
        plain_band: ErrorBand::EXACT,
        measured_band: ErrorBand::new(10, 15),
    };

    /// Anthropic publishes 346 tokens for the system text that comes with tools (Claude 4, tool choice `auto`)
    /// and nothing else; requests to Claude 4.5 show 144 more. The rest is measured.
    const ANTHROPIC: Self = Self {
        request: 4,
        message: 3,
        tool_call: 30,
        arguments: Arguments::OneByOne { each: 16 },
        text_beside_calls: 0,
        parallel: 0,
        parallel_call: 0,
        tool_result: 10,
        failed_result: 8,
        tools: 346 + 144,
        tools_beside_system: 0,
        tool: 8,
        definition: Definition::Json,
        plain_band: ErrorBand::new(10, 15),
        measured_band: ErrorBand::new(10, 15),
    };

    /// Nothing is published; measured on few requests, so the bands are wide.
    const GEMINI: Self = Self {
        request: 1,
        message: 1,
        tool_call: 6,
        arguments: Arguments::Json,
        text_beside_calls: 0,
        parallel: 0,
        parallel_call: 0,
        tool_result: 6,
        failed_result: 0,
        tools: 10,
        tools_beside_system: 0,
        tool: 8,
        definition: Definition::Json,
        plain_band: ErrorBand::new(50, 50),
        measured_band: ErrorBand::new(50, 50),
    };

    /// The figures of a usual chat template. Templates differ much, and so the bands are wide.
    pub(crate) const UNKNOWN: Self = Self {
        request: 4,
        message: 5,
        tool_call: 12,
        arguments: Arguments::Json,
        text_beside_calls: 0,
        parallel: 0,
        parallel_call: 0,
        tool_result: 6,
        failed_result: 0,
        tools: 60,
        tools_beside_system: 0,
        tool: 8,
        definition: Definition::Json,
        plain_band: ErrorBand::new(40, 60),
        measured_band: ErrorBand::new(40, 60),
    };
}
