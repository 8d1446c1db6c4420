//! Walking over JSON text without building anything: where a value ends, how deep it nests, and what makes it
//! no JSON. No recursion, no allocation below 65 levels, time linear in the length.
//!
//! The grammar is RFC 8259, nothing more: no comments, no trailing commas, no raw control characters in
//! strings. Lone surrogates written as escapes are JSON and pass; whoever decodes a string decides about them.

use thiserror::Error;

use crate::json_string::{JsonStringFault, string_end};

/// Deepest nesting of objects and arrays in a document, the outermost included. The reference implementation
/// refuses deeper documents, and so does everything here.
pub const MAX_JSON_DEPTH: usize = 10_000;

/// The text is not JSON, or nests too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} at byte {at}")]
pub struct JsonFault {
    /// In which way.
    pub kind: JsonFaultKind,
    /// Where, in bytes from the start of the text that was given.
    pub at: usize,
}

/// In which way text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum JsonFaultKind {
    /// Something that the grammar has no place for, or an end too early.
    #[error("not JSON")]
    Syntax,
    /// More than the allowed levels of objects and arrays.
    #[error("nested too deep")]
    Depth,
}

/// One JSON value at the start of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonExtent {
    /// Its length in bytes.
    pub len: usize,
    /// How many levels of objects and arrays it has; 0 for a value without any.
    pub depth: usize,
    /// How many bytes of white space it has outside strings.
    pub blanks: usize,
}

/// Measures the JSON value that starts at byte `start` of a text. White space before it is not passed over,
/// and what follows it is not looked at.
///
/// # Errors
/// [`JsonFault`] when no value starts there, or when it has more than `max_depth` levels.
pub fn measure_value(text: &[u8], start: usize, max_depth: usize) -> Result<JsonExtent, JsonFault> {
    let mut walk = Walk { text, at: start, levels: Levels::default(), deepest: 0, blanks: 0, max_depth };
    walk.value()?;
    Ok(JsonExtent { len: walk.at - start, depth: walk.deepest, blanks: walk.blanks })
}

/// The first byte from `at` on that is not JSON white space, and where it stands.
#[must_use]
#[inline]
pub fn skip_white_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    // Compact text has none, so the common case is one comparison.
    match rest.first() {
        Some(b' ' | b'\t' | b'\n' | b'\r') => {
            at + rest.iter().position(|byte| !is_white_space(*byte)).unwrap_or(rest.len())
        }
        _ => at,
    }
}

fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn syntax(at: usize) -> JsonFault {
    JsonFault { kind: JsonFaultKind::Syntax, at }
}

struct Walk<'a> {
    text: &'a [u8],
    at: usize,
    levels: Levels,
    deepest: usize,
    blanks: usize,
    max_depth: usize,
}

impl From<JsonStringFault> for JsonFault {
    /// Where a string is only walked over, it can only be written wrongly.
    fn from(fault: JsonStringFault) -> Self {
        syntax(fault.at)
    }
}

