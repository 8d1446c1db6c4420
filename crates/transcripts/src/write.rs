//! From a session and a replacement to bytes.

use std::ops::Range;

use epitome_loop::{Block, Message, Role};

use crate::claude_code::Flavor;
use crate::container::{Container, List};
use crate::loss::{LEFT_OUT, Loss, LossKind, Losses};
use crate::session::Original;
use crate::{
    Format, Session, WriteError, anthropic, claude_code, codex, epitome_json, gemini, openai_chat,
    openai_responses, pi,
};

/// What a session is to become.
#[derive(Clone, Copy)]
pub struct Replacement<'a> {
    /// The text of a summary, which becomes a user message right behind the system messages that lead what is kept.
    pub summary: Option<&'a str>,
    /// Indexes of the messages that stay, ascending, leading system messages included.
    pub kept: &'a [usize],
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// How many messages were written byte for byte.
    pub verbatim: usize,
    /// How many messages were encoded anew.
    pub encoded: usize,
    /// What the target could not hold, by kind.
    pub losses: Vec<Loss>,
}

/// One message to encode.
pub(crate) struct Item {
    pub(crate) message: Message,
    /// Whether it is a summary of what stood before.
    pub(crate) is_summary: bool,
}

/// A stretch of what is written.
pub(crate) enum Piece {
    /// An original as it stands.
    Original {
        /// Its index.
        original: usize,
        /// Index of its first message.
        message: usize,
    },
    /// Messages that are encoded.
    Encoded(Vec<Item>),
}

/// Writes what a replacement leaves of a session.
///
/// In the session's own format, originals whose messages are all kept and unchanged are written byte for
/// byte, and what stands around the messages stays as it is. Without a summary, with everything kept and
/// nothing changed, the output equals the input. Otherwise, of a log of requests the newest request is
/// written, with its reply as the last message. In another format everything is encoded anew, and the report
/// counts what did not fit; the two formats that are made of OpenAI's items share them as they stand.
///
/// # Errors
/// [`WriteError`] when the replacement is not one of this session.
pub fn write(
    session: &Session,
    replacement: &Replacement<'_>,
    format: Format,
) -> Result<(Vec<u8>, WriteReport), WriteError> {
    check(session, replacement)?;
    if format == session.format && keeps_everything(session, replacement) {
        let verbatim = session.messages.len();
        return Ok((session.source.to_vec(), WriteReport { verbatim, ..WriteReport::default() }));
    }
    let mut losses = Losses::default();
    let mut pieces = pieces(session, replacement, format);
    if format != session.format && format != Format::EpitomeJson {
        let items = pieces.iter_mut().flat_map(|piece| match piece {
            Piece::Encoded(items) => items.as_mut_slice(),
            Piece::Original { .. } => &mut [],
        });
        items.for_each(|item| leave_out_misplaced_calls(&mut item.message, &mut losses));
    }
    let mut report = WriteReport::default();
    for piece in &pieces {
        match piece {
            Piece::Original { original, .. } => {
                report.verbatim += session.originals.get(*original).map_or(0, |original| original.messages);
            }
            Piece::Encoded(items) => report.encoded += items.len(),
        }
    }
    let bytes = match (&*session.container, format == session.format) {
        (Container::List(list), true) => write_list(session, list, pieces, &mut losses),
        (Container::Responses(file), true) => {
            openai_responses::write_kept(session, file, pieces, &mut losses)
        }
        (Container::Pi(file), true) => pi::write_kept(session, file, pieces, &mut losses),
        (Container::Codex(file), true) => codex::write_kept(session, file, pieces, &mut losses),
        (Container::GeminiRecords(file), true) => gemini::write_kept(session, file, pieces, &mut losses),
        (Container::Claude(file), true) => claude_code::write_kept(session, file, pieces, &mut losses),
        _ if format == Format::OpenAiResponses => openai_responses::write_new(session, pieces, &mut losses),
        _ if format == Format::CodexRollout => codex::write_new(session, pieces, &mut losses),
        _ => write_new(session, items(pieces), format, &mut losses),
    };
    report.losses = losses.into_list();
    Ok((bytes, report))
}

