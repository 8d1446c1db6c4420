//! From bytes to a session.

use std::ops::Range;
use std::sync::Arc;

use crate::assembly::Assembly;
use crate::claude_code::Flavor;
use crate::container::{Container, whole_field};
use crate::conversation::{Conversation, REPLY_FIELD, conversations};
use crate::detect::{Dialect, dialect, foreign, foreign_record, is_inspect_archive, is_pi};
use crate::json::{Damage, Found, Source, Value, Values};
use crate::{
    ForeignFormat, Format, Note, ReadError, Session, anthropic, claude_code, codex, epitome_json,
    event_stream, gemini, openai_chat, openai_responses, pi,
};

/// How to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None` to find it out from the content.
    pub format: Option<Format>,
    /// Which conversation to take, counted from 0, when the input holds several.
    pub conversation: Option<usize>,
}

/// Reads a transcript. `progress` is told how many bytes have been read.
///
/// The bytes are one snapshot: of a file that another program is still writing, everything up to its last whole
/// record is read, and a note tells of the rest.
///
/// A damaged line costs that line: reading goes on behind it, and a note tells where it is. Originals stay
/// beside the messages that they became, so that [`crate::write`] can give them back byte for byte.
///
/// # Errors
/// [`ReadError`] when the input is no transcript that can be read; nothing of it is in the error.
pub fn read(
    bytes: &[u8],
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Session, ReadError> {
    if is_inspect_archive(bytes) {
        return Err(ReadError::NotSupportedYet { format: ForeignFormat::Inspect });
    }
    let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut assembly = Assembly::new();
    let mut stream = Values::new(bytes, start);
    let ranges = ranges(bytes, &mut stream, &mut assembly, progress)?;
    let source = stream.into_source();
    let values: Vec<Value<'_>> = ranges.into_iter().map(|range| source.value(range)).collect();
    let (format, container) = map(&source, start, &values, options, &mut assembly)?;
    Ok(assembly.finish(Arc::from(bytes), format, container))
}

/// Where the JSON values of the input stand; damage becomes notes.
fn ranges(
    bytes: &[u8],
    stream: &mut Values<'_>,
    assembly: &mut Assembly,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Range<usize>>, ReadError> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut damages: Vec<Damage> = Vec::new();
    while let Some(found) = stream.next() {
        match found {
            Found::Value(range) => ranges.push(range),
            Found::Damage(damage) => damages.push(damage),
        }
        progress(stream.reached() as u64);
    }
    progress(bytes.len() as u64);
    let Some(last) = ranges.last() else {
        return Err(damages.first().map_or(ReadError::Empty, |damage| ReadError::Syntax {
            line: 1 + lines(bytes, 0, damage.fault),
            offset: damage.fault as u64,
        }));
    };
    // What only the end of the input broke off is not damaged: its writer has not come further yet.
    let is_cut_off = |damage: &Damage| damage.range.start >= last.end && damage.fault >= bytes.len();
    let whole = damages.iter().rposition(|damage| !is_cut_off(damage)).map_or(0, |at| at + 1);
    let (damaged, tail) = damages.split_at(whole);
    let (mut line, mut counted) = (1, 0);
    for Damage { range, .. } in damaged {
        line += lines(bytes, counted, range.start);
        counted = range.start;
        assembly.note(Note::Damaged { line, offset: range.start as u64, bytes: range.len() as u64 });
    }
    if let Some(Damage { range, .. }) = tail.first() {
        let (offset, bytes) = (range.start as u64, (bytes.len() - range.start) as u64);
        assembly.note(Note::UnfinishedTail { offset, bytes });
    }
    Ok(ranges)
}

fn map(
    source: &Source<'_>,
    start: usize,
    values: &[Value<'_>],
    options: &ReadOptions,
    assembly: &mut Assembly,
) -> Result<(Format, Container), ReadError> {
    let claude = claude_code::flavor(values).map(Flavor::format);
    let is_epitome = matches!(values, [one] if one.has("epitome"));
    let format = match options.format {
        Some(Format::PiSession) if !is_pi(values) => {
            return Err(ReadError::NotThisFormat { format: Format::PiSession });
        }
        Some(Format::CodexRollout) if !codex::is_rollout(values) => {
            return Err(ReadError::NotThisFormat { format: Format::CodexRollout });
        }
        Some(Format::EpitomeJson) if !is_epitome => {
            return Err(ReadError::NotThisFormat { format: Format::EpitomeJson });
        }
        Some(format @ (Format::ClaudeCode | Format::ClaudeStreamJson)) if claude != Some(format) => {
            return Err(ReadError::NotThisFormat { format });
        }
        Some(format) => Some(format),
        None if is_epitome => Some(Format::EpitomeJson),
        None if is_pi(values) => Some(Format::PiSession),
        None if claude.is_some() => claude,
        None if codex::is_rollout(values) => Some(Format::CodexRollout),
        None if gemini::is_session(values) => Some(Format::Gemini),
        None => match foreign(values) {
            Some(format) => return Err(ReadError::NotSupportedYet { format }),
            None if openai_responses::is_log(values) || openai_responses::holds_items(values) => {
                Some(Format::OpenAiResponses)
            }
            None => None,
        },
    };
    // A session file is one conversation.
    let is_one = matches!(format, Some(Format::CodexRollout | Format::PiSession))
        || format.and_then(Flavor::of).is_some()
        || format == Some(Format::Gemini) && gemini::is_session(values);
    if is_one {
        choose(vec![()], options.conversation, || ReadError::UnknownFormat)?;
    }
    if format == Some(Format::CodexRollout) {
        return Ok((Format::CodexRollout, Container::Codex(codex::read(source, values, assembly)?)));
    }
    if format == Some(Format::PiSession) {
        return Ok((Format::PiSession, Container::Pi(pi::read(source, values, assembly)?)));
    }
    if let Some(flavor) = format.and_then(Flavor::of) {
        let file = claude_code::read(source, values, flavor, assembly)?;
        return Ok((flavor.format(), Container::Claude(file)));
    }
    // What is written around other messages must not take damage over.
    let whole = match (values.first(), values.last()) {
        (Some(first), Some(last)) if assembly.is_damaged() || assembly.is_unfinished() => {
            first.range().start..last.range().end
        }
        _ => start..source.bytes().len(),
    };
    if format == Some(Format::Gemini) && gemini::is_session(values) {
        return Ok((Format::Gemini, gemini::read_session(values, whole, assembly)));
    }
    let stray = values.iter().filter(|value| !value.is_object() && !value.is_array()).count();
    assembly.note_count(stray as u64, |count| Note::StrayValues { count });
    let unknown = || match (format, foreign_record(values)) {
        (Some(format), _) => ReadError::NotThisFormat { format },
        (None, Some(format)) => ReadError::NotSupportedYet { format },
        (None, None) => ReadError::UnknownFormat,
    };
    let responses = |assembly: &mut Assembly, whole: Range<usize>| {
        let list = openai_responses::read(values, whole, options.conversation, assembly, unknown)?;
        Ok((Format::OpenAiResponses, Container::Responses(list)))
    };
    if format == Some(Format::OpenAiResponses) {
        return responses(assembly, whole);
    }
    let found = conversations(values, whole.clone());
    // Items make other conversations of a source than messages do, so the first one decides for all.
    if format.is_none() && found.first().is_some_and(|first| dialect(first) == Ok(Dialect::Responses)) {
        return responses(assembly, whole);
    }
    let conversation = choose(found, options.conversation, unknown)?;
    let format = match format {
        Some(format) => format,
        None => match dialect(&conversation)? {
            Dialect::OpenAi | Dialect::Responses => Format::OpenAiChat,
            Dialect::Anthropic => Format::AnthropicMessages,
            Dialect::Gemini => Format::Gemini,
        },
    };
    read_list(conversation, format, assembly)
}

/// The wanted one of the conversations that were found.
pub(crate) fn choose<C>(
    mut found: Vec<C>,
    wanted: Option<usize>,
    unknown: impl FnOnce() -> ReadError,
) -> Result<C, ReadError> {
    let count = found.len();
    match wanted {
        _ if count == 0 => Err(unknown()),
        None if count > 1 => Err(ReadError::Conversations { count }),
        Some(index) if index >= count => Err(ReadError::NoSuchConversation { index, count }),
        wanted => Ok(found.swap_remove(wanted.unwrap_or(0))),
    }
}

fn read_list(
    conversation: Conversation<'_>,
    format: Format,
    assembly: &mut Assembly,
) -> Result<(Format, Container), ReadError> {
    if conversation.requests > 1 {
        assembly.note(Note::RepeatedHistory { requests: conversation.requests });
    }
    let mut list = conversation.list.clone();
    match format {
        Format::EpitomeJson => epitome_json::read(&conversation, assembly)?,
        Format::AnthropicMessages => {
            list.system = anthropic::read(&conversation, assembly)?;
        }
        Format::Gemini => {
            list.system = gemini::read(&conversation, assembly)?;
            // Of what is not a request only the contents are recorded.
            list.lacks_prompt = !conversation.object.is_some_and(|object| object.has("contents"));
        }
        _ => openai_chat::read(&conversation, assembly)?,
    }
    let had = assembly.len();
    if let Some(reply) = conversation.reply {
        reply_message(reply, format, assembly)?;
    }
    if assembly.len() > had {
        // Left in its place beside the messages, it would be read a second time.
        list.reply = conversation.object.and_then(|object| whole_field(object, REPLY_FIELD));
    }
    Ok((format, Container::List(list)))
}

/// Takes a reply as the last message. Some logs hold it as the text of its JSON, or as the stream of events in
/// which it came.
fn reply_message(reply: Value<'_>, format: Format, assembly: &mut Assembly) -> Result<(), ReadError> {
    let text = assembly.faults.string(Some(reply));
    let text = event_stream::assemble(&text).unwrap_or_else(|| text.into_bytes());
    let mut stream = Values::new(&text, 0);
    let inner = match stream.next() {
        Some(Found::Value(range)) => Some(range),
        _ => None,
    };
    let source = stream.into_source();
    let (reply, is_in_source) = inner.map_or((reply, true), |range| (source.value(range), false));
    match format {
        Format::AnthropicMessages => anthropic::reply_message(reply, is_in_source, assembly),
        Format::OpenAiChat => openai_chat::reply_message(reply, assembly),
        Format::Gemini => gemini::reply_message(reply, is_in_source, assembly),
        _ => Ok(()),
    }
}

fn lines(bytes: &[u8], from: usize, to: usize) -> u64 {
    memchr::memchr_iter(b'\n', bytes.get(from..to).unwrap_or_default()).count() as u64
}
