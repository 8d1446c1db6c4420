//! Anthropic messages into neutral ones.

use epitome_loop::{Block, Message, TokenCount, Usage, ran_provider_tools};

use super::blocks;
use crate::assembly::{Assembly, as_it_stands};
use crate::container::{SystemField, whole_field};
use crate::conversation::Conversation;
use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::model::model_key;
use crate::session::Original;
use crate::{Note, ReadError};

/// Reads a conversation into the assembly and says where its system prompt stands.
pub(crate) fn read(
    conversation: &Conversation<'_>,
    into: &mut Assembly,
) -> Result<Option<SystemField>, ReadError> {
    let mut system_field = None;
    if let Some(object) = conversation.object {
        let [model, tools, system] = into.faults.pick(object, ["model", "tools", "system"]);
        let name = into.faults.string(model);
        into.model = model_key(&name, "anthropic");
        for tool in tools.into_iter().flat_map(Value::elements) {
            let tool = raw_json(tool.bytes(), &mut into.faults.text);
            into.tools.push(tool);
        }
        // Faults beside the messages make none of them differ.
        into.faults = Faults::default();
        if let (Some(value), Some(field)) = (system, whole_field(object, "system")) {
            let blocks = blocks::content(Some(value), &mut into.faults);
            if !blocks.is_empty() {
                system_field = Some(SystemField { value: value.range(), field });
                into.close(as_it_stands(value.range()), vec![Message::System { blocks: blocks.into() }]);
            }
        }
    }
    let compaction = conversation.messages.iter().rposition(|message| newest_compaction(*message).is_some());
    into.note_count(compaction.unwrap_or(0) as u64, |count| Note::BeforeCompaction { count });
    for (index, element) in conversation.messages.iter().enumerate().skip(compaction.unwrap_or(0)) {
        let messages = if compaction == Some(index) {
            into.derived_prefix = 1;
            compacted(*element, &mut into.faults)
        } else {
            messages(*element, index, &mut into.faults)?
        };
        into.close(as_it_stands(element.range()), messages);
    }
    Ok(system_field)
}

/// Takes a reply, in the source or decoded out of a string in it, as the last message.
pub(crate) fn reply_message(
    reply: Value<'_>,
    is_in_source: bool,
    into: &mut Assembly,
) -> Result<(), ReadError> {
    let ([content, usage], _) = reply.pick(["content", "usage"]);
    let Some(content) = content.filter(|content| content.is_array()) else {
        into.note(Note::ReplyNotRead);
        return Ok(());
    };
    let blocks: Vec<Block> = blocks::content(Some(content), &mut into.faults);
    let usage = usage.and_then(|usage| self::usage(usage, ran_provider_tools(&blocks)));
    let index = into.len();
    // A reply has keys that no request may have; its content goes back as it stands.
    let message = Message::Assistant { blocks: blocks.into(), usage };
    let original =
        Original { range: content.range(), messages: 0, wrap: ("{\"role\":\"assistant\",\"content\":", "}") };
    if is_in_source {
        into.close(original, vec![message]);
    } else {
        into.close_without_original(message);
    }
    if let Some(usage) = usage {
        into.reported = Some((index, usage));
    }
    Ok(())
}

/// A user message becomes one message for each tool result and one for each stretch of other blocks.
fn messages(element: Value<'_>, index: usize, faults: &mut Faults) -> Result<Vec<Message>, ReadError> {
    if !element.is_object() {
        return Err(ReadError::NotAMessage { message: index });
    }
    let [role, content] = faults.pick(element, ["role", "content"]);
    let role = role.ok_or(ReadError::NotAMessage { message: index })?;
    if role.is_text("assistant") {
        let blocks = blocks::content(content, faults).into();
        return Ok(vec![Message::Assistant { blocks, usage: None }]);
    }
    if role.is_text("system") {
        return Ok(vec![Message::System { blocks: blocks::content(content, faults).into() }]);
    }
    if !role.is_text("user") {
        return Err(ReadError::UnknownRole { message: index });
    }
    Ok(user_messages(content, faults))
}

