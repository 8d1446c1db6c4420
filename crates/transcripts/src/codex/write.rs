//! Writing rollouts.
//!
//! A compacted session is a new file: the header, the first words of the user (by which Codex lists sessions), the
//! newest settings, and one `compacted` record whose replacement history is what stays, item by item, byte for byte,
//! with the summary as a message of the user behind the instructions. Codex reads it as compacted: the history is that
//! list. Behind the record no settings stand, so that Codex puts its own context, project instructions included, into
//! the next turn. A rollout of the very old form stays one: its header, the summary, and the items that stay.

use std::ops::Range;

use epitome_loop::{Message, Role};

use crate::Session;
use crate::json::{Object, object};
use crate::loss::Losses;
use crate::openai_responses::{CallKinds, NewItem, NewList, Part, encode_message, text_of};
use crate::source_id::id_of;
use crate::write::{Item, Piece, is_earlier_summary};

/// Time of records that have none to take over: there is no clock here.
const NO_TIME: &[u8] = b"\"1970-01-01T00:00:00.000Z\"";

/// What a rollout is written again from.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodexFile {
    /// The record that opens the file.
    pub(super) header: Option<Range<usize>>,
    /// Whether items stand by themselves, as in very old files.
    pub(super) is_bare: bool,
    /// The system prompt inside of the header.
    pub(super) instructions: Option<Range<usize>>,
    /// The record with the first words of the user, for the screen.
    pub(super) prompt: Option<Range<usize>>,
    /// The record with the newest settings.
    pub(super) context: Option<Range<usize>>,
    /// The newest time, with its quotes.
    pub(super) time: Option<Range<usize>>,
    /// Where each item begins, ascending, and its record.
    pub(super) records: Vec<(usize, Range<usize>)>,
    /// The items of each original.
    pub(crate) parts: Vec<Vec<Part>>,
}

/// Writes what stays of a rollout.
pub(crate) fn write_kept(
    session: &Session,
    file: &CodexFile,
    pieces: Vec<Piece>,
    losses: &mut Losses,
) -> Vec<u8> {
    let mut writer = Writer::new(session, losses);
    writer.time = file.time.as_ref().map_or(NO_TIME, |time| bytes(session, time)).to_vec();
    match &file.header {
        Some(header) => writer.line(bytes(session, header)),
        None if file.is_bare => writer.new_bare_header(),
        None => writer.new_header(None),
    }
    for record in file.prompt.iter().chain(&file.context) {
        writer.line(bytes(session, record));
    }
    for (at, piece) in pieces.into_iter().enumerate() {
        match piece {
            Piece::Original { original, message } => {
                let parts = file.parts.get(original).into_iter().flatten();
                let parts = parts.filter(|part| Some(&part.range) != file.instructions.as_ref());
                parts.for_each(|part| writer.part(file, part));
                if is_earlier_summary(session, message) {
                    writer.summary = session.messages.get(message).cloned().or(writer.summary);
                }
            }
            Piece::Encoded(mut items) => {
                let is_header = |item: &Item| item.message.role() == Role::System;
                if at == 0 && file.instructions.is_some() && items.first().is_some_and(is_header) {
                    // It stands in the header, which stays.
                    items.remove(0);
                }
                items.into_iter().for_each(|item| writer.item(&item));
            }
        }
    }
    writer.finish(file.is_bare)
}

/// Writes a session that was read from another format.
pub(crate) fn write_new(session: &Session, pieces: Vec<Piece>, losses: &mut Losses) -> Vec<u8> {
    let first_words = first_words(session, &pieces);
    let mut writer = Writer::new(session, losses);
    let NewList { instructions, items } = NewList::of(session, pieces, &writer.kinds, writer.losses);
    writer.new_header(instructions.as_deref());
    if let Some(words) = first_words {
        writer.new_record("event_msg", |out| {
            out.text("type", "user_message");
            out.text("message", &words);
            out.raw("images", b"[]");
        });
    }
    writer.new_context();
    for NewItem { json, summary } in items {
        writer.summary = writer.summary.take().or(summary);
        writer.body.push(Body { item: json, record: None });
    }
    writer.finish(false)
}

/// The first words of the user that are no summary: Codex lists sessions by them.
fn first_words(session: &Session, pieces: &[Piece]) -> Option<String> {
    let words = |message: &Message| {
        let text = text_of(message);
        (message.role() == Role::User && !text.is_empty()).then_some(text)
    };
    pieces.iter().find_map(|piece| match piece {
        Piece::Original { message, .. } if is_earlier_summary(session, *message) => None,
        Piece::Original { message, .. } => words(session.messages.get(*message)?),
        Piece::Encoded(items) => {
            items.iter().filter(|item| !item.is_summary).find_map(|item| words(&item.message))
        }
    })
}

