//! Session files of the Gemini command line: what they record, and what of it is in effect.
//!
//! Older files are one object with a list of messages. Newer ones are lines: a header, then messages, of which
//! a later one with the same id takes the place of the earlier; `$set` changes fields of the header, and with
//! `messages` all of them at once, which is how a compression is recorded; `$rewindTo` takes back a message
//! and all behind it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use epitome_loop::{Block, Message, ModelKey, Usage};

use super::blocks::messages;
use super::pairing::pair;
use super::read::{OPENING, model, note_opening};
use super::reply::request_usage;
use super::snapshot::earlier_summary;
use super::turn::{Data, Part, Response, Speaker, Turn, parts_of};
use crate::Note;
use crate::assembly::{Assembly, as_it_stands};
use crate::container::{Container, List};
use crate::faults::Faults;
use crate::json::{Kind, Value};

/// What a session file of lines is written again from.
#[derive(Clone, Debug)]
pub(crate) struct RecordFile {
    /// The record that opens the file; `None` when it is damaged.
    pub(crate) header: Option<Range<usize>>,
    /// The newest value of each field that was set later, `messages` aside, in the order of their first
    /// setting: the key without quotes, and the value.
    pub(crate) settings: Vec<(Range<usize>, Range<usize>)>,
}

const KINDS: [&str; 5] = ["user", "gemini", "info", "error", "warning"];

