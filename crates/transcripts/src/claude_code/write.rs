//! Writing sessions of Claude Code, and streams.
//!
//! A compacted session is a new file: the records that stay, a `compact_boundary` record that lists them, and
//! the summary. That is how Claude Code itself writes a compaction that keeps messages: they lie before it in
//! the file, so that what the provider reported beside them is seen to be void, and are sent behind the summary.
//! Records stay byte for byte, with one exception: the `parentUuid` of a record names the record before it, so
//! that what is left is one way without forks, and a record or a message of the model with an id that is taken gets
//! its own.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use epitome_loop::{Message, Role, SharedText, TokenCount, Usage, tail_estimate};

use super::form::{Form, NewBoundary, NewMessage};
use super::record::{ClaudeFile, Flavor, Record, RecordKind};
use crate::json::{Source, Value, object};
use crate::loss::{LossKind, Losses};
use crate::source_id::Ids;
use crate::write::{Item, Piece};
use crate::{Session, anthropic};

/// Time of records that have none to take over: there is no clock here.
const NO_TIME: &[u8] = b"\"1970-01-01T00:00:00.000Z\"";

/// Writes what stays of a session or a stream.
pub(crate) fn write_kept(
    session: &Session,
    file: &ClaudeFile,
    pieces: Vec<Piece>,
    losses: &mut Losses,
) -> Vec<u8> {
    let mut writer = Writer::new(session, file, true, losses);
    for piece in &pieces {
        if let Piece::Original { original, .. } = piece {
            let records = writer.records_of(*original).filter_map(|at| file.records.get(at));
            writer
                .staying
                .extend(records.map(|record| session.source.get(record.uuid.clone()).unwrap_or_default()));
        }
    }
    writer.opening();
    for piece in pieces {
        match piece {
            Piece::Original { original, message } => writer.original(original, message),
            Piece::Encoded(items) => writer.items(items),
        }
    }
    writer.side_records(usize::MAX);
    writer.finish()
}

/// Writes a session that was read from another format.
pub(crate) fn write_new(session: &Session, items: Vec<Item>, flavor: Flavor, losses: &mut Losses) -> Vec<u8> {
    let file = ClaudeFile { flavor, records: Vec::new(), originals: Vec::new(), attachments: Vec::new() };
    let mut writer = Writer::new(session, &file, session.format.is_anthropic(), losses);
    writer.opening();
    writer.items(items);
    writer.finish()
}

