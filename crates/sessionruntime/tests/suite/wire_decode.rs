//! What the decoder accepts, what it refuses, and what it says about it.

use std::fmt::Write as _;

use epitome_loop::{Block, Message, RawJson, ToolUse};
use epitome_sessionruntime::{WireFault, WirePart, decode_input, decode_output, encode_input};

const HEADER: &str = concat!(
    r#""version":1,"basis":{"revision":7,"through_event_id":"01020304-0506-0708-090a-0b0c0d0e0f10"},"#,
    r#""model":{"provider":"p","model":"m"},"#,
    r#""request_fingerprint":"1111111111111111111111111111111111111111111111111111111111111111""#,
);

fn with_transcript(transcript: &str) -> String {
    format!("{{{HEADER},\"transcript\":{transcript},\"max_summary_tokens\":9}}")
}

fn with_block(block: &str) -> String {
    with_transcript(&format!("[{{\"role\":\"user\",\"blocks\":[{block}]}}]"))
}

/// The answer to a document that must be refused.
fn refusal(document: impl AsRef<[u8]>) -> (WirePart, WireFault, usize) {
    let error = decode_input(document.as_ref()).unwrap_err();
    (error.part, error.fault, error.at)
}

fn same_bytes(document: &str) {
    let decoded = decode_input(document.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(encode_input(&decoded)).unwrap(), document);
}

#[test]
fn what_is_written_canonically_comes_back_byte_for_byte() {
    same_bytes(&with_transcript(concat!(
        r#"[{"role":"system","blocks":[]},"#,
        r#"{"role":"user","blocks":[{"type":"text","text":"\u003ca\u0026\"\\\b\n\u0000é🚀\u2028"},"#,
        r#"{"type":"image","media_type":"image/png","source":{"url":"u","data":"YWI="}},"#,
        r#"{"type":"audio","media_type":"","data":null},"#,
        r#"{"type":"document","media_type":"m","name":"n","data":"","text":"t"}]},"#,
        r#"{"role":"assistant","blocks":[{"type":"refusal","text":"no"},"#,
        r#"{"type":"thinking","thinking":"t","signature":"s","signature_format":"f","provider_state":null,"#,
        r#""provider_state_format":"g"},"#,
        r#"{"type":"tool_use","id":"i","name":"n","input":{"a":[1e5,1.0,"\/\ud800"],"a":{}}}],"#,
        r#""usage":{"input_tokens":18446744073709551615,"output_tokens":0,"cache_read_tokens":1,"#,
        r#""cache_creation_tokens":2,"reasoning_tokens":3}},"#,
        r#"{"role":"assistant","blocks":[{"type":"tool_use","id":"i","name":"n","input":null}],"usage":null},"#,
        r#"{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"x","content":[],"is_error":true}],"#,
        r#""tool_use_id":"i","is_error":false}]"#,
    )));
}

#[test]
fn raw_json_is_kept_as_it_is_and_strings_are_decoded() {
    let input = "{ \"k\" : [ 1 ,\t2 ],\"k\":\"\\ud83d\" }";
    let block = format!(
        "{{\"id\":\"\\ud83d\\ude00\\/\",\"name\":\"\",\"input\": {input} ,\"type\":\"tool_\\u0075se\"}}"
    );
    let decoded = decode_input(with_block(&block).as_bytes()).unwrap();
    let call = ToolUse::new("😀/", "", Some(RawJson::parse(input).unwrap()), None);
    assert_eq!(decoded.transcript()[0], Message::User { blocks: [Block::ToolUse(call)].into() });
}