/// Takes out calls that stand in a message of somebody else than the model, where they are no calls to a
/// provider.
fn leave_out_misplaced_calls(message: &mut Message, losses: &mut Losses) {
    let (Message::User { blocks } | Message::System { blocks } | Message::ToolResult { blocks, .. }) =
        message
    else {
        return;
    };
    let is_call = |block: &Block| matches!(block, Block::ToolUse(_));
    let calls = blocks.iter().filter(|block| is_call(block)).count();
    if calls > 0 {
        (0..calls).for_each(|_| losses.add(LossKind::MisplacedCall));
        let kept = |block: &Block| if is_call(block) { Block::text(LEFT_OUT) } else { block.clone() };
        *blocks = blocks.iter().map(kept).collect();
    }
}

fn check(session: &Session, replacement: &Replacement<'_>) -> Result<(), WriteError> {
    let mut least = 0;
    for (position, &index) in replacement.kept.iter().enumerate() {
        if index < least || index >= session.messages.len() {
            return Err(WriteError::Kept { position });
        }
        least = index + 1;
    }
    match replacement.summary {
        Some(summary) if summary.trim().is_empty() => Err(WriteError::BlankSummary),
        _ => Ok(()),
    }
}

fn keeps_everything(session: &Session, replacement: &Replacement<'_>) -> bool {
    session.is_pristine && replacement.summary.is_none() && replacement.kept.len() == session.messages.len()
}

/// Cuts what is kept into originals that can be written as they stand and messages that must be encoded.
fn pieces(session: &Session, replacement: &Replacement<'_>, format: Format) -> Vec<Piece> {
    // Both formats of OpenAI are made of the same items, so those stay byte for byte too.
    let shares_items = [format, session.format].into_iter().all(openai_responses::is_item_format);
    let verbatim = format == session.format || shares_items;
    // What an earlier compaction put before its summary is marked too, where all that it left can be.
    let summaries = match format {
        Format::EpitomeJson => session.leading_system,
        _ => session.leading_system + session.before_summary,
    };
    let mut pieces = Vec::new();
    let mut summary = replacement.summary;
    let mut kept = replacement.kept;
    let mut behind_result = false;
    loop {
        let next = kept.first().copied();
        let is_system =
            |index: usize| session.messages.get(index).is_some_and(|at| at.role() == Role::System);
        if !next.is_some_and(is_system)
            && let Some(summary) = summary.take()
        {
            encode(&mut pieces, Item { message: Message::user(summary), is_summary: true });
        }
        let Some(index) = next else { return pieces };
        // The provider ignores what stands before its own compaction item, the new summary included.
        let hides_summary = replacement.summary.is_some()
            && session.format == Format::AnthropicMessages
            && is_earlier_summary(session, index);
        let whole = if verbatim && !hides_summary { whole_original(session, kept) } else { None };
        // Gemini wants the responses to the calls of one message in one content.
        let whole = whole.filter(|(_, messages)| {
            session.format != Format::Gemini || !parts_results(session, kept, *messages, behind_result)
        });
        let (taken, rest) = kept.split_at(whole.map_or(1, |(_, messages)| messages));
        behind_result = is_result(session, taken.last().copied());
        if let Some((original, _)) = whole {
            pieces.push(Piece::Original { original, message: index });
        } else if let Some(message) = session.messages.get(index) {
            let is_summary =
                index >= summaries && is_earlier_summary(session, index) && message.role() == Role::User;
            encode(&mut pieces, Item { message: message.clone(), is_summary });
        }
        kept = rest;
    }
}

/// Whether an original of this many messages would hold only some of the results that stand in a row, the
/// message before it being one of them or not.
fn parts_results(session: &Session, kept: &[usize], messages: usize, behind_result: bool) -> bool {
    let last = messages.checked_sub(1).and_then(|last| kept.get(last).copied());
    let goes_on = is_result(session, last) && is_result(session, kept.get(messages).copied());
    goes_on || behind_result && is_result(session, kept.first().copied())
}

fn is_result(session: &Session, index: Option<usize>) -> bool {
    index.and_then(|index| session.messages.get(index)).is_some_and(|message| message.role() == Role::Tool)
}

/// Whether a message is a summary that the source marks as one.
pub(crate) fn is_earlier_summary(session: &Session, index: usize) -> bool {
    let end = session.leading_system + session.derived_prefix;
    let derived = match session.format {
        // Codex keeps words of the user before its summary.
        Format::CodexRollout => end.saturating_sub(1).max(session.leading_system)..end,
        _ => session.leading_system..end,
    };
    derived.contains(&index) && session.origins.get(index).is_some_and(|origin| origin.original.is_some())
}

