//! Finds the lists of messages in a source: one array, one request, or a log of many.

use std::ops::Range;

use crate::container::List;
use crate::json::{Kind, Value};

/// A list of messages with what belongs to it.
pub(crate) struct Conversation<'a> {
    /// The object that holds the messages and their tools, when there is one.
    pub(crate) object: Option<Value<'a>>,
    /// The messages.
    pub(crate) messages: Vec<Value<'a>>,
    /// The reply to the request, which belongs behind the messages.
    pub(crate) reply: Option<Value<'a>>,
    /// How many requests in the log belong to this conversation.
    pub(crate) requests: u64,
    /// How it is written again.
    pub(crate) list: List,
}

/// The conversations of a source with these values; none when it holds no list of messages.
///
/// `whole` is the source without its byte-order mark.
pub(crate) fn conversations<'a>(values: &[Value<'a>], whole: Range<usize>) -> Vec<Conversation<'a>> {
    match values {
        [one] if one.is_array() => in_array(*one, whole),
        [one] => match request_of(*one) {
            Some((request, array)) => {
                // A request, or a log record that is one itself, is written as the whole source; a request
                // inside of a record is written alone.
                let document = if request.range() == one.range() { whole } else { request.range() };
                vec![Conversation::of_request(request, array, document, reply_of(*one))]
            }
            None if is_message(*one) => vec![Conversation::of_lines(values, whole)],
            None => Vec::new(),
        },
        many if many.iter().all(|value| is_message(*value)) => vec![Conversation::of_lines(many, whole)],
        many => runs(many.iter().copied()),
    }
}

impl<'a> Conversation<'a> {
    fn of_array(array: Value<'a>, document: Range<usize>) -> Self {
        let messages: Vec<Value<'a>> = array.elements().collect();
        let list = List::array(array, &messages, document);
        Self { object: None, messages, reply: None, requests: 1, list }
    }

    fn of_request(
        request: Value<'a>,
        array: Value<'a>,
        document: Range<usize>,
        reply: Option<Value<'a>>,
    ) -> Self {
        let mut conversation = Self::of_array(array, document);
        conversation.object = Some(request);
        conversation.reply = reply;
        conversation
    }

    fn of_lines(values: &[Value<'a>], document: Range<usize>) -> Self {
        Self {
            object: None,
            messages: values.to_vec(),
            reply: None,
            requests: 1,
            list: List::lines(values, document),
        }
    }
}

/// The field of a record that holds the reply.
pub(crate) const REPLY_FIELD: &str = "response";
const REQUEST_FIELDS: [&str; 3] = ["request_params", "request", "body"];
const LIST_FIELDS: [&str; 2] = ["messages", "traj"];
/// Fields that may hold contents of Gemini: of a request, of a checkpoint or a scenario, of an error report.
const CONTENT_FIELDS: [&str; 3] = ["contents", "history", "context"];

fn in_array<'a>(array: Value<'a>, whole: Range<usize>) -> Vec<Conversation<'a>> {
    let Some(first) = array.elements().next() else { return vec![Conversation::of_array(array, whole)] };
    if is_list(first) || request_of(first).is_some() {
        return runs(array.elements());
    }
    if array.elements().any(|element| element.has("role") || element.has("parts")) {
        return vec![Conversation::of_array(array, whole)];
    }
    Vec::new()
}

/// The conversations of the records of a log. Requests in a row that begin with the same two messages repeat
/// one conversation; a list of messages is one by itself.
fn runs<'a>(records: impl Iterator<Item = Value<'a>>) -> Vec<Conversation<'a>> {
    let mut runs: Vec<Conversation<'a>> = Vec::new();
    for record in records {
        if is_list(record) {
            runs.push(Conversation::of_array(record, record.range()));
            continue;
        }
        let reply = reply_of(record);
        match request_of(record) {
            Some((request, array)) => {
                let mut next = Conversation::of_request(request, array, request.range(), reply);
                let repeats = |run: &Conversation<'_>| {
                    let mut openings = run.messages.iter().zip(&next.messages).take(2).peekable();
                    openings.peek().is_some() && openings.all(|(old, new)| old.bytes() == new.bytes())
                };
                match runs.last_mut() {
                    Some(run) if repeats(run) => {
                        next.requests = run.requests + 1;
                        *run = next;
                    }
                    _ => runs.push(next),
                }
            }
            // Some logs write the reply as a record of its own.
            None => {
                if let (Some(run), Some(reply)) = (runs.last_mut(), reply) {
                    run.reply = Some(reply);
                }
            }
        }
    }
    runs
}

/// The object in a record that holds a list of messages, and that list.
fn request_of<'a>(record: Value<'a>) -> Option<(Value<'a>, Value<'a>)> {
    let ([params, request, body], _) = record.pick(REQUEST_FIELDS);
    let inner = [params, request, body].into_iter().flatten();
    std::iter::once(record).chain(inner).find_map(|object| {
        let (lists, _) = object.pick(LIST_FIELDS);
        let array =
            lists.into_iter().flatten().find(|list| list.is_array()).or_else(|| contents_of(object))?;
        Some((object, array))
    })
}

/// The list of contents in an object; other things go by these names too.
fn contents_of(object: Value<'_>) -> Option<Value<'_>> {
    let ([contents, history, context], _) = object.pick(CONTENT_FIELDS);
    let holds_parts = |list: &Value<'_>| list.elements().next().is_some_and(|first| first.has("parts"));
    let others = [history, context].into_iter().flatten().find(holds_parts);
    contents.filter(|contents| contents.is_array()).or(others)
}

fn reply_of<'a>(record: Value<'a>) -> Option<Value<'a>> {
    let reply = record.get(REPLY_FIELD)?;
    matches!(reply.kind(), Kind::Object | Kind::Array | Kind::String).then_some(reply)
}

/// Whether a value is a list that may be one of messages.
fn is_list(value: Value<'_>) -> bool {
    value.elements().next().is_some_and(Value::is_object)
}

/// Whether a value is a message by itself. One that holds a list of messages is a request.
fn is_message(value: Value<'_>) -> bool {
    let ([role, content, tool_calls, parts], _) = value.find(["role", "content", "tool_calls", "parts"]);
    role.is_some() && content.or(tool_calls).or(parts).is_some() && request_of(value).is_none()
}
