//! The records of a rollout.

use crate::json::Value;
use crate::openai_responses::is_item_kind;

/// What one record is.
#[derive(Clone, Copy)]
pub(super) enum Record<'a> {
    /// Opens the file: where the session runs and the system prompt.
    Meta(Value<'a>),
    /// The settings of a turn.
    TurnContext(Value<'a>),
    /// A part of what is sent.
    Item(Value<'a>),
    /// A compaction.
    Compacted(Value<'a>),
    /// The newest turns were taken back.
    RolledBack(u64),
    /// What a request took.
    Usage(Value<'a>),
    /// What the user typed, for the screen.
    Prompt,
    /// Anything else that is never sent.
    Side,
}

/// Whether a source is a rollout: a record of its own form, or, in very old ones, bare items behind a bare header.
///
/// The first records decide, not the first alone, which may be damaged.
pub(crate) fn is_rollout(values: &[Value<'_>]) -> bool {
    let first = || values.iter().take(50).copied();
    first().any(is_wrapped)
        || is_bare(values)
            // A header with nothing behind it is a session in which nothing was said.
            && (values.len() == 1
                || first().any(|value| value.has("record_type") || value.get("type").is_some_and(is_item_kind)))
}

/// Whether items stand by themselves: their header does too, or Codex's own marks stand between them.
pub(super) fn is_bare(values: &[Value<'_>]) -> bool {
    let first = || values.iter().take(50).copied();
    (values.first().copied().is_some_and(is_bare_header) || first().any(|value| value.has("record_type")))
        && !first().any(is_wrapped)
}

/// Whether a record is the header of a rollout in which items stand by themselves.
pub(super) fn is_bare_header(value: Value<'_>) -> bool {
    let ([id, timestamp, kind, role, instructions, git], _) =
        value.find(["id", "timestamp", "type", "role", "instructions", "git"]);
    id.is_some() && timestamp.is_some() && kind.or(role).is_none() && instructions.or(git).is_some()
}

fn is_wrapped(value: Value<'_>) -> bool {
    let ([kind, payload], _) = value.find(["type", "payload"]);
    payload.is_some_and(Value::is_object)
        && kind.is_some_and(|kind| {
            ["session_meta", "turn_context", "response_item", "event_msg", "compacted"]
                .iter()
                .any(|name| kind.is_text(name))
        })
}

/// What a record is. `bare` says whether items stand by themselves.
pub(super) fn record(value: Value<'_>, bare: bool) -> Record<'_> {
    let ([kind, payload], _) = value.pick(["type", "payload"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    let Some(payload) = payload.filter(|payload| payload.is_object()) else {
        return if bare && kind.is_some_and(is_item_kind) { Record::Item(value) } else { Record::Side };
    };
    if is("response_item") {
        Record::Item(payload)
    } else if is("event_msg") {
        event(payload)
    } else if is("compacted") {
        Record::Compacted(payload)
    } else if is("turn_context") {
        Record::TurnContext(payload)
    } else if is("session_meta") {
        Record::Meta(payload)
    } else {
        Record::Side
    }
}

fn event(payload: Value<'_>) -> Record<'_> {
    let ([kind, turns, info], _) = payload.pick(["type", "num_turns", "info"]);
    let is = |name: &str| kind.is_some_and(|kind| kind.is_text(name));
    if is("thread_rolled_back") {
        Record::RolledBack(turns.and_then(Value::number).unwrap_or(0))
    } else if is("token_count") {
        info.map_or(Record::Side, Record::Usage)
    } else if is("user_message") {
        Record::Prompt
    } else {
        Record::Side
    }
}
