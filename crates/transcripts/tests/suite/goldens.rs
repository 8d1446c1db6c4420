//! Every fixture, read, repaired, compacted and translated, against files that people can read.
//!
//! `UPDATE_GOLDENS=1 cargo test -p epitome-transcripts --test goldens` writes the expected files anew; look at
//! the difference before it is committed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use epitome_loop::{Block, Message, Role};
use epitome_transcripts::{Format, ReadOptions, Replacement, Session, WriteReport, read, repair, write};

#[test]
fn fixtures_read_and_write_as_expected() {
    let mut checked = 0;
    for path in fixtures() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let extension = path.extension().unwrap().to_str().unwrap().to_owned();
        let bytes = std::fs::read(&path).unwrap();
        let session = parse(&bytes);
        expect(&name, "view.txt", view(&session).as_bytes());

        let (repaired, repairs) = repair(&session);
        let mut text = String::new();
        for repair in &repairs {
            writeln!(text, "{repair}").unwrap();
        }
        text.push_str(&messages(repaired.messages()));
        expect(&name, "repaired.txt", text.as_bytes());

        let (compacted, report) =
            write(&repaired, &newest_turn(&repaired).replacement(), session.format()).unwrap();
        expect(&name, &format!("compacted.{extension}"), &compacted);
        expect(&name, "compacted.txt", view_with_report(&parse(&compacted), &report).as_bytes());

        for format in Format::ALL {
            if format == session.format() {
                continue;
            }
            let all: Vec<usize> = (0..repaired.messages().len()).collect();
            let whole = Replacement { summary: None, kept: &all };
            let (translated, report) = write(&repaired, &whole, format).unwrap();
            let read_back = ReadOptions { format: Some(format), conversation: None };
            read(&translated, &read_back, &mut |_| {}).unwrap();
            let extension = format.extension();
            let mut text = losses(&report);
            text.push_str(&String::from_utf8(translated).unwrap());
            expect(&name, &format!("to-{format}.{extension}"), text.as_bytes());
        }
        checked += 1;
    }
    assert!(checked >= 23, "fixtures are missing");
}

#[test]
fn what_is_kept_whole_is_written_byte_for_byte() {
    for path in fixtures() {
        let bytes = std::fs::read(&path).unwrap();
        let session = parse(&bytes);
        let all: Vec<usize> = (0..session.messages().len()).collect();
        let (written, report) =
            write(&session, &Replacement { summary: None, kept: &all }, session.format()).unwrap();
        if path.ends_with("openai-surrogates.json") {
            // Half a surrogate pair is no text that may be sent, so the message with one differs.
            assert_eq!((report.verbatim, report.encoded), (2, 1));
            assert!(!String::from_utf8(written).unwrap().contains("\\ud83d "));
        } else {
            assert!(written == bytes, "{} changed", path.display());
        }
    }
}

/// A summary and the newest turn of the user.
struct NewestTurn(Vec<usize>);

impl NewestTurn {
    fn replacement(&self) -> Replacement<'_> {
        Replacement { summary: Some("Everything before, in \"short\" & <sweet>."), kept: &self.0 }
    }
}

fn newest_turn(session: &Session) -> NewestTurn {
    let messages = session.messages();
    let system = session.leading_system();
    let from = messages.iter().rposition(|message| message.role() == Role::User).unwrap_or(system);
    NewestTurn((0..system).chain(from.max(system)..messages.len()).collect())
}

fn parse(bytes: &[u8]) -> Session {
    read(bytes, &ReadOptions::default(), &mut |_| {}).unwrap()
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths
}

fn expect(fixture: &str, what: &str, actual: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/expected").join(fixture).join(what);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
    assert!(
        expected == actual,
        "{} differs; it would be:\n{}",
        path.display(),
        String::from_utf8_lossy(actual)
    );
}

fn view_with_report(session: &Session, report: &WriteReport) -> String {
    format!("verbatim {}, encoded {}\n{}{}", report.verbatim, report.encoded, losses(report), view(session))
}

