//! Inputs: validation, wire, fitting.

use epitome_loop::{CompactionInput, CompactionInputError, Message, TokenCount};
use epitome_sessionruntime::{encode_input, fit_input};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Judgment;
use crate::reference_form::{
    Identity, ReadError, base64_bytes, number, read_identity, read_messages, tokens,
};

pub(super) fn input_wire(input: &Value, expect: &Value) -> Judgment {
    let input = match read_input(input) {
        Ok(input) => input,
        Err(error) => return Judgment::unreadable(error, expect["field"] == "transcript"),
    };
    match input {
        Err(error) => Judgment::of_answers(expect, &refused(error)),
        Ok(input) => {
            let wire = encode_input(&input);
            let expected = match &expect["wire"] {
                Value::String(wire) => wire.as_bytes().to_vec(),
                _ => base64_bytes(&expect["wire_b64"]).unwrap_or_default(),
            };
            if expect["ok"] == true && wire != expected {
                return Judgment::of("these bytes", "other bytes");
            }
            Judgment::of(super::judgment::answer_kind(expect), "ok")
        }
    }
}

pub(super) fn fit(value: &Value, expect: &Value) -> Judgment {
    let limit = match number(value, "input_bytes") {
        Ok(limit) => limit,
        // Ours has no sign; nothing fits into nothing either.
        Err(ReadError::Negative) => 0,
        Err(error) => return Judgment::unreadable(error, false),
    };
    let input = match read_input(&value["input"]) {
        Ok(input) => input,
        Err(error) => return Judgment::unreadable(error, expect["field"] == "transcript"),
    };
    let got = match input {
        Err(error) => refused(error),
        Ok(input) => match fit_input(&input, limit) {
            Ok(fitted) => json!({
                "ok": true,
                "size": fitted.bytes.len(),
                "stubbed": fitted.stubbed,
                "wire_sha256": hex(&Sha256::digest(&fitted.bytes)),
            }),
            Err(error) => {
                let stated = if limit == 0 { value["input_bytes"].clone() } else { json!(error.limit) };
                json!({"error": "too_large", "limit": stated, "size": error.size})
            }
        },
    };
    Judgment::of_answers(expect, &got)
}

/// Reads an input and lets our constructor judge it. Where our types cannot hold the transcript, what is
/// checked before the transcript is judged all the same.
pub(crate) fn read_input(value: &Value) -> Result<Result<CompactionInput, CompactionInputError>, ReadError> {
    let Identity { basis, model, request_fingerprint } = read_identity(value)?;
    let budget = tokens(value, "max_summary_tokens")?;
    match read_messages(&value["transcript"]) {
        Ok(transcript) => {
            Ok(CompactionInput::new(basis, model, request_fingerprint, transcript.into(), budget))
        }
        Err(error) => {
            let any = [Message::user("x")].into();
            match CompactionInput::new(basis, model, request_fingerprint, any, TokenCount(1)) {
                Ok(_) => Err(error),
                Err(earlier) => Ok(Err(earlier)),
            }
        }
    }
}

fn refused(error: CompactionInputError) -> Value {
    let field = match error {
        CompactionInputError::Basis => "basis",
        CompactionInputError::Model => "model",
        CompactionInputError::RequestFingerprint => "request_fingerprint",
        CompactionInputError::Transcript(_) => "transcript",
        CompactionInputError::MaxSummaryTokens => "max_summary_tokens",
        _ => "unknown",
    };
    json!({"error": "input", "field": field})
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
