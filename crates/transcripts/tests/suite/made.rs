//! Sessions of messages that no file holds, and messages behind those that a file holds.

use std::path::Path;

use epitome_loop::{Block, Message, ModelKey, RawJson, ToolUse};
use epitome_transcripts::{Format, ReadOptions, Replacement, Session, read, repair, write};

fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

fn parse(bytes: &[u8], format: Option<Format>) -> Session {
    read(bytes, &ReadOptions { format, conversation: None }, &mut |_| {}).unwrap()
}

fn further() -> Vec<Message> {
    let input = RawJson::parse("{\"path\":\"a\"}").unwrap();
    let call = Block::ToolUse(ToolUse::new("call_further", "read_file", Some(input), None));
    vec![
        Message::user("a further question"),
        Message::Assistant { blocks: [Block::text("looking"), call].into(), usage: None },
        Message::tool_result("call_further", "a further result", false),
        Message::Assistant { blocks: [Block::text("a further answer")].into(), usage: None },
    ]
}

fn written(session: &Session, summary: Option<&str>, kept: &[usize], format: Format) -> Vec<u8> {
    write(session, &Replacement { summary, kept }, format).unwrap().0
}

/// What messages say, without what formats add to it.
fn said(messages: &[Message]) -> Vec<String> {
    let blocks =
        messages.iter().flat_map(|message| message.blocks().iter().map(move |block| (message, block)));
    let said = blocks.filter_map(|(message, block)| match (message, block) {
        (Message::ToolResult { tool_use_id, .. }, Block::Text { text }) => {
            Some(format!("{}: {}", tool_use_id.as_str(), text.as_str()))
        }
        (_, Block::Text { text }) => Some(format!("{}: {}", message.role().as_str(), text.as_str())),
        (_, Block::ToolUse(call)) => Some(format!("{}({})", call.name.as_str(), call.id.as_str())),
        _ => None,
    });
    said.collect()
}

#[test]
fn further_messages_stand_behind_what_was_read() {
    for (name, bytes) in fixtures() {
        let (session, repairs) = repair(&parse(&bytes, None));
        let longer = session.with_further(&further());
        let all: Vec<usize> = (0..longer.messages().len()).collect();
        let out = written(&longer, None, &all, session.format());
        let back = parse(&out, Some(session.format()));
        let tail = said(&further());
        let found = said(back.messages());
        assert_eq!(found.get(found.len() - tail.len()..), Some(tail.as_slice()), "{name}");
        // What stood in the file before stands in it still, byte for byte, where nothing had to be repaired.
        let (kept, report) =
            write(&longer, &Replacement { summary: None, kept: &all }, session.format()).unwrap();
        assert_eq!(kept, out, "{name}");
        assert_eq!(report.encoded + report.verbatim, all.len(), "{name}");
        if repairs.is_empty() && session.notes().is_empty() {
            assert_eq!(report.encoded, further().len(), "{name}");
        }
        // A summary in front of it all, and only the further messages kept.
        let first = longer.messages().len() - further().len();
        let short = written(&longer, Some("a summary"), &all[first..], session.format());
        let found = said(parse(&short, Some(session.format())).messages());
        assert_eq!(found.get(found.len() - tail.len()..), Some(tail.as_slice()), "{name}");
        assert!(found.iter().any(|text| text.contains("a summary")), "{name}");
    }
}

#[test]
fn nothing_behind_it_leaves_a_session_as_it_is() {
    for (name, bytes) in fixtures() {
        let session = parse(&bytes, None).with_further(&[]);
        let all: Vec<usize> = (0..session.messages().len()).collect();
        let (out, _) = write(&session, &Replacement { summary: None, kept: &all }, session.format()).unwrap();
        let (expected, _) =
            write(&parse(&bytes, None), &Replacement { summary: None, kept: &all }, session.format())
                .unwrap();
        assert_eq!(out, expected, "{name}");
    }
}

#[test]
fn a_session_made_of_messages_is_written_in_every_format() {
    let tool = RawJson::parse(
        "{\"name\":\"read_file\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}}",
    );
    let messages: Vec<Message> = std::iter::once(Message::system("be brief")).chain(further()).collect();
    let made =
        Session::of_messages(messages.clone(), vec![tool.unwrap()], Some(ModelKey::new("anthropic", "m")));
    assert_eq!((made.format(), made.leading_system(), made.derived_prefix()), (Format::EpitomeJson, 1, 0));
    let all: Vec<usize> = (0..messages.len()).collect();
    for format in Format::ALL {
        let back = parse(&written(&made, None, &all, format), Some(format));
        let (found, expected) = (said(back.messages()), said(&messages[1..]));
        assert_eq!(found.get(found.len() - expected.len()..), Some(expected.as_slice()), "{format}");
        let other = made.with_further(&[Message::user("one more")]);
        let longer: Vec<usize> = (0..=messages.len()).collect();
        let found = said(parse(&written(&other, None, &longer, format), Some(format)).messages());
        assert_eq!(found.last().map(String::as_str), Some("user: one more"), "{format}");
    }
    // Its own format holds everything.
    let back = parse(&written(&made, None, &all, Format::EpitomeJson), None);
    assert_eq!((back.messages(), back.tools(), back.model()), (made.messages(), made.tools(), made.model()));
}

#[test]
fn sessions_of_other_messages_have_other_ids() {
    let ids = |text: &str| {
        let made = Session::of_messages(vec![Message::user(text)], Vec::new(), None);
        let out = String::from_utf8(written(&made, None, &[0], Format::ClaudeCode)).unwrap();
        let at = out.find("\"sessionId\":\"").unwrap() + 13;
        out.get(at..at + 36).unwrap().to_owned()
    };
    assert_eq!(ids("a"), ids("a"));
    assert_ne!(ids("a"), ids("b"));
}