/// The original whose messages are exactly the next kept ones, unchanged and in order, and their number.
fn whole_original(session: &Session, kept: &[usize]) -> Option<(usize, usize)> {
    let original = session.origins.get(*kept.first()?)?.original?;
    let messages = session.originals.get(original)?.messages;
    let whole = kept.get(..messages)?.iter().enumerate().all(|(part, &index)| {
        session
            .origins
            .get(index)
            .is_some_and(|origin| origin.original == Some(original) && origin.part == part && !origin.changed)
    });
    (whole && messages > 0).then_some((original, messages))
}

fn encode(pieces: &mut Vec<Piece>, item: Item) {
    match pieces.last_mut() {
        Some(Piece::Encoded(items)) => items.push(item),
        _ => pieces.push(Piece::Encoded(vec![item])),
    }
}

fn items(pieces: Vec<Piece>) -> Vec<Item> {
    let of_piece = |piece| match piece {
        Piece::Encoded(items) => items,
        Piece::Original { .. } => Vec::new(),
    };
    pieces.into_iter().flat_map(of_piece).collect()
}

/// An element of the list that is written.
pub(crate) enum Element {
    Original(Original),
    Encoded(Vec<u8>),
}

fn write_list(session: &Session, list: &List, pieces: Vec<Piece>, losses: &mut Losses) -> Vec<u8> {
    let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
    let mut elements = Vec::new();
    let mut system = Vec::new();
    let mut system_stays = false;
    let mut between = gemini::Between::new(session, list.gemini_records);
    for piece in pieces {
        match piece {
            Piece::Original { original, message } => {
                between.passed(original, message);
                let Some(original) = session.originals.get(original) else { continue };
                if list.system.as_ref().is_some_and(|field| field.value == original.range) {
                    system_stays = true;
                } else {
                    elements.push(Element::Original(original.clone()));
                }
            }
            Piece::Encoded(items) => {
                let items = match &list.system {
                    Some(_) => leading_system(items, &mut system),
                    None => items,
                };
                let encoded = match session.format {
                    Format::AnthropicMessages => anthropic::encode(&items, true, losses),
                    Format::OpenAiChat => openai_chat::encode(&items, true, losses),
                    Format::Gemini => between.encode(&items, losses),
                    _ => epitome_json::encode(&items),
                };
                elements.extend(encoded.into_iter().map(Element::Encoded));
            }
        }
    }
    if let Some(field) = &list.system
        && !system_stays
    {
        let encoded = match session.format {
            Format::Gemini => gemini::encode_system(&system, losses),
            _ => anthropic::encode_system(&system, losses),
        };
        edits.push(match encoded {
            Some(value) => (field.value.clone(), value),
            None => (field.field.clone(), Vec::new()),
        });
    }
    edits.extend(list.reply.clone().map(|reply| (reply, Vec::new())));
    edits.push((list.inside.clone(), join(&session.source, list, &elements)));
    apply(&session.source, list.document.clone(), edits)
}

/// Moves the leading system messages out of `items`.
fn leading_system(items: Vec<Item>, system: &mut Vec<Item>) -> Vec<Item> {
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next_if(|item| matches!(item.message, Message::System { .. })) {
        system.push(item);
    }
    rest.collect()
}

/// The elements with what stood between them in the source, so that an indented list stays indented.
pub(crate) fn join(source: &[u8], list: &List, elements: &[Element]) -> Vec<u8> {
    let text = |range: Range<usize>| source.get(range).unwrap_or_default();
    let (lead, trail, between) = match list.elements.as_slice() {
        [] => (text(list.inside.clone()), &b""[..], None),
        [first, rest @ ..] => {
            let last = rest.last().unwrap_or(first);
            let between =
                rest.first().map(|second| text(first.end..second.start)).filter(|gap| is_gap(list, gap));
            (text(list.inside.start..first.start), text(last.end..list.inside.end), between)
        }
    };
    let own_separator = if list.in_array { [b",", lead].concat() } else { b"\n".to_vec() };
    let separator = between.unwrap_or(&own_separator);
    let mut out = lead.to_vec();
    let mut before: Option<&Original> = None;
    for (at, element) in elements.iter().enumerate() {
        let original = match element {
            Element::Original(original) => Some(original),
            Element::Encoded(_) => None,
        };
        if at > 0 {
            let gap = neighbors(list, before, original).map(text).filter(|gap| is_gap(list, gap));
            out.extend_from_slice(gap.unwrap_or(separator));
        }
        match element {
            Element::Original(Original { range, wrap: (open, close), .. }) => {
                out.extend_from_slice(open.as_bytes());
                out.extend_from_slice(text(range.clone()));
                out.extend_from_slice(close.as_bytes());
            }
            Element::Encoded(json) => out.extend_from_slice(json),
        }
        before = original;
    }
    out.extend_from_slice(trail);
    out
}

