//! A pi session into the messages that pi would send next.

use epitome_loop::{Block, Message, ModelKey, TokenCount, Usage};

use super::blocks;
use super::path::{PiFile, Record, RecordKind, path};
use crate::assembly::{Assembly, as_it_stands};
use crate::faults::Faults;
use crate::json::{Source, Value};
use crate::{Note, ReadError};

/// Reads a session into the assembly.
///
/// The context is the newest compaction's summary as a user message, the records from the first one it kept
/// up to it, and the records behind it. Without a compaction it is every record on the way to the newest.
pub(crate) fn read(
    source: &Source<'_>,
    values: &[Value<'_>],
    into: &mut Assembly,
) -> Result<PiFile, ReadError> {
    let stray = values.iter().filter(|value| !value.is_object()).count();
    into.note_count(stray as u64, |count| Note::StrayValues { count });
    let is_header = |value: &Value<'_>| value.get("type").is_some_and(|kind| kind.is_text("session"));
    let (header, behind) = match values.split_first() {
        Some((first, behind)) if is_header(first) => (Some(*first), behind),
        _ => (None, values),
    };
    let (is_tree, records, left) = path(behind, source.bytes(), into.is_damaged());
    into.note_count(left, |count| Note::OtherBranches { count });
    let mut reader = Reader { source, into, aborted: 0, side: 0 };
    reader.place(header, behind);
    let named = records.iter().rev().find_map(|record| reader.model(record));
    reader.into.model = named.or_else(|| model_of(header?, "modelId"));

    let compaction = records.iter().rposition(|record| record.kind == RecordKind::Compaction);
    let mut first = 0;
    if let Some(at) = compaction
        && let Some(record) = records.get(at)
    {
        first = first_kept(reader.value(record), &records, source.bytes()).map_or(at, |first| first.min(at));
        let before = records.iter().take(first).filter(|record| record.kind == RecordKind::Message).count();
        reader.into.note_count(before as u64, |count| Note::BeforeCompaction { count });
        reader.summary(record);
    }
    for (at, record) in records.iter().enumerate() {
        let reports_count = compaction.is_none_or(|compaction| at > compaction);
        if at >= first {
            reader.record(record, reports_count)?;
        }
    }
    let Reader { aborted, side, .. } = reader;
    into.note_count(aborted, |count| Note::AbortedMessages { count });
    into.note_count(side, |count| Note::SideRecords { count });
    Ok(PiFile { header: header.map(Value::range), is_tree, records })
}

struct Reader<'a, 'b> {
    source: &'a Source<'a>,
    into: &'b mut Assembly,
    aborted: u64,
    side: u64,
}

impl<'a> Reader<'a, '_> {
    fn value(&self, record: &Record) -> Value<'a> {
        self.source.value(record.range.clone())
    }

    /// Where the session worked, and when last.
    fn place(&mut self, header: Option<Value<'a>>, records: &[Value<'a>]) {
        let mut faults = Faults::default();
        let cwd = header.and_then(|header| header.get("cwd"));
        self.into.cwd = cwd.map(|cwd| faults.string(Some(cwd)).into());
        let oldest = header.iter().chain(records).find_map(|record| record.get("timestamp"));
        self.into.first_timestamp = oldest.map(|time| faults.string(Some(time)).into());
        let newest = records.iter().rev().chain(&header).find_map(|record| record.get("timestamp"));
        self.into.last_timestamp = newest.map(|time| faults.string(Some(time)).into());
    }

    fn message_of(&self, record: &Record) -> Option<Value<'a>> {
        (!record.message.is_empty()).then(|| self.source.value(record.message.clone()))
    }

    /// The model that a record names: one that was switched to, or one that answered.
    fn model(&self, record: &Record) -> Option<ModelKey> {
        match record.kind {
            RecordKind::Message => model_of(self.message_of(record)?, "model"),
            RecordKind::Side => model_of(self.value(record), "modelId"),
            RecordKind::Compaction | RecordKind::Label => None,
        }
    }

    fn summary(&mut self, record: &Record) {
        let summary = self.value(record).get("summary");
        let blocks: Vec<Block> = blocks::text(self.into.faults.string(summary)).into_iter().collect();
        self.into.close(as_it_stands(record.range.clone()), vec![Message::User { blocks: blocks.into() }]);
        self.into.derived_prefix = 1;
    }

    fn record(&mut self, record: &Record, reports_count: bool) -> Result<(), ReadError> {
        match record.kind {
            RecordKind::Message => {}
            RecordKind::Compaction => return Ok(()),
            RecordKind::Label | RecordKind::Side => {
                self.side += 1;
                return Ok(());
            }
        }
        let mapped = match self.message_of(record) {
            Some(message) => self.message(message, record.number)?,
            None => {
                let entry = self.entry(self.value(record));
                self.side += u64::from(entry.is_none());
                entry
            }
        };
        let Some(mapped) = mapped else {
            return Ok(());
        };
        let index = self.into.len();
        if let Message::Assistant { usage: Some(usage), .. } = &mapped
            && reports_count
        {
            self.into.reported = Some((index, *usage));
        }
        self.into.close(as_it_stands(record.range.clone()), vec![mapped]);
        if !reports_count {
            self.into.void_reports(index..self.into.len());
        }
        Ok(())
    }

    /// A record that is sent although it has no message: text of an extension, or what a left branch held.
    fn entry(&mut self, value: Value<'_>) -> Option<Message> {
        let faults = &mut self.into.faults;
        let [content, summary] = faults.pick(value, ["content", "summary"]);
        let blocks = blocks::content(content.or(summary), "", faults);
        (!blocks.is_empty()).then(|| Message::User { blocks: blocks.into() })
    }

    fn message(&mut self, message: Value<'_>, number: usize) -> Result<Option<Message>, ReadError> {
        let faults = &mut self.into.faults;
        let [role, content, summary, api, usage, id, is_error] =
            faults.pick(message, ["role", "content", "summary", "api", "usage", "toolCallId", "isError"]);
        let role = role.ok_or(ReadError::NotAMessage { message: number })?;
        let is = |name: &str| role.is_text(name);
        if is("user") || is("custom") || is("hookMessage") {
            let blocks = blocks::content(content, "", faults).into();
            Ok(Some(Message::User { blocks }))
        } else if is("assistant") {
            let api = faults.string(api);
            let signature = if api.starts_with("anthropic") { crate::anthropic::SIGNATURE } else { &api };
            let blocks = blocks::content(content, signature, faults);
            self.aborted += u64::from(blocks.is_empty());
            let usage = usage.and_then(self::usage);
            Ok((!blocks.is_empty()).then(|| Message::Assistant { blocks: blocks.into(), usage }))
        } else if is("toolResult") {
            Ok(Some(Message::ToolResult {
                blocks: blocks::content(content, "", faults).into(),
                tool_use_id: faults.string(id).into(),
                is_error: is_error.is_some_and(Value::is_true),
            }))
        } else if is("bashExecution") {
            if message.get("excludeFromContext").is_some_and(Value::is_true) {
                self.side += 1;
                return Ok(None);
            }
            Ok(Some(Message::user(shell_command(message, faults))))
        } else if is("compactionSummary") || is("branchSummary") {
            let blocks: Vec<Block> = blocks::text(faults.string(summary)).into_iter().collect();
            Ok(Some(Message::User { blocks: blocks.into() }))
        } else {
            Err(ReadError::UnknownRole { message: number })
        }
    }
}