/// Whether a source is a session file: its first record says so, or, when that is damaged, is a message or a
/// change as such files hold them.
pub(crate) fn is_session(values: &[Value<'_>]) -> bool {
    values.first().is_some_and(|first| {
        let ([session, kind, id, time, content, role, message, list, set], _) = first.find([
            "sessionId",
            "type",
            "id",
            "timestamp",
            "content",
            "role",
            "message",
            "messages",
            "$set",
        ]);
        let is_message = session.or(role).or(message).is_none()
            && id.and(time).and(content).is_some()
            && kind.is_some_and(is_kind);
        let is_document = session.is_some() && kind.is_none() && list.is_some_and(Value::is_array);
        is_header(*first) || is_document || is_message || set.is_some_and(Value::is_object)
    })
}

fn is_header(line: Value<'_>) -> bool {
    let ([session, hash, start, kind], _) = line.find(["sessionId", "projectHash", "startTime", "type"]);
    session.is_some() && hash.or(start).is_some() && kind.is_none()
}

fn is_kind(kind: Value<'_>) -> bool {
    KINDS.iter().any(|name| kind.is_text(name))
}

/// Reads a session file into the assembly. `whole` is the source without a byte-order mark and damage.
pub(crate) fn read_session(values: &[Value<'_>], whole: Range<usize>, into: &mut Assembly) -> Container {
    if let [document] = values
        && let Some(list) = document.get("messages").filter(|list| list.is_array())
    {
        let elements: Vec<Value<'_>> = list.elements().collect();
        read_records(elements.clone(), into);
        let mut list = List::array(list, &elements, whole);
        list.gemini_records = true;
        list.lacks_prompt = true;
        return Container::List(list);
    }
    let stray = values.iter().filter(|value| !value.is_object()).count();
    into.note_count(stray as u64, |count| Note::StrayValues { count });
    let mut log = Log::default();
    values.iter().filter(|value| value.is_object()).for_each(|value| log.take(*value));
    let Log { header, settings, records, taken_back, .. } = log;
    into.note_count(taken_back, |count| Note::OtherBranches { count });
    read_records(records, into);
    let settings = settings.into_iter().map(|(key, value)| (key, value.range())).collect();
    Container::GeminiRecords(RecordFile { header: header.map(Value::range), settings })
}

/// What the lines up to one add up to.
#[derive(Default)]
struct Log<'a> {
    header: Option<Value<'a>>,
    settings: Vec<(Range<usize>, Value<'a>)>,
    setting_at: HashMap<&'a [u8], usize>,
    /// The messages in effect.
    records: Vec<Value<'a>>,
    /// Where the record with an id stands; ids are JSON.
    place: HashMap<&'a [u8], usize>,
    taken_back: u64,
}

impl<'a> Log<'a> {
    fn take(&mut self, line: Value<'a>) {
        let ([set, rewind, id, kind, list], _) = line.pick(["$set", "$rewindTo", "id", "type", "messages"]);
        if let Some(rewind) = rewind {
            self.rewind(rewind.bytes());
        } else if let Some(set) = set {
            self.set(set);
        } else if id.is_some() || kind.is_some_and(is_kind) {
            self.message(line);
        } else if list.is_some_and(Value::is_array) {
            // A header with messages cannot be written again as it stands.
            self.set(line);
        } else if self.header.is_none() && is_header(line) {
            self.header = Some(line);
        }
    }

    fn set(&mut self, fields: Value<'a>) {
        for (key, value, place) in fields.fields_with_places() {
            if key == b"messages" && value.is_array() {
                self.place.clear();
                self.records.clear();
                value.elements().for_each(|element| self.message(element));
            } else {
                self.setting(key, place, value);
            }
        }
    }

    fn setting(&mut self, key: &'a [u8], place: usize, value: Value<'a>) {
        match self.setting_at.get(key).and_then(|&at| self.settings.get_mut(at)) {
            Some((_, newest)) => *newest = value,
            None => {
                self.setting_at.insert(key, self.settings.len());
                self.settings.push((place + 1..place + 1 + key.len(), value));
            }
        }
    }

    fn message(&mut self, record: Value<'a>) {
        let id = record.get("id").map_or(&b""[..], Value::bytes);
        match self.place.get(id).and_then(|&at| self.records.get_mut(at)) {
            Some(earlier) if !id.is_empty() => *earlier = record,
            _ => {
                self.place.insert(id, self.records.len());
                self.records.push(record);
            }
        }
    }

    /// Takes a message and all behind it back; nothing when there is no such message.
    fn rewind(&mut self, id: &[u8]) {
        let Some(&at) = self.place.get(id) else { return };
        for record in self.records.drain(at.min(self.records.len())..) {
            self.taken_back += 1;
            if let Some(id) = record.get("id") {
                self.place.remove(id.bytes());
            }
        }
    }
}

/// A message taken apart: what the model said and the responses to its calls are two turns.
struct Taken<'a> {
    record: Value<'a>,
    turns: Vec<Turn<'a>>,
    usage: Option<Usage>,
    model: Option<ModelKey>,
}

fn read_records(records: Vec<Value<'_>>, into: &mut Assembly) {
    let total = records.len();
    let mut taken: Vec<Taken<'_>> = records.into_iter().filter_map(take_apart).collect();
    into.note_count((total - taken.len()) as u64, |count| Note::SideRecords { count });
    add_responses(&mut taken);

    let mut turns: Vec<Turn<'_>> = taken.iter_mut().flat_map(|taken| taken.turns.drain(..)).collect();
    pair(&mut turns);
    let mut turns = turns.into_iter().peekable();
    let mut openings = Vec::new();
    let mut times = Vec::new();
    let mut reports = Vec::new();
    for Taken { record, usage, model, .. } in taken {
        let index = into.len();
        let mut own = Vec::new();
        // The turns of a record share its range of bytes.
        while let Some(turn) = turns.next_if(|turn| turn.home == record.range().start) {
            into.faults = merged(into.faults, turn.faults);
            own.extend(messages(&turn, usage.filter(|_| own.is_empty()), &mut into.faults));
        }
        let time = record.get("timestamp").map_or(&b""[..], Value::inner);
        if let Some(usage) = usage {
            reports.push((index, usage, time));
        }
        if index < OPENING {
            times.push((index, time));
        }
        if model.is_some() {
            into.model = model;
        }
        note_opening(&mut openings, &own);
        into.close(as_it_stands(record.range()), own);
    }
    let mut summary = openings.first().filter(|first| is_our_summary(first)).map(|_| 0);
    if let Some((prefix, at)) = earlier_summary(&openings) {
        into.derived_prefix = prefix;
        into.before_summary = at;
        summary = Some(at);
    }
    // What was reported before a compaction is void. Its summary is as old as the compaction.
    let compacted =
        summary.and_then(|at| times.iter().find(|(index, _)| *index == at)).map(|(_, time)| *time);
    let counts = |time: &[u8]| compacted.is_none_or(|compacted| time > compacted);
    for (index, _, time) in &reports {
        if !counts(time) {
            into.void_reports(*index..index.saturating_add(1));
        }
    }
    let newest = reports.iter().rev().find(|(_, _, time)| counts(time));
    into.reported = newest.map(|(index, usage, _)| (*index, *usage));
}

/// Whether a message is a summary that was written by us, which is no compression of the program.
fn is_our_summary(message: &Message) -> bool {
    let Message::User { blocks } = message else { return false };
    matches!(&**blocks, [Block::Text { text }] if text.starts_with("<conversation_summary>"))
}

fn merged(mut sum: Faults, more: Faults) -> Faults {
    sum.text.lone_surrogates += more.text.lone_surrogates;
    sum.text.invalid_utf8 += more.text.invalid_utf8;
    sum.duplicate_keys += more.duplicate_keys;
    sum.invalid_base64 += more.invalid_base64;
    sum.unknown_items += more.unknown_items;
    sum
}

/// What the user or the model said; nothing for what the program said.
fn take_apart(record: Value<'_>) -> Option<Taken<'_>> {
    let mut faults = Faults::default();
    let [kind, content, calls, thoughts, tokens, named] =
        faults.pick(record, ["type", "content", "toolCalls", "thoughts", "tokens", "model"]);
    let home = record.range().start;
    if kind.is_some_and(|kind| kind.is_text("user")) {
        let parts = parts_of(content, &mut faults);
        let turns = vec![Turn { speaker: Speaker::User, parts, faults, home }];
        return Some(Taken { record, turns, usage: None, model: None });
    }
    if !kind.is_some_and(|kind| kind.is_text("gemini")) {
        return None;
    }
    let said = parts_of(content, &mut faults);
    let has_calls = said.iter().any(|part| matches!(part.data, Data::Call { .. }));
    let has_thoughts = said.iter().any(|part| matches!(part.data, Data::Text { is_thought: true, .. }));
    // Newer records hold all parts in the content; in older ones thoughts and calls stand beside the words.
    let mut parts = Vec::new();
    if !has_calls && !has_thoughts {
        for thought in thoughts.into_iter().flat_map(Value::elements) {
            let [subject, description] = faults.pick(thought, ["subject", "description"]);
            let data =
                Data::Thought { subject: faults.string(subject), description: faults.string(description) };
            parts.push(Part { value: thought, data, signature: None });
        }
    }
    parts.extend(said);
    if !has_calls {
        for call in calls.into_iter().flat_map(Value::elements) {
            parts.push(Part { value: call, data: Data::of_call(call, &mut faults), signature: None });
        }
    }
    let usage = tokens.and_then(usage);
    let name = faults.string(named);
    let turns = vec![Turn { speaker: Speaker::Model, parts, faults, home }];
    Some(Taken { record, turns, usage, model: model(&name) })
}

fn usage(tokens: Value<'_>) -> Option<Usage> {
    let (found, _) = tokens.pick(["input", "cached", "output", "thoughts"]);
    let [input, cached, output, thoughts] = found.map(|value| value.and_then(Value::number));
    Some(request_usage(input.filter(|&input| input > 0)?, cached, output, thoughts))
}

/// Adds the responses that are recorded beside the calls, unless they are recorded as the next messages too.
fn add_responses(taken: &mut [Taken<'_>]) {
    // Ids of the responses in the messages right behind; ids repeat over a session.
    let mut answered: HashSet<String> = HashSet::new();
    for taken in taken.iter_mut().rev() {
        if taken.turns.iter().all(|turn| turn.speaker == Speaker::User) {
            let before = answered.len();
            let parts = taken.turns.iter().flat_map(|turn| &turn.parts);
            answered.extend(parts.filter_map(|part| match &part.data {
                Data::Response(response) => Some(response.id.clone()),
                _ => None,
            }));
            if answered.len() == before {
                answered.clear();
            }
            continue;
        }
        let answered = std::mem::take(&mut answered);
        let Some(calls) = taken.record.get("toolCalls") else { continue };
        let mut faults = Faults::default();
        let mut seen: HashSet<&[u8]> = HashSet::new();
        let mut parts = Vec::new();
        let said = taken.turns.iter().flat_map(|turn| &turn.parts);
        let own: HashSet<String> = said
            .filter_map(|part| match &part.data {
                Data::Call { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
        for call in calls.elements() {
            let [id, name, result] = faults.pick(call, ["id", "name", "result"]);
            let Some(result) = result else { continue };
            let id = faults.string(id);
            if result.kind() == Kind::String {
                let name = faults.string(name);
                let response = Response { id, name, response: Some(result), parts: None };
                parts.push(Part { value: call, data: Data::Response(response), signature: None });
            } else {
                // Of calls in parallel each may hold the responses of all.
                let more = parts_of(Some(result), &mut faults);
                parts.extend(more.into_iter().filter(|part| seen.insert(part.value.bytes())).map(
                    |mut part| {
                        // What stands beside a call answers it, unless it names another one.
                        if let Data::Response(response) = &mut part.data
                            && !own.contains(&response.id)
                        {
                            response.id.clone_from(&id);
                        }
                        part
                    },
                ));
            }
        }
        parts.retain(|part| match &part.data {
            Data::Response(response) => !own.contains(&response.id) || !answered.contains(&response.id),
            _ => true,
        });
        if !parts.is_empty() {
            let home = taken.record.range().start;
            taken.turns.push(Turn { speaker: Speaker::User, parts, faults, home });
        }
    }
}
