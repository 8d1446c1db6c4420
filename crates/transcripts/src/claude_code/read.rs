//! A session or a stream into the messages that would be sent next.

use std::collections::{HashMap, HashSet};

use epitome_loop::{Block, Message, SharedText, Usage, ran_provider_tools};

use super::gather::{Answer, Call, Unit, gather};
use super::path::{Path, path};
use super::record::{ClaudeFile, Flavor, Record, RecordKind, TITLES, records};
use crate::assembly::{Assembly, as_it_stands};
use crate::faults::Faults;
use crate::json::{Source, Value};
use crate::model::model_key;
use crate::{Note, ReadError, anthropic};

/// Reads a source into the assembly.
///
/// The context is the newest compaction's summary, the messages it kept, and what follows; without a compaction
/// it is every message on the way to the newest.
pub(crate) fn read(
    source: &Source<'_>,
    values: &[Value<'_>],
    flavor: Flavor,
    into: &mut Assembly,
) -> Result<ClaudeFile, ReadError> {
    let listed: Vec<Value<'_>>;
    let values = match values {
        [list] if list.is_array() => {
            listed = list.elements().collect();
            listed.as_slice()
        }
        values => values,
    };
    let records = records(values, flavor);
    let path = path(&records, source, flavor);
    let units = gather(&path, &records, source);

    let mut reader = Reader {
        source,
        records: &records,
        path: &path,
        into,
        originals: Vec::new(),
        original_of: HashMap::new(),
        newest_model: None,
        aborted: 0,
    };
    for unit in &units {
        reader.unit(unit)?;
    }
    reader.stream_usage();
    reader.describe();
    let attachments = reader.attachments();
    let Reader { originals, original_of, aborted, .. } = reader;
    let stray = values.len() - records.len() + count(&records, |record| record.kind == RecordKind::Broken);
    into.note_count(stray as u64, |count| Note::StrayValues { count });
    notes(source, &records, &path, &original_of, into);
    into.note_count(aborted, |count| Note::AbortedMessages { count });
    Ok(ClaudeFile { flavor, records, originals, attachments })
}

struct Reader<'a, 'b> {
    source: &'a Source<'a>,
    records: &'a [Record],
    path: &'a Path,
    into: &'b mut Assembly,
    /// The records of each original.
    originals: Vec<Vec<usize>>,
    /// The original that each record that is sent became.
    original_of: HashMap<usize, usize>,
    /// Index and first record of the newest message of the model.
    newest_model: Option<(usize, usize)>,
    /// Messages of the model in which it said nothing.
    aborted: u64,
}

impl<'a> Reader<'a, '_> {
    fn record(&self, at: usize) -> Option<&'a Record> {
        self.records.get(at)
    }

    fn message(&self, at: usize) -> Option<Value<'a>> {
        let record = self.record(at).filter(|record| !record.message.is_empty())?;
        Some(self.source.value(record.message.clone()))
    }

    fn unit(&mut self, unit: &Unit) -> Result<(), ReadError> {
        match unit {
            Unit::User(at) => self.user(*at),
            Unit::Model { lines, answers } => {
                self.model(lines);
                self.answers(answers);
                Ok(())
            }
        }
    }

    fn user(&mut self, at: usize) -> Result<(), ReadError> {
        let Some(record) = self.record(at) else { return Ok(()) };
        if record.kind == RecordKind::OtherRole {
            return Err(ReadError::UnknownRole { message: record.number });
        }
        if record.is_summary && self.into.len() == 0 {
            self.into.derived_prefix = 1;
        }
        let messages = self.user_messages(at);
        self.close(at, vec![at], messages);
        Ok(())
    }

    fn user_messages(&mut self, at: usize) -> Vec<Message> {
        let Some(message) = self.message(at) else { return Vec::new() };
        let faults = &mut self.into.faults;
        let [content] = faults.pick(message, ["content"]);
        anthropic::user_messages(content, faults)
    }

    fn close(&mut self, first: usize, records: Vec<usize>, messages: Vec<Message>) {
        let Some(record) = self.record(first) else { return };
        self.remember(records);
        self.into.close(as_it_stands(record.range.clone()), messages);
    }

    fn remember(&mut self, records: Vec<usize>) {
        self.original_of.extend(records.iter().map(|at| (*at, self.originals.len())));
        self.originals.push(records);
    }

    /// A message of the model: the blocks of all its records, and what the provider reported, once.
    fn model(&mut self, lines: &[usize]) {
        let mut blocks: Vec<Block> = Vec::new();
        let mut reports = Vec::new();
        for at in lines {
            let Some(message) = self.message(*at) else { continue };
            let faults = &mut self.into.faults;
            let [content, reported] = faults.pick(message, ["content", "usage"]);
            blocks.extend(anthropic::content(content, faults));
            reports.extend(reported);
        }
        let ran_tools = ran_provider_tools(&blocks);
        let reported = |value: &Value<'_>| {
            anthropic::usage(*value, ran_tools).filter(|usage| *usage != Usage::default())
        };
        let usage = reports.iter().rev().find_map(reported);
        let Some(&first) = lines.first() else { return };
        if blocks.is_empty() {
            self.into.faults = Faults::default();
            self.aborted += 1;
            return;
        }
        let index = self.into.len();
        self.newest_model = Some((index, first));
        // What was reported before a compaction is void.
        let usage = usage.filter(|_| first >= self.path.since);
        if let Some(usage) = usage {
            self.into.reported = Some((index, usage));
        }
        self.close(first, lines.to_vec(), vec![Message::Assistant { blocks: blocks.into(), usage }]);
    }

    /// The results of a message's calls, in the order of the calls, and what their records hold besides.
    fn answers(&mut self, answers: &[Answer]) {
        let mut places: Vec<Place> = Vec::new();
        let mut parts: Vec<(usize, Vec<Message>, Faults)> = Vec::new();
        for answer in answers {
            let messages = self.user_messages(answer.record);
            let mut calls = answer.calls.iter().copied();
            places.extend(messages.iter().map(|message| match message {
                Message::ToolResult { .. } => {
                    calls.next().flatten().map_or(Place::WithoutCall, Place::Result)
                }
                _ => Place::Behind,
            }));
            parts.push((answer.record, messages, std::mem::take(&mut self.into.faults)));
        }
        if places.is_sorted() {
            for (record, messages, faults) in parts {
                self.into.faults = faults;
                self.close(record, vec![record], messages);
            }
            return;
        }
        let mut mixed: Vec<(usize, usize, Message)> = Vec::new();
        let mut originals = Vec::new();
        for (at, messages, faults) in parts {
            self.into.faults.add(faults);
            let Some(record) = self.record(at) else { continue };
            let own = messages.into_iter().enumerate();
            mixed.extend(own.map(|(part, message)| (originals.len(), part, message)));
            originals.push(as_it_stands(record.range.clone()));
            self.remember(vec![at]);
        }
        let mut mixed: Vec<_> = places.into_iter().zip(mixed).collect();
        mixed.sort_by_key(|(place, _)| *place);
        self.into.close_together(originals, mixed.into_iter().map(|(_, message)| message).collect());
    }

    /// In a stream the figures beside a message are those of its beginning; what ends a run has the whole.
    fn stream_usage(&mut self) {
        let Some((index, first)) = self.newest_model else { return };
        let last = self.records.iter().rposition(|record| record.kind == RecordKind::Result);
        let Some(record) = last.filter(|last| *last > first).and_then(|last| self.record(last)) else {
            return;
        };
        let ([usage, turns], _) = self.source.value(record.range.clone()).pick(["usage", "num_turns"]);
        let Some(usage) = usage else { return };
        // Without a list of requests it is a sum over all of them.
        let listed = usage.get("iterations").is_some_and(|list| list.elements().next().is_some());
        if !listed && turns.and_then(Value::number) != Some(1) {
            return;
        }
        let reported = anthropic::usage(usage, false).filter(|usage| *usage != Usage::default());
        if let Some(usage) = reported {
            self.into.reported = Some((index, usage));
        }
    }

    /// Model, title, directory and times.
    fn describe(&mut self) {
        let mut faults = Faults::default();
        let own =
            || self.records.iter().zip(&self.path.live).filter(|(_, live)| **live).map(|(record, _)| record);
        let value = |record: &Record| self.source.value(record.range.clone());
        let named = own().rev().filter(|record| record.kind == RecordKind::Assistant && !record.is_synthetic);
        let named = named.filter_map(|record| self.source.value(record.message.clone()).get("model"));
        let opening = || self.records.iter().rev().filter(|record| record.kind == RecordKind::Opening);
        let name = named.chain(opening().filter_map(|record| value(record).get("model"))).next();
        self.into.model = model_key(&faults.string(name), "anthropic");

        let mut places = self.records.iter().rev().filter(|record| !record.is_agent);
        let place = places.find_map(|record| value(record).get("cwd"));
        self.into.cwd = place.map(|place| faults.string(Some(place)).into());
        let mut time = |record: Option<&Record>| {
            let range = record.map(|record| record.timestamp.clone());
            range.map(|range| SharedText::from(faults.string(Some(self.source.value(range)))))
        };
        let dated = || self.records.iter().filter(|record| record.time.is_some());
        self.into.first_timestamp = time(dated().min_by_key(|record| record.time));
        self.into.last_timestamp = time(dated().max_by_key(|record| record.time));
        self.into.title = self.title();
    }

    /// The newest title of the kind that counts most.
    fn title(&self) -> Option<SharedText> {
        let mut faults = Faults::default();
        let ids: HashSet<&[u8]> = self
            .records
            .iter()
            .filter(|record| !record.uuid.is_empty())
            .map(|record| self.source.value(record.uuid.clone()).bytes())
            .collect();
        TITLES.iter().find_map(|title| {
            let [own, usual] = title.fields;
            let titles = self.records.iter().rev().filter(|record| record.kind == RecordKind::Title);
            titles.map(|record| self.source.value(record.range.clone())).find_map(|value| {
                let ([kind, text, other, leaf], _) = value.pick(["type", own, usual, "leafUuid"]);
                kind.filter(|kind| kind.is_text(title.kind))?;
                // Files of older versions begin with titles of other sessions.
                let is_own = leaf.is_none_or(|leaf| ids.is_empty() || ids.contains(leaf.bytes()));
                let text = faults.string(text.or(other));
                (is_own && !text.trim().is_empty()).then(|| text.into())
            })
        })
    }

    /// The attachments that are sent, each with the original that it follows; their size becomes a note.
    fn attachments(&mut self) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        let mut follows = None;
        for &at in &self.path.records {
            follows = self.original_of.get(&at).copied().or(follows);
            let Some(record) = self.record(at).filter(|record| record.kind == RecordKind::Attachment) else {
                continue;
            };
            count += 1;
            let value = self.source.value(record.range.clone());
            bytes += value.get("attachment").unwrap_or(value).range().len() as u64;
            found.extend(follows.map(|original| (original, at)));
        }
        self.into.note_count(count, |count| Note::Attachments { count, bytes });
        // Pieces of a message may stand behind its first results.
        found.sort_by_key(|(original, _)| *original);
        found
    }
}

