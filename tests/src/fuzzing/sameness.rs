//! When messages are the same, and when they say the same.

use epitome_loop::{Block, Message, RawJson, Role, ToolResult, ToolUse};

/// What a message says, whatever the format makes of everything else: who speaks, the words, and the calls with
/// their arguments.
#[derive(PartialEq)]
struct Said<'a> {
    role: Role,
    answers: Option<&'a str>,
    texts: Vec<&'a str>,
    refusal: String,
    calls: Vec<(&'a str, &'a str, Option<&'a RawJson>)>,
}

impl<'a> Said<'a> {
    fn of(message: &'a Message) -> Self {
        let answers = match message {
            Message::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
            _ => None,
        };
        let texts = message.blocks().iter().filter_map(|block| match block {
            Block::Text { text } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let refusals = message.blocks().iter().filter_map(|block| match block {
            Block::Refusal { text } => Some(text.as_str()),
            _ => None,
        });
        let calls =
            message.tool_calls().map(|call| (call.id.as_str(), call.name.as_str(), call.input.as_ref()));
        Self {
            role: message.role(),
            answers,
            texts: texts.collect(),
            refusal: refusals.collect::<Vec<_>>().join("\n"),
            calls: calls.collect(),
        }
    }

    fn is_said_by(&self, other: &Self, by_id: bool) -> bool {
        let Self { role, answers, texts, refusal, calls } = self;
        let same_calls = calls.len() == other.calls.len()
            && calls.iter().zip(&other.calls).all(|((id, name, input), (other_id, other_name, other))| {
                // A format that must have arguments is given empty ones.
                (!by_id || id == other_id)
                    && name == other_name
                    && (input.is_none()
                        || other.is_none()
                        || same_json(*input, *other)
                        || bare(*input) == bare(*other))
            });
        (role, texts, refusal) == (&other.role, &other.texts, &other.refusal)
            && (!by_id || *answers == other.answers)
            && same_calls
    }
}

/// Whether messages say the same; `by_id` is false where calls may have no ids of their own.
pub(super) fn say_the_same(some: &[Message], others: &[Message], by_id: bool) -> bool {
    some.len() == others.len()
        && some.iter().zip(others).all(|(one, other)| Said::of(one).is_said_by(&Said::of(other), by_id))
}

/// Whether messages are the same. Left out is what a provider reported beside a message, and in JSON that is
/// kept as it stood: white space around it, and halves of surrogate pairs, which are not sent.
pub(super) fn are_the_same(some: &[Message], others: &[Message]) -> bool {
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

/// JSON without white space: a record over several lines may have become one line.
fn bare(json: Option<&RawJson>) -> Option<String> {
    json.map(|json| json.as_str().split_ascii_whitespace().collect())
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
