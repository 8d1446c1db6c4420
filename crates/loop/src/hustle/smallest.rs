//! The smallest sizes with which a compaction can work at all. A registry refuses a hustle whose byte limits
//! are below them, because no run of it could succeed.

use super::IdentityBinding;
use crate::SUMMARY_FRAME_BYTES;

/// Bytes of the smallest summary that the strict grammar accepts: the frame, and one character each in goal
/// and state.
pub const SMALLEST_SUMMARY_BYTES: usize = SUMMARY_FRAME_BYTES + 2;

/// Bytes of the smallest compaction input on the wire: one empty user message, every name one character,
/// every number one digit.
pub const SMALLEST_INPUT_BYTES: usize = IDENTITY.len() + TRANSCRIPT.len();

/// Bytes of the smallest output that carries its identity on the wire, around the smallest summary.
pub const SMALLEST_ECHO_BYTES: usize = IDENTITY.len() + SUMMARY.len() + SMALLEST_SUMMARY_BYTES;

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
    use crate::SummarySections;

    #[test]
    fn the_smallest_summary_is_what_the_renderer_makes_of_two_characters() {
        let sections =
            SummarySections { goal: vec!["g".into()], state: vec!["s".into()], ..SummarySections::default() };
        let xml = sections.render().xml.as_str().to_owned();
        assert_eq!(xml.len(), SMALLEST_SUMMARY_BYTES);
        let echo = format!("{IDENTITY}{}", SUMMARY.replace("\"\"", &format!("\"{xml}\"")));
        assert_eq!(echo.len(), SMALLEST_ECHO_BYTES);
        let value: serde_json::Value = serde_json::from_str(&echo).unwrap();
        assert_eq!(value["summary"], xml);
        assert_eq!(smallest_output(IdentityBinding::Echo) - smallest_output(IdentityBinding::Host), {
            IDENTITY.len() + SUMMARY.len()
        });
    }

    #[test]
    fn the_smallest_input_is_json() {
        let value: serde_json::Value = serde_json::from_str(&format!("{IDENTITY}{TRANSCRIPT}")).unwrap();
        assert_eq!(value["transcript"].as_array().map(Vec::len), Some(1));
    }
}
