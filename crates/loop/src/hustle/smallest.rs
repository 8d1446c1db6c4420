//! The smallest sizes with which a compaction can work at all. A registry refuses a hustle whose byte limits
//! are below them, because no run of it could succeed.

use super::IdentityBinding;

/// Bytes of the smallest summary that the strict grammar accepts: one character each in goal and state, and the
/// other three sections as empty elements. What [`SummarySections::render`](crate::SummarySections::render) makes
/// is longer, because it writes every section with two tags.
pub const SMALLEST_SUMMARY_BYTES: usize = SUMMARY_XML.len();

/// Bytes of the smallest compaction input on the wire: one empty user message, every name one character,
/// every number one digit.
pub const SMALLEST_INPUT_BYTES: usize = IDENTITY.len() + TRANSCRIPT.len();

/// Bytes of the smallest output that carries its identity on the wire, around the smallest summary.
pub const SMALLEST_ECHO_BYTES: usize = IDENTITY.len() + SUMMARY.len() + SMALLEST_SUMMARY_BYTES;

/// The smallest summary: the grammar asks for each of its elements, and neither goal nor state may be blank.
const SUMMARY_XML: &str = concat!(
    "<conversation_summary><goal>g</goal><constraints/><decisions/><state>s</state><open_items/>",
    "</conversation_summary>",
);

/// How both wire forms begin.
const IDENTITY: &str = concat!(
    r#"{"version":1,"basis":{"revision":1,"through_event_id":"00000000-0000-0000-0000-000000000001"},"#,
    r#""model":{"provider":"p","model":"m"},"#,
    r#""request_fingerprint":"0000000000000000000000000000000000000000000000000000000000000001","#,
);

/// How the input ends.
const TRANSCRIPT: &str = r#""transcript":[{"role":"user","blocks":[]}],"max_summary_tokens":1}"#;

/// How the output ends, the summary itself left out. Its smallest form needs no escapes.
const SUMMARY: &str = r#""summary":""}"#;

/// Bytes of the smallest output that a hustle bound so can give.
#[must_use]
pub const fn smallest_output(identity: IdentityBinding) -> usize {
    match identity {
        IdentityBinding::Host => SMALLEST_SUMMARY_BYTES,
        IdentityBinding::Echo => SMALLEST_ECHO_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SUMMARY_ROOT, Section};

    #[test]
    fn the_smallest_summary_has_every_element_of_the_grammar_in_its_shortest_form() {
        let element = |section: Section| match section.is_required() {
            true => format!("<{section}>x</{section}>", section = section.as_str()),
            false => format!("<{}/>", section.as_str()),
        };
        let sections: String = Section::ALL.into_iter().map(element).collect();
        assert_eq!(format!("<{SUMMARY_ROOT}>{sections}</{SUMMARY_ROOT}>").len(), SMALLEST_SUMMARY_BYTES);
        assert_eq!(SMALLEST_SUMMARY_BYTES, 114);
        let echo = format!("{IDENTITY}{}", SUMMARY.replace("\"\"", &format!("\"{SUMMARY_XML}\"")));
        assert_eq!(echo.len(), SMALLEST_ECHO_BYTES);
        let value: serde_json::Value = serde_json::from_str(&echo).unwrap();
        assert_eq!(value["summary"], SUMMARY_XML);
        assert_eq!(smallest_output(IdentityBinding::Host), SMALLEST_SUMMARY_BYTES);
        assert_eq!(smallest_output(IdentityBinding::Echo), SMALLEST_ECHO_BYTES);
    }

    #[test]
    fn the_smallest_input_is_json() {
        let value: serde_json::Value = serde_json::from_str(&format!("{IDENTITY}{TRANSCRIPT}")).unwrap();
        assert_eq!(value["transcript"].as_array().map(Vec::len), Some(1));
    }
}
