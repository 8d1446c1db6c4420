//! The strict summary grammar, judged by our parser, by the reference, and by roxmltree.

use epitome_loop::{InvalidSummaryReason, Section};
use epitome_loopruntime::parse_summary;
use serde_json::{Value, json};

use super::Judgment;
use crate::reference_form::base64_bytes;
use crate::second_judge::{SecondVerdict, second_judge};

pub(super) fn summary_xml(input: &Value, expect: &Value) -> Judgment {
    let bytes = match base64_bytes(input) {
        Ok(bytes) => bytes,
        Err(error) => return Judgment::unreadable(error, false),
    };
    let parsed = parse_summary(&bytes);
    let second = second_judge(&bytes);
    let fits_second = match (&parsed, &second) {
        (_, SecondVerdict::TooLong) => true,
        (Err(_), SecondVerdict::Refused) => true,
        (Ok(summary), SecondVerdict::Accepted(texts)) => {
            summary.raw().as_bytes() == bytes
                && Section::ALL.iter().zip(texts).all(|(section, text)| summary.text(*section) == *text)
        }
        _ => false,
    };
    if !fits_second {
        let expected = match second {
            SecondVerdict::Accepted(_) => "accepted by roxmltree with its texts",
            _ => "refused by roxmltree",
        };
        return Judgment::of(expected, if parsed.is_ok() { "ok" } else { "refused" });
    }
    match parsed {
        Ok(_) => Judgment::of_answers(expect, &json!({"ok": true})),
        // What XML 1.0 forbids, for example a reference to a surrogate; roxmltree refuses it as well.
        Err(error)
            if expect["ok"] == true
                && error.reason == InvalidSummaryReason::XmlSyntax
                && second == SecondVerdict::Refused =>
        {
            Judgment::Stricter("xml-1.0-forbids")
        }
        Err(error) => Judgment::of_answers(expect, &json!({"reason": error.reason.as_str()})),
    }
}
