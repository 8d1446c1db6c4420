//! Formats are told apart by their content.

use epitome_transcripts::{
    ForeignFormat as F, Format, Note, ReadError, ReadOptions, Replacement, read, write,
};

fn format_of(source: &str) -> Result<Format, ReadError> {
    read(source.as_bytes(), &ReadOptions::default(), &mut |_| {}).map(|session| session.format())
}

#[test]
fn supported_formats_are_found() {
    for (source, format) in [
        ("[]", Format::OpenAiChat),
        ("\u{feff}[{\"role\":\"user\",\"content\":\"hi\"}]", Format::OpenAiChat),
        (r#"{"messages":[{"role":"user","content":"hi"}],"model":"gpt-5"}"#, Format::OpenAiChat),
        (r#"{"input":"hi","messages":[{"role":"user","content":"hi"}]}"#, Format::OpenAiChat),
        (
            "{\"request\":{\"input\n{\"request\":{\"input\":\"hi\"},\"response\":{\"output\":[]}}",
            Format::OpenAiResponses,
        ),
        (r#"{"role":"user","content":"hi"}"#, Format::OpenAiChat),
        (
            "{\"role\":\"user\",\"content\":\"hi\"}\r\n{\"role\":\"assistant\",\"content\":\"ho\"}\r\n",
            Format::OpenAiChat,
        ),
        (r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]"#, Format::OpenAiChat),
        (r#"{"messages":[{"role":"user","content":"hi"}],"model":"anthropic/claude-x"}"#, Format::OpenAiChat),
        (r#"{"messages":[{"role":"user","content":"hi"}],"model":"claude-x"}"#, Format::AnthropicMessages),
        (r#"{"system":"s","messages":[{"role":"user","content":"hi"}]}"#, Format::AnthropicMessages),
        (
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}]}]"#,
            Format::AnthropicMessages,
        ),
        (r#"{"type":"session","id":"s","cwd":"/"}"#, Format::PiSession),
        (
            "{\"type\":\"sess\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}",
            Format::PiSession,
        ),
        (
            r#"[{"role":"system","content":"s"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]"#,
            Format::AnthropicMessages,
        ),
        (
            r#"[{"role":"user","content":[{"type":"thinking","thinking":"x"}]},{"role":"tool","tool_call_id":"a"}]"#,
            Format::OpenAiChat,
        ),
        (r#"{"epitome":1,"messages":[]}"#, Format::EpitomeJson),
        (r#"{"model":"gpt-5","input":[{"role":"user","content":"x"}]}"#, Format::OpenAiResponses),
        (r#"{"model":"gpt-5","input":"x"}"#, Format::OpenAiResponses),
        (r#"[{"role":"user","content":[{"type":"input_text","text":"x"}]}]"#, Format::OpenAiResponses),
        (
            r#"[{"role":"user","content":"x"},{"type":"function_call","call_id":"c"}]"#,
            Format::OpenAiResponses,
        ),
        (r#"{"type":"message","role":"user","content":"x"}"#, Format::OpenAiResponses),
        (
            "{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\"}\n{\"type\":\"reasoning\",\"summary\":[]}",
            Format::OpenAiResponses,
        ),
        (r#"[{"uri":"u","request":{"input":"x"},"response":{"output":[]}}]"#, Format::OpenAiResponses),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"input_text","text":"x"}]}]}"#,
            Format::OpenAiResponses,
        ),
        (r#"{"timestamp":"t","type":"session_meta","payload":{}}"#, Format::CodexRollout),
        (
            "{\"timestamp\":\"t\",\"type\":\"sess\n{\"type\":\"response_item\",\"payload\":{\"type\":\"reasoning\"}}",
            Format::CodexRollout,
        ),
        (
            "{\"id\":\"i\",\"timestamp\":\"t\",\"instructions\":null}\n{\"type\":\"message\",\"role\":\"user\",\"content\":[]}",
            Format::CodexRollout,
        ),
        (r#"[{"role":"user","parts":[{"text":"x"}]}]"#, Format::Gemini),
        (r#"[{"parts":[{"text":"x"}]}]"#, Format::Gemini),
        (r#"{"contents":[{"role":"user","parts":[{"text":"x"}]}]}"#, Format::Gemini),
        (r#"{"contents":[],"generationConfig":{}}"#, Format::Gemini),
        (
            r#"{"error":{"message":"m"},"context":[{"role":"user","parts":[]},[{"text":"x"}]]}"#,
            Format::Gemini,
        ),
        (r#"{"history":[{"role":"user","parts":[]}],"authType":"a"}"#, Format::Gemini),
        ("{\"role\":\"user\",\"parts\":[]}\n{\"role\":\"model\",\"parts\":[]}", Format::Gemini),
        (
            r#"{"request":{"contents":[{"parts":[{"text":"x"}]}]},"response":{"candidates":[]}}"#,
            Format::Gemini,
        ),
        (r#"{"sessionId":"s","projectHash":"h","messages":[]}"#, Format::Gemini),
        (
            "{\"sessionId\":\"s\",\"projectHash\":\"h\"}\n{\"id\":\"1\",\"timestamp\":\"t\",\"type\":\"user\",\"content\":\"x\"}",
            Format::Gemini,
        ),
        (
            "{\"sessionId\":\"s\n{\"id\":\"1\",\"timestamp\":\"t\",\"type\":\"gemini\",\"content\":\"\"}",
            Format::Gemini,
        ),
        (
            r#"{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"x"}}"#,
            Format::ClaudeCode,
        ),
        (
            "{\n \"type\": \"summary\",\n \"summary\": \"t\",\n \"leafUuid\": \"l\"\n}\n{\n \"type\": \"user\"\n}",
            Format::ClaudeCode,
        ),
        (r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#, Format::ClaudeCode),
        (r#"{"type":"mode","mode":"normal","sessionId":"s"}"#, Format::ClaudeCode),
        (
            "{\"type\":\"us\n17\n{\"type\":\"assistant\",\"uuid\":\"u\",\"parentUuid\":null,\"message\":{\"role\":\"assistant\",\"content\":[]}}",
            Format::ClaudeCode,
        ),
        (
            r#"[{"parentUuid":null,"type":"user","uuid":"u","message":{"role":"user","content":"x"}}]"#,
            Format::ClaudeCode,
        ),
        (r#"{"type":"system","subtype":"init","tools":[]}"#, Format::ClaudeStreamJson),
        (
            r#"{"type":"user","session_id":"s","message":{"role":"user","content":"x"}}"#,
            Format::ClaudeStreamJson,
        ),
    ] {
        assert_eq!(format_of(source), Ok(format), "{source}");
    }
}

#[test]
fn foreign_formats_are_named() {
    for (source, format) in [
        (
            "{\"type\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n{\"type\":\"message\",\"role\":\"user\",\"content\":\"x\"}",
            F::GeminiStreamJson,
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"text":"x"}]}],"inferenceConfig":{}}"#,
            F::BedrockConverse,
        ),
        (r#"{"trajectory":[],"history":[],"info":{}}"#, F::SweAgent),
        (r#"{"kind":"MessageEvent","source":"user"}"#, F::OpenHands),
        (r#"{"messages":[{"role":"user","content":"x"}],"events":[],"epoch":1}"#, F::Inspect),
        ("PK\u{3}\u{4}header.json_journal/start.json", F::Inspect),
        (
            r#"[{"role":"assistant","content":"","tool_calls":[{"id":"a","function":"bash","arguments":{}}]}]"#,
            F::Inspect,
        ),
        ("{\"working_dir\":\"/\",\"message_count\":1}\n{\"role\":\"user\",\"content\":[]}", F::Goose),
        (r#"[{"lc":1,"type":"constructor","id":[],"kwargs":{}}]"#, F::LangChain),
        (r#"[{"type":"human","data":{"content":"x"}}]"#, F::LangChain),
        (r#"[{"id":"1","conversations":[{"from":"human","value":"x"}]}]"#, F::ShareGpt),
        (r#"{"schema_version":"1","steps":[]}"#, F::Atif),
        (r#"{"choices":[{"message":{"role":"assistant","content":"x"}}]}"#, F::ReplyAlone),
        (r#"{"type":"message","role":"assistant","content":[],"usage":{}}"#, F::ReplyAlone),
        (r#"{"id":"resp_1","object":"response","output":[]}"#, F::ReplyAlone),
        (r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#, F::ReplyAlone),
    ] {
        assert_eq!(format_of(source), Err(ReadError::NotSupportedYet { format }), "{source}");
    }
}

#[test]
fn what_is_no_transcript_is_refused() {
    assert_eq!(format_of(" \n\t"), Err(ReadError::Empty));
    assert_eq!(format_of("user: hi"), Err(ReadError::Syntax { line: 1, offset: 0 }));
    assert_eq!(
        format_of("[\n{\"role\":\"user\",\n \"content\":"),
        Err(ReadError::Syntax { line: 3, offset: 29 })
    );
    for source in [
        "{\"contents\":\"x\"}",
        "{\"history\":[1],\"context\":[\"x\"]}",
        "1",
        "\"text\"",
        "{}",
        "[1,2]",
        "[{\"a\":1}]",
        "{\"a\":1}\n{\"b\":2}",
    ] {
        assert_eq!(format_of(source), Err(ReadError::UnknownFormat), "{source}");
    }
    assert_eq!(format_of("{\"epitome\":2,\"messages\":[]}"), Err(ReadError::UnknownVersion { version: 2 }));
}

#[test]
fn a_format_that_was_asked_for_is_not_guessed() {
    let source = br#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let read_as =
        |format| read(source, &ReadOptions { format: Some(format), conversation: None }, &mut |_| {});
    assert_eq!(read_as(Format::AnthropicMessages).unwrap().format(), Format::AnthropicMessages);
    let strict = [
        Format::PiSession,
        Format::CodexRollout,
        Format::EpitomeJson,
        Format::ClaudeCode,
        Format::ClaudeStreamJson,
    ];
    for format in strict {
        assert_eq!(read_as(format).unwrap_err(), ReadError::NotThisFormat { format });
    }
}

#[test]
fn one_of_several_conversations_is_chosen() {
    let source = br#"[{"reward":0,"traj":[{"role":"user","content":"one"}]},
        {"reward":1,"traj":[{"role":"user","content":"two"},{"role":"assistant","content":"2"}]}]"#;
    let read_one = |conversation| read(source, &ReadOptions { format: None, conversation }, &mut |_| {});
    assert_eq!(read_one(None).unwrap_err(), ReadError::Conversations { count: 2 });
    assert_eq!(read_one(Some(2)).unwrap_err(), ReadError::NoSuchConversation { index: 2, count: 2 });
    let second = read_one(Some(1)).unwrap();
    assert_eq!(second.messages().len(), 2);
    let (written, _) =
        write(&second, &Replacement { summary: Some("s"), kept: &[1] }, second.format()).unwrap();
    let expected =
        r#"{"reward":1,"traj":[{"role":"user","content":"s"},{"role":"assistant","content":"2"}]}"#;
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

#[test]
fn each_line_may_be_a_conversation() {
    let one = r#"{"role":"user","content":"one"}"#;
    let two = r#"{"role":"user","content":"two"}"#;
    for lines in [
        format!("{{\"messages\":[{one}]}}\n{{\"messages\":[{two}]}}"),
        format!("[{one}]\n[{two}]\n"),
        format!("[[{one}],[{two}]]"),
        format!(
            "{{\"custom_id\":\"a\",\"body\":{{\"messages\":[{one}]}}}}\n7\n{{\"body\":{{\"messages\":[{two}]}}}}"
        ),
    ] {
        let read_one =
            |conversation| read(lines.as_bytes(), &ReadOptions { format: None, conversation }, &mut |_| {});
        assert_eq!(read_one(None).unwrap_err(), ReadError::Conversations { count: 2 }, "{lines}");
        let second = read_one(Some(1)).unwrap();
        assert_eq!(second.messages().len(), 1);
        let strays = second.notes().contains(&Note::StrayValues { count: 1 });
        assert_eq!(strays, lines.contains('7'));
        let (written, _) =
            write(&second, &Replacement { summary: Some("s"), kept: &[0] }, second.format()).unwrap();
        assert!(
            String::from_utf8(written)
                .unwrap()
                .contains(&format!("[{{\"role\":\"user\",\"content\":\"s\"}},{two}]"))
        );
    }
}

#[test]
fn a_reply_joins_its_request_once() {
    let source = br#"{"messages":[{"role":"user","content":"2+2?"}],"response":{"choices":[{"message":{"role":"assistant","content":"4","tool_calls":null}}],"usage":{"prompt_tokens":9,"completion_tokens":1}},"cost":1.50}"#;
    let session = read(source, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(session.messages().len(), 2);
    let usage = session.reported_usage().unwrap();
    assert_eq!((usage.message, usage.context_tokens.get()), (1, 10));
    let (written, _) =
        write(&session, &Replacement { summary: Some("s"), kept: &[1] }, session.format()).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        r#"{"messages":[{"role":"user","content":"s"},{"role":"assistant","content":"4"}],"cost":1.50}"#
    );
    let unread = br#"{"messages":[{"role":"user","content":"2+2?"}],"response":"four"}"#;
    let session = read(unread, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(session.notes(), [Note::ReplyNotRead]);
    let (written, _) =
        write(&session, &Replacement { summary: Some("s"), kept: &[] }, session.format()).unwrap();
    assert!(written.ends_with(br#""response":"four"}"#));
}

#[test]
fn damage_is_told_and_not_written_again() {
    let source = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assi\n\0\0\0\n{\"role\":\"assistant\",\"content\":\"b\"}\n{\"role\":\"user\",\"content\":\"c\"}\n{\"ro";
    let session = read(source.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(session.messages().len(), 3);
    assert_eq!(
        session.notes(),
        [
            Note::Damaged { line: 2, offset: 30, bytes: 13 },
            Note::Damaged { line: 3, offset: 44, bytes: 3 },
            Note::UnfinishedTail { offset: 113, bytes: 4 },
        ]
    );
    let (written, _) =
        write(&session, &Replacement { summary: Some("s"), kept: &[0, 1, 2] }, session.format()).unwrap();
    let lines: Vec<&str> = std::str::from_utf8(&written).unwrap().lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line.starts_with("{\"role\":") && line.ends_with("\"}")));
}

#[test]
fn a_cut_last_record_is_unfinished_and_no_damage() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
        let line = bytes[..whole].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        for end in line + 1..whole {
            let session = read(&bytes[..end], &ReadOptions::default(), &mut |_| {}).unwrap();
            let unfinished = Note::UnfinishedTail { offset: line as u64, bytes: (end - line) as u64 };
            assert!(session.notes().contains(&unfinished), "{} at {end}", path.display());
            let damage = |note: &&Note| matches!(note, Note::Damaged { .. });
            assert!(session.notes().iter().filter(damage).count() <= 2, "{} at {end}", path.display());
        }
        checked += 1;
    }
    assert!(checked >= 7, "fixtures are missing");
}

#[test]
fn nesting_is_bounded() {
    let nest = |levels: usize| {
        let inner = "{\"type\":\"tool_result\",\"tool_use_id\":\"n\",\"content\":[".repeat(levels);
        format!(
            "{{\"epitome\":1,\"messages\":[{{\"role\":\"user\",\"content\":[{inner}{}]}}]}}",
            "]}".repeat(levels)
        )
    };
    assert_eq!(format_of(&nest(128)), Ok(Format::EpitomeJson));
    assert_eq!(format_of(&nest(129)), Err(ReadError::TooDeep { message: 0 }));
    assert_eq!(format_of(&nest(100_000)), Err(ReadError::TooDeep { message: 0 }));
    let deep = "[".repeat(300_000) + &"]".repeat(300_000);
    assert_eq!(format_of(&deep), Err(ReadError::UnknownFormat));
}

#[test]
fn the_example_in_the_documentation_is_read() {
    let page = include_str!("../../../../docs/transcripts.md");
    let (_, rest) = page.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let session = read(example.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((session.format(), session.messages().len()), (Format::EpitomeJson, 4));
    assert_eq!((session.leading_system(), session.derived_prefix(), session.tools().len()), (1, 1, 1));
}

#[test]
fn a_summary_is_not_hidden_behind_the_compaction_of_a_provider() {
    let source = include_bytes!("../fixtures/anthropic-compaction.json");
    let session = read(source, &ReadOptions::default(), &mut |_| {}).unwrap();
    let all = Replacement { summary: Some("s"), kept: &[0, 1, 2, 3, 4] };
    let (written, _) = write(&session, &all, session.format()).unwrap();
    assert!(!String::from_utf8(written.clone()).unwrap().contains("compaction"));
    let back = read(&written, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(back.messages().len(), 6);
}

#[test]
fn a_pi_session_without_its_header_gets_a_new_one() {
    let source =
        "{\"type\":\"sess\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    let session = read(source.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
    let (written, _) =
        write(&session, &Replacement { summary: Some("s"), kept: &[0] }, session.format()).unwrap();
    let back = read(&written, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((back.messages().len(), back.derived_prefix(), back.notes().len()), (2, 1, 0));
}
