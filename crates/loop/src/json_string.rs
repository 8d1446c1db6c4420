//! Strings of JSON: where they end, and what they say.

use thiserror::Error;

use crate::byte_mask::{BLOCK, mask};

/// Something is wrong with a string of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} at byte {at}")]
pub struct JsonStringFault {
    /// What.
    pub kind: JsonStringFaultKind,
    /// Where, in bytes from the start of the text.
    pub at: usize,
}

/// What is wrong with a string of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum JsonStringFaultKind {
    /// It does not end, holds a raw control character, or an escape that JSON does not know.
    #[error("not a string of JSON")]
    Syntax,
    /// It is well written, but holds half of a surrogate pair, which is no text.
    #[error("half of a surrogate pair")]
    LoneSurrogate,
}

/// Where the string ends whose opening quote stands at `start`, its closing quote included. What its escapes
/// say is not looked at.
///
/// # Errors
/// [`JsonStringFault`] of the kind [`JsonStringFaultKind::Syntax`].
pub fn string_end(text: &[u8], start: usize) -> Result<usize, JsonStringFault> {
    let mut at = start + 1;
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let mut special = mask(block, is_special);
        let mut passed = 0;
        while special != 0 {
            let place = at + special.trailing_zeros() as usize;
            match text.get(place) {
                Some(b'"') => return Ok(place + 1),
                Some(b'\\') => passed = place + escape_len(text, place)? - at,
                _ => return Err(syntax(place)),
            }
            special = if passed < BLOCK { special & u64::MAX << passed } else { 0 };
        }
        at += passed.max(BLOCK);
    }
    loop {
        at += plain_run(text, at);
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += escape_len(text, at)?,
            _ => return Err(syntax(at)),
        }
    }
}

/// How many bytes from `at` on stand for themselves in a string: everything up to a quote, a backslash or a
/// control character.
#[must_use]
#[inline]
pub fn plain_run(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let (blocks, tail) = rest.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        let special = mask(block, is_special);
        if special != 0 {
            return index * BLOCK + special.trailing_zeros() as usize;
        }
    }
    let plain = tail.iter().position(|byte| is_special(*byte) != 0).unwrap_or(tail.len());
    rest.len() - tail.len() + plain
}

/// The length of the escape whose backslash stands at `at`: 2, or 6 for `\uXXXX`.
///
/// # Errors
/// [`JsonStringFault`] when JSON does not know it.
pub fn escape_len(text: &[u8], at: usize) -> Result<usize, JsonStringFault> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => {
            let digits = text.get(at + 2..).unwrap_or_default().iter().take(4);
            match digits.take_while(|digit| digit.is_ascii_hexdigit()).count() {
                4 => Ok(6),
                good => Err(syntax(at + 2 + good)),
            }
        }
        _ => Err(syntax((at + 1).min(text.len()))),
    }
}

/// Decodes strings, one after the other, in one place.
#[derive(Default)]
pub struct StringDecoder {
    /// Longer than what is decoded, so that whole blocks can be copied.
    decoded: Vec<u8>,
}

/// How many bytes more than a string says there must be room for.
const SPARE: usize = 2 * BLOCK;

impl StringDecoder {
    /// Decodes the string whose first byte behind the opening quote stands at `start`, and says where it ends,
    /// its closing quote included.
    ///
    /// # Errors
    /// [`JsonStringFault`] with the first fault.
    pub fn decode(&mut self, text: &str, start: usize) -> Result<(&str, usize), JsonStringFault> {
        let text = text.as_bytes();
        let (mut at, mut len) = (start, 0);
        let end = loop {
            if self.decoded.len() < len + SPARE {
                self.decoded.resize(2 * (len + SPARE), 0);
            }
            let rest = text.get(at..).unwrap_or_default();
            let mut padded = [0; SPARE];
            let source = match rest.first_chunk() {
                Some(source) => source,
                None => {
                    // What is missing is filled with zeros, which are control characters, so nothing is read
                    // behind the end.
                    padded.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
                    &padded
                }
            };
            let room = self.decoded.get_mut(len..).unwrap_or_default();
            match decode_block(source, room) {
                Ok(Step::On { used, made }) => (at, len) = (at + used, len + made),
                Ok(Step::End { used, made }) => {
                    len += made;
                    break at + used;
                }
                Err(fault) => {
                    return Err(JsonStringFault { at: (at + fault.at).min(text.len()), ..fault });
                }
            }
        };
        let decoded = self.decoded.get(..len).unwrap_or_default();
        // Whole characters in, whole characters out; said once more, because the type cannot know.
        let decoded = std::str::from_utf8(decoded).map_err(|_| syntax(start))?;
        Ok((decoded, end))
    }
}