/// An item that is written, and the record that it has already.
struct Body {
    item: Vec<u8>,
    record: Option<Range<usize>>,
}

struct Writer<'a> {
    session: &'a Session,
    kinds: CallKinds,
    losses: &'a mut Losses,
    out: Vec<u8>,
    body: Vec<Body>,
    summary: Option<Message>,
    /// The time of new records, as JSON.
    time: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(session: &'a Session, losses: &'a mut Losses) -> Self {
        Self {
            session,
            // Codex answers its shell calls like those of functions.
            kinds: CallKinds::of(&session.messages).without("local_shell_call"),
            losses,
            out: Vec::new(),
            body: Vec::new(),
            summary: None,
            time: NO_TIME.to_vec(),
        }
    }

    fn line(&mut self, json: &[u8]) {
        self.out.extend_from_slice(json);
        self.out.push(b'\n');
    }

    fn new_record(&mut self, kind: &str, payload: impl FnOnce(&mut Object<'_>)) {
        let record = object(|out| {
            out.raw("timestamp", &self.time);
            out.text("type", kind);
            out.object("payload", payload);
        });
        self.line(&record);
    }

    fn new_header(&mut self, instructions: Option<&str>) {
        let session = self.session;
        self.new_record("session_meta", |out| {
            out.text("id", &id_of(&session.source));
            out.raw("timestamp", NO_TIME);
            out.text("cwd", cwd(session));
            out.text("originator", "epitome");
            out.text("cli_version", "0.0.0");
            if let Some(model) = &session.model {
                out.text("model_provider", &model.provider);
            }
            if let Some(instructions) = instructions {
                out.object("base_instructions", |out| out.text("text", instructions));
            }
        });
    }

    fn new_bare_header(&mut self) {
        let header = object(|out| {
            out.text("id", &id_of(&self.session.source));
            out.raw("timestamp", NO_TIME);
            out.raw("instructions", b"null");
        });
        self.line(&header);
    }

    /// The settings of a turn: the model, and the most careful of what else must be there.
    fn new_context(&mut self) {
        let session = self.session;
        let Some(model) = &session.model else { return };
        self.new_record("turn_context", |out| {
            out.text("cwd", cwd(session));
            out.text("approval_policy", "on-request");
            out.object("sandbox_policy", |out| out.text("type", "read-only"));
            out.text("model", &model.model);
            out.text("summary", "auto");
        });
    }

    fn part(&mut self, file: &CodexFile, part: &Part) {
        let (open, close) = part.wrap;
        let inner = bytes(self.session, &part.range);
        let item = [open.as_bytes(), inner, close.as_bytes()].concat();
        let at = file.records.binary_search_by_key(&part.range.start, |(start, _)| *start).ok();
        let record = at.and_then(|at| file.records.get(at)).map(|(_, record)| record.clone());
        self.body.push(Body { item, record });
    }

    fn item(&mut self, item: &Item) {
        if item.is_summary {
            self.summary.get_or_insert_with(|| item.message.clone());
        }
        let encoded = encode_message(&item.message, &self.kinds, true, self.losses);
        self.body.extend(encoded.into_iter().map(|item| Body { item, record: None }));
    }

    fn finish(mut self, bare: bool) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        let summary = self.summary.take().filter(|_| !bare);
        if let Some(summary) = summary {
            let message = text_of(&summary);
            self.new_record("compacted", |out| {
                out.text("message", &message);
                out.array("replacement_history", |list| body.iter().for_each(|body| list.raw(&body.item)));
            });
            return self.out;
        }
        for Body { item, record } in body {
            match record {
                _ if bare => self.line(&item),
                Some(record) => self.line(bytes(self.session, &record)),
                None => {
                    let record = object(|out| {
                        out.raw("timestamp", &self.time);
                        out.text("type", "response_item");
                        out.raw("payload", &item);
                    });
                    self.line(&record);
                }
            }
        }
        self.out
    }
}

fn cwd(session: &Session) -> &str {
    session.cwd.as_ref().map_or(".", |cwd| cwd.as_str())
}

fn bytes<'a>(session: &'a Session, range: &Range<usize>) -> &'a [u8] {
    session.source.get(range.clone()).unwrap_or_default()
}