struct Writer<'a> {
    session: &'a Session,
    file: &'a ClaudeFile,
    /// Whether items of the provider may go back.
    same: bool,
    losses: &'a mut Losses,
    out: Vec<u8>,
    /// The next record of the file whose turn to be written as a side record has not come.
    next_side: usize,
    /// The summary, which goes to the end.
    summary: Option<Message>,
    /// Ids as JSON: of records that stay, of all in the file, and of those that are written and may be sent.
    staying: HashSet<&'a [u8]>,
    known: HashSet<&'a [u8]>,
    used: HashSet<Vec<u8>>,
    written: Vec<Vec<u8>>,
    new_ids: Ids,
    /// Ids of the model's messages that are written, each with its original.
    message_ids: HashMap<&'a [u8], usize>,
    /// How new records are written.
    form: Form,
    /// Time of the last record, as JSON.
    time: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(session: &'a Session, file: &'a ClaudeFile, same: bool, losses: &'a mut Losses) -> Self {
        let mut writer = Self {
            session,
            file,
            same,
            losses,
            out: Vec::new(),
            next_side: 0,
            summary: None,
            staying: HashSet::new(),
            known: HashSet::new(),
            used: HashSet::new(),
            written: Vec::new(),
            new_ids: Ids::of(&session.source),
            message_ids: HashMap::new(),
            form: Form::of(session, file),
            time: NO_TIME.to_vec(),
        };
        let ids = file.records.iter().filter(|record| !record.uuid.is_empty());
        writer.known = ids.map(|record| writer.bytes(&record.uuid)).collect();
        writer
    }

    fn bytes(&self, range: &Range<usize>) -> &'a [u8] {
        self.session.source.get(range.clone()).unwrap_or_default()
    }

    fn line(&mut self, record: &[u8]) {
        self.out.extend_from_slice(record);
        self.out.push(b'\n');
    }

    /// The records of an original that stay with it, those that are sent because of it included.
    fn records_of(&self, original: usize) -> impl Iterator<Item = usize> + use<'a> {
        let own: &'a [usize] = self.file.originals.get(original).map_or(&[], Vec::as_slice);
        let attachments = &self.file.attachments;
        let first = attachments.partition_point(|(follows, _)| *follows < original);
        let behind = attachments.iter().skip(first).take_while(move |(follows, _)| *follows == original);
        own.iter().copied().chain(behind.map(|(_, at)| *at))
    }

    /// What a stream opens with.
    fn opening(&mut self) {
        if self.file.flavor != Flavor::Stream {
            return;
        }
        let opening = self.file.records.iter().rev().find(|record| record.kind == RecordKind::Opening);
        if let Some(record) = opening {
            let record = self.bytes(&record.range);
            return self.line(record);
        }
        let id = self.new_id();
        let cwd = self.session.cwd().map_or(".", SharedText::as_str);
        let record = self.form.opening(self.model(), cwd, &id);
        self.line(&record);
    }

    fn model(&self) -> &'a str {
        self.session.model.as_ref().map_or("unknown", |model| &model.model)
    }

    fn original(&mut self, original: usize, message: usize) {
        let is_summary = |at: usize| self.file.records.get(at).is_some_and(|record| record.is_summary);
        if self.records_of(original).any(is_summary) {
            // Beside a new summary an earlier one is what the user said.
            if let Some(message) = self.session.messages.get(message).cloned() {
                let is_summary = self.session.derived_prefix > 0 && self.summary.is_none();
                self.items(vec![Item { message, is_summary }]);
            }
            return;
        }
        // Two messages of the model with one id would be read as one, once nothing stands between them.
        let mut renamed: HashMap<&[u8], Vec<u8>> = HashMap::new();
        for at in self.records_of(original) {
            self.side_records(at);
            let Some(record) = self.file.records.get(at) else { continue };
            let id = self.bytes(&record.message_id);
            if !id.is_empty()
                && self.message_ids.get(id).is_some_and(|other| *other != original)
                && !renamed.contains_key(id)
            {
                renamed.insert(id, self.new_message_id());
            }
            self.record(record, renamed.get(id));
            self.message_ids.entry(id).or_insert(original);
        }
    }

    /// Writes the side records before the record at `end`: titles and settings go on to hold.
    fn side_records(&mut self, end: usize) {
        let end = end.min(self.file.records.len());
        while self.next_side < end {
            if let Some(record) = self.file.records.get(self.next_side) {
                let stays = match record.kind {
                    RecordKind::Side | RecordKind::Title => true,
                    RecordKind::Snapshot => self.names_staying_record(record),
                    _ => false,
                };
                if stays {
                    let record = self.bytes(&record.range);
                    self.line(record);
                }
            }
            self.next_side += 1;
        }
    }

    fn names_staying_record(&self, snapshot: &Record) -> bool {
        let source = Source::small(&self.session.source);
        let message = source.value(snapshot.range.clone()).get("messageId");
        message.is_some_and(|message| self.staying.contains(message.bytes()))
    }

    /// A record that stays. It names the record before it as its parent.
    fn record(&mut self, record: &Record, message_id: Option<&Vec<u8>>) {
        if !record.timestamp.is_empty() {
            self.time = self.bytes(&record.timestamp).to_vec();
        }
        let id = self.bytes(&record.uuid).to_vec();
        let is_free = !id.is_empty() && !self.used.contains(&id);
        let id = if is_free { id } else { self.new_id() };
        let parent = self.last_id();
        let fields = [(&record.parent, "parentUuid", &parent), (&record.uuid_field, "uuid", &id)];
        let has_parents = self.file.flavor == Flavor::Session;
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        let mut added = Vec::new();
        for (range, key, value) in fields.into_iter().filter(|(_, key, _)| has_parents || *key == "uuid") {
            if range.is_empty() {
                added.extend_from_slice(&[b"\"", key.as_bytes(), b"\":", value, b","].concat());
            } else if self.bytes(range) != value.as_slice() {
                edits.push((range.clone(), value.clone()));
            }
        }
        edits.extend(message_id.map(|id| (record.message_id.clone(), id.clone())));
        let inside = record.range.start + 1;
        edits.push((inside..inside, added));
        edits.sort_by_key(|(range, _)| range.start);
        let mut at = record.range.start;
        for (range, new) in edits {
            self.out.extend_from_slice(self.bytes(&(at..range.start)));
            self.out.extend_from_slice(&new);
            at = range.end;
        }
        self.out.extend_from_slice(self.bytes(&(at..record.range.end)));
        self.out.push(b'\n');
        self.wrote(id);
    }

    fn wrote(&mut self, id: Vec<u8>) {
        self.used.insert(id.clone());
        self.written.push(id);
    }

    fn last_id(&self) -> Vec<u8> {
        self.written.last().cloned().unwrap_or_else(|| b"null".to_vec())
    }

    /// An id that no record has.
    fn new_id(&mut self) -> Vec<u8> {
        loop {
            let id = format!("\"{}\"", self.new_ids.next_id()).into_bytes();
            if !self.known.contains(id.as_slice()) {
                return id;
            }
        }
    }

    fn new_message_id(&mut self) -> Vec<u8> {
        format!("\"msg_{}\"", self.new_ids.next_id().replace('-', "")).into_bytes()
    }

    /// Messages that are encoded. The first summary goes to the end.
    fn items(&mut self, items: Vec<Item>) {
        let mut spoken: Vec<Item> = Vec::new();
        for item in items {
            if item.is_summary && self.summary.is_none() {
                self.summary = Some(item.message);
            } else if item.message.role() == Role::System && self.written.is_empty() && spoken.is_empty() {
                // The system prompt has no place in the format.
                self.losses.add(LossKind::System);
            } else {
                spoken.push(item);
            }
        }
        let of_model = |item: &Item| item.message.role() == Role::Assistant;
        for run in spoken.chunk_by(|one, other| !of_model(one) && !of_model(other)) {
            let usage = run.iter().find_map(|item| match &item.message {
                Message::Assistant { usage, .. } => Some(usage.unwrap_or_default()),
                _ => None,
            });
            for message in anthropic::encode(run, self.same, self.losses) {
                match usage {
                    Some(usage) => self.model_message(&message, usage),
                    None => self.message("user", &message),
                }
            }
        }
    }

    fn message(&mut self, kind: &str, message: &[u8]) {
        let id = self.new_id();
        let parent = self.last_id();
        let time = &self.time;
        let new = NewMessage { kind, message, is_summary: false, parent: &parent, id: &id, time };
        let record = self.form.message(&new);
        self.line(&record);
        self.wrote(id);
    }

    fn model_message(&mut self, message: &[u8], usage: Usage) {
        let source = Source::small(message);
        let content = source.whole().get("content");
        let calls = content.into_iter().flat_map(Value::elements);
        let calls =
            calls.filter(|block| block.get("type").is_some_and(|kind| kind.is_text("tool_use"))).count();
        let id = self.new_message_id();
        let message = object(|out| {
            out.text("model", self.model());
            out.raw("id", &id);
            out.text("type", "message");
            out.text("role", "assistant");
            out.raw("content", content.map_or(b"[]", Value::bytes));
            out.text("stop_reason", if calls > 0 { "tool_use" } else { "end_turn" });
            out.raw("stop_sequence", b"null");
            out.object("usage", |out| {
                out.number("input_tokens", usage.input.get());
                out.number("cache_creation_input_tokens", usage.cache_creation.get());
                out.number("cache_read_input_tokens", usage.cache_read.get());
                out.number("output_tokens", usage.output.get());
            });
        });
        self.message("assistant", &message);
    }

    fn finish(mut self) -> Vec<u8> {
        self.compaction();
        if self.out.is_empty() {
            // A file with nothing in it could not be told to be a session.
            let record = self.form.setting();
            self.line(&record);
        }
        self.out
    }

    /// The record of the compaction, which lists what stays, and the summary.
    fn compaction(&mut self) {
        let Some(summary) = self.summary.take() else { return };
        let (id, summary_id) = (self.new_id(), self.new_id());
        let estimate = || TokenCount(self.session.messages.iter().map(tail_estimate).sum());
        let before = self.session.reported_usage.map_or_else(estimate, |usage| usage.context_tokens);
        let (kept, time) = (&self.written, &self.time);
        let boundary = self.form.boundary(&NewBoundary { before, kept, summary: &summary_id, id: &id, time });
        let item = Item { message: summary, is_summary: true };
        let message = anthropic::encode(&[item], self.same, self.losses).pop();
        let summary = self.form.message(&NewMessage {
            kind: "user",
            message: message.as_deref().unwrap_or(br#"{"role":"user","content":""}"#),
            is_summary: true,
            parent: &id,
            id: &summary_id,
            time,
        });
        self.line(&boundary);
        self.line(&summary);
    }
}
