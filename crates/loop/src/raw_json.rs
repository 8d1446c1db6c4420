//! JSON that must survive byte for byte: tool input and provider state may be signed by a provider.

use thiserror::Error;

use crate::SharedText;
use crate::json_scan::{JsonFault, measure_value, skip_white_space};

/// One valid JSON value, kept exactly as it was given, white space and duplicate keys included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawJson {
    text: SharedText,
    depth: usize,
    /// How many bytes of white space stand outside strings.
    blanks: usize,
}

/// The text is not one JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not valid JSON at line {line}, column {column}")]
pub struct RawJsonError {
    /// Line of the first fault, from 1.
    pub line: usize,
    /// Column of the first fault, in bytes from 1; just behind the line's last byte when the text ends too early.
    pub column: usize,
}

impl RawJson {
    /// Takes the text if it is exactly one JSON value (white space around it is allowed and kept).
    ///
    /// # Errors
    /// [`RawJsonError`] with the place of the first fault.
    pub fn parse(text: impl Into<SharedText>) -> Result<Self, RawJsonError> {
        let text = text.into();
        let bytes = text.as_bytes();
        let start = skip_white_space(bytes, 0);
        let extent = measure_value(bytes, start, usize::MAX).map_err(|fault| place(bytes, fault.at))?;
        let end = skip_white_space(bytes, start + extent.len);
        if end < bytes.len() {
            return Err(place(bytes, end));
        }
        let outside = bytes.len() - extent.len;
        Ok(Self { depth: extent.depth, blanks: extent.blanks + outside, text })
    }

    /// Takes the value that starts at byte `start` of a longer text, without what follows it; it may have at
    /// most `max_depth` levels of objects and arrays. Its end is `start` plus the length of its text.
    ///
    /// # Errors
    /// [`JsonFault`] when no such value starts there.
    pub fn take_from(text: &str, start: usize, max_depth: usize) -> Result<Self, JsonFault> {
        let extent = measure_value(text.as_bytes(), start, max_depth)?;
        // A value starts and ends with ASCII, so the range is one of whole characters.
        let value = text.get(start..start + extent.len).unwrap_or_default();
        Ok(Self { text: SharedText::from(value), depth: extent.depth, blanks: extent.blanks })
    }

    /// Takes any text: valid JSON stays as it is, anything else becomes a JSON string that holds it.
    ///
    /// Some providers hand tool arguments over as a string that need not be JSON; this keeps them readable
    /// without losing a byte of meaning.
    #[must_use]
    pub fn parse_or_quote(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| {
            let mut quoted = Vec::with_capacity(text.len() + 2);
            crate::json_text::push_string(&mut quoted, text);
            Self { text: SharedText::from(String::from_utf8_lossy(&quoted).as_ref()), depth: 0, blanks: 0 }
        })
    }

    /// The JSON text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many levels of objects and arrays the value has; 0 for one without any.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many bytes of white space stand outside strings, where they mean nothing.
    #[must_use]
    pub fn insignificant(&self) -> usize {
        self.blanks
    }

    /// Whether there is no white space outside strings.
    #[must_use]
    pub fn is_compact(&self) -> bool {
        self.blanks == 0
    }
}

fn place(text: &[u8], at: usize) -> RawJsonError {
    let before = text.get(..at).unwrap_or(text);
    let (lines, column) = before
        .iter()
        .fold((1, 1), |(line, column), byte| if *byte == b'\n' { (line + 1, 1) } else { (line, column + 1) });
    RawJsonError { line: lines, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_bytes_and_refuses_what_is_not_one_value() {
        let kept = RawJson::parse(" {\"a\" : 1e5, \"a\":\"\\ud800\"} ").unwrap();
        assert_eq!(kept.as_str(), " {\"a\" : 1e5, \"a\":\"\\ud800\"} ");
        for bad in ["", "{", "{\"a\":}", "nul", "{}{}", "{} x", "\"\n\""] {
            assert!(RawJson::parse(bad).is_err(), "accepted {bad:?}");
        }
    }

    #[test]
    fn quotes_what_is_not_json() {
        assert_eq!(RawJson::parse_or_quote("{\"a\":").as_str(), r#""{\"a\":""#);
        assert_eq!(RawJson::parse_or_quote("[1]").as_str(), "[1]");
    }

    #[test]
    fn deep_nesting_is_read_without_recursion() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert_eq!(RawJson::parse(deep).unwrap().depth(), 200_000);
    }

    #[test]
    fn a_fault_has_a_line_and_a_column() {
        let place = |text: &str| RawJson::parse(text).map(|_| ()).unwrap_err();
        assert_eq!(place("{\n \"a\": x}"), RawJsonError { line: 2, column: 7 });
        assert_eq!(place("1 2"), RawJsonError { line: 1, column: 3 });
        assert_eq!(place("[\n"), RawJsonError { line: 2, column: 1 });
    }

    #[test]
    fn a_value_is_taken_out_of_a_longer_text() {
        let text = "é[{\"a\": [1 ]}, 2]";
        let taken = RawJson::take_from(text, 3, 2).unwrap();
        assert_eq!((taken.as_str(), taken.depth()), ("{\"a\": [1 ]}", 2));
        assert!(RawJson::take_from(text, 3, 1).is_err());
        assert!(RawJson::take_from(text, 1, 9).is_err());
    }

    #[test]
    fn what_is_json_agrees_with_serde_json() {
        let pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"k\"",
            "\"\\n\"",
            "-0",
            "1.5e3",
            "01",
            "null",
            "tru",
            " ",
            "\"\\ud800\"",
        ];
        // Every text of up to four pieces.
        for code in 0..pieces.len().pow(4) {
            let text: String =
                (0..4_u32).map(|place| pieces[code / pieces.len().pow(place) % pieces.len()]).collect();
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
            assert_eq!(RawJson::parse(text.as_str()).is_ok(), theirs.is_ok(), "{text}");
        }
    }
}
