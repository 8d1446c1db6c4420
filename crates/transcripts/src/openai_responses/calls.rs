//! Which items answer which, and in which form a call is answered.

use std::collections::{HashMap, HashSet, VecDeque};

use epitome_loop::Message;

use super::ITEM;
use crate::faults::Faults;
use crate::json::{Source, Value};
use crate::openai_chat::CUSTOM_CALL;

/// How the items of one list answer each other.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// For each reference to a call that the provider keeps, in order, the id that its result names.
    references: VecDeque<Option<String>>,
}

impl Calls {
    /// Looks through the items in their order. They must be mapped in the same order.
    ///
    /// A reference names an item, not a call, so the results behind it that answer no call of the list are
    /// taken for its result, in order.
    pub(crate) fn of<'a>(items: impl Iterator<Item = Value<'a>>) -> Self {
        let mut calls = Self::default();
        let mut open: VecDeque<usize> = VecDeque::new();
        let mut known: HashSet<&[u8]> = HashSet::new();
        for item in items {
            let ([kind, call_id, id], _) = item.pick(["type", "call_id", "id"]);
            let Some(kind) = kind else { continue };
            if is_call_reference(kind, id) {
                open.push_back(calls.references.len());
                calls.references.push_back(None);
            }
            let Some(call_id) = call_id else { continue };
            if !kind.inner().ends_with(b"_output") {
                known.insert(call_id.inner());
                continue;
            }
            if !known.contains(call_id.inner())
                && let Some(reference) = open.pop_front().and_then(|at| calls.references.get_mut(at))
            {
                known.insert(call_id.inner());
                *reference = Some(Faults::default().string(Some(call_id)));
            }
        }
        calls
    }

    /// The id of the call that the next reference stands for, where a result tells it.
    pub(super) fn next_reference(&mut self) -> Option<String> {
        self.references.pop_front().flatten()
    }
}

/// Whether an item only refers to a call that the provider keeps. The provider's ids tell what they name.
pub(super) fn is_call_reference(kind: Value<'_>, id: Option<Value<'_>>) -> bool {
    let names_call = |id: Value<'_>| id.inner().starts_with(b"fc_") || id.inner().starts_with(b"ctc_");
    kind.is_text("item_reference") && id.is_some_and(names_call)
}

/// The kinds of the calls in a conversation, by their ids: each kind is answered by an item of its own form.
#[derive(Debug, Default)]
pub(crate) struct CallKinds(HashMap<String, String>);

impl CallKinds {
    /// The kinds of the calls in these messages; functions are left out.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let mut kinds = HashMap::new();
        for call in messages.iter().flat_map(Message::tool_calls) {
            let kind = if call.provider_state_format == CUSTOM_CALL {
                Some("custom_tool_call".to_owned())
            } else if call.provider_state_format == ITEM {
                call.provider_state.as_ref().map(|item| {
                    let source = Source::small(item.as_str().as_bytes());
                    Faults::default().string(source.whole().get("type"))
                })
            } else {
                None
            };
            match kind {
                Some(kind) => kinds.insert(call.id.as_str().to_owned(), kind),
                None => kinds.remove(call.id.as_str()),
            };
        }
        Self(kinds)
    }

    /// With calls of one kind taken for calls of functions, where they are answered like them.
    pub(crate) fn without(mut self, kind: &str) -> Self {
        self.0.retain(|_, known| known != kind);
        self
    }

    /// The type of the item that makes the call, `function_call` where nothing else is known.
    pub(super) fn of_call(&self, id: &str) -> &str {
        self.0.get(id).map_or("function_call", String::as_str)
    }
}