/// The user's own shell command, as text of the user.
fn shell_command(message: Value<'_>, faults: &mut Faults) -> String {
    let [command, output, exit_code, cancelled] =
        faults.pick(message, ["command", "output", "exitCode", "cancelled"]);
    let mut text = format!("$ {}\n{}", faults.string(command), faults.string(output));
    if cancelled.is_some_and(Value::is_true) {
        text.push_str("\n[canceled]");
    } else if let Some(code) = exit_code.filter(|code| code.bytes() != b"0") {
        text.push_str("\n[exit code ");
        text.push_str(&faults.text.utf8(code.bytes()));
        text.push(']');
    }
    text
}

/// What a request took; aborted turns report zeros, which say nothing.
fn usage(usage: Value<'_>) -> Option<Usage> {
    let (found, _) = usage.pick(["input", "output", "cacheRead", "cacheWrite"]);
    let [input, output, cache_read, cache_creation] =
        found.map(|value| TokenCount(value.and_then(Value::number).unwrap_or(0)));
    let usage = Usage { input, output, cache_read, cache_creation, reasoning: TokenCount::ZERO };
    (usage != Usage::default()).then_some(usage)
}

fn model_of(record: Value<'_>, key: &str) -> Option<ModelKey> {
    let mut faults = Faults::default();
    let [provider, model] = faults.pick(record, ["provider", key]);
    let key = ModelKey::new(faults.string(provider), faults.string(model));
    key.validate().is_ok().then_some(key)
}

/// The position among `records` of the first one that a compaction kept.
fn first_kept(compaction: Value<'_>, records: &[Record], source: &[u8]) -> Option<usize> {
    let ([id, index], _) = compaction.pick(["firstKeptEntryId", "firstKeptEntryIndex"]);
    if let Some(id) = id {
        return records.iter().position(|record| source.get(record.id.clone()) == Some(id.bytes()));
    }
    let number = usize::try_from(index?.number()?).ok()?;
    records.iter().position(|record| record.number >= number)
}
