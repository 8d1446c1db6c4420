//! A conversation of items into neutral messages.

use std::ops::Range;

use epitome_loop::{Message, TokenCount, Usage};

use super::blocks;
use super::calls::Calls;
use super::grouping::{Grouping, Part};
use super::items::{self, Mapped, is_compaction};
use super::log::{Conversation, conversations};
use super::write::ResponsesList;
use crate::assembly::Assembly;
use crate::faults::Faults;
use crate::json::{Found, Kind, Source, Text, Value, Values, raw_json};
use crate::model::model_key;
use crate::read::choose;
use crate::{Note, ReadError, event_stream};

/// Reads one of the conversations of a source into the assembly. `whole` is the source without its byte-order
/// mark, `unknown` says what is wrong when it holds none.
pub(crate) fn read(
    values: &[Value<'_>],
    whole: Range<usize>,
    wanted: Option<usize>,
    into: &mut Assembly,
    unknown: impl FnOnce() -> ReadError,
) -> Result<ResponsesList, ReadError> {
    let conversation = choose(conversations(values, whole), wanted, unknown)?;
    if conversation.is_delta {
        return Err(ReadError::HistoryOnServer);
    }
    if conversation.requests > 1 {
        into.note(Note::RepeatedHistory { requests: conversation.requests });
    }
    let decoded = conversation.reply.and_then(decoded);
    let source = decoded.as_ref().map(|(text, range)| (Source::small(text), range.clone()));
    let reply = match &source {
        Some((source, range)) => Some((source.value(range.clone()), false)),
        None => conversation.reply.map(|reply| (reply, true)),
    };
    let instructions = head(conversation.object, reply, into);
    let mut kept = Items::of(&conversation, reply);
    if reply.is_some() && !kept.has_reply {
        into.note(Note::ReplyNotRead);
    }
    let before = kept.trim();
    into.note_count(before as u64, |count| Note::BeforeCompaction { count });
    let referred = kept.items.iter().filter(|item| is_reference(item.value)).count();
    into.note_count(referred as u64, |count| Note::OnServer { count });
    let mut list = ResponsesList::of(&conversation, instructions.map(Value::range), kept.has_reply);
    list.parts = map(kept, instructions, reply, into)?;
    Ok(list)
}

/// The reply that a log holds as the text of its JSON, or as the stream of events in which it came.
fn decoded(reply: Value<'_>) -> Option<(Vec<u8>, Range<usize>)> {
    let text = reply.text(&mut Text::default())?;
    let text = event_stream::assemble(&text).unwrap_or_else(|| text.into_owned().into_bytes());
    let range = match Values::new(&text, 0).next()? {
        Found::Value(range) => range,
        Found::Damage(_) => return None,
    };
    Some((text, range))
}

/// Takes model and tools; gives the instructions.
fn head<'a>(
    request: Option<Value<'a>>,
    reply: Option<(Value<'_>, bool)>,
    into: &mut Assembly,
) -> Option<Value<'a>> {
    // Faults beside the items make none of them differ.
    let mut faults = Faults::default();
    let [model, tools, instructions] =
        request.map_or([None; 3], |request| faults.pick(request, ["model", "tools", "instructions"]));
    let replied = reply.and_then(|(reply, _)| reply.get("model"));
    into.model = model_key(&faults.string(model.or(replied)), "openai");
    for tool in tools.into_iter().flat_map(Value::elements) {
        into.tools.push(raw_json(tool.bytes(), &mut faults.text));
    }
    instructions.filter(|value| value.kind() == Kind::String && !value.inner().is_empty())
}

/// An item on its way.
struct Item<'a> {
    value: Value<'a>,
    /// Its place in its list, for errors.
    index: usize,
    is_reply: bool,
    is_in_source: bool,
    /// Whether it is no item but the whole text of a user message.
    is_text: bool,
}

struct Items<'a> {
    items: Vec<Item<'a>>,
    has_reply: bool,
    /// Whether the provider compacted while it replied, so that its report is about what was before.
    compacted_in_reply: bool,
}

