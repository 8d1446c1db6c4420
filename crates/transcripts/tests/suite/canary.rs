//! Content never reaches an error, a note, a repair, or `Debug`.

use std::error::Error;

use epitome_transcripts::{Format, ReadOptions, Replacement, read, repair, write};

const CANARY: &str = "canary7f3";

/// Inputs that are refused, each with a canary wherever text can stand.
const REFUSED: &[&str] = &[
    "canary7f3",
    "{\"canary7f3\":\"canary7f3\"",
    "{\"canary7f3\":canary7f3}",
    "{\"canary7f3\":1}",
    "[\"canary7f3\"]",
    "\"canary7f3\"",
    "[{\"role\":\"canary7f3\",\"content\":\"canary7f3\"}]",
    "[{\"role\":\"user\",\"content\":\"x\"},\"canary7f3\"]",
    "[{\"role\":\"user\",\"content\":\"x\"},{\"content\":\"canary7f3\"}]",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":[\"canary7f3\"]}]}",
    "{\"system\":\"canary7f3\",\"messages\":[{\"role\":\"canary7f3\",\"content\":[{\"type\":\"thinking\"}]}]}",
    "{\"epitome\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"canary7f3\",\"canary7f3\":0}]}]}",
    "{\"epitome\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"canary7f3!\"}]}]}",
    "{\"epitome\":\"canary7f3\",\"messages\":[]}",
    "{\"type\":\"session\",\"id\":\"canary7f3\"}\n{\"type\":\"message\",\"message\":{\"role\":\"canary7f3\"}}",
    "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"canary7f3\"}}",
    "{\"input\":[{\"role\":\"user\",\"content\":\"canary7f3\"},{\"canary7f3\":1}]}",
    "{\"previous_response_id\":\"canary7f3\",\"input\":\"canary7f3\"}",
    "{\"kind\":\"canary7f3Event\",\"source\":\"canary7f3\"}",
    "{\"contents\":[{\"role\":\"canary7f3\",\"parts\":[{\"text\":\"canary7f3\"}]}]}",
    "[{\"role\":\"user\",\"parts\":[]},\"canary7f3\"]",
    "{\"error\":\"canary7f3\",\"context\":[{\"parts\":[]},{\"content\":\"canary7f3\"}]}",
    "{\"type\":\"init\",\"session_id\":\"canary7f3\",\"model\":\"canary7f3\"}",
    "{\"type\":\"user\",\"sessionId\":\"canary7f3\",\"uuid\":\"canary7f3\",\"message\":{\"role\":\"canary7f3\",\"content\":\"canary7f3\"}}",
    "[{\"messages\":[{\"role\":\"user\",\"content\":\"canary7f3\"}]},{\"messages\":[{\"role\":\"user\",\"content\":\"canary7f3 b\"}]}]",
];

