//! Writing JSON text the way wire v1 and the core JSON demand: compact, HTML-safe escapes.
//!
//! Escaped are `"`, `\`, control characters, `<`, `>`, `&` and the two line separators U+2028 and U+2029;
//! everything else stands raw. The rule comes from the reference implementation; bytes must be equal.

mod escape;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use self::escape::{SPARE, write_escaped, write_html_safe};
use crate::RawJson;
use crate::json_string::string_end;

/// Where JSON goes: into bytes, or only into a sum of lengths. One writer serves both, so a length known
/// beforehand cannot drift from what is written.
pub trait JsonSink {
    /// Punctuation, keys and other fixed text, taken as it is.
    fn plain(&mut self, text: &str);
    /// A number.
    fn number(&mut self, number: u64);
    /// A string, quoted and escaped.
    fn string(&mut self, text: &str);
    /// A raw value, compacted.
    fn raw(&mut self, raw: &RawJson);
    /// Bytes as base64, or `null`.
    fn data(&mut self, data: Option<&[u8]>);
}

/// Writes JSON into memory.
#[derive(Default)]
pub struct JsonBytes {
    /// Longer than what is written, so that whole blocks can be copied; the rest is zeros or leavings.
    bytes: Vec<u8>,
    written: usize,
}

impl JsonBytes {
    /// A buffer that holds this many bytes before it grows.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes.saturating_add(SPARE)], written: 0 }
    }

    /// A buffer that goes on behind what is there, with room for so many bytes.
    fn behind(mut bytes: Vec<u8>, len: u64) -> Self {
        let written = bytes.len();
        bytes.resize(written.saturating_add(room_for(len)), 0);
        Self { bytes, written }
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.written);
        self.bytes
    }

    /// Lets `write` write from the given place on; it says where it has ended, or that there is no room. Then
    /// the buffer grows to have room for `len` bytes, or twice as much each time.
    fn write(&mut self, len: impl Fn() -> u64, mut write: impl FnMut(&mut [u8], usize) -> Option<usize>) {
        loop {
            if let Some(end) = write(&mut self.bytes, self.written) {
                self.written = end;
                return;
            }
            let room = self.written.saturating_add(room_for(len()));
            self.bytes.resize(room.max(self.bytes.len().saturating_mul(2)), 0);
        }
    }
}

impl JsonSink for JsonBytes {
    fn plain(&mut self, text: &str) {
        self.write(
            || text.len() as u64,
            |out, at| {
                let end = at + text.len();
                out.get_mut(at..end)?.copy_from_slice(text.as_bytes());
                Some(end)
            },
        );
    }
    fn number(&mut self, number: u64) {
        // The digits from the last to the first; the longest number has 20.
        let mut digits = [b'0'; 20];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            // At most 9.
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let leading = digits.len() - number_len(number);
        self.plain(std::str::from_utf8(digits.get(leading..).unwrap_or_default()).unwrap_or_default());
    }
    fn string(&mut self, text: &str) {
        self.write(|| string_len(text), |out, at| write_string(out, at, text));
    }
    fn raw(&mut self, raw: &RawJson) {
        self.write(|| raw_len(raw), |out, at| write_raw(out, at, raw));
    }
    fn data(&mut self, data: Option<&[u8]>) {
        match data {
            None => self.plain("null"),
            Some(data) => self.write(|| base64_len(Some(data)), |out, at| write_base64(out, at, data)),
        }
    }
}

/// Sums up how long the JSON would be, in bytes.
#[derive(Default)]
pub struct JsonLength(u64);

impl JsonLength {
    /// The sum so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0
    }
}

impl JsonSink for JsonLength {
    fn plain(&mut self, text: &str) {
        self.0 += text.len() as u64;
    }
    fn number(&mut self, number: u64) {
        self.0 += number_len(number) as u64;
    }
    fn string(&mut self, text: &str) {
        self.0 += string_len(text);
    }
    fn raw(&mut self, raw: &RawJson) {
        self.0 += raw_len(raw);
    }
    fn data(&mut self, data: Option<&[u8]>) {
        self.0 += base64_len(data);
    }
}

/// Appends `text` as a JSON string with its quotes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    push(out, string_len(text), |bytes| bytes.string(text));
}

/// Appends a raw JSON value without its insignificant white space, with the escapes of this module inside
/// strings and everything else (number spelling, key order, duplicates) verbatim.
pub fn push_raw(out: &mut Vec<u8>, raw: &RawJson) {
    push(out, raw_len(raw), |bytes| bytes.raw(raw));
}