/// How far one block has brought the decoder: bytes used, bytes made.
enum Step {
    On { used: usize, made: usize },
    End { used: usize, made: usize },
}

/// Decodes a block. Escapes may reach into the second half of the source, but start in the first.
#[inline]
fn decode_block(source: &[u8; SPARE], room: &mut [u8]) -> Result<Step, JsonStringFault> {
    let (mut from, mut made) = (0, 0);
    let mut special = source.first_chunk().map_or(0, |block| mask(block, is_special));
    while special != 0 {
        let at = special.trailing_zeros() as usize;
        copy_run(source, from, at - from, room, made).ok_or(syntax(at))?;
        made += at - from;
        match byte(source, at) {
            b'"' => return Ok(Step::End { used: at + 1, made }),
            b'\\' => {}
            _ => return Err(syntax(at)),
        }
        let simple = SIMPLE[usize::from(byte(source, at + 1))];
        if simple != 0 {
            put(room, made, &[simple]).ok_or(syntax(at))?;
            made += 1;
            from = at + 2;
        } else {
            let (character, end) = unit(source, at)?;
            let mut utf8 = [0; 4];
            let utf8 = character.encode_utf8(&mut utf8).as_bytes();
            put(room, made, utf8).ok_or(syntax(at))?;
            made += utf8.len();
            from = end;
        }
        if from >= BLOCK {
            return Ok(Step::On { used: from, made });
        }
        special &= u64::MAX << from;
    }
    copy_run(source, from, BLOCK - from, room, made).ok_or(syntax(from))?;
    Ok(Step::On { used: BLOCK, made: made + BLOCK - from })
}

/// Copies a run of at most a block, and some bytes behind it; `None` if there is no room. There always is: a
/// block makes no more bytes than it uses, so `to` is at most `from`, which is less than half of the source.
#[inline(always)]
fn copy_run(source: &[u8; SPARE], from: usize, len: usize, room: &mut [u8], to: usize) -> Option<()> {
    const SHORT: usize = 32;
    room.get_mut(to..to + SHORT)?.copy_from_slice(source.get(from..from + SHORT)?);
    if len > SHORT {
        let run = source.get(from + SHORT..from + BLOCK)?;
        room.get_mut(to + SHORT..to + BLOCK)?.copy_from_slice(run);
    }
    Some(())
}

