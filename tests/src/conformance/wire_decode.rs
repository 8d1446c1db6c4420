//! Decoding inputs from the wire.

use epitome_sessionruntime::{WireError, WirePart, decode_input, encode_input};
use serde_json::{Value, json};

use super::Judgment;
use super::stricter_wire::stricter_class;
use crate::reference_form::{ReadError, base64_bytes};

pub(super) fn input_decode(input: &Value, expect: &Value) -> Judgment {
    let bytes = match input {
        Value::String(text) => text.as_bytes().to_vec(),
        given => match base64_bytes(&given["b64"]) {
            Ok(bytes) => bytes,
            Err(error) => return Judgment::unreadable(error, false),
        },
    };
    let got = match decode_input(&bytes) {
        Ok(decoded) => accepted(&bytes, encode_input(&decoded)),
        Err(error) => match judge_refusal(&bytes, expect, error) {
            Ok(judgment) => return judgment,
            Err(got) => got,
        },
    };
    Judgment::of_answers(expect, &got)
}

fn accepted(given: &[u8], encoded: Vec<u8>) -> Value {
    if encoded == given {
        return json!({"ok": true, "canonical_same": true});
    }
    match String::from_utf8(encoded) {
        Ok(canonical) => json!({"ok": true, "canonical": canonical}),
        // Ours is always text, so this is an answer that no vector can have.
        Err(_) => json!({"ok": true, "canonical": null}),
    }
}

/// Judges a refusal of ours, or gives it back as an answer to be compared.
fn judge_refusal(given: &[u8], expect: &Value, error: WireError) -> Result<Judgment, Value> {
    let got = match error.part {
        WirePart::Wire => json!({"error": "wire"}),
        part => json!({"error": "input", "field": part.as_str()}),
    };
    let Some(class) = stricter_class(error.fault).filter(|_| *expect != got) else { return Err(got) };
    if expect["ok"] != true {
        // Both refuse it; we do so earlier, for something that the reference passes over.
        return Ok(Judgment::Stricter(class));
    }
    // What the reference itself writes must be read, always; it may write bytes that are no text.
    let canonical = match &expect["canonical"] {
        Value::String(canonical) => canonical.as_bytes().to_vec(),
        _ if expect["canonical_same"] == true => given.to_vec(),
        _ => match base64_bytes(&expect["canonical_b64"]) {
            Ok(canonical) => canonical,
            Err(_) => return Ok(Judgment::unreadable(ReadError::Malformed, false)),
        },
    };
    match decode_input(&canonical) {
        Ok(decoded) if encode_input(&decoded) == canonical => Ok(Judgment::Stricter(class)),
        Err(_) if std::str::from_utf8(&canonical).is_err() => Ok(Judgment::Stricter(class)),
        _ => Ok(Judgment::of("reads what the reference writes", "does not")),
    }
}