/// Inputs that are read with every kind of note and repair.
const ACCEPTED: &[&str] = &[
    "[{\"role\":\"user\",\"role\":\"assistant\",\"content\":\"canary7f3 \\ud83d\"},{\"role\":\"tool\",\"tool_call_id\":\"canary7f3\",\"content\":\"canary7f3\"},{\"role\":\"assistant\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"canary7f3\"},{\"type\":\"image_url\",\"image_url\":\"data:canary7f3\"}],\"tool_calls\":[{\"id\":\"canary7f3\",\"function\":{\"name\":\"canary7f3\",\"arguments\":\"canary7f3\"}}]},{\"role\":\"user\",\"content\":\"canary7f3\"},{\"role\":\"tool\",\"tool_call_id\":\"canary7f3\"},{\"role\":\"tool\",\"tool_call_id\":\"canary7f3\"}]",
    "{\"type\":\"session\",\"id\":\"canary7f3\",\"provider\":\"p\",\"modelId\":\"canary7f3\"}\n{\"type\":\"canary7f3\"}\n{\"canary7f3\":\"canary7f3\n1\n{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n{\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":\"canary7f3\"}}",
    "{\"type\":\"ai-title\",\"aiTitle\":\"canary7f3\",\"sessionId\":\"canary7f3\"}\n{\"type\":\"user\",\"uuid\":\"canary7f3\",\"parentUuid\":\"canary7f3 gone\",\"sessionId\":\"canary7f3\",\"cwd\":\"canary7f3\",\"timestamp\":\"canary7f3\",\"message\":{\"role\":\"user\",\"content\":\"canary7f3 \\ud83d\"}}\n{\"type\":\"attachment\",\"uuid\":\"b\",\"parentUuid\":\"canary7f3\",\"attachment\":{\"type\":\"canary7f3\"}}\n{\"type\":\"user\",\"uuid\":\"c\",\"parentUuid\":\"b\",\"isSidechain\":true,\"message\":{\"role\":\"user\",\"content\":\"canary7f3\"}}\n{\"type\":\"assistant\",\"uuid\":\"d\",\"parentUuid\":\"canary7f3 too\",\"message\":{\"role\":\"assistant\",\"model\":\"canary7f3\",\"content\":[{\"type\":\"canary7f3\"},{\"type\":\"tool_use\",\"id\":\"canary7f3\",\"name\":\"canary7f3\",\"input\":\"canary7f3\"}]}}\n{\"type\":\"user\",\"canary7f3",
    "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"canary7f3\",\"cwd\":\"canary7f3\",\"model\":\"canary7f3\"}\n{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"compact_metadata\":{\"trigger\":\"canary7f3\"}}\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"canary7f3\",\"content\":\"canary7f3\"}]}}\n{\"type\":\"result\",\"result\":\"canary7f3\"}",
    "[{\"request\":{\"model\":\"canary7f3\",\"messages\":[{\"role\":\"user\",\"content\":\"canary7f3\"}]},\"response\":\"canary7f3\"}]",
    "{\"system\":\"canary7f3\",\"tools\":[{\"input_schema\":{},\"name\":\"canary7f3\"}],\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"compaction\",\"content\":\"canary7f3\"},{\"type\":\"tool_result\",\"tool_use_id\":\"canary7f3\"}]}]}",
    "{\"model\":\"canary7f3\",\"instructions\":\"canary7f3\",\"input\":[{\"role\":\"user\",\"content\":\"canary7f3\"},{\"type\":\"compaction\",\"encrypted_content\":\"canary7f3\"},{\"type\":\"canary7f3\"},{\"type\":\"item_reference\",\"id\":\"canary7f3\"},{\"type\":\"function_call\",\"call_id\":\"canary7f3\",\"name\":\"canary7f3\",\"arguments\":\"canary7f3\"},{\"role\":\"user\",\"content\":\"canary7f3\"}],\"response\":\"canary7f3\"}",
    "{\"type\":\"session_meta\",\"payload\":{\"id\":\"canary7f3\",\"cwd\":\"canary7f3\"}}\n{\"type\":\"canary7f3\",\"payload\":{}}\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"canary7f3\"}}\n{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n{\"timestamp\":\"canary7f3\",\"type\":\"compacted\",\"payload\":{\"message\":\"canary7f3\"}}",
    "{\"model\":\"canary7f3\",\"systemInstruction\":\"canary7f3\",\"tools\":[{\"canary7f3\":{}}],\"contents\":[{\"role\":\"model\",\"parts\":[{\"text\":\"canary7f3 \\ud83d\",\"thoughtSignature\":\"canary7f3\"},{\"canary7f3\":0},{\"inlineData\":{\"data\":\"canary7f3!\"}},{\"functionCall\":{\"name\":\"canary7f3\",\"id\":\"canary7f3\"}}]},{\"role\":\"user\",\"parts\":[{\"text\":\"canary7f3\"}]},{\"role\":\"model\",\"parts\":[]},[{\"functionResponse\":{\"name\":\"canary7f3\",\"response\":{\"canary7f3\":1}}}]]}",
    "{\"sessionId\":\"canary7f3\",\"projectHash\":\"canary7f3\"}\n{\"id\":\"canary7f3\",\"timestamp\":\"canary7f3\",\"type\":\"canary7f3\",\"content\":\"canary7f3\"}\n{\"id\":\"b\",\"timestamp\":\"t\",\"type\":\"gemini\",\"content\":\"canary7f3\",\"toolCalls\":[{\"id\":\"canary7f3\",\"name\":\"canary7f3\",\"result\":\"canary7f3\"}]}\n{\"$rewindTo\":\"canary7f3\"}\n{\"$set\":{\"canary7f3\":\"canary7f3\"}}",
];

fn check(shown: &str) {
    assert!(!shown.contains(CANARY), "{shown}");
}

fn check_error(error: &dyn Error) {
    check(&format!("{error} {error:#} {error:?}"));
    let mut source = error.source();
    while let Some(cause) = source {
        check(&format!("{cause} {cause:?}"));
        source = cause.source();
    }
}

#[test]
fn errors_say_nothing_of_the_content() {
    for input in REFUSED {
        let formats = std::iter::once(None).chain(Format::ALL.map(Some));
        for (at, format) in formats.enumerate() {
            let result = read(input.as_bytes(), &ReadOptions { format, conversation: None }, &mut |_| {});
            assert!(at > 0 || result.is_err(), "accepted {input}");
            match result {
                Err(error) => check_error(&error),
                Ok(session) => check(&format!("{session:?}")),
            }
        }
    }
    check_error(&CANARY.parse::<Format>().unwrap_err());
}

#[test]
fn sessions_notes_and_repairs_say_nothing_of_the_content() {
    let (mut notes, mut repairs) = (0, 0);
    for input in ACCEPTED {
        let session = read(input.as_bytes(), &ReadOptions::default(), &mut |_| {}).unwrap();
        let (repaired, steps) = repair(&session);
        check(&format!("{session:?} {repaired:?} {:?} {:?}", session.messages(), session.model()));
        check(&format!("{:?} {:?} {:?}", session.title(), session.cwd(), session.first_timestamp()));
        for note in session.notes() {
            check(&format!("{note} {note:?}"));
            notes += 1;
        }
        for step in &steps {
            check(&format!("{step} {step:?}"));
            repairs += 1;
        }
        let none = Replacement { summary: Some("  "), kept: &[] };
        check_error(&write(&session, &none, session.format()).unwrap_err());
        let wrong = Replacement { summary: Some(CANARY), kept: &[usize::MAX] };
        check_error(&write(&session, &wrong, session.format()).unwrap_err());
        for format in Format::ALL {
            let (_, report) =
                write(&session, &Replacement { summary: Some(CANARY), kept: &[] }, format).unwrap();
            check(&format!("{report:?}"));
        }
    }
    assert!(notes >= 8 && repairs >= 5, "{notes} notes and {repairs} repairs are too few to prove anything");
}
