//! Finds the lists of items in a source: one list, one request, or a log of requests and replies.

use std::collections::HashMap;
use std::ops::Range;

use super::items::{is_compaction, is_item};
use crate::container::List;
use crate::conversation::REPLY_FIELD;
use crate::json::{Kind, Value};

/// A list of items with what belongs to it.
pub(super) struct Conversation<'a> {
    /// The request that holds the items, when there is one.
    pub(super) object: Option<Value<'a>>,
    /// The items, those of the requests that it continues included.
    pub(super) items: Vec<Value<'a>>,
    /// Where those of them begin, ascending, that are the whole text of a user message: a string as input.
    pub(super) texts: Vec<usize>,
    /// The reply to the request, which belongs behind the items.
    pub(super) reply: Option<Value<'a>>,
    /// How many requests in the log belong to this conversation.
    pub(super) requests: u64,
    /// Whether it continues a conversation that is not in the source.
    pub(super) is_delta: bool,
    /// The id of the reply that it continues, where that reply is in the source.
    pub(super) continues: Option<Value<'a>>,
    /// How it is written again.
    pub(super) list: List,
    /// The id of its newest reply, as it stands.
    reply_id: Option<&'a [u8]>,
}

const REQUEST_FIELDS: [&str; 3] = ["request", "request_params", "body"];

/// Whether these values are requests of the Responses API, or records of them. The first ones decide, not the first
/// alone, which may be damaged.
pub(crate) fn is_log(values: &[Value<'_>]) -> bool {
    let is_request = |record: Value<'_>| {
        request_of(record).is_some_and(|request| request.has("input") && !request.has("messages"))
    };
    match values {
        [one] if one.is_array() => one.elements().take(50).any(is_request),
        many => many.iter().take(50).any(|value| is_request(*value)),
    }
}

/// Whether these values are items, or a list of items, that no other format has.
pub(crate) fn holds_items(values: &[Value<'_>]) -> bool {
    let mut own = false;
    let mut look = |value: Value<'_>| {
        let ([kind, stop], _) = value.find(["type", "stop_reason"]);
        own |= kind.is_some();
        // Messages that Anthropic replied have a type too.
        is_item(value) && stop.is_none()
    };
    let all = match values {
        [one] if one.is_array() => one.elements().all(&mut look),
        many => many.iter().all(|value| look(*value)),
    };
    all && own
}

/// The conversations of a source with these values. `whole` is the source without its byte-order mark.
pub(super) fn conversations<'a>(values: &[Value<'a>], whole: Range<usize>) -> Vec<Conversation<'a>> {
    match values {
        [one] if one.is_array() => {
            let Some(first) = one.elements().next() else { return Vec::new() };
            if !is_item(first) && (first.is_array() || request_of(first).is_some()) {
                return runs(one.elements());
            }
            let is_list = one.elements().any(is_item);
            is_list.then(|| Conversation::of_array(*one, whole)).into_iter().collect()
        }
        [one] => match request_of(*one) {
            Some(request) if request.range() == one.range() => {
                let mut alone = Conversation::of_request(request, whole);
                if let Some(reply) = reply_of(*one) {
                    alone.take_reply(reply);
                }
                vec![alone]
            }
            Some(_) => runs(values.iter().copied()),
            None if is_item(*one) => vec![Conversation::of_lines(values, whole)],
            None => Vec::new(),
        },
        many if many.iter().all(|value| is_item(*value)) => vec![Conversation::of_lines(many, whole)],
        many => runs(many.iter().copied()),
    }
}

impl<'a> Conversation<'a> {
    fn new(items: Vec<Value<'a>>, list: List) -> Self {
        Self {
            object: None,
            items,
            texts: Vec::new(),
            reply: None,
            requests: 1,
            is_delta: false,
            continues: None,
            list,
            reply_id: None,
        }
    }

    fn of_array(array: Value<'a>, document: Range<usize>) -> Self {
        let items: Vec<Value<'a>> = array.elements().collect();
        let list = List::array(array, &items, document);
        Self::new(items, list)
    }

    fn of_lines(values: &[Value<'a>], document: Range<usize>) -> Self {
        Self::new(values.to_vec(), List::lines(values, document))
    }

    /// A request. Its input may be a string, which is one user message.
    fn of_request(request: Value<'a>, document: Range<usize>) -> Self {
        let mut conversation = match request.get("input").or_else(|| request.get("messages")) {
            Some(input) if input.is_array() => Self::of_array(input, document),
            Some(text) => {
                let list = List { document, inside: text.range(), in_array: true, ..List::default() };
                let mut conversation = Self::new(vec![text], list);
                conversation.texts.push(text.range().start);
                conversation
            }
            // Without input there is no request to write again, but a list.
            None => {
                let nowhere = document.start..document.start;
                let list =
                    List { document: nowhere.clone(), inside: nowhere, in_array: true, ..List::default() };
                Self::new(Vec::new(), list)
            }
        };
        conversation.object = Some(request).filter(|_| !conversation.list.document.is_empty());
        conversation.is_delta = previous(request).is_some()
            || request
                .get("conversation")
                .is_some_and(|kept| matches!(kept.kind(), Kind::String | Kind::Object));
        conversation
    }

    /// The items as the next request would hold them.
    fn next_items(&self) -> impl Iterator<Item = Value<'a>> {
        let output = self.reply.and_then(|reply| reply.get("output"));
        self.items.iter().copied().chain(output.into_iter().flat_map(Value::elements))
    }