fn losses(report: &WriteReport) -> String {
    report.losses.iter().fold(String::new(), |mut text, loss| {
        writeln!(text, "left out: {} x{}", loss.kind, loss.count).unwrap();
        text
    })
}

fn view(session: &Session) -> String {
    let mut text = format!("format {}\n", session.format());
    if let Some(model) = session.model() {
        writeln!(text, "model {} {}", model.provider.as_str(), model.model.as_str()).unwrap();
    }
    if let Some(title) = session.title() {
        writeln!(text, "title {:?}", title.as_str()).unwrap();
    }
    for tool in session.tools().iter() {
        writeln!(text, "tool {}", tool.as_str()).unwrap();
    }
    if let Some(cwd) = session.cwd() {
        writeln!(text, "in {}", cwd.as_str()).unwrap();
    }
    if let Some(time) = session.last_timestamp() {
        writeln!(text, "at {}", time.as_str()).unwrap();
    }
    if let Some(window) = session.context_window() {
        writeln!(text, "window {window}").unwrap();
    }
    writeln!(text, "system {}, derived {}", session.leading_system(), session.derived_prefix()).unwrap();
    if let Some(usage) = session.reported_usage() {
        writeln!(text, "usage at {}: {}", usage.message, usage.context_tokens).unwrap();
    }
    for note in session.notes() {
        writeln!(text, "note: {note}").unwrap();
    }
    text + &messages(session.messages())
}

fn messages(messages: &[Message]) -> String {
    let mut text = String::new();
    for (index, message) in messages.iter().enumerate() {
        write!(text, "{index} {}", message.role().as_str()).unwrap();
        match message {
            Message::ToolResult { tool_use_id, is_error, .. } => {
                writeln!(text, " {}{}", tool_use_id.as_str(), if *is_error { " error" } else { "" }).unwrap();
            }
            Message::Assistant { usage: Some(usage), .. } => {
                writeln!(text, " usage {:?}", usage.total_tokens().unwrap().get()).unwrap();
            }
            _ => text.push('\n'),
        }
        blocks(&mut text, message.blocks(), 1);
    }
    text
}

fn blocks(text: &mut String, blocks: &[Block], depth: usize) {
    for block in blocks {
        write!(text, "{:indent$}{}", "", block.kind(), indent = depth * 2).unwrap();
        match block {
            Block::Text { text: words } | Block::Refusal { text: words } => {
                writeln!(text, " {:?}", words.as_str())
            }
            Block::Image(image) => writeln!(
                text,
                " {} {} {:?}",
                image.media_type.as_str(),
                image.url.as_str(),
                image.data.as_ref().map(|data| data.as_slice().len())
            ),
            Block::Audio(audio) => writeln!(
                text,
                " {} {:?}",
                audio.media_type.as_str(),
                audio.data.as_ref().map(|data| data.as_slice().len())
            ),
            Block::Document(document) => writeln!(
                text,
                " {} {} {:?} {:?}",
                document.media_type.as_str(),
                document.name.as_str(),
                document.data.as_ref().map(|data| data.as_slice().len()),
                document.text.as_str()
            ),
            Block::Thinking(thinking) => writeln!(
                text,
                " {:?} {} {} {:?}",
                thinking.thinking.as_str(),
                thinking.signature_format.as_str(),
                thinking.signature.as_str(),
                thinking.provider_state.as_ref().map(|state| state.as_str())
            ),
            Block::ToolUse(call) => writeln!(
                text,
                " {} {} {:?} {} {:?}",
                call.id.as_str(),
                call.name.as_str(),
                call.input.as_ref().map(|input| input.as_str()),
                call.provider_state_format.as_str(),
                call.provider_state.as_ref().map(|state| state.as_str())
            ),
            Block::ToolResult(result) => {
                writeln!(
                    text,
                    " {}{}",
                    result.tool_use_id.as_str(),
                    if result.is_error { " error" } else { "" }
                )
                .unwrap();
                self::blocks(text, &result.content, depth + 1);
                Ok(())
            }
            Block::Opaque(opaque) => writeln!(text, " {} {}", opaque.kind.as_str(), opaque.raw.as_str()),
            _ => writeln!(text),
        }
        .unwrap();
    }
}
