//! Chat messages into neutral ones.

use epitome_loop::{Block, Message, RawJson, SharedText, Thinking, TokenCount, ToolUse, Usage};

use super::{CUSTOM_CALL, blocks};
use crate::assembly::{Assembly, as_it_stands};
use crate::conversation::Conversation;
use crate::faults::Faults;
use crate::json::{Kind, Value, raw_json};
use crate::model::model_key;
use crate::{Note, ReadError};

/// Reads a conversation into the assembly.
pub(crate) fn read(conversation: &Conversation<'_>, into: &mut Assembly) -> Result<(), ReadError> {
    if let Some(object) = conversation.object {
        let [model, tools, functions] = into.faults.pick(object, ["model", "tools", "functions"]);
        let name = into.faults.string(model);
        into.model = model_key(&name, "openai");
        for tool in tools.or(functions).into_iter().flat_map(Value::elements) {
            let tool = raw_json(tool.bytes(), &mut into.faults.text);
            into.tools.push(tool);
        }
        // Faults beside the messages make none of them differ.
        into.faults = Faults::default();
    }
    for (index, element) in conversation.messages.iter().enumerate() {
        let message = message(*element, index, &mut into.faults)?;
        into.close(as_it_stands(element.range()), vec![message]);
    }
    Ok(())
}

/// Takes a reply, which is a chat completion, as the last message.
pub(crate) fn reply_message(reply: Value<'_>, into: &mut Assembly) -> Result<(), ReadError> {
    let index = into.len();
    let message = reply.get("choices").and_then(|choices| choices.elements().next()?.get("message"));
    let Some(message) = message.filter(|message| message.is_object()) else {
        into.note(Note::ReplyNotRead);
        return Ok(());
    };
    let usage = reply.get("usage").and_then(usage);
    let message = match self::message(message, index, &mut into.faults)? {
        Message::Assistant { blocks, .. } => Message::Assistant { blocks, usage },
        _ => return Err(ReadError::NotAMessage { message: index }),
    };
    into.close_without_original(message);
    if let Some(usage) = usage {
        into.reported = Some((index, usage));
    }
    Ok(())
}

fn message(element: Value<'_>, index: usize, faults: &mut Faults) -> Result<Message, ReadError> {
    if !element.is_object() {
        return Err(ReadError::NotAMessage { message: index });
    }
    let [role, content, tool_call_id, tool_call_ids, name] =
        faults.pick(element, ["role", "content", "tool_call_id", "tool_call_ids", "name"]);
    let role = role.ok_or(ReadError::NotAMessage { message: index })?;
    let mut blocks = Vec::new();
    if role.is_text("assistant") {
        return Ok(assistant(element, content, faults));
    }
    blocks.extend(blocks::content(content, faults));
    let blocks = blocks.into();
    if role.is_text("user") {
        Ok(Message::User { blocks })
    } else if role.is_text("system") || role.is_text("developer") {
        Ok(Message::System { blocks })
    } else if role.is_text("tool") || role.is_text("function") {
        // Logs of SWE-agent name the call in a list; the old form names the function.
        let listed = tool_call_ids.and_then(|ids| ids.elements().next());
        let id = tool_call_id.or(listed).or(name);
        Ok(Message::ToolResult { blocks, tool_use_id: faults.string(id).into(), is_error: false })
    } else {
        Err(ReadError::UnknownRole { message: index })
    }
}

fn assistant(element: Value<'_>, content: Option<Value<'_>>, faults: &mut Faults) -> Message {
    let [tool_calls, function_call, refusal, audio, reasoning_content, reasoning, thinking] = faults.pick(
        element,
        [
            "tool_calls",
            "function_call",
            "refusal",
            "audio",
            "reasoning_content",
            "reasoning",
            "thinking_blocks",
        ],
    );
    let mut blocks = blocks::thinking_blocks(thinking, faults);
    if blocks.is_empty() {
        let spoken = faults.string(reasoning_content.or(reasoning));
        if !spoken.is_empty() {
            blocks.push(Block::Thinking(Thinking { thinking: spoken.into(), ..Thinking::default() }));
        }
    }
    blocks.extend(blocks::content(content, faults));
    let refusal = faults.string(refusal);
    if !refusal.is_empty() {
        blocks.push(Block::Refusal { text: refusal.into() });
    }
    if let Some(audio) = audio.filter(|audio| audio.is_object()) {
        let raw = raw_json(audio.bytes(), &mut faults.text);
        blocks.push(Block::Opaque(epitome_loop::Opaque { kind: "audio".into(), raw }));
    }
    for call in tool_calls.into_iter().flat_map(Value::elements) {
        blocks.push(tool_call(call, faults));
    }
    if let Some(call) = function_call {
        // The old form has no ids: the function's name is what the result refers to.
        let [name, arguments] = faults.pick(call, ["name", "arguments"]);
        let name = SharedText::from(faults.string(name));
        let input = arguments.map(|arguments| self::arguments(arguments, faults));
        blocks.push(Block::ToolUse(ToolUse::new(name.clone(), name, input, None)));
    }
    Message::Assistant { blocks: blocks.into(), usage: None }
}

fn tool_call(call: Value<'_>, faults: &mut Faults) -> Block {
    let [id, function, custom] = faults.pick(call, ["id", "function", "custom"]);
    let id = faults.string(id);
    if let Some(custom) = custom {
        let [name, input] = faults.pick(custom, ["name", "input"]);
        let input = input.map(|input| raw_json(input.bytes(), &mut faults.text));
        let state = RawJson::parse_or_quote("{}");
        return Block::ToolUse(ToolUse::new(
            id,
            faults.string(name),
            input,
            Some((state, CUSTOM_CALL.into())),
        ));
    }
    let [name, arguments] = function.map_or([None, None], |call| faults.pick(call, ["name", "arguments"]));
    let input = arguments.map(|arguments| self::arguments(arguments, faults));
    Block::ToolUse(ToolUse::new(id, faults.string(name), input, None))
}

/// Arguments are a string that need not be JSON. A string that is itself a JSON string is quoted once more,
/// so that writing the text of a JSON string, and anything else as it stands, gives back the same string.
pub(crate) fn arguments(arguments: Value<'_>, faults: &mut Faults) -> RawJson {
    if arguments.kind() != Kind::String {
        return raw_json(arguments.bytes(), &mut faults.text);
    }
    let text = faults.string(Some(arguments));
    if text.trim_start().starts_with('"') {
        return RawJson::parse_or_quote(&serde_json::Value::String(text).to_string());
    }
    RawJson::parse_or_quote(&text)
}

fn usage(usage: Value<'_>) -> Option<Usage> {
    let ([prompt, completion, prompt_details, completion_details], _) = usage.pick([
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    ]);
    let number = |value: Option<Value<'_>>| value.and_then(Value::number).unwrap_or(0);
    let prompt = prompt?.number()?;
    let cached = number(prompt_details.and_then(|details| details.get("cached_tokens"))).min(prompt);
    Some(Usage {
        input: TokenCount(prompt - cached),
        output: TokenCount(number(completion)),
        cache_read: TokenCount(cached),
        cache_creation: TokenCount::ZERO,
        reasoning: TokenCount(number(completion_details.and_then(|details| details.get("reasoning_tokens")))),
    })
}