impl<'a> Items<'a> {
    fn of(conversation: &Conversation<'a>, reply: Option<(Value<'a>, bool)>) -> Self {
        let Conversation { items, texts, .. } = conversation;
        let of_request = items.iter().map(|value| (*value, false, true));
        let output = reply.and_then(|(reply, in_source)| Some((reply.get("output")?, in_source)));
        let of_reply = output
            .into_iter()
            .flat_map(|(list, in_source)| list.elements().map(move |item| (item, true, in_source)));
        let items: Vec<Item<'a>> = of_request
            .chain(of_reply)
            .enumerate()
            .map(|(index, (value, is_reply, is_in_source))| {
                let is_text = !is_reply && texts.binary_search(&value.range().start).is_ok();
                Item { value, index, is_reply, is_in_source, is_text }
            })
            .collect();
        let compacted_in_reply = items.iter().any(|item| item.is_reply && is_compaction(item.value));
        Self { items, has_reply: output.is_some_and(|(list, _)| list.is_array()), compacted_in_reply }
    }

    /// Takes out what the newest compaction stands for: everything before it but leading instructions. Returns how
    /// many items went.
    fn trim(&mut self) -> usize {
        let Some(newest) = self.items.iter().rposition(|item| is_compaction(item.value)) else { return 0 };
        let lead = self.items.iter().take(newest).take_while(|item| is_instruction(item.value)).count();
        self.items.drain(lead..newest).count()
    }
}

fn map(
    kept: Items<'_>,
    instructions: Option<Value<'_>>,
    reply: Option<(Value<'_>, bool)>,
    into: &mut Assembly,
) -> Result<Vec<Vec<Part>>, ReadError> {
    let mut calls = Calls::of(kept.items.iter().map(|item| item.value));
    let mut grouping = Grouping::new(into);
    if let Some(instructions) = instructions {
        let mut faults = Faults::default();
        let message = Message::System { blocks: blocks::content(Some(instructions), &mut faults).into() };
        grouping.take(Mapped::Message(message), Some(Part::item(instructions.range())), faults);
    }
    let mut side = 0;
    for item in &kept.items {
        let mut faults = Faults::default();
        let range = item.value.range();
        let (mapped, part) = if item.is_text {
            let message = items::string_message(item.value, &mut faults);
            (Mapped::Message(message), Part::user_text(range))
        } else {
            (items::map(item.value, item.index, &mut calls, &mut faults)?, Part::item(range))
        };
        let is_sent = grouping.take(mapped, item.is_in_source.then_some(part), faults);
        side += u64::from(!is_sent);
    }
    if let Some(usage) = reply.filter(|_| !kept.compacted_in_reply).and_then(|(reply, _)| usage(reply)) {
        grouping.report(usage);
    }
    grouping.assembly().note_count(side, |count| Note::SideRecords { count });
    Ok(grouping.finish())
}

/// A system or developer message.
fn is_instruction(item: Value<'_>) -> bool {
    item.get("role").is_some_and(|role| role.is_text("system") || role.is_text("developer"))
}

fn is_reference(item: Value<'_>) -> bool {
    item.get("type").is_some_and(|kind| kind.is_text("item_reference"))
}

/// What one request took; its cached tokens are a part of its input. Where the provider ran tools in a loop, the
/// numbers are about that loop and say nothing about the context.
fn usage(reply: Value<'_>) -> Option<Usage> {
    let ([usage, output], _) = reply.pick(["usage", "output"]);
    let looped =
        |item: Value<'_>| item.get("type").is_some_and(|kind| items::RUN_BY_PROVIDER.contains(&kind.inner()));
    if output.into_iter().flat_map(Value::elements).any(looped) {
        return None;
    }
    let ([input, output, input_details, output_details], _) =
        usage?.pick(["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"]);
    let detail = |details: Option<Value<'_>>, name| details.and_then(|details| details.get(name)?.number());
    Some(openai_usage(
        input?.number()?,
        detail(input_details, "cached_tokens").unwrap_or(0),
        output.and_then(Value::number).unwrap_or(0),
        detail(output_details, "reasoning_tokens").unwrap_or(0),
    ))
}

/// Usage from figures of OpenAI, where cached tokens are a part of the input and reasoning is a part of the output.
pub(crate) fn openai_usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Usage {
    let cached = cached.min(input);
    Usage {
        input: TokenCount(input - cached),
        output: TokenCount(output),
        cache_read: TokenCount(cached),
        cache_creation: TokenCount::ZERO,
        reasoning: TokenCount(reasoning),
    }
}