/// Where a message of a record with results belongs behind the message with their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// The result of a call.
    Result(Call),
    /// A result whose call has another one, or is not there.
    WithoutCall,
    /// The user's words.
    Behind,
}

fn count(records: &[Record], is: impl Fn(&Record) -> bool) -> usize {
    records.iter().filter(|record| is(record)).count()
}

/// What is not sent, and why.
fn notes(
    source: &Source<'_>,
    records: &[Record],
    path: &Path,
    sent: &HashMap<usize, usize>,
    into: &mut Assembly,
) {
    into.note_count(path.repeated, |count| Note::RepeatedRecords { count });
    let way: HashSet<usize> = path.records.iter().copied().collect();
    let (mut agents, mut synthetic, mut side, mut left) = (0, 0, 0, 0);
    let mut replaced = HashSet::new();
    for (at, (record, live)) in records.iter().zip(&path.live).enumerate() {
        match record.kind {
            RecordKind::Broken | RecordKind::Attachment => {}
            kind if !kind.is_message() => side += 1,
            _ if record.is_agent && !live => agents += 1,
            _ if !live || sent.contains_key(&at) => {}
            _ if way.contains(&at) => synthetic += u64::from(record.is_synthetic),
            _ if at < path.since => {
                // A message in several records is one.
                let id = if record.message_id.is_empty() { &record.range } else { &record.message_id };
                replaced.insert(source.bytes().get(id.clone()));
            }
            _ => left += 1,
        }
    }
    into.note_count(agents, |count| Note::SubAgentRecords { count });
    into.note_count(left, |count| Note::OtherBranches { count });
    into.note_count(path.missing, |count| Note::MissingParents { count });
    into.note_count(replaced.len() as u64, |count| Note::BeforeCompaction { count });
    let has_summary = path.records.iter().any(|at| records.get(*at).is_some_and(|record| record.is_summary));
    if path.boundary.is_some() && !has_summary {
        into.note(Note::SummaryNotInFile);
    }
    into.note_count(synthetic, |count| Note::SyntheticMessages { count });
    into.note_count(side, |count| Note::SideRecords { count });
}
