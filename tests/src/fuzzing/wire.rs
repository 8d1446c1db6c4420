//! Wire v1.

use epitome_loop::{InvalidSummaryReason, SharedBytes, TokenCount, Usage};
use epitome_loopruntime::parse_summary;
use epitome_sessionruntime::{
    ResultTerms, RunIdentity, RunOutput, RunResult, SummaryAnswer, WireError, WireFault, decode_input,
    decode_output, validate_result,
};
use serde_json::json;
use serde_json::value::RawValue;

use crate::wire_laws::check_written;

/// What is read as a compaction input is JSON, and is written in bytes that are read as the same value and written
/// the same again. What is refused as no JSON is none.
pub fn wire_input(bytes: &[u8]) {
    match decode_input(bytes) {
        Ok(input) => {
            assert!(is_json(bytes), "what is no JSON is read");
            if let Err(broken) = check_written(&input) {
                panic!("{broken}");
            }
        }
        Err(error) => hold_fault(bytes, error),
    }
}

/// What is read as an answer is JSON, says the same when it is written anew, and is judged by the grammar of
/// summaries if it is an answer to the question.
pub fn wire_output(bytes: &[u8]) {
    let answer = match decode_output(bytes) {
        Ok(answer) => answer,
        Err(error) => return hold_fault(bytes, error),
    };
    assert!(is_json(bytes), "what is no JSON is read");
    let anew = json!({
        "version": 1,
        "basis": {
            "revision": answer.basis.revision.0,
            "through_event_id": answer.basis.through_event_id.to_string(),
        },
        "model": {"provider": answer.model.provider.as_str(), "model": answer.model.model.as_str()},
        "request_fingerprint": answer.request_fingerprint.to_string(),
        "summary": answer.summary.as_str(),
    });
    assert_eq!(
        decode_output(anew.to_string().as_bytes()).as_ref(),
        Ok(&answer),
        "written anew it is another one"
    );
    hold_verdict(bytes, answer);
}

fn hold_verdict(bytes: &[u8], answer: SummaryAnswer) {
    let SummaryAnswer { basis, model, request_fingerprint, summary } = answer;
    let terms = ResultTerms {
        identity: RunIdentity { basis, model, request_fingerprint },
        max_summary_tokens: TokenCount(1),
        output_byte_limit: bytes.len() as u64,
    };
    let judge = |terms: &ResultTerms| {
        let usage = Some(Usage { output: TokenCount(1), ..Usage::default() });
        let output = RunOutput::Echo(SharedBytes::from(bytes.to_vec()));
        validate_result(RunResult { output, usage }, terms)
    };
    let is_complete =
        basis.is_complete() && terms.identity.model.validate().is_ok() && !request_fingerprint.is_zero();
    match (judge(&terms), parse_summary(summary.as_bytes())) {
        (Ok(proven), Ok(summary)) => {
            assert!(is_complete, "an answer to nothing is proven");
            assert_eq!(proven.summary, summary, "another summary is proven");
        }
        (Ok(_), Err(_)) => panic!("a summary is proven that the grammar refuses"),
        (Err(error), Ok(_)) => assert!(!is_complete, "an answer is refused as {error}"),
        (Err(error), Err(grammar)) => assert_eq!(error, grammar, "it is refused for another reason"),
    }
    let mut other = terms;
    other.identity.basis.revision.0 ^= 1;
    let reason = judge(&other).err().map(|error| error.reason);
    assert_eq!(reason, Some(InvalidSummaryReason::Identity), "an answer to another question");
}

/// A fault that a document of JSON cannot have is in none, and the other way round.
fn hold_fault(bytes: &[u8], error: WireError) {
    match error.fault {
        WireFault::Syntax => assert!(!is_json(bytes), "JSON is refused as none: {error}"),
        // Strings that it passes over may hold anything for serde_json, and any depth.
        WireFault::Utf8 | WireFault::Depth => {}
        _ => assert!(is_json(bytes), "what is no JSON is refused otherwise: {error}"),
    }
}

/// Whether bytes are one JSON value, without recursion.
fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}
