//! One item into neutral words.

use epitome_loop::{Block, Message, Opaque, RawJson, SharedText, Thinking, ToolUse};

use super::blocks::{self, opaque_item};
use super::calls::{Calls, is_call_reference};
use super::{ITEM, NAMESPACE, SIGNATURE};
use crate::ReadError;
use crate::faults::Faults;
use crate::json::{Kind, Value, object, raw_json};
use crate::openai_chat::{CUSTOM_CALL, arguments};
use crate::openai_parts;

/// What an item is to a conversation.
pub(crate) enum Mapped {
    /// A part of what the model said in one go: the items of the model that follow each other are one message.
    Model(Vec<Block>),
    /// A message by itself.
    Message(Message),
    /// What the provider made of everything before it.
    Compaction(Opaque),
    /// Never sent.
    Side,
}

/// The name of compaction items, whichever of their names the source uses.
pub(super) const COMPACTION: &str = "compaction";

/// Whether a value is an item, by its keys.
pub(crate) fn is_item(value: Value<'_>) -> bool {
    let ([kind, role, content], _) = value.find(["type", "role", "content"]);
    match kind {
        Some(kind) => is_item_kind(kind) && (!kind.is_text("message") || role.is_some()),
        None => role.is_some() && content.is_some(),
    }
}

/// Whether this is the type of an item.
pub(crate) fn is_item_kind(kind: Value<'_>) -> bool {
    const KINDS: [&[u8]; 11] = [
        b"message",
        b"reasoning",
        b"item_reference",
        b"mcp_list_tools",
        b"mcp_approval_request",
        b"mcp_approval_response",
        b"compaction",
        b"compaction_summary",
        b"context_compaction",
        b"ghost_snapshot",
        b"tool_search_output",
    ];
    let kind = kind.inner();
    KINDS.contains(&kind) || kind.ends_with(b"_call") || kind.ends_with(b"_call_output")
}

/// Whether an item stands for everything before it. One without content is a mere mark.
pub(crate) fn is_compaction(item: Value<'_>) -> bool {
    // Hardly any item is one, and looking for the word is much faster than walking the fields.
    let names = [&b"compaction"[..], b"cmp_"];
    if !names.iter().any(|name| memchr::memmem::find(item.bytes(), name).is_some()) {
        return false;
    }
    let ([kind, sealed, id], _) = item.pick(["type", "encrypted_content", "id"]);
    let Some(kind) = kind else { return false };
    let is_kind =
        ["compaction", "compaction_summary", "context_compaction"].iter().any(|name| kind.is_text(name));
    is_kind && sealed.is_some_and(|sealed| !sealed.inner().is_empty())
        || kind.is_text("item_reference") && id.is_some_and(|id| id.inner().starts_with(b"cmp_"))
}

