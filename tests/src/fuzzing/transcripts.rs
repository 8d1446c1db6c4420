//! Readers, writers and the repair of transcripts.

use epitome_loop::{Message, Role};
use epitome_transcripts::{
    Format, Note, ReadError, ReadOptions, Replacement, Session, WriteReport, read, repair, write,
};

use super::order::{fault, waits};
use super::sameness::{are_the_same, say_the_same};

/// A summary with what has to be escaped in JSON.
const SUMMARY: &str = "what <was> \"before\"\n\u{1f600}";

/// Bytes that a message or a block may grow by when it is written in another format: keys, marks of losses, ids, and
/// the record around it.
const GROWTH: usize = 96;

/// The laws of transcripts for an input in Anthropic's format.
pub fn transcript_anthropic(bytes: &[u8]) {
    hold(bytes, Some(Format::AnthropicMessages));
}

/// The laws of transcripts for an input whose format is found out.
pub fn transcript_detect(bytes: &[u8]) {
    hold(bytes, None);
}

/// The laws of transcripts for a session of Claude Code.
pub fn transcript_claude_code(bytes: &[u8]) {
    hold(bytes, Some(Format::ClaudeCode));
}

/// The laws of transcripts for what Claude Code prints.
pub fn transcript_claude_stream_json(bytes: &[u8]) {
    hold(bytes, Some(Format::ClaudeStreamJson));
}

/// The laws of transcripts for a rollout of Codex.
pub fn transcript_codex(bytes: &[u8]) {
    hold(bytes, Some(Format::CodexRollout));
}

/// The laws of transcripts for an Epitome JSON.
pub fn transcript_epitome(bytes: &[u8]) {
    hold(bytes, Some(Format::EpitomeJson));
}

/// The laws of transcripts for contents of Gemini or a session of its command line.
pub fn transcript_gemini(bytes: &[u8]) {
    hold(bytes, Some(Format::Gemini));
}

/// The laws of transcripts for an input in the format of chat completions.
pub fn transcript_openai_chat(bytes: &[u8]) {
    hold(bytes, Some(Format::OpenAiChat));
}

/// The laws of transcripts for items of the Responses API.
pub fn transcript_openai_responses(bytes: &[u8]) {
    hold(bytes, Some(Format::OpenAiResponses));
}

/// The laws of transcripts for a session of pi.
pub fn transcript_pi(bytes: &[u8]) {
    hold(bytes, Some(Format::PiSession));
}

/// Any bytes are read or refused. What is read is written as it was; repaired, it is legal and stays so when
/// it is written and read again; compacted, it reads as the summary and what was kept; and every format takes
/// it, within a length that its own gives.
fn hold(bytes: &[u8], format: Option<Format>) {
    let options = ReadOptions { format, conversation: None };
    match read_watched(bytes, &options) {
        Ok(session) => hold_session(bytes, &session, &options),
        Err(ReadError::Conversations { count }) => {
            assert!(count > 1, "several conversations are none");
            for conversation in [0, count - 1] {
                let options = ReadOptions { conversation: Some(conversation), ..options };
                match read_watched(bytes, &options) {
                    Ok(session) => hold_session(bytes, &session, &options),
                    Err(error) => {
                        assert!(!matches!(
                            error,
                            ReadError::Conversations { .. } | ReadError::NoSuchConversation { .. }
                        ));
                    }
                }
            }
        }
        Err(_) => {}
    }
}

/// Reads, and holds the report of progress to its promise.
fn read_watched(bytes: &[u8], options: &ReadOptions) -> Result<Session, ReadError> {
    let mut reached = 0;
    let session = read(bytes, options, &mut |now| {
        assert!(reached <= now && now <= bytes.len() as u64, "progress goes back, or beyond the end");
        reached = now;
    });
    assert!(session.is_err() || reached == bytes.len() as u64, "progress does not reach the end");
    session
}