/// Appends `data` as standard base64 with padding, in quotes; absent data is `null`.
pub fn push_base64(out: &mut Vec<u8>, data: Option<&[u8]>) {
    push(out, base64_len(data), |bytes| bytes.data(data));
}

fn push(out: &mut Vec<u8>, len: u64, write: impl FnOnce(&mut JsonBytes)) {
    let mut bytes = JsonBytes::behind(std::mem::take(out), len);
    write(&mut bytes);
    *out = bytes.into_bytes();
}

/// What must be free to write so many bytes.
fn room_for(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX).saturating_add(SPARE)
}

fn write_string(out: &mut [u8], at: usize, text: &str) -> Option<usize> {
    *out.get_mut(at)? = b'"';
    let end = write_escaped(out, at + 1, text.as_bytes())?;
    *out.get_mut(end)? = b'"';
    Some(end + 1)
}

fn write_raw(out: &mut [u8], mut at: usize, raw: &RawJson) -> Option<usize> {
    let text = raw.as_str().as_bytes();
    if raw.is_compact() {
        // What needs an escape stands in strings alone, so the strings need not be looked for.
        return write_html_safe(out, at, text);
    }
    let mut from = 0;
    while let Some(&byte) = text.get(from) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => from += 1,
            b'"' => {
                let end = string_end(text, from).unwrap_or(text.len());
                at = write_html_safe(out, at, text.get(from..end)?)?;
                from = end;
            }
            other => {
                *out.get_mut(at)? = other;
                (from, at) = (from + 1, at + 1);
            }
        }
    }
    Some(at)
}

fn write_base64(out: &mut [u8], at: usize, data: &[u8]) -> Option<usize> {
    *out.get_mut(at)? = b'"';
    let written = STANDARD.encode_slice(data, out.get_mut(at + 1..)?).ok()?;
    let end = at + 1 + written;
    *out.get_mut(end)? = b'"';
    Some(end + 1)
}

/// The length in bytes that [`push_string`] would append.
#[must_use]
pub fn string_len(text: &str) -> u64 {
    2 + text.len() as u64 + escape::escapes_len(text.as_bytes())
}

/// The length in bytes that [`push_raw`] would append.
#[must_use]
pub fn raw_len(raw: &RawJson) -> u64 {
    let text = raw.as_str().as_bytes();
    (text.len() - raw.insignificant()) as u64 + escape::html_safe_len(text)
}

/// The length in bytes that [`push_base64`] would append.
#[must_use]
pub fn base64_len(data: Option<&[u8]>) -> u64 {
    data.map_or(4, |data| 2 + 4 * (data.len() as u64).div_ceil(3))
}

/// How many digits a number has.
fn number_len(number: u64) -> usize {
    // At most 20.
    1 + number.checked_ilog10().unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        assert_eq!(out.len() as u64, string_len(text));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_the_wire_demands() {
        assert_eq!(
            string("a<b>&\u{2028}\u{2029}é\u{7f}"),
            "\"a\\u003cb\\u003e\\u0026\\u2028\\u2029é\u{7f}\""
        );
        assert_eq!(string("\u{8}\u{c}\n\r\t\0\u{1f}\"\\/"), r#""\b\f\n\r\t\u0000\u001f\"\\/""#);
        assert_eq!(string("\u{2027}\u{202a}"), "\"\u{2027}\u{202a}\"");
    }

    #[test]
    fn raw_json_is_compacted_and_otherwise_verbatim() {
        let raw = RawJson::parse("\n{ \"a b\" : [ 1e5 , 1.0 ], \"a b\":\"<\\/\\\" > \u{2028}\" }\t").unwrap();
        let mut out = Vec::new();
        push_raw(&mut out, &raw);
        assert_eq!(out.len() as u64, raw_len(&raw));
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a b":[1e5,1.0],"a b":"\u003c\/\" \u003e \u2028"}"#);
    }

    #[test]
    fn base64_has_padding_and_tells_absent_from_empty() {
        let mut out = Vec::new();
        push_base64(&mut out, None);
        push_base64(&mut out, Some(b""));
        push_base64(&mut out, Some(b"ab"));
        assert_eq!(out, b"null\"\"\"YWI=\"");
        assert_eq!(base64_len(None) + base64_len(Some(b"")) + base64_len(Some(b"ab")), out.len() as u64);
        let long = vec![7; 10_000];
        out.clear();
        push_base64(&mut out, Some(&long));
        assert_eq!(out.len() as u64, base64_len(Some(&long)));
        assert_eq!(out, format!("\"{}\"", STANDARD.encode(&long)).into_bytes());
    }
}