fn put(room: &mut [u8], to: usize, bytes: &[u8]) -> Option<()> {
    room.get_mut(to..to + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// The character that `\uXXXX` at `at` stands for, with its second half if it is the first of a pair, and where
/// it ends.
fn unit(source: &[u8; SPARE], at: usize) -> Result<(char, usize), JsonStringFault> {
    let end = at + escape_len(source, at)?;
    let high = unit_of(source, at);
    if let Some(character) = char::from_u32(high) {
        return Ok((character, end));
    }
    let lone = JsonStringFault { kind: JsonStringFaultKind::LoneSurrogate, at };
    if high >= 0xdc00 || byte(source, end) != b'\\' || byte(source, end + 1) != b'u' {
        return Err(lone);
    }
    let low_end = end + escape_len(source, end)?;
    let low = unit_of(source, end);
    if !(0xdc00..0xe000).contains(&low) {
        return Err(lone);
    }
    let code = 0x1_0000 + ((high - 0xd800) << 10 | (low - 0xdc00));
    Ok((char::from_u32(code).ok_or(lone)?, low_end))
}

/// The number in the four digits of the escape at `at`, which are known to be there.
fn unit_of(source: &[u8; SPARE], at: usize) -> u32 {
    let digits = source.get(at + 2..at + 6).unwrap_or_default();
    digits.iter().fold(0, |unit, digit| unit << 4 | char::from(*digit).to_digit(16).unwrap_or(0))
}

#[inline(always)]
fn byte(source: &[u8; SPARE], at: usize) -> u8 {
    source.get(at).copied().unwrap_or_default()
}

#[inline(always)]
fn is_special(byte: u8) -> u8 {
    u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\')
}

/// What the byte behind a backslash stands for; 0 when it is `u`, or nothing that JSON knows.
static SIMPLE: [u8; 256] = simple_escapes();

const fn simple_escapes() -> [u8; 256] {
    let mut table = [0; 256];
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b'b' as usize] = 0x08;
    table[b'f' as usize] = 0x0c;
    table[b'n' as usize] = b'\n';
    table[b'r' as usize] = b'\r';
    table[b't' as usize] = b'\t';
    table
}

fn syntax(at: usize) -> JsonStringFault {
    JsonStringFault { kind: JsonStringFaultKind::Syntax, at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(json: &str) -> Result<(String, usize), JsonStringFault> {
        StringDecoder::default().decode(json, 1).map(|(text, end)| (text.to_owned(), end))
    }

    #[test]
    fn strings_are_decoded_wherever_their_escapes_stand() {
        let pieces =
            ["\\n", "\\\\", "\\\"", "\\/", "\\u003c", "\\u00e9", "\\u20ac", "\\ud83d\\ude00", "é", "x"];
        for before in 0..140 {
            for (piece, next) in pieces.iter().zip(pieces.iter().cycle().skip(before % 7)) {
                for after in [0, 1, 63, 64, 100] {
                    let json = format!("\"{}{piece}{next}{}\"", "a".repeat(before), "b".repeat(after));
                    let expected: String = serde_json::from_str(&json).unwrap();
                    assert_eq!(decode(&json), Ok((expected, json.len())), "{json}");
                    assert_eq!(string_end(json.as_bytes(), 0), Ok(json.len()));
                }
            }
        }
    }

    #[test]
    fn one_decoder_decodes_many_strings() {
        let mut decoder = StringDecoder::default();
        for len in [0, 1, 500, 3, 70_000, 2] {
            let json = format!("\"{}\" and more", "\\t".repeat(len));
            let (text, end) = decoder.decode(&json, 1).unwrap();
            assert_eq!((text.len(), end), (len, 2 * len + 2));
            assert!(text.bytes().all(|byte| byte == b'\t'));
        }
    }

    #[test]
    fn faults_say_what_and_where() {
        let fault = |kind, at| Err(JsonStringFault { kind, at });
        use JsonStringFaultKind::{LoneSurrogate, Syntax};
        for at in [0, 1, 30, 57, 58, 59, 60, 61, 62, 63, 64, 65, 127, 128, 200] {
            let with = |piece: &str| format!("\"{}{piece}", "a".repeat(at));
            for (piece, kind, offset) in [
                ("", Syntax, 0),
                ("\n\"", Syntax, 0),
                ("\\", Syntax, 1),
                ("\\x\"", Syntax, 1),
                ("\\u12", Syntax, 4),
                ("\\u12g4\"", Syntax, 4),
                ("\\ud800\"", LoneSurrogate, 0),
                ("\\ud800\\n\"", LoneSurrogate, 0),
                ("\\ud800\\u0041\"", LoneSurrogate, 0),
                ("\\ud800\\ud800\"", LoneSurrogate, 0),
                ("\\udc00\"", LoneSurrogate, 0),
                ("\\ud800\\u12\"", Syntax, 10),
            ] {
                let json = with(piece);
                assert_eq!(decode(&json), fault(kind, 1 + at + offset), "{json:?}");
                // Who only looks for the end sees the same faults but lone surrogates.
                let end = if kind == Syntax { Err(syntax(1 + at + offset)) } else { Ok(json.len()) };
                assert_eq!(string_end(json.as_bytes(), 0), end, "{json:?}");
                if piece.ends_with('"') {
                    let longer = json.clone() + &" ".repeat(80);
                    assert_eq!(string_end(longer.as_bytes(), 0), end, "{longer:?}");
                }
            }
        }
    }

    #[test]
    fn plain_runs_end_at_the_first_byte_that_does_not_stand_for_itself() {
        for special in [0, 0x1f, b'"', b'\\', b'\n'] {
            for at in 0..200 {
                let mut text = vec![b'x'; 220];
                text[at] = special;
                if at % 3 == 0 {
                    text[at + 1] = b'"';
                }
                assert_eq!(plain_run(&text, 0), at, "{special} at {at}");
            }
        }
        for plain in [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff] {
            assert_eq!(plain_run(&[plain; 77], 5), 72);
        }
    }
}
