//! Answers in which a provider ran tools of its own.

use crate::{Block, Opaque};

/// What providers call the calls of tools that they run themselves, and their results, where the name does not end in
/// `_tool_result`: Anthropic, OpenAI, Gemini.
const KINDS: [&str; 11] = [
    "server_tool_use",
    "mcp_tool_use",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "mcp_call",
    "image_generation_call",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// Whether the blocks of an answer show that the provider ran tools while it answered: calls of its own, or results of
/// calls of the answer before.
///
/// Such an answer is made of several requests, one behind another, and its [`Usage`](crate::Usage) may be the sum over
/// all of them. So it says what the answer cost, and nothing about how large the context is.
#[must_use]
pub fn ran_provider_tools(answer: &[Block]) -> bool {
    let is_run = |Opaque { kind, .. }: &Opaque| KINDS.contains(&&**kind) || kind.ends_with("_tool_result");
    answer.iter().any(|block| matches!(block, Block::Opaque(item) if is_run(item)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RawJson, ToolUse};

    #[test]
    fn a_call_that_the_provider_ran_is_told_from_one_for_the_host() {
        let item =
            |kind: &str| Block::Opaque(Opaque { kind: kind.into(), raw: RawJson::parse_or_quote("{}") });
        for kind in KINDS.into_iter().chain(["web_search_tool_result", "mcp_tool_result"]) {
            assert!(ran_provider_tools(&[Block::text("I look it up."), item(kind)]), "{kind}");
        }
        for kind in ["compaction", "reasoning", "redacted_thinking", "", "tool_result_of_nobody"] {
            assert!(!ran_provider_tools(&[item(kind)]), "{kind}");
        }
        let call = Block::ToolUse(ToolUse::new("i", "web_search_call", None, None));
        assert!(!ran_provider_tools(&[call, Block::text("server_tool_use")]));
        assert!(!ran_provider_tools(&[]));
    }
}
