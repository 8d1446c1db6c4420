//! Writing pi sessions.
//!
//! A compacted session is a new file: the header, the records that stay, and a native `compaction` record at
//! its end whose first kept entry is the first record behind the header. Read back, by pi as by us, that is
//! the summary and then what was kept. Records stay byte for byte, with one exception: in files whose records
//! name their parents, the `parentId` of a record whose parent is gone names the record before it instead.

use std::collections::{HashMap, HashSet};

use epitome_loop::{Message, ModelKey, TokenCount, tail_estimate};

use super::encode::Encoder;
use super::path::{PiFile, Record, RecordKind, is_id};
use crate::Session;
use crate::json::{Object, Source, object};
use crate::loss::{LEFT_OUT, Losses};
use crate::source_id::id_of;
use crate::write::{Item, Piece};

/// Time of records that have none to take over: there is no clock here.
const NO_TIME: &str = "\"1970-01-01T00:00:00.000Z\"";

/// Writes what stays of a pi session.
pub(crate) fn write_kept(
    session: &Session,
    file: &PiFile,
    pieces: Vec<Piece>,
    losses: &mut Losses,
) -> Vec<u8> {
    let mut writer = Writer::new(session, file, losses);
    match &file.header {
        Some(header) => writer.line(header.clone()),
        None => writer.new_header(),
    }
    for piece in pieces {
        match piece {
            Piece::Original { original, message } => writer.original(original, message),
            Piece::Encoded(items) => items.into_iter().for_each(|item| writer.item(item)),
        }
    }
    writer.side_records(usize::MAX);
    writer.compaction();
    writer.out
}

/// Writes a session that was read from another format, in the linear form that pi upgrades by itself.
pub(crate) fn write_new(session: &Session, items: &[Item], losses: &mut Losses) -> Vec<u8> {
    let file = PiFile { header: None, is_tree: false, records: Vec::new() };
    let mut writer = Writer::new(session, &file, losses);
    writer.encoder.same = false;
    writer.new_header();
    for item in items {
        writer.item(Item { message: item.message.clone(), is_summary: item.is_summary });
    }
    writer.compaction();
    writer.out
}

