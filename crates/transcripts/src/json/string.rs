//! Text out of JSON strings, tolerant of half surrogate pairs and of broken UTF-8, which are counted.

use std::borrow::Cow;

use epitome_loop::RawJson;

/// What had to be replaced by U+FFFD while text was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// Escapes of half a surrogate pair.
    pub(crate) lone_surrogates: u64,
    /// Strings that were not UTF-8.
    pub(crate) invalid_utf8: u64,
}

impl Text {
    /// The text of a JSON string, given without its quotes.
    pub(crate) fn decode<'a>(&mut self, inner: &'a [u8]) -> Cow<'a, str> {
        let text = self.utf8(inner);
        if memchr::memchr(b'\\', inner).is_none() {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest: &str = &text;
        while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
            let Some((plain, escape)) = rest.split_at_checked(at) else { break };
            out.push_str(plain);
            let (character, used) = self.unescape(escape);
            out.push(character);
            rest = escape.get(used..).unwrap_or_default();
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// The bytes as text.
    pub(crate) fn utf8<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => {
                self.invalid_utf8 += 1;
                String::from_utf8_lossy(bytes)
            }
        }
    }

    /// The character that an escape stands for, and how many bytes the escape takes.
    fn unescape(&mut self, escape: &str) -> (char, usize) {
        let bytes = escape.as_bytes();
        let character = match bytes.get(1) {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = unit(bytes);
                let second = bytes.get(6..).map_or(0, unit);
                return match char::decode_utf16([first, second]).next() {
                    Some(Ok(character)) if character.len_utf16() == 2 => (character, 12),
                    Some(Ok(character)) => (character, 6),
                    _ => {
                        self.lone_surrogates += 1;
                        (char::REPLACEMENT_CHARACTER, 6)
                    }
                };
            }
            Some(&other) => char::from(other),
            None => char::REPLACEMENT_CHARACTER,
        };
        (character, 2)
    }
}

/// A JSON value as text that may be sent: byte for byte as it stands, except that halves of surrogate pairs
/// and broken UTF-8 become U+FFFD.
pub(crate) fn raw_json(bytes: &[u8], text: &mut Text) -> RawJson {
    let whole = text.utf8(bytes);
    let sendable = without_lone_surrogates(&whole, text);
    // The scan has accepted the value, so this is its own text; should the two ever disagree, it is quoted.
    RawJson::parse_or_quote(&sendable)
}

/// A JSON value as it may be sent inside of other JSON: escapes of half a surrogate pair become U+FFFD.
pub(crate) fn sendable(json: &RawJson) -> Cow<'_, str> {
    without_lone_surrogates(json.as_str(), &mut Text::default())
}

fn without_lone_surrogates<'a>(json: &'a str, text: &mut Text) -> Cow<'a, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', json.as_bytes().get(at..).unwrap_or_default()) {
        let escape = json.get(at + found..).unwrap_or_default();
        let before = text.lone_surrogates;
        let (_, used) = text.unescape(escape);
        if text.lone_surrogates > before {
            out.push_str(json.get(copied..at + found).unwrap_or_default());
            out.push_str("\\ufffd");
            copied = at + found + used;
        }
        at += found + used;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The UTF-16 unit of an escape `\uXXXX`; 0 for anything else.
fn unit(bytes: &[u8]) -> u16 {
    match bytes {
        [b'\\', b'u', digits @ ..] => digits
            .get(..4)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_of_pairs_become_the_replacement_character() {
        let mut text = Text::default();
        assert_eq!(text.decode(br"a\ud83d b\ude00\ud83d\ude00\ud83d\n"), "a\u{fffd} b\u{fffd}😀\u{fffd}\n");
        assert_eq!(text.lone_surrogates, 3);
        let raw = raw_json(br#"{"a\\ud83d":"\ud83d","b":"\ud83d\ude00"}"#, &mut text);
        assert_eq!(raw.as_str(), r#"{"a\\ud83d":"\ufffd","b":"\ud83d\ude00"}"#);
    }

    #[test]
    fn broken_utf8_is_counted() {
        let mut text = Text::default();
        assert_eq!(text.decode(b"cut \xf0\x9f\x98"), "cut \u{fffd}");
        assert_eq!(text.invalid_utf8, 1);
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(original: String) {
            let json = serde_json::to_string(&original).unwrap();
            let inner = json.get(1..json.len() - 1).unwrap();
            let mut text = Text::default();
            prop_assert_eq!(text.decode(inner.as_bytes()), original);
            prop_assert_eq!(text, Text::default());
        }
    }
}
