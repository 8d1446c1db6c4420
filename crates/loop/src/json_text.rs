//! Writing JSON text the way wire v1 and the core JSON demand: compact, HTML-safe escapes.
//!
//! Escaped are `"`, `\`, control characters, `<`, `>`, `&` and the two line separators U+2028 and U+2029;
//! everything else stands raw. The rule comes from the reference implementation; bytes must be equal.

mod escape;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use self::escape::Stage;
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
    written: Vec<u8>,
    stage: Stage,
}

impl JsonBytes {
    /// A buffer that holds this many bytes before it grows.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { written: Vec::with_capacity(bytes), stage: Stage::default() }
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.stage.flush(&mut self.written);
        self.written
    }
}

impl JsonSink for JsonBytes {
    // Most of it is fixed text of a known length, which a copy in place makes use of.
    #[inline(always)]
    fn plain(&mut self, text: &str) {
        self.stage.put(&mut self.written, text.as_bytes());
    }
    fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let (digits, _) = digits.split_at_mut(number_len(number));
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            // At most 9.
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.stage.put(&mut self.written, digits);
    }
    fn string(&mut self, text: &str) {
        self.stage.put(&mut self.written, b"\"");
        self.stage.put_escaped(&mut self.written, text.as_bytes());
        self.stage.put(&mut self.written, b"\"");
    }
    fn raw(&mut self, raw: &RawJson) {
        let text = raw.as_str().as_bytes();
        if raw.is_compact() {
            // What needs an escape stands in strings alone, so the strings need not be looked for.
            self.stage.put_html_safe(&mut self.written, text);
            return;
        }
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            let end = match byte {
                b' ' | b'\t' | b'\n' | b'\r' => 1,
                b'"' => {
                    let end = string_end(rest, 0).unwrap_or(rest.len());
                    self.stage.put_html_safe(&mut self.written, rest.get(..end).unwrap_or_default());
                    end
                }
                other => {
                    self.stage.put(&mut self.written, &[other]);
                    1
                }
            };
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    fn data(&mut self, data: Option<&[u8]>) {
        self.stage.flush(&mut self.written);
        push_base64(&mut self.written, data);
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
    #[inline(always)]
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
    push(out, |bytes| bytes.string(text));
}

/// Appends a raw JSON value without its insignificant white space, with the escapes of this module inside
/// strings and everything else (number spelling, key order, duplicates) verbatim.
pub fn push_raw(out: &mut Vec<u8>, raw: &RawJson) {
    push(out, |bytes| bytes.raw(raw));
}

/// Appends `data` as standard base64 with padding, in quotes; absent data is `null`.
pub fn push_base64(out: &mut Vec<u8>, data: Option<&[u8]>) {
    let Some(data) = data else {
        out.extend_from_slice(b"null");
        return;
    };
    out.push(b'"');
    let start = out.len();
    // Two for the quotes, of which one is still to come.
    let len = usize::try_from(base64_len(Some(data))).unwrap_or(usize::MAX) - 2;
    out.resize(start.saturating_add(len), 0);
    // There is room for exactly this, so it is all written.
    let written = out.get_mut(start..).map_or(Ok(0), |room| STANDARD.encode_slice(data, room)).unwrap_or(0);
    out.truncate(start + written);
    out.push(b'"');
}

fn push(out: &mut Vec<u8>, write: impl FnOnce(&mut JsonBytes)) {
    let mut bytes = JsonBytes { written: std::mem::take(out), stage: Stage::default() };
    write(&mut bytes);
    *out = bytes.into_bytes();
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
    fn numbers_are_written_in_plain_digits() {
        let edges = (0..20).flat_map(|power| [10_u64.pow(power) - 1, 10_u64.pow(power)]);
        for number in edges.chain([u64::MAX, u64::MAX - 1, 1 << 63]) {
            let mut out = JsonBytes::default();
            let mut length = JsonLength::default();
            out.number(number);
            length.number(number);
            let written = out.into_bytes();
            assert_eq!(written, number.to_string().into_bytes());
            assert_eq!(length.get(), written.len() as u64);
        }
    }

    #[test]
    fn a_buffer_grows_as_it_must() {
        let mut out = JsonBytes::with_capacity(3);
        let mut expected = Vec::new();
        for round in 0..300 {
            out.string(&"<".repeat(round));
            out.plain(",");
            push_string(&mut expected, &"<".repeat(round));
            expected.push(b',');
        }
        assert_eq!(out.into_bytes(), expected);
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