    /// Whether it repeats what another conversation held: its opening, or what became of it when the provider
    /// compacted it.
    fn repeats(&self, older: &Self) -> bool {
        let mut openings = older.items.iter().zip(&self.items).take(2).peekable();
        let same_opening = openings.peek().is_some() && openings.all(|(old, new)| old.bytes() == new.bytes());
        same_opening || {
            let newest = self.items.iter().rev().find(|item| is_compaction(**item));
            newest.is_some_and(|newest| older.next_items().any(|item| is_same_compaction(item, *newest)))
        }
    }
}

/// Clients write an item with its keys in another order, so it is known by what it seals.
fn is_same_compaction(one: Value<'_>, other: Value<'_>) -> bool {
    is_compaction(one)
        && match (one.get("encrypted_content"), other.get("encrypted_content")) {
            (Some(one), Some(other)) => one.inner() == other.inner(),
            _ => false,
        }
}

/// The conversations of the records of a log. Requests in a row that repeat a conversation, or continue it by the
/// id of its newest reply, belong to it; a list of items is one by itself.
fn runs<'a>(records: impl Iterator<Item = Value<'a>>) -> Vec<Conversation<'a>> {
    let mut runs: Vec<Conversation<'a>> = Vec::new();
    let mut by_reply: HashMap<&[u8], usize> = HashMap::new();
    for record in records {
        if record.is_array() {
            if record.elements().next().is_some_and(is_item) {
                runs.push(Conversation::of_array(record, record.range()));
            }
            continue;
        }
        let reply = reply_of(record);
        let Some(request) = request_of(record) else {
            // Some logs write the reply as a record of its own.
            let is_reply = record.get("output").is_some_and(Value::is_array) && !is_item(record);
            let reply = reply.or_else(|| is_reply.then_some(record));
            if let (Some(place), Some(reply)) = (runs.len().checked_sub(1), reply)
                && let Some(run) = runs.get_mut(place)
            {
                run.take_reply(reply);
                by_reply.extend(run.reply_id.map(|id| (id, place)));
            }
            continue;
        };
        let mut next = Conversation::of_request(request, request.range());
        let id = previous(request);
        let continued = id.and_then(|id| by_reply.get(id.inner())).copied().filter(|&at| {
            // What a conversation was before its newest reply is not known any more.
            runs.get(at).is_some_and(|run| run.reply_id == id.map(Value::inner))
        });
        let mut at = continued;
        if let Some(older) = continued.and_then(|at| runs.get_mut(at)) {
            next.continue_from(older, id);
        } else if runs.last().is_some_and(|last| next.repeats(last)) {
            at = runs.len().checked_sub(1);
        }
        if let Some(reply) = reply {
            next.take_reply(reply);
        }
        let place = at.unwrap_or(runs.len());
        by_reply.extend(next.reply_id.map(|id| (id, place)));
        match runs.get_mut(place) {
            Some(run) => {
                next.requests = run.requests + 1;
                *run = next;
            }
            None => runs.push(next),
        }
    }
    runs
}

impl<'a> Conversation<'a> {
    /// Puts what a conversation held, its reply included, before the items that are new.
    fn continue_from(&mut self, older: &mut Self, id: Option<Value<'a>>) {
        let new = std::mem::take(&mut self.items);
        let output = older.reply.and_then(|reply| reply.get("output"));
        self.items = std::mem::take(&mut older.items);
        self.texts.append(&mut older.texts);
        self.items.extend(output.into_iter().flat_map(Value::elements));
        self.items.extend(new);
        self.is_delta = older.is_delta;
        self.continues = id.filter(|_| self.object.is_some());
    }

    /// Takes a reply. One of the compact endpoint takes the place of everything before it.
    fn take_reply(&mut self, reply: Value<'a>) {
        let ([object, output, id], _) = reply.pick(["object", "output", "id"]);
        let compacted = output.filter(|output| {
            output.is_array() && object.is_some_and(|object| object.is_text("response.compaction"))
        });
        match compacted {
            Some(output) => {
                let requests = self.requests;
                *self = Self::of_array(output, output.range());
                self.requests = requests;
            }
            None => self.reply = Some(reply),
        }
        self.reply_id = id.map(Value::inner);
    }
}

/// The object in a record that is a request: one with input, or one that only continues.
fn request_of(record: Value<'_>) -> Option<Value<'_>> {
    let (inner, _) = record.pick(REQUEST_FIELDS);
    std::iter::once(record).chain(inner.into_iter().flatten()).find(|object| {
        let ([input, messages, previous, output], _) =
            object.pick(["input", "messages", "previous_response_id", "output"]);
        let holds = |list: Value<'_>| list.is_array() || list.kind() == Kind::String;
        // A reply repeats the id of the one it continues.
        input.is_some_and(holds)
            || messages.is_some_and(Value::is_array)
            || previous.is_some() && output.is_none()
    })
}

fn previous(request: Value<'_>) -> Option<Value<'_>> {
    request.get("previous_response_id")
}

fn reply_of(record: Value<'_>) -> Option<Value<'_>> {
    let reply = record.get(REPLY_FIELD)?;
    matches!(reply.kind(), Kind::Object | Kind::String).then_some(reply)
}