fn hold_session(bytes: &[u8], session: &Session, options: &ReadOptions) {
    let all = everything(session);
    let (written, report) = written(session, None, &all, session.format());
    if is_unchanged(session) {
        assert!(written == bytes, "untouched, it is written otherwise");
        assert_eq!(report, WriteReport { verbatim: all.len(), ..WriteReport::default() });
    }
    let known = ReadOptions { format: Some(session.format()), ..*options };
    match read(bytes, &known, &mut |_| {}) {
        Ok(named) => {
            assert!(named.messages() == session.messages(), "with its format named it reads otherwise")
        }
        Err(_) => panic!("with its format named it is refused"),
    }

    let (repaired, repairs) = repair(session);
    assert_eq!(fault(repaired.messages()), None, "after {repairs:?}");
    assert_eq!(repair(&repaired).1, [], "a repaired session needs another repair");
    if repaired.messages().is_empty() {
        return;
    }
    let all = everything(&repaired);
    let blocks: usize = repaired.messages().iter().map(|message| message.blocks().len()).sum();
    for format in Format::ALL {
        let (bytes_in_it, report) = self::written(&repaired, None, &all, format);
        let most = 8 * bytes.len() + GROWTH * (all.len() + blocks + 16);
        assert!(bytes_in_it.len() <= most, "{format} takes {} for {}", bytes_in_it.len(), bytes.len());
        let of_several = options.conversation.filter(|_| format == session.format());
        let back = read_back(&bytes_in_it, format, of_several);
        // Another format may hold it in another way; ours holds everything.
        let same = match format {
            Format::EpitomeJson => are_the_same(back.messages(), repaired.messages()),
            _ if format == session.format() && report.losses.is_empty() => say_the_same(
                &held(format, back.messages()),
                &held(format, repaired.messages()),
                format != Format::Gemini,
            ),
            _ => true,
        };
        assert!(same, "repaired and written as {format}, it reads otherwise");
        // Where pictures in results are written behind them, a turn that waits for further results is no longer
        // the last one.
        if format == session.format() || !waits(repaired.messages()) {
            assert_eq!(fault(back.messages()), None, "repaired and written as {format}");
        }
    }

    // Half of it, in a way that leaves holes.
    let lead = repaired.leading_system();
    let mut kept: Vec<usize> = all.into_iter().filter(|index| *index < lead || index % 3 != 0).collect();
    let format = repaired.format();
    if is_of_items(format) || format == Format::Gemini {
        // What only refers to a call is known by its result, and ids may be missing, so exchanges are kept whole.
        let kept_whole = |(at, exchange): (usize, Vec<usize>)| (at < lead || at % 3 != 0).then_some(exchange);
        kept =
            exchanges(repaired.messages()).into_iter().enumerate().filter_map(kept_whole).flatten().collect();
    }
    let (compacted, report) = self::written(&repaired, Some(SUMMARY), &kept, repaired.format());
    let back = read_back(&compacted, repaired.format(), options.conversation);
    if report.losses.is_empty() {
        let mut expected: Vec<Message> =
            kept.iter().filter_map(|&index| repaired.messages().get(index).cloned()).collect();
        let lead = expected.iter().take_while(|message| message.role() == Role::System).count();
        expected.insert(lead, Message::user(SUMMARY));
        let (back, expected) = (held(format, back.messages()), held(format, &expected));
        assert!(say_the_same(&back, &expected, format != Format::Gemini), "compacted, it reads otherwise");
    }
}

/// Whether messages are made of items.
fn is_of_items(format: Format) -> bool {
    matches!(format, Format::OpenAiResponses | Format::CodexRollout)
}

/// Messages as a format holds them: where they are made of items, what the model says in a row is one.
fn held(format: Format, messages: &[Message]) -> Vec<Message> {
    let mut held: Vec<Message> = Vec::new();
    for message in messages {
        match (held.last_mut(), message) {
            (Some(Message::Assistant { blocks: said, .. }), Message::Assistant { blocks, .. })
                if is_of_items(format) =>
            {
                *said = said.iter().chain(blocks.iter()).cloned().collect();
            }
            (_, message) => held.push(message.clone()),
        }
    }
    held
}

/// Messages by index, each with the results behind it.
fn exchanges(messages: &[Message]) -> Vec<Vec<usize>> {
    let mut exchanges: Vec<Vec<usize>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match exchanges.last_mut() {
            Some(exchange) if message.role() == Role::Tool => exchange.push(at),
            _ => exchanges.push(vec![at]),
        }
    }
    exchanges
}

fn everything(session: &Session) -> Vec<usize> {
    (0..session.messages().len()).collect()
}

/// Whether no text had to be repaired while reading.
fn is_unchanged(session: &Session) -> bool {
    !session.notes().iter().any(|note| matches!(note, Note::LoneSurrogates { .. } | Note::InvalidUtf8 { .. }))
}

fn written(
    session: &Session,
    summary: Option<&str>,
    kept: &[usize],
    format: Format,
) -> (Vec<u8>, WriteReport) {
    match write(session, &Replacement { summary, kept }, format) {
        Ok(written) => written,
        Err(error) => panic!("{format} is not written: {error}"),
    }
}

/// Reads what was written; one of several conversations stands where it stood, unless it was a log's.
fn read_back(bytes: &[u8], format: Format, of_several: Option<usize>) -> Session {
    let read = |conversation| read(bytes, &ReadOptions { format: Some(format), conversation }, &mut |_| {});
    let back = match read(None) {
        Err(ReadError::Conversations { .. }) if of_several.is_some() => read(of_several),
        back => back,
    };
    match back {
        Ok(session) => session,
        Err(error) => panic!("{format}, written by us, is refused: {error}"),
    }
}