#[test]
fn every_fault_has_its_part_and_its_place() {
    let text = |value: &str| with_block(&format!("{{\"type\":\"text\",\"text\":{value}}}"));
    let at = |document: &str, needle: &str| document.find(needle).unwrap();
    for (document, part, fault, needle) in [
        (text("null"), WirePart::Transcript, WireFault::Null, "null"),
        (text("5"), WirePart::Transcript, WireFault::WrongType, "5}"),
        (text("\"a\\ud800\""), WirePart::Transcript, WireFault::LoneSurrogate, "\\ud800"),
        (text("\"a\\ud800\\u0041\""), WirePart::Transcript, WireFault::LoneSurrogate, "\\ud800"),
        (text("\"a\\udc00\\ud800\""), WirePart::Transcript, WireFault::LoneSurrogate, "\\udc00"),
        (text("\"\\x\""), WirePart::Wire, WireFault::Syntax, "x\""),
        (text("\"x\",\"text\":\"y\""), WirePart::Transcript, WireFault::DuplicateKey, "\"text\":\"y\""),
        (text("\"x\",\"TEXT\":1"), WirePart::Transcript, WireFault::KeyCase, "\"TEXT\""),
        (text("\"x\",\"tex\":1"), WirePart::Transcript, WireFault::UnknownKey, "\"tex\""),
        (with_block("{\"type\":\"text\"}"), WirePart::Transcript, WireFault::MissingKey, "]}]"),
        (with_block("{\"type\":\"x\",\"text\":\"\"}"), WirePart::Transcript, WireFault::UnknownName, "\"x\""),
        (
            with_block("{\"type\":\"audio\",\"media_type\":\"\",\"data\":\"YW=\"}"),
            WirePart::Transcript,
            WireFault::Base64,
            "\"YW",
        ),
        (with_transcript("[]"), WirePart::Transcript, WireFault::Empty, ""),
        (with_transcript("{}"), WirePart::Transcript, WireFault::WrongType, "{},\"max"),
        (with_transcript("[]").replace(":9}", ":0}"), WirePart::Transcript, WireFault::Empty, ""),
        (text("\"\"").replace(":9}", ":0}"), WirePart::MaxSummaryTokens, WireFault::Empty, "0}"),
        (text("\"\"").replace(":9}", ":09}"), WirePart::Wire, WireFault::Syntax, "9}"),
        (text("\"\"").replace(":9}", ":-9}"), WirePart::Wire, WireFault::Number, "-9}"),
        (text("\"\"").replace(":9}", ":9e0}"), WirePart::Wire, WireFault::Number, "9e0}"),
        (text("\"\"").replace(":1,", ":2,"), WirePart::Wire, WireFault::Version, "2,"),
        (text("\"\"").replace("0f10", "0F10"), WirePart::Basis, WireFault::EventId, "\"0102"),
        (
            text("\"\"").replace("1111\"", "111\""),
            WirePart::RequestFingerprint,
            WireFault::Fingerprint,
            "\"111",
        ),
        (text("\"\"").replace("\"p\"", "\"\""), WirePart::Model, WireFault::Empty, ""),
        (text("\"\"").replace(":7,", ":0,"), WirePart::Basis, WireFault::Empty, ""),
    ] {
        // Without a place of its own, a fault stands at the end.
        let place = if needle.is_empty() { document.len() } else { at(&document, needle) };
        assert_eq!(refusal(&document), (part, fault, place), "{document}");
    }
    assert_eq!(refusal(b"{\"\xff"), (WirePart::Wire, WireFault::Utf8, 2));
    assert_eq!(refusal(text("\"\"") + "x"), (WirePart::Wire, WireFault::Syntax, text("\"\"").len()));
}

#[test]
fn faults_of_the_document_outweigh_those_of_its_parts_wherever_they_stand() {
    let wrong_inside = with_block("{\"type\":\"text\",\"text\":1}").replace("0f10", "0F10");
    assert_eq!(refusal(&wrong_inside).0, WirePart::Basis);
    assert_eq!(refusal(wrong_inside.replace("0F10", "0f10")).0, WirePart::Transcript);
    for (from, to) in
        [(":9}", ":9,}"), (":9}", ":9,\"x\":0}"), (":9}", ":9,\"version\":1}"), (":9}", ":\"9\"}")]
    {
        assert_eq!(refusal(wrong_inside.replace(from, to)).0, WirePart::Wire, "{to}");
    }
    // A key that stands twice is the fault, not its first value.
    for first in ["null", "{}", "\"zz\"", "[{\"role\":1}]"] {
        let twice = with_transcript(&format!("[{{\"blocks\":{first},\"role\":\"user\",\"blocks\":[]}}]"));
        let fault = (WirePart::Transcript, WireFault::DuplicateKey, twice.rfind("\"blocks\"").unwrap());
        assert_eq!(refusal(&twice), fault, "{first}");
    }
}

