//! Outputs as values.

use epitome_loop::CompactionOutput;
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::{Identity, ReadError, read_identity, read_message};

pub(super) fn output_struct(input: &Value, expect: &Value) -> Judgment {
    let Ok(Identity { basis, model, request_fingerprint }) = read_identity(input) else {
        return Judgment::unreadable(ReadError::Malformed, false);
    };
    let summary = match &input["summary"] {
        Value::Null => Ok(None),
        summary => read_message(summary).map(Some),
    };
    let (summary, unreadable) = match summary {
        Ok(summary) => (summary, None),
        // The identity is checked first and can be judged without the message.
        Err(error) => (None, Some(error)),
    };
    let got = match CompactionOutput::new(basis, model, request_fingerprint, summary.as_ref()) {
        Ok(_) => json!({"ok": true}),
        Err(error) => json!({"reason": error.reason.as_str()}),
    };
    if let Some(error) = unreadable
        && got["reason"] != "identity"
    {
        return Judgment::unreadable(error, expect["reason"] == "output_shape");
    }
    // The reference accepts blank text here and refuses it at the commit.
    let blank = summary.is_some_and(|summary| {
        matches!(&**summary.blocks(), [epitome_loop::Block::Text { text }] if text.trim().is_empty())
    });
    if blank && expect["ok"] == true && got["reason"] == "output_shape" {
        return Judgment::Stricter("blank-summary");
    }
    Judgment::of_answers(expect, &got)
}
