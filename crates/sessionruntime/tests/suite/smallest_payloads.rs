//! The smallest payloads that a registry counts on are what the encoder writes and the result's check accepts.

use std::sync::Arc;

use epitome_loop::{
    CompactionInput, ContextBasis, ContextRevision, EventId, IdentityBinding, InvalidSummaryReason, Message,
    ModelKey, RequestFingerprint, SMALLEST_INPUT_BYTES, SummarySections, TokenCount, Usage, smallest_output,
};
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

#[test]
fn the_smallest_outputs_are_accepted_and_nothing_smaller_could_be() {
    let sections =
        SummarySections { goal: vec!["g".into()], state: vec!["s".into()], ..SummarySections::default() };
    let xml = sections.render().xml;
    let basis = ContextBasis { revision: ContextRevision(1), through_event_id: EventId::from_bytes([1; 16]) };
    let identity = RunIdentity {
        basis,
        model: ModelKey::new("p", "m"),
        request_fingerprint: RequestFingerprint::from_bytes([1; 32]),
    };
    let echo = format!(
        "{{\"version\":1,\"basis\":{{\"revision\":1,\"through_event_id\":\"{}\"}},\
         \"model\":{{\"provider\":\"p\",\"model\":\"m\"}},\"request_fingerprint\":\"{}\",\"summary\":\"{}\"}}",
        basis.through_event_id,
        identity.request_fingerprint,
        xml.as_str(),
    );
    let outputs = [
        (IdentityBinding::Host, RunOutput::Host { summary: xml, bound: identity.clone() }),
        (IdentityBinding::Echo, RunOutput::Echo(echo.into_bytes().into())),
    ];
    for (binding, output) in outputs {
        let usage = Some(Usage { output: TokenCount(1), ..Usage::default() });
        let verdict = |output_byte_limit| {
            let terms = ResultTerms {
                identity: identity.clone(),
                max_summary_tokens: TokenCount(1),
                output_byte_limit,
            };
            let result = RunResult { output: output.clone(), usage };
            validate_result(result, &terms).map(drop).map_err(|refused| refused.reason)
        };
        let least = smallest_output(binding) as u64;
        assert_eq!(verdict(least), Ok(()), "{binding:?}");
        assert_eq!(verdict(least - 1), Err(InvalidSummaryReason::ByteLimit), "{binding:?}");
    }
}