#[test]
fn nesting_is_bounded_and_never_read_by_recursion_without_bound() {
    let results = |levels: usize| {
        let open = r#"{"type":"tool_result","tool_use_id":"n","content":["#;
        let close = r#"],"is_error":false}"#;
        with_block(&(open.repeat(levels) + r#"{"type":"text","text":"x"}"# + &close.repeat(levels)))
    };
    same_bytes(&results(128));
    assert_eq!(refusal(results(129)).1, WireFault::Nesting);
    // 129 levels that end in no JSON are no JSON; 5,000 levels are more than a document may have.
    assert_eq!(refusal(results(129).replace(":9}", ":9")).1, WireFault::Syntax);
    assert_eq!(refusal(results(5_000)).1, WireFault::Depth);

    let call = |levels: usize| {
        let input = "[".repeat(levels) + &"]".repeat(levels);
        with_block(&format!("{{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"\",\"input\":{input}}}"))
    };
    same_bytes(&call(9_995));
    assert_eq!(refusal(call(9_996)).1, WireFault::Depth);
    assert_eq!(refusal(call(1_000_000)).1, WireFault::Depth);
    // Where nobody wants the value, it is passed over under the same bound.
    assert_eq!(refusal(call(9_996).replace("\"input\"", "\"x\"")).1, WireFault::Depth);
    assert_eq!(refusal(call(9_995).replace("\"input\"", "\"x\"")).1, WireFault::UnknownKey);
}

#[test]
fn every_prefix_and_every_changed_byte_gets_an_answer() {
    let document = with_block(concat!(
        r#"{"type":"thinking","thinking":"t\ud83d\ude00","signature":"s","signature_format":"f","#,
        r#""provider_state":{"a":[1,-2.5e3,null,true,false]},"provider_state_format":"é"}"#,
    ));
    assert!(decode_input(document.as_bytes()).is_ok());
    for end in 0..document.len() {
        let error = decode_input(&document.as_bytes()[..end]).unwrap_err();
        assert!(error.at <= end, "{error}");
    }
    for at in 0..document.len() {
        for byte in [b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', b' ', b'0', b'u', 0, 0x80, 0xff] {
            let mut changed = document.clone().into_bytes();
            changed[at] = byte;
            if let Ok(decoded) = decode_input(&changed) {
                let again = encode_input(&decoded);
                assert_eq!(encode_input(&decode_input(&again).unwrap()), again);
            }
        }
    }
}

#[test]
fn a_fault_deep_inside_is_found_once() {
    // It must not make every outer object look at the innermost again, which would be noticed here.
    let open = r#"{"type":"tool_result","tool_use_id":"n","content":["#;
    let mut document = String::new();
    for _ in 0..127 {
        document.push_str(open);
    }
    write!(document, "{{\"type\":\"text\",\"text\":1,\"x\":\"{}\"}}", "y".repeat(2_000_000)).unwrap();
    document.push_str(&r#"],"is_error":false}"#.repeat(127));
    assert_eq!(refusal(with_block(&document)).0, WirePart::Transcript);
}

#[test]
fn an_answer_is_read_as_strictly() {
    let answer = format!("{{{HEADER},\"summary\":\"\\u003cx/>\"}}");
    let decoded = decode_output(answer.as_bytes()).unwrap();
    assert_eq!(decoded.summary, "<x/>");
    assert_eq!(decoded.basis.revision.0, 7);
    let refusal = |document: &str| {
        let error = decode_output(document.as_bytes()).unwrap_err();
        (error.part, error.fault)
    };
    assert_eq!(refusal(&answer.replace("summary", "Summary")), (WirePart::Wire, WireFault::KeyCase));
    assert_eq!(refusal(&answer.replace(",\"summary\"", ",\"x\"")), (WirePart::Wire, WireFault::UnknownKey));
    assert_eq!(refusal(&format!("{{{HEADER}}}")), (WirePart::Wire, WireFault::MissingKey));
    assert_eq!(refusal(&answer.replace("0f10", "0F10")), (WirePart::Basis, WireFault::EventId));
    assert_eq!(refusal(""), (WirePart::Wire, WireFault::Syntax));
}