/// An item in neutral words. `index` is its place, for errors.
pub(crate) fn map(
    item: Value<'_>,
    index: usize,
    calls: &mut Calls,
    faults: &mut Faults,
) -> Result<Mapped, ReadError> {
    if !item.is_object() {
        return Err(ReadError::NotAMessage { message: index });
    }
    let [kind, role, content, id, call_id] = faults.pick(item, ["type", "role", "content", "id", "call_id"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    if is_compaction(item) {
        let raw = raw_json(item.bytes(), &mut faults.text);
        return Ok(Mapped::Compaction(Opaque { kind: COMPACTION.into(), raw }));
    }
    let Some(kind) = kind.filter(|kind| !kind.is_text("message")) else {
        let role = role.ok_or(ReadError::NotAMessage { message: index })?;
        return message(role, content, index, faults);
    };
    if is("reasoning") {
        return Ok(Mapped::Model(vec![Block::Thinking(reasoning(item, faults))]));
    }
    if is("function_call") || is("custom_tool_call") {
        return Ok(Mapped::Model(vec![Block::ToolUse(function_call(item, is("custom_tool_call"), faults))]));
    }
    if is("ghost_snapshot") || is("context_compaction") || is("compaction_trigger") {
        return Ok(Mapped::Side);
    }
    if is("agent_message") {
        return Ok(Mapped::Message(Message::User { blocks: blocks::content(content, faults).into() }));
    }
    if is("additional_tools") {
        let blocks = [opaque_item(item, kind, faults)].into();
        return Ok(Mapped::Message(Message::System { blocks }));
    }
    if is("mcp_approval_request") {
        let answer = ToolUse::new(
            faults.string(id),
            "mcp_approval",
            item.get("arguments").map(|value| arguments(value, faults)),
            Some((raw_json(item.bytes(), &mut faults.text), ITEM.into())),
        );
        return Ok(Mapped::Model(vec![Block::ToolUse(answer)]));
    }
    if is("mcp_approval_response") {
        return Ok(Mapped::Message(approval(item, kind, faults)));
    }
    let call_id = call_id.or_else(|| id.filter(|_| kind.inner().starts_with(b"local_shell_call")));
    if let Some(call_id) = call_id
        && kind.inner().ends_with(b"_output")
    {
        return Ok(Mapped::Message(result(item, kind, call_id, faults)));
    }
    let is_reference = is_call_reference(kind, Some(item).and_then(|item| item.get("id")));
    let referenced = if is_reference { calls.next_reference() } else { None };
    if let Some(id) = referenced {
        let state = raw_json(item.bytes(), &mut faults.text);
        let call = ToolUse::new(id, "item_reference", None, Some((state, ITEM.into())));
        return Ok(Mapped::Model(vec![Block::ToolUse(call)]));
    }
    if let Some(call_id) = call_id
        && kind.inner().ends_with(b"_call")
        && !RUN_BY_PROVIDER.contains(&kind.inner())
    {
        return Ok(Mapped::Model(vec![Block::ToolUse(client_call(item, kind, call_id, faults))]));
    }
    if !is_item_kind(kind) {
        faults.unknown_items += 1;
    }
    Ok(Mapped::Model(vec![opaque_item(item, kind, faults)]))
}

/// A user message whose whole content is a string that is no item.
pub(crate) fn string_message(text: Value<'_>, faults: &mut Faults) -> Message {
    let blocks: Vec<Block> = openai_parts::text(faults.string(Some(text))).into_iter().collect();
    Message::User { blocks: blocks.into() }
}

fn message(
    role: Value<'_>,
    content: Option<Value<'_>>,
    index: usize,
    faults: &mut Faults,
) -> Result<Mapped, ReadError> {
    let blocks = blocks::content(content, faults);
    Ok(if role.is_text("assistant") {
        Mapped::Model(blocks)
    } else if role.is_text("user") {
        Mapped::Message(Message::User { blocks: blocks.into() })
    } else if role.is_text("system") || role.is_text("developer") {
        Mapped::Message(Message::System { blocks: blocks.into() })
    } else {
        return Err(ReadError::UnknownRole { message: index });
    })
}

/// Reasoning: its readable summary, the sealed reasoning as the signature, and the other fields as state.
fn reasoning(item: Value<'_>, faults: &mut Faults) -> Thinking {
    let [summary, content, sealed] = faults.pick(item, ["summary", "content", "encrypted_content"]);
    let mut words = texts(summary, faults);
    let said = texts(content, faults);
    let spoken_in_content = words.is_empty() && !said.is_empty();
    if spoken_in_content {
        words = said;
    }
    let others: Vec<_> = item
        .fields()
        .filter(|(key, value)| {
            let is = |name: &str| *key == name.as_bytes();
            let taken = is("type") || is("summary") || is("encrypted_content");
            !taken && value.kind() != Kind::Null && !(is("content") && spoken_in_content)
        })
        .collect();
    let state = (!others.is_empty() || spoken_in_content).then(|| {
        let state = object(|out| {
            for (key, value) in &others {
                out.raw(&faults.text.decode(key), value.bytes());
            }
            // An empty summary says that the words stand in the content.
            if spoken_in_content {
                out.raw("summary", b"[]");
            }
        });
        (raw_json(&state, &mut faults.text), SharedText::from(SIGNATURE))
    });
    Thinking::new(words, faults.string(sealed), SIGNATURE, state)
}

/// The texts of a list of parts as one text.
fn texts(list: Option<Value<'_>>, faults: &mut Faults) -> String {
    let parts = list.into_iter().flat_map(Value::elements).map(|part| faults.string(part.get("text")));
    parts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn function_call(item: Value<'_>, is_custom: bool, faults: &mut Faults) -> ToolUse {
    let [id, call_id, name, input, text, namespace] =
        faults.pick(item, ["id", "call_id", "name", "arguments", "input", "namespace"]);
    let id = faults.string(call_id.or(id));
    let name = faults.string(name);
    if is_custom {
        let input = text.map(|text| raw_json(text.bytes(), &mut faults.text));
        return ToolUse::new(id, name, input, Some((RawJson::parse_or_quote("{}"), CUSTOM_CALL.into())));
    }
    let state = namespace
        .map(|namespace| (raw_json(namespace.bytes(), &mut faults.text), SharedText::from(NAMESPACE)));
    ToolUse::new(id, name, input.map(|input| arguments(input, faults)), state)
}

/// Kinds of calls that the provider carries out itself. All others that have the id of a call wait for an answer.
pub(super) const RUN_BY_PROVIDER: [&[u8]; 5] = [
    b"web_search_call",
    b"file_search_call",
    b"code_interpreter_call",
    b"mcp_call",
    b"image_generation_call",
];

/// A call that is neither of a function nor of a custom tool: what is to be done, and the item beside it.
fn client_call(item: Value<'_>, kind: Value<'_>, call_id: Value<'_>, faults: &mut Faults) -> ToolUse {
    let [action, actions, operation, input] =
        faults.pick(item, ["action", "actions", "operation", "arguments"]);
    let input = action.or(actions).or(operation).or(input);
    let input = input.map(|input| raw_json(input.bytes(), &mut faults.text));
    let kind = faults.string(Some(kind));
    let name = kind.strip_suffix("_call").unwrap_or(&kind).to_owned();
    let state = raw_json(item.bytes(), &mut faults.text);
    ToolUse::new(faults.string(Some(call_id)), name, input, Some((state, ITEM.into())))
}

/// The user's answer to a request for approval. One that refuses for a reason says it.
fn approval(item: Value<'_>, kind: Value<'_>, faults: &mut Faults) -> Message {
    let [request, approve, reason] = faults.pick(item, ["approval_request_id", "approve", "reason"]);
    let refused = approve.is_some_and(|approve| approve.bytes() == b"false");
    let reason = openai_parts::text(faults.string(reason)).filter(|_| refused);
    let block = reason.unwrap_or_else(|| opaque_item(item, kind, faults));
    Message::ToolResult {
        blocks: [block].into(),
        tool_use_id: faults.string(request).into(),
        is_error: refused,
    }
}

/// An answer to a call. Old rollouts of Codex have `{content, success}` as its output.
fn result(item: Value<'_>, kind: Value<'_>, call_id: Value<'_>, faults: &mut Faults) -> Message {
    let [output, status] = faults.pick(item, ["output", "status"]);
    let (content, success) = match output.filter(|output| output.has("content")) {
        Some(output) => {
            let [content, success] = faults.pick(output, ["content", "success"]);
            (content, success)
        }
        None => (output, None),
    };
    let failed = status.is_some_and(|status| status.is_text("failed"));
    let blocks = if output.is_none() && item.fields().count() > 2 && !kind.is_text("function_call_output") {
        // What it answers stands in fields of its own.
        vec![opaque_item(item, kind, faults)]
    } else {
        blocks::content(content, faults)
    };
    Message::ToolResult {
        blocks: blocks.into(),
        tool_use_id: faults.string(Some(call_id)).into(),
        is_error: failed || success.is_some_and(|success| success.bytes() == b"false"),
    }
}
