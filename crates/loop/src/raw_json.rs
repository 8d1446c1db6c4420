//! JSON that must survive byte for byte: tool input and provider state may be signed by a provider.

use thiserror::Error;

use crate::SharedText;

/// One valid JSON value, kept exactly as it was given, white space and duplicate keys included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawJson(SharedText);

/// The text is not one JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not valid JSON at line {line}, column {column}")]
pub struct RawJsonError {
    /// Line of the first fault, from 1.
    pub line: usize,
    /// Column of the first fault, in bytes from 1; 0 when the text ends too early.
    pub column: usize,
}

impl RawJson {
    /// Takes the text if it is exactly one JSON value (white space around it is allowed and kept).
    ///
    /// # Errors
    /// [`RawJsonError`] with the place of the first fault.
    pub fn parse(text: impl Into<SharedText>) -> Result<Self, RawJsonError> {
        let text = text.into();
        match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
            Ok(_) => Ok(Self(text)),
            Err(fault) => Err(RawJsonError { line: fault.line(), column: fault.column() }),
        }
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
            Self(SharedText::from(String::from_utf8_lossy(&quoted).as_ref()))
        })
    }

    /// The JSON text as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
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
        assert!(RawJson::parse(deep).is_ok());
    }
}
