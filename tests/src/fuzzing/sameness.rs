//! When two messages say the same, as far as a transcript can hold it.

use epitome_loop::{Block, Message, RawJson, ToolResult, ToolUse};

/// Whether messages say the same. Left out is what a provider reported beside a message, and in JSON that is
/// kept as it stood: white space around it, and halves of surrogate pairs, which are not sent.
pub(super) fn say_the_same(some: &[Message], others: &[Message]) -> bool {
    some.len() == others.len()
        && some.iter().zip(others).all(|pair| match pair {
            (Message::User { blocks: some }, Message::User { blocks: others })
            | (Message::System { blocks: some }, Message::System { blocks: others })
            | (Message::Assistant { blocks: some, .. }, Message::Assistant { blocks: others, .. }) => {
                same_blocks(some, others)
            }
            (
                Message::ToolResult { blocks: some, tool_use_id: id, is_error: failed },
                Message::ToolResult { blocks: others, tool_use_id, is_error },
            ) => id == tool_use_id && failed == is_error && same_blocks(some, others),
            _ => false,
        })
}

fn same_blocks(some: &[Block], others: &[Block]) -> bool {
    some.len() == others.len() && some.iter().zip(others).all(|(one, other)| same_block(one, other))
}

fn same_block(one: &Block, other: &Block) -> bool {
    match (one, other) {
        (Block::ToolUse(one), Block::ToolUse(other)) => {
            let ToolUse { id, name, input, provider_state, provider_state_format } = one;
            (id, name, provider_state_format) == (&other.id, &other.name, &other.provider_state_format)
                && same_json(input.as_ref(), other.input.as_ref())
                && same_json(provider_state.as_ref(), other.provider_state.as_ref())
        }
        (Block::ToolResult(one), Block::ToolResult(other)) => {
            let ToolResult { tool_use_id, content, is_error } = one;
            (tool_use_id, is_error) == (&other.tool_use_id, &other.is_error)
                && same_blocks(content, &other.content)
        }
        (Block::Opaque(one), Block::Opaque(other)) => {
            one.kind == other.kind && same_json(Some(&one.raw), Some(&other.raw))
        }
        _ => one == other,
    }
}

fn same_json(one: Option<&RawJson>, other: Option<&RawJson>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let halves = |json: &RawJson| json.as_str().contains("\\ud") || json.as_str().contains("\\uD");
            one.as_str().trim() == other.as_str().trim() || halves(one) || halves(other)
        }
        (one, other) => one == other,
    }
}
