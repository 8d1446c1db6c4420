//! The core JSON of messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use epitome_loop::{core_json, tail_estimate};
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::read_message;

pub(super) fn message_json(input: &Value, expect: &Value) -> Judgment {
    let message = match read_message(input) {
        Ok(message) => message,
        Err(error) => return Judgment::unreadable(error, expect["error"] == true),
    };
    let json = core_json(&message);
    let tokens = tail_estimate(&message);
    let got = match String::from_utf8(json) {
        Ok(json) => json!({"ok": true, "json": json, "tokens": tokens}),
        Err(error) => {
            json!({"ok": true, "json_b64": STANDARD.encode(error.into_bytes()), "tokens": tokens})
        }
    };
    Judgment::of_answers(expect, &got)
}
