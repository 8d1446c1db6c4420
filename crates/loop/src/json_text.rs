//! Writing JSON text the way wire v1 and the core JSON demand: compact, HTML-safe escapes.
//!
//! Escaped are `"`, `\`, control characters, `<`, `>`, `&` and the two line separators U+2028 and U+2029;
//! everything else stands raw. The rule comes from the reference implementation; bytes must be equal.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::RawJson;

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
pub struct JsonBytes(Vec<u8>);

impl JsonBytes {
    /// A buffer that holds this many bytes before it grows.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl JsonSink for JsonBytes {
    fn plain(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(number.to_string().as_bytes());
    }
    fn string(&mut self, text: &str) {
        push_string(&mut self.0, text);
    }
    fn raw(&mut self, raw: &RawJson) {
        push_raw(&mut self.0, raw);
    }
    fn data(&mut self, data: Option<&[u8]>) {
        push_base64(&mut self.0, data);
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
        self.0 += u64::from(number.checked_ilog10().unwrap_or(0)) + 1;
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
    out.push(b'"');
    push_escaped(out, text.as_bytes(), false);
    out.push(b'"');
}

/// Appends a raw JSON value without its insignificant white space, with the escapes of this module inside
/// strings and everything else (number spelling, key order, duplicates) verbatim.
pub fn push_raw(out: &mut Vec<u8>, raw: &RawJson) {
    let mut rest = raw.as_str().as_bytes();
    while let Some(&byte) = rest.first() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => rest = tail_from(rest, 1),
            b'"' => {
                let end = string_end(rest);
                let (string, after) = rest.split_at(end);
                push_escaped(out, string, true);
                rest = after;
            }
            other => {
                out.push(other);
                rest = tail_from(rest, 1);
            }
        }
    }
}

/// Appends `data` as standard base64 with padding, in quotes; absent data is `null`.
pub fn push_base64(out: &mut Vec<u8>, data: Option<&[u8]>) {
    let Some(data) = data else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'"');
    // Whole groups of three bytes encode independently, so no second buffer of the full size is needed.
    let mut chunk = String::new();
    for piece in data.chunks(3 * 1024) {
        chunk.clear();
        STANDARD.encode_string(piece, &mut chunk);
        out.extend_from_slice(chunk.as_bytes());
    }
    out.push(b'"');
}

/// The length in bytes that [`push_string`] would append.
#[must_use]
pub fn string_len(text: &str) -> u64 {
    2 + escaped_len(text.as_bytes(), false)
}

/// The length in bytes that [`push_raw`] would append.
#[must_use]
pub fn raw_len(raw: &RawJson) -> u64 {
    let mut rest = raw.as_str().as_bytes();
    let mut len = 0;
    while let Some(&byte) = rest.first() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => rest = tail_from(rest, 1),
            b'"' => {
                let (string, after) = rest.split_at(string_end(rest));
                len += escaped_len(string, true);
                rest = after;
            }
            _ => {
                len += 1;
                rest = tail_from(rest, 1);
            }
        }
    }
    len
}

/// The length in bytes that [`push_base64`] would append.
#[must_use]
pub fn base64_len(data: Option<&[u8]>) -> u64 {
    data.map_or(4, |data| 2 + 4 * (data.len() as u64).div_ceil(3))
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What a byte needs: 0 nothing, 1 a short escape, 2 `\u00xx`, 3 the start of a possible line separator.
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = 2;
        byte += 1;
    }
    table[0x08] = 1;
    table[0x09] = 1;
    table[0x0a] = 1;
    table[0x0c] = 1;
    table[0x0d] = 1;
    table[b'"' as usize] = 1;
    table[b'\\' as usize] = 1;
    table[b'<' as usize] = 2;
    table[b'>' as usize] = 2;
    table[b'&' as usize] = 2;
    table[0xe2] = 3;
    table
}

static CLASS: [u8; 256] = classes();

/// Appends bytes with escapes. `verbatim` marks text that is already a JSON string with its quotes: there
/// quotes and backslashes stay, and only the HTML-safe escapes are added.
fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], verbatim: bool) {
    let mut rest = bytes;
    loop {
        let plain = plain_len(rest);
        let (head, tail) = rest.split_at(plain);
        out.extend_from_slice(head);
        let Some(&byte) = tail.first() else { return };
        let mut used = 1;
        match CLASS[usize::from(byte)] {
            1 if verbatim => out.push(byte),
            1 => out.extend_from_slice(match byte {
                0x08 => b"\\b",
                0x09 => b"\\t",
                0x0a => b"\\n",
                0x0c => b"\\f",
                0x0d => b"\\r",
                b'"' => b"\\\"",
                _ => b"\\\\",
            }),
            2 => out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
            _ => match tail {
                [0xe2, 0x80, last @ (0xa8 | 0xa9), ..] => {
                    out.extend_from_slice(if *last == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                    used = 3;
                }
                _ => out.push(byte),
            },
        }
        rest = tail_from(tail, used);
    }
}

fn escaped_len(bytes: &[u8], verbatim: bool) -> u64 {
    let mut len = bytes.len() as u64;
    let mut rest = bytes;
    loop {
        rest = tail_from(rest, plain_len(rest));
        let Some(&byte) = rest.first() else { return len };
        match CLASS[usize::from(byte)] {
            1 => len += u64::from(!verbatim),
            2 => len += 5,
            _ => {
                if matches!(rest, [0xe2, 0x80, 0xa8 | 0xa9, ..]) {
                    len += 3;
                }
            }
        }
        rest = tail_from(rest, 1);
    }
}

/// How many leading bytes need no look at all.
fn plain_len(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| CLASS[usize::from(byte)] != 0).unwrap_or(bytes.len())
}

/// Where the JSON string that starts at the first byte ends, its closing quote included.
fn string_end(bytes: &[u8]) -> usize {
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

fn tail_from(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
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