struct Writer<'a> {
    session: &'a Session,
    file: &'a PiFile,
    encoder: Encoder<'a>,
    out: Vec<u8>,
    /// How many records behind the header are written.
    written: u64,
    /// The next record of the file whose turn to be written as a side record has not come.
    next_side: usize,
    /// The summary, which goes into the last record.
    summary: Option<Message>,
    /// Ids as JSON: of the first record, of the one written last, and all that are taken.
    first_id: Vec<u8>,
    last_id: Vec<u8>,
    taken: HashSet<Vec<u8>>,
    written_ids: HashSet<Vec<u8>>,
    next_id: u32,
    /// Time of the last record, as JSON.
    time: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(session: &'a Session, file: &'a PiFile, losses: &'a mut Losses) -> Self {
        let model = session.model.clone().unwrap_or_else(|| ModelKey::new("unknown", "unknown"));
        let encoder = Encoder { same: true, model, timestamp: "0".to_owned(), losses, tools: HashMap::new() };
        let taken = file.records.iter().map(|record| bytes(session, &record.id).to_vec()).collect();
        Self {
            session,
            file,
            encoder,
            out: Vec::new(),
            written: 0,
            next_side: 0,
            summary: None,
            first_id: Vec::new(),
            last_id: b"null".to_vec(),
            taken,
            written_ids: HashSet::new(),
            next_id: 0,
            time: NO_TIME.as_bytes().to_vec(),
        }
    }

    fn new_header(&mut self) {
        let header = object(|out| {
            out.text("type", "session");
            if self.file.is_tree {
                out.number("version", 3);
            }
            out.text("id", &id_of(&self.session.source));
            out.raw("timestamp", NO_TIME.as_bytes());
            out.text("cwd", self.session.cwd.as_ref().map_or(".", |cwd| cwd.as_str()));
            if let Some(model) = &self.session.model {
                out.text("provider", &model.provider);
                out.text("modelId", &model.model);
            }
        });
        self.out.extend_from_slice(&header);
        self.out.push(b'\n');
    }

    fn line(&mut self, range: std::ops::Range<usize>) {
        self.remember_time(&range);
        self.out.extend_from_slice(bytes(self.session, &range));
        self.out.push(b'\n');
    }

    fn original(&mut self, original: usize, message: usize) {
        let Some(original) = self.session.originals.get(original) else { return };
        let at = self.file.records.partition_point(|record| record.range.start < original.range.start);
        let Some(record) = self.file.records.get(at) else { return };
        if record.kind == RecordKind::Compaction {
            // An earlier summary stays one, but counts what this file holds.
            if let Some(message) = self.session.messages.get(message).cloned() {
                self.item(Item { message, is_summary: true });
            }
            return;
        }
        self.side_records(at);
        self.record(record);
    }

    fn item(&mut self, item: Item) {
        if item.is_summary && self.summary.is_none() {
            self.summary = Some(item.message);
            return;
        }
        let Some(message) = self.encoder.message(&item.message) else { return };
        let id = self.new_id();
        let head = self.record_head("message", &id);
        let record = object(|out| {
            head(out);
            out.raw("message", &message);
        });
        self.push_new(&record, id);
    }

    /// Writes the side records before the record at `end`: settings go on to hold.
    fn side_records(&mut self, end: usize) {
        let file = self.file;
        let end = end.min(file.records.len());
        while self.next_side < end {
            if let Some(record) = file.records.get(self.next_side) {
                let stays = match record.kind {
                    RecordKind::Side => true,
                    RecordKind::Label => self.names_written_record(record),
                    RecordKind::Message | RecordKind::Compaction => false,
                };
                if stays {
                    self.record(record);
                }
            }
            self.next_side += 1;
        }
    }

    fn names_written_record(&self, label: &Record) -> bool {
        let source = Source::small(&self.session.source);
        let value = source.value(label.range.clone());
        value.get("targetId").is_some_and(|target| self.written_ids.contains(target.bytes()))
    }

    fn record(&mut self, record: &Record) {
        self.remember_time(&record.range);
        let id = if self.file.is_tree { self.linked(record) } else { None };
        if id.is_none() {
            self.out.extend_from_slice(bytes(self.session, &record.range));
        }
        self.out.push(b'\n');
        self.wrote(id.unwrap_or_else(|| bytes(self.session, &record.id).to_vec()));
    }

    /// Writes a record of a tree with an id of its own and the record before it as its parent, and gives its
    /// id; nothing when it stands so already. Damage may have left records that do not.
    fn linked(&mut self, record: &Record) -> Option<Vec<u8>> {
        let session = self.session;
        let own = bytes(session, &record.id);
        let keeps_id = is_id(own) && !self.written_ids.contains(own);
        let id = if keeps_id { own.to_vec() } else { self.new_id() };
        if keeps_id && bytes(session, &record.parent) == self.last_id.as_slice() {
            return None;
        }
        let fields =
            [("\"id\":", &record.id, id.as_slice()), ("\"parentId\":", &record.parent, &self.last_id)];
        let (missing, mut there): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(_, at, _)| at.is_empty());
        let missing: Vec<Vec<u8>> =
            missing.iter().map(|(name, _, value)| [name.as_bytes(), value].concat()).collect();
        let mut at = record.range.start + 1;
        self.out.push(b'{');
        self.out.extend_from_slice(&missing.join(&b','));
        let is_bare = bytes(session, &(at..record.range.end)).trim_ascii_start() == b"}";
        if !missing.is_empty() && !is_bare {
            self.out.push(b',');
        }
        there.sort_by_key(|(_, at, _)| at.start);
        for (_, range, value) in there {
            self.out.extend_from_slice(bytes(session, &(at..range.start)));
            self.out.extend_from_slice(value);
            at = range.end;
        }
        self.out.extend_from_slice(bytes(session, &(at..record.range.end)));
        Some(id)
    }

    fn compaction(&mut self) {
        let Some(summary) = self.summary.take() else { return };
        let text: Vec<&str> = summary.blocks().iter().filter_map(text_of).collect();
        let text = if text.is_empty() { LEFT_OUT.to_owned() } else { text.join("\n") };
        let session = self.session;
        let estimate = || TokenCount(session.messages.iter().map(tail_estimate).sum());
        let before = session.reported_usage.map_or_else(estimate, |usage| usage.context_tokens);
        let id = self.new_id();
        let first_id = if self.first_id.is_empty() { id.clone() } else { self.first_id.clone() };
        let is_tree = self.file.is_tree;
        let head = self.record_head("compaction", &id);
        let record = object(|out| {
            head(out);
            out.text("summary", &text);
            if is_tree {
                out.raw("firstKeptEntryId", &first_id);
            } else {
                // The header is entry 0; with nothing kept this is the record's own number.
                out.number("firstKeptEntryIndex", 1);
            }
            out.number("tokensBefore", before.get());
        });
        self.push_new(&record, id);
    }

    fn record_head(&self, kind: &'static str, id: &[u8]) -> impl Fn(&mut Object<'_>) + use<> {
        let (is_tree, id) = (self.file.is_tree, id.to_vec());
        let (parent, time) = (self.last_id.clone(), self.time.clone());
        move |out| {
            out.text("type", kind);
            if is_tree {
                out.raw("id", &id);
                out.raw("parentId", &parent);
            }
            out.raw("timestamp", &time);
        }
    }

    fn push_new(&mut self, record: &[u8], id: Vec<u8>) {
        self.out.extend_from_slice(record);
        self.out.push(b'\n');
        self.wrote(id);
    }

    fn wrote(&mut self, id: Vec<u8>) {
        if self.written == 0 {
            self.first_id.clone_from(&id);
        }
        self.written += 1;
        if !id.is_empty() {
            self.last_id.clone_from(&id);
            self.written_ids.insert(id);
        }
    }

    /// An id that no record of the file has.
    fn new_id(&mut self) -> Vec<u8> {
        loop {
            let id = format!("\"{:08x}\"", self.next_id).into_bytes();
            self.next_id = self.next_id.wrapping_add(1);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }

    fn remember_time(&mut self, range: &std::ops::Range<usize>) {
        let session = self.session;
        let source = Source::small(&session.source);
        let value = source.value(range.clone());
        if let Some(time) = value.get("timestamp") {
            self.time = time.bytes().to_vec();
        }
        let message = value.get("message");
        if let Some(time) = message.and_then(|message| message.get("timestamp")?.number()) {
            self.encoder.timestamp = time.to_string();
        }
    }
}

fn bytes<'a>(session: &'a Session, range: &std::ops::Range<usize>) -> &'a [u8] {
    session.source.get(range.clone()).unwrap_or_default()
}

fn text_of(block: &epitome_loop::Block) -> Option<&str> {
    match block {
        epitome_loop::Block::Text { text } => Some(text),
        _ => None,
    }
}
