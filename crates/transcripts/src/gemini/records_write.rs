//! Writing what stays of a Gemini session, as contents or as records.

use std::collections::HashSet;
use std::ops::Range;

use epitome_loop::ModelKey;

use super::encode;
use super::encode::{CallNames, Content, contents};
use super::records::RecordFile;
use crate::json::{Source, object};
use crate::loss::Losses;
use crate::session::Original;
use crate::write::{Item, Piece};
use crate::{Format, Session};

/// Time of records that have none to take over: there is no clock here.
const NO_TIME: &str = "\"1970-01-01T00:00:00.000Z\"";

/// Encodes what goes between the originals of a session that was read from this format.
pub(crate) struct Between<'a> {
    session: &'a Session,
    names: CallNames,
    /// For records; contents need none.
    records: Option<NewRecords>,
}

impl<'a> Between<'a> {
    /// Encodes contents, or records.
    pub(crate) fn new(session: &'a Session, as_records: bool) -> Self {
        let records = as_records.then(|| NewRecords::new(session));
        Self { session, names: CallNames::default(), records }
    }

    /// An original is written as it stands; `message` is its first message.
    pub(crate) fn passed(&mut self, original: usize, message: usize) {
        let Some(original) = self.session.originals.get(original) else { return };
        if self.session.format != Format::Gemini {
            return;
        }
        let messages = self.session.messages.iter().skip(message).take(original.messages);
        messages.for_each(|message| self.names.remember(message));
        if let Some(records) = &mut self.records {
            records.time =
                time_of(self.session, &original.range).unwrap_or(std::mem::take(&mut records.time));
        }
    }

    /// The elements that messages become.
    pub(crate) fn encode(&mut self, items: &[Item], losses: &mut Losses) -> Vec<Vec<u8>> {
        let Some(records) = &mut self.records else { return encode(items, true, &mut self.names, losses) };
        let contents = contents(items, true, &mut self.names, losses);
        contents.iter().map(|content| records.record(content)).collect()
    }
}

/// Makes new records.
struct NewRecords {
    /// Time of the record written last, as JSON.
    time: Vec<u8>,
    /// Time of the newest record of the source, which a summary of it gets.
    newest: Vec<u8>,
    /// The ids that are taken, as JSON.
    taken: HashSet<Vec<u8>>,
    next_id: u32,
    model: Option<ModelKey>,
}

impl NewRecords {
    fn new(session: &Session) -> Self {
        let time = |original: Option<&Original>| {
            let time = original.and_then(|original| time_of(session, &original.range));
            time.unwrap_or_else(|| NO_TIME.as_bytes().to_vec())
        };
        let mut records = Self {
            time: time(session.originals.first()),
            newest: time(session.originals.last()),
            taken: HashSet::new(),
            next_id: 1,
            model: session.model.clone(),
        };
        let source = Source::small(&session.source);
        for original in session.originals.iter() {
            if let Some(id) = source.value(original.range.clone()).get("id") {
                records.taken.insert(id.bytes().to_vec());
            }
        }
        records
    }

    fn record(&mut self, content: &Content) -> Vec<u8> {
        let id = self.new_id();
        object(|out| {
            out.raw("id", &id);
            out.raw("timestamp", if content.is_summary { &self.newest } else { &self.time });
            out.text("type", if content.is_model { "gemini" } else { "user" });
            out.raw("content", &content.parts);
            if let (true, Some(model)) = (content.is_model, &self.model) {
                out.text("model", &model.model);
            }
        })
    }

    /// An id in the shape of a UUID that no record of the file has.
    fn new_id(&mut self) -> Vec<u8> {
        loop {
            let id = format!("\"00000000-0000-4000-8000-{:012x}\"", self.next_id).into_bytes();
            self.next_id = self.next_id.wrapping_add(1);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// When an original was recorded, as JSON.
fn time_of(session: &Session, range: &Range<usize>) -> Option<Vec<u8>> {
    let source = Source::small(&session.source);
    Some(source.value(range.clone()).get("timestamp")?.bytes().to_vec())
}

/// Writes what stays of a session file of lines: the header, the records, and what was set later.
pub(crate) fn write_kept(
    session: &Session,
    file: &RecordFile,
    pieces: Vec<Piece>,
    losses: &mut Losses,
) -> Vec<u8> {
    let source = |range: &Range<usize>| session.source.get(range.clone()).unwrap_or_default();
    let mut between = Between::new(session, true);
    let mut out = Vec::new();
    match &file.header {
        Some(header) => push_line(&mut out, source(header)),
        None => push_line(&mut out, &new_header()),
    }
    for piece in pieces {
        match piece {
            Piece::Original { original, message } => {
                between.passed(original, message);
                if let Some(original) = session.originals.get(original) {
                    push_line(&mut out, source(&original.range));
                }
            }
            Piece::Encoded(items) => {
                between.encode(&items, losses).iter().for_each(|record| push_line(&mut out, record));
            }
        }
    }
    if !file.settings.is_empty() {
        let mut fields = Vec::new();
        for (key, value) in &file.settings {
            fields.push([&b"\""[..], source(key), b"\":", source(value)].concat());
        }
        push_line(&mut out, &[&b"{\"$set\":{"[..], &fields.join(&b","[..]), b"}}"].concat());
    }
    out
}

/// A header that the program reads; it asks for both fields.
fn new_header() -> Vec<u8> {
    object(|out| {
        out.text("sessionId", "00000000-0000-4000-8000-000000000000");
        out.text("projectHash", "unknown");
        out.raw("startTime", NO_TIME.as_bytes());
        out.raw("lastUpdated", NO_TIME.as_bytes());
    })
}

/// A line; a record that was written over several becomes one. Strings of JSON hold no line breaks.
fn push_line(out: &mut Vec<u8>, json: &[u8]) {
    out.extend(json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    out.push(b'\n');
}