impl Walk<'_> {
    fn value(&mut self) -> Result<(), JsonFault> {
        loop {
            match self.peek() {
                Some(b'"') => self.at = string_end(self.text, self.at)?,
                Some(b'{') => {
                    if self.open(true)? {
                        continue;
                    }
                }
                Some(b'[') => {
                    if self.open(false)? {
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.at = number_end(self.text, self.at)?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return Err(syntax(self.at)),
            }
            if self.close_and_go_on()? {
                return Ok(());
            }
        }
    }

    /// Goes one level down. True when a value follows; false when the object or array was empty.
    fn open(&mut self, object: bool) -> Result<bool, JsonFault> {
        if self.levels.depth == self.max_depth {
            return Err(JsonFault { kind: JsonFaultKind::Depth, at: self.at });
        }
        self.levels.push(object);
        self.deepest = self.deepest.max(self.levels.depth);
        self.skip_from(self.at + 1);
        let end = if object { b'}' } else { b']' };
        if self.peek() == Some(end) {
            self.levels.pop();
            self.at += 1;
            return Ok(false);
        }
        if object {
            self.key()?;
        }
        Ok(true)
    }

    /// After a value: up through what ends here, and on to the next value. True when the outermost has ended.
    fn close_and_go_on(&mut self) -> Result<bool, JsonFault> {
        while let Some(object) = self.levels.top() {
            self.skip_from(self.at);
            match (self.peek(), object) {
                (Some(b','), _) => {
                    self.skip_from(self.at + 1);
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    self.levels.pop();
                    self.at += 1;
                }
                _ => return Err(syntax(self.at)),
            }
        }
        Ok(true)
    }

    fn key(&mut self) -> Result<(), JsonFault> {
        if self.peek() != Some(b'"') {
            return Err(syntax(self.at));
        }
        self.skip_from(string_end(self.text, self.at)?);
        if self.peek() != Some(b':') {
            return Err(syntax(self.at));
        }
        self.skip_from(self.at + 1);
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), JsonFault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let equal = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
        if equal < word.len() {
            return Err(syntax(self.at + equal));
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_from(&mut self, at: usize) {
        self.at = skip_white_space(self.text, at);
        self.blanks += self.at - at;
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }
}

/// Where the number ends that starts at `start`.
///
/// # Errors
/// [`JsonFault`] when it is not spelled as JSON demands.
pub fn number_end(text: &[u8], start: usize) -> Result<usize, JsonFault> {
    let digits = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len()) {
            0 => Err(syntax(at)),
            count => Ok(at + count),
        }
    };
    let mut at = start + usize::from(text.get(start) == Some(&b'-'));
    at = if text.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        at = digits(at + 1 + sign)?;
    }
    Ok(at)
}

/// Which of the open levels are objects: one bit a level, the innermost lowest.
#[derive(Default)]
struct Levels {
    depth: usize,
    newest: u64,
    older: Vec<u64>,
}

impl Levels {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.older.push(self.newest);
        }
        self.newest = self.newest << 1 | u64::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.newest >>= 1;
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.newest = self.older.pop().unwrap_or_default();
        }
    }

    fn top(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.newest & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(text: &str) -> Result<JsonExtent, JsonFault> {
        measure_value(text.as_bytes(), 0, MAX_JSON_DEPTH)
    }

    #[test]
    fn a_value_ends_where_it_ends() {
        for (text, len, depth, blanks) in [
            ("null,", 4, 0, 0),
            ("-0.5e+1]", 7, 0, 0),
            ("\"a\\\"\\u00e9\" x", 11, 0, 0),
            ("{ } ", 3, 1, 1),
            ("[ [ ] , {\"a\" : [ 1 , 2 ] , \"b\":{}} ]}", 36, 3, 13),
            ("0123", 1, 0, 0),
        ] {
            assert_eq!(extent(text), Ok(JsonExtent { len, depth, blanks }), "{text}");
        }
    }

    #[test]
    fn faults_say_where() {
        for (text, at) in [
            ("", 0),
            ("nul", 3),
            ("[1,]", 3),
            ("[1}", 2),
            ("{\"a\"}", 4),
            ("{\"a\":1,}", 7),
            ("{a:1}", 1),
            ("-", 1),
            ("1.", 2),
            ("1e", 2),
            ("\"a\u{1}\"", 2),
            ("\"\\x\"", 2),
            ("\"\\u12g4\"", 5),
            ("\"\\u12", 5),
            ("\"", 1),
            ("[", 1),
        ] {
            assert_eq!(extent(text), Err(syntax(at)), "{text:?}");
        }
    }

    #[test]
    fn depth_is_counted_and_bounded() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for levels in [1, 63, 64, 65, 128, 129, MAX_JSON_DEPTH] {
            assert_eq!(extent(&nested(levels)), Ok(JsonExtent { len: 2 * levels, depth: levels, blanks: 0 }));
        }
        let fault = JsonFault { kind: JsonFaultKind::Depth, at: MAX_JSON_DEPTH };
        assert_eq!(extent(&nested(MAX_JSON_DEPTH + 1)), Err(fault));
        // What kind each level is must survive the change of words.
        let mixed = "{\"k\":[".repeat(70) + "1" + &"]}".repeat(70);
        assert_eq!(extent(&mixed), Ok(JsonExtent { len: mixed.len(), depth: 140, blanks: 0 }));
        let wrong = "{\"k\":[".repeat(70) + "1" + &"]}".repeat(30) + "}";
        assert!(extent(&wrong).is_err());
    }
}
