//! The smallest payloads that a registry counts on are what the encoder writes and the result's check accepts.

use std::sync::Arc;

use epitome_loop::{
    CompactionInput, ContextBasis, ContextRevision, EventId, IdentityBinding, InvalidSummaryReason, Message,
    ModelKey, RequestFingerprint, SMALLEST_INPUT_BYTES, SMALLEST_SUMMARY_BYTES, SUMMARY_ROOT, Section,
    TokenCount, Usage, smallest_output,
};
use epitome_loopruntime::parse_summary;
use epitome_sessionruntime::{ResultTerms, RunIdentity, RunOutput, RunResult, encode_input, validate_result};

fn encoded(model: ModelKey, message: Message, number: u64) -> Vec<u8> {
    let basis =
        ContextBasis { revision: ContextRevision(number), through_event_id: EventId::from_bytes([1; 16]) };
    let fingerprint = RequestFingerprint::from_bytes([1; 32]);
    let transcript = Arc::from([message]);
    let input = CompactionInput::new(basis, model, fingerprint, transcript, TokenCount(number)).unwrap();
    encode_input(&input)
}

fn empty_messages() -> [Message; 4] {
    let blocks = || Arc::from([]);
    [
        Message::User { blocks: blocks() },
        Message::System { blocks: blocks() },
        Message::Assistant { blocks: blocks(), usage: None },
        Message::ToolResult { blocks: blocks(), tool_use_id: "".into(), is_error: false },
    ]
}

#[test]
fn the_encoder_reaches_the_smallest_size_and_never_goes_below() {
    let least = |message| encoded(ModelKey::new("p", "m"), message, 1).len();
    let sizes = empty_messages().map(least);
    assert_eq!(sizes.iter().min(), Some(&SMALLEST_INPUT_BYTES), "{sizes:?}");
    // Each part alone makes it larger, so no smaller choice of another part can make up for it.
    let [user, ..] = empty_messages();
    assert!(encoded(ModelKey::new("pp", "m"), user.clone(), 1).len() > SMALLEST_INPUT_BYTES);
    assert!(encoded(ModelKey::new("p", "\u{1}"), user.clone(), 1).len() > SMALLEST_INPUT_BYTES);
    assert!(encoded(ModelKey::new("p", "m"), user, 10).len() > SMALLEST_INPUT_BYTES);
}

fn identity() -> RunIdentity {
    let basis = ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) };
    RunIdentity {
        basis,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
    }
}

/// The smallest answer of each kind, in bytes.
fn smallest(binding: IdentityBinding) -> String {
    let xml = "<conversation_summary><goal>g</goal><constraints/><decisions/><state>s</state><open_items/>\
               </conversation_summary>";
    let RunIdentity { basis, request_fingerprint, .. } = identity();
    match binding {
        IdentityBinding::Host => xml.to_owned(),
        IdentityBinding::Echo => format!(
            "{{\"version\":1,\"basis\":{{\"revision\":1,\"through_event_id\":\"{}\"}},\
             \"model\":{{\"provider\":\"p\",\"model\":\"m\"}},\"request_fingerprint\":\"{request_fingerprint}\",\
             \"summary\":\"{xml}\"}}",
            basis.through_event_id,
        ),
    }
}

/// What the result's check says of an answer under a byte limit.
fn verdict(binding: IdentityBinding, answer: &str, limit: usize) -> Result<(), InvalidSummaryReason> {
    let output = match binding {
        IdentityBinding::Host => RunOutput::Host { summary: answer.into(), bound: identity() },
        IdentityBinding::Echo => RunOutput::Echo(answer.as_bytes().to_vec().into()),
    };
    let terms = ResultTerms {
        identity: identity(),
        max_summary_tokens: TokenCount(1),
        output_byte_limit: limit as u64,
    };
    let usage = Some(Usage { output: TokenCount(1), ..Usage::default() });
    validate_result(RunResult { output, usage }, &terms).map(drop).map_err(|refused| refused.reason)
}

const BINDINGS: [IdentityBinding; 2] = [IdentityBinding::Host, IdentityBinding::Echo];

#[test]
fn the_smallest_outputs_are_accepted_under_a_limit_of_their_size() {
    for binding in BINDINGS {
        let (answer, least) = (smallest(binding), smallest_output(binding));
        assert_eq!(answer.len(), least, "{binding:?}");
        assert_eq!(verdict(binding, &answer, least), Ok(()), "{binding:?}");
        assert_eq!(verdict(binding, &answer, least - 1), Err(InvalidSummaryReason::ByteLimit), "{binding:?}");
    }
    assert!(parse_summary(smallest(IdentityBinding::Host).as_bytes()).is_ok());
}

/// Whatever stretch is taken out, the rest is refused by the parser and by the decoder: each part is needed.
#[test]
fn nothing_can_be_left_out_of_the_smallest_outputs() {
    for binding in BINDINGS {
        let answer = smallest(binding);
        for start in 0..answer.len() {
            for end in start + 1..=answer.len() {
                let mut shorter = answer.clone();
                shorter.replace_range(start..end, "");
                assert!(verdict(binding, &shorter, answer.len()).is_err(), "{binding:?}: {shorter}");
            }
        }
    }
}

/// The grammar leaves these choices of a shorter or longer spelling, and no accepted one is below the smallest.
#[test]
fn no_spelling_of_a_summary_is_shorter() {
    let mut accepted = Vec::new();
    for choice in 0..4_usize.pow(5) {
        let sections: String = Section::ALL.iter().enumerate().fold(String::new(), |text, (at, section)| {
            let name = section.as_str();
            text + &match choice / 4_usize.pow(at as u32) % 4 {
                0 => format!("<{name}/>"),
                1 => format!("<{name}></{name}>"),
                2 => format!("<{name}>x</{name}>"),
                _ => String::new(),
            }
        });
        let xml = format!("<{SUMMARY_ROOT}>{sections}</{SUMMARY_ROOT}>");
        accepted.extend(parse_summary(xml.as_bytes()).is_ok().then_some(xml.len()));
    }
    // Goal and state say something; of the others each is there, in one of three ways.
    assert_eq!(accepted.len(), 27);
    assert_eq!(accepted.iter().min(), Some(&SMALLEST_SUMMARY_BYTES));
}