/// The messages that the content of a user message becomes: one for each tool result, and one for each stretch
/// of other blocks.
pub(crate) fn user_messages(content: Option<Value<'_>>, faults: &mut Faults) -> Vec<Message> {
    let Some(list) = content.filter(|content| content.kind() == Kind::Array) else {
        return vec![Message::User { blocks: blocks::content(content, faults).into() }];
    };
    let mut messages = Vec::new();
    let mut others = Vec::new();
    for element in list.elements() {
        if element.get("type").is_some_and(|kind| kind.is_text("tool_result")) {
            flush(&mut others, &mut messages);
            messages.push(tool_result(element, faults));
        } else {
            others.extend(blocks::block(element, faults));
        }
    }
    if messages.is_empty() || !others.is_empty() {
        messages.push(Message::User { blocks: others.into() });
    }
    messages
}

fn flush(others: &mut Vec<Block>, messages: &mut Vec<Message>) {
    if !others.is_empty() {
        messages.push(Message::User { blocks: std::mem::take(others).into() });
    }
}

fn tool_result(block: Value<'_>, faults: &mut Faults) -> Message {
    let [id, content, is_error] = faults.pick(block, ["tool_use_id", "content", "is_error"]);
    Message::ToolResult {
        blocks: blocks::content(content, faults).into(),
        tool_use_id: faults.string(id).into(),
        is_error: is_error.is_some_and(Value::is_true),
    }
}

/// The newest block of a message that holds a compaction, and how many blocks stand up to it.
fn newest_compaction(message: Value<'_>) -> Option<(usize, Value<'_>)> {
    // Hardly any message holds one, and looking for the word is much faster than walking the blocks.
    memchr::memmem::find(message.bytes(), b"\"compaction\"")?;
    message.get("role").filter(|role| role.is_text("assistant"))?;
    let is_compaction = |block: &Value<'_>| {
        block.get("type").is_some_and(|kind| kind.is_text("compaction"))
            // A compaction that failed has no content and stands for nothing.
            && block
                .get("content")
                .is_some_and(|content| content.kind() == Kind::String && !content.inner().is_empty())
    };
    let content = message.get("content")?;
    content.elements().enumerate().filter(|(_, block)| is_compaction(block)).last()
}

/// A message with a compaction: the provider ignores everything before that block, so what is sent is its
/// summary, as a message of the user, and the model's words behind it.
fn compacted(message: Value<'_>, faults: &mut Faults) -> Vec<Message> {
    let Some((at, compaction)) = newest_compaction(message) else { return Vec::new() };
    let summary = Message::user(faults.string(compaction.get("content")));
    let content = message.get("content").into_iter().flat_map(Value::elements);
    let blocks: Vec<Block> = content.skip(at + 1).filter_map(|block| blocks::block(block, faults)).collect();
    let own = (!blocks.is_empty()).then(|| Message::Assistant { blocks: blocks.into(), usage: None });
    std::iter::once(summary).chain(own).collect()
}

/// What one request took. Where the provider ran tools in a loop, the numbers are sums over that loop and
/// say nothing about the context, unless each iteration is listed: then the last one that answered is the size. Those
/// of a compaction or of an adviser are about another context. `says_loop` is whether the answer shows it.
pub(crate) fn usage(usage: Value<'_>, says_loop: bool) -> Option<Usage> {
    let answered = |iteration: &Value<'_>| {
        iteration.get("type").is_none_or(|kind| kind.kind() == Kind::Null || kind.is_text("message"))
    };
    let iterations = || usage.get("iterations").into_iter().flat_map(Value::elements);
    let last = iterations().filter(answered).last();
    if last.is_none() && iterations().next().is_some() {
        return None;
    }
    let counts_loop = usage
        .get("server_tool_use")
        .is_some_and(|used| used.fields().any(|(_, count)| count.number().is_some_and(|count| count > 0)));
    if last.is_none() && (says_loop || counts_loop) {
        return None;
    }
    let ([input, output, read, written], _) = last.unwrap_or(usage).pick([
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ]);
    let number = |value: Option<Value<'_>>| TokenCount(value.and_then(Value::number).unwrap_or(0));
    Some(Usage {
        input: TokenCount(input?.number()?),
        output: number(output),
        cache_read: number(read),
        cache_creation: number(written),
        reasoning: TokenCount::ZERO,
    })
}