/// Whether bytes may stand between two elements; damaged lines may not, and among lines a comma is damage.
fn is_gap(list: &List, bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r') || list.in_array && *byte == b',')
}

/// What stands between two originals that are neighbors in the source.
fn neighbors(list: &List, before: Option<&Original>, after: Option<&Original>) -> Option<Range<usize>> {
    let (before, after) = (before?, after?);
    let at = list.elements.binary_search_by_key(&before.range.start, |element| element.start).ok()?;
    let next = list.elements.get(at + 1)?;
    (next.start == after.range.start).then_some(before.range.end..after.range.start)
}

/// A part of the source with stretches of it replaced.
pub(crate) fn apply(
    source: &[u8],
    document: Range<usize>,
    mut edits: Vec<(Range<usize>, Vec<u8>)>,
) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = Vec::new();
    let mut at = document.start;
    for (range, new) in edits {
        out.extend_from_slice(source.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(&new);
        at = range.end.max(at);
    }
    out.extend_from_slice(source.get(at..document.end).unwrap_or_default());
    out
}

/// Writes a session in a format that it was not read from.
fn write_new(session: &Session, items: Vec<Item>, format: Format, losses: &mut Losses) -> Vec<u8> {
    use crate::json::object;
    let model = session.model.as_ref();
    match format {
        Format::EpitomeJson | Format::OpenAiResponses | Format::CodexRollout => {
            epitome_json::encode_document(model, &session.tools, &items)
        }
        Format::PiSession => pi::write_new(session, &items, losses),
        Format::ClaudeCode => claude_code::write_new(session, items, Flavor::Session, losses),
        Format::ClaudeStreamJson => claude_code::write_new(session, items, Flavor::Stream, losses),
        Format::Gemini => object(|out| {
            if let Some(model) = model {
                out.text("model", &model.model);
            }
            let system = items.iter().take_while(|item| matches!(item.message, Message::System { .. }));
            let (system, rest) = items.split_at(system.count());
            if let Some(system) = gemini::encode_system(system, losses) {
                out.raw("systemInstruction", &system);
            }
            let contents = gemini::encode(rest, false, &mut gemini::CallNames::default(), losses);
            out.array("contents", |list| contents.iter().for_each(|content| list.raw(content)));
            if let Some(tools) = gemini::encode_tools(&session.tools, losses) {
                out.raw("tools", &tools);
            }
        }),
        Format::OpenAiChat => object(|out| {
            if let Some(model) = model {
                out.text("model", &model.model);
            }
            let messages = openai_chat::encode(&items, false, losses);
            out.array("messages", |list| messages.iter().for_each(|message| list.raw(message)));
            let tools = openai_chat::encode_tools(&session.tools, losses);
            if !tools.is_empty() {
                out.array("tools", |list| tools.iter().for_each(|tool| list.raw(tool)));
            }
        }),
        Format::AnthropicMessages => object(|out| {
            if let Some(model) = model {
                out.text("model", &model.model);
            }
            let system = items.iter().take_while(|item| matches!(item.message, Message::System { .. }));
            let (system, rest) = items.split_at(system.count());
            if let Some(system) = anthropic::encode_system(system, losses) {
                out.raw("system", &system);
            }
            let messages = anthropic::encode(rest, session.format.is_anthropic(), losses);
            out.array("messages", |list| messages.iter().for_each(|message| list.raw(message)));
            let tools = anthropic::encode_tools(&session.tools, losses);
            if !tools.is_empty() {
                out.array("tools", |list| tools.iter().for_each(|tool| list.raw(tool)));
            }
        }),
    }
}
