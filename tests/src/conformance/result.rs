//! Judging the results of runs.

use epitome_loop::InvalidSummaryReason;
use epitome_sessionruntime::{
    ResultTerms, RunIdentity, RunOutput, RunResult, decode_output, validate_result,
};
use serde_json::{Value, json};

use super::Judgment;
use super::stricter_wire::stricter_class;
use crate::reference_form::{Identity, ReadError, base64_bytes, number, read_identity, read_usage, tokens};
use crate::second_judge::{SecondVerdict, second_judge};

pub(super) fn output_validate(input: &Value, expect: &Value) -> Judgment {
    let output = match &input["output"] {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        given => base64_bytes(&given["b64"]),
    };
    let output = match output {
        Ok(output) => output,
        Err(error) => return Judgment::unreadable(error, false),
    };
    let result = |usage| RunResult { output: RunOutput::Echo(output.clone().into()), usage };
    let judged =
        read_terms(input).and_then(|terms| Ok(validate_result(result(read_usage(&input["usage"])?), &terms)));
    match judged {
        Ok(Ok(proven)) => {
            Judgment::of_answers(expect, &json!({"ok": true, "summary": proven.summary.raw().as_str()}))
        }
        Ok(Err(error)) => {
            let got = json!({"reason": error.reason.as_str()});
            match stricter_refusal(&output, error.reason) {
                Some(class) if *expect != got => Judgment::Stricter(class),
                _ => Judgment::of_answers(expect, &got),
            }
        }
        Err(error) => Judgment::unreadable(error, false),
    }
}

/// The class of what we refuse here for a reason that the reference passes over.
fn stricter_refusal(output: &[u8], reason: InvalidSummaryReason) -> Option<&'static str> {
    match (reason, decode_output(output)) {
        (InvalidSummaryReason::Wire, Err(error)) => stricter_class(error.fault),
        (InvalidSummaryReason::XmlSyntax, Ok(answer))
            if second_judge(answer.summary.as_bytes()) == SecondVerdict::Refused =>
        {
            Some("xml-1.0-forbids")
        }
        _ => None,
    }
}

fn read_terms(input: &Value) -> Result<ResultTerms, ReadError> {
    let Identity { basis, model, request_fingerprint } = read_identity(&input["identity"])?;
    Ok(ResultTerms {
        identity: RunIdentity { basis, model, request_fingerprint },
        max_summary_tokens: tokens(input, "max_summary_tokens")?,
        output_byte_limit: match number(input, "output_bytes") {
            // Ours has no sign; nothing fits into nothing either.
            Err(ReadError::Negative) => 0,
            limit => limit?,
        },
    })
}
