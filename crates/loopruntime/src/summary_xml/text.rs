//! Text between tags and in attribute values: where it ends, what it says, whether it says anything.

use std::borrow::Cow;

use epitome_loop::{InvalidSummaryReason, is_xml_character};

/// What encloses the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// Nothing: text between tags, which ends at `<` or at the end of the document.
    None,
    /// `"`.
    Double,
    /// `'`.
    Single,
}

/// How many bytes of text there are. Checks that the text is UTF-8, free of forbidden characters and of
/// `]]>`, and that its references resolve. `valid` is how many of the bytes are UTF-8.
pub(super) fn text_end(bytes: &[u8], valid: usize, quote: Quote) -> Result<usize, InvalidSummaryReason> {
    let end = match quote {
        Quote::None => between_tags_end(bytes)?,
        Quote::Double => value_end(bytes, b'"')?,
        Quote::Single => value_end(bytes, b'\'')?,
    };
    if end <= valid { Ok(end) } else { Err(SYNTAX) }
}

const SYNTAX: InvalidSummaryReason = InvalidSummaryReason::XmlSyntax;

/// Text between tags ends at `<` or with the document. Chunks without special bytes are passed whole; in the
/// others each special byte is looked at once.
fn between_tags_end(bytes: &[u8]) -> Result<usize, InvalidSummaryReason> {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    for (at, chunk) in chunks.iter().enumerate() {
        if let Some(end) = end_within(bytes, at * CHUNK, chunk)? {
            return Ok(end);
        }
    }
    let mut last = [b' '; CHUNK];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let end = end_within(bytes, bytes.len() - rest.len(), &last)?;
    Ok(end.unwrap_or(bytes.len()))
}

/// Where text ends within the chunk of `bytes` that starts at `start`, if it does.
fn end_within(
    bytes: &[u8],
    start: usize,
    chunk: &[u8; CHUNK],
) -> Result<Option<usize>, InvalidSummaryReason> {
    if !chunk.iter().fold(false, |any, &byte| any | is_special(byte)) {
        return Ok(None);
    }
    let mut special = special_positions(chunk);
    while special != 0 {
        let at = start + special.trailing_zeros() as usize;
        special &= special - 1;
        match bytes.get(at..).unwrap_or_default() {
            [b'<', ..] => return Ok(Some(at)),
            [b'\t' | b'\r', ..] => {}
            // What follows in a reference is not special, so the search goes on behind the ampersand.
            [b'&', b'l' | b'g', b't', b';', ..] | [b'&', b'a', b'm', b'p', b';', ..] => {}
            rest @ [b'&', ..] if resolve_reference(rest).is_some() => {}
            [b'>', ..] if !closes_cdata(bytes, at) => {}
            // U+FFFE and U+FFFF; every other character that begins so is allowed.
            [0xef, 0xbf, 0xbe | 0xbf, ..] => return Err(SYNTAX),
            [0xef, ..] => {}
            _ => return Err(SYNTAX),
        }
    }
    Ok(None)
}

/// An attribute value ends at its quote. Values only ever lead to a refusal, so they are read byte by byte.
fn value_end(bytes: &[u8], quote: u8) -> Result<usize, InvalidSummaryReason> {
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if byte == quote => return Ok(at),
            b'&' => {
                resolve_reference(bytes.get(at..).unwrap_or_default()).ok_or(SYNTAX)?;
            }
            b'\t' | b'\n' | b'\r' => {}
            b'<' | 0..0x20 => return Err(SYNTAX),
            0xef if matches!(bytes.get(at..at + 3), Some([0xef, 0xbf, 0xbe | 0xbf])) => return Err(SYNTAX),
            _ => {}
        }
    }
    Err(SYNTAX)
}

/// Whether the text says nothing: only white space, references resolved.
pub(super) fn is_blank(encoded: &[u8]) -> bool {
    let blanks = encoded.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let Some(encoded) = blanks.and_then(|blanks| encoded.get(blanks..)) else { return true };
    if encoded.first().is_some_and(|&byte| byte.is_ascii_graphic() && byte != b'&') {
        return false;
    }
    let Ok(mut rest) = std::str::from_utf8(encoded) else { return false };
    loop {
        rest = rest.trim_start();
        match resolve_reference(rest.as_bytes()) {
            Some((character, len)) if character.is_whitespace() => {
                rest = rest.get(len..).unwrap_or_default();
            }
            _ => return rest.is_empty(),
        }
    }
}

/// The text itself: references resolved, line ends made `\n`.
pub(super) fn decode(encoded: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'&', b'\r', encoded.as_bytes()).is_none() {
        return Cow::Borrowed(encoded);
    }
    let mut text = String::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((plain, special)) =
        memchr::memchr2(b'&', b'\r', rest.as_bytes()).and_then(|at| rest.split_at_checked(at))
    {
        text.push_str(plain);
        let (character, len) = match resolve_reference(special.as_bytes()) {
            Some(resolved) => resolved,
            None if special.starts_with("\r\n") => ('\n', 2),
            None if special.starts_with('\r') => ('\n', 1),
            None => ('&', 1),
        };
        text.push(character);
        rest = special.get(len..).unwrap_or_default();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Resolves the reference at the front: the character it stands for and how many bytes it takes. `None` when
/// there is none, it is unknown, or it stands for a character that XML forbids.
fn resolve_reference(bytes: &[u8]) -> Option<(char, usize)> {
    let body = bytes.strip_prefix(b"&")?;
    if let [b'#', numeric @ ..] = body {
        return resolve_number(numeric).map(|(character, len)| (character, "&#".len() + len));
    }
    match body {
        [b'l', b't', b';', ..] => Some(('<', 4)),
        [b'g', b't', b';', ..] => Some(('>', 4)),
        [b'a', b'm', b'p', b';', ..] => Some(('&', 5)),
        [b'a', b'p', b'o', b's', b';', ..] => Some(('\'', 6)),
        [b'q', b'u', b'o', b't', b';', ..] => Some(('"', 6)),
        _ => None,
    }
}

/// Resolves the number of a reference, `x41;` or `65;`: its character and how many bytes it takes.
fn resolve_number(bytes: &[u8]) -> Option<(char, usize)> {
    let (radix, digits) = match bytes {
        [b'x', hex @ ..] => (16, hex),
        _ => (10, bytes),
    };
    let zeros = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len());
    let mut code = 0_u32;
    // Eight significant digits are beyond Unicode in either radix.
    for (at, &digit) in digits.iter().enumerate().skip(zeros).take(8) {
        if digit == b';' {
            let character = char::from_u32(code).filter(|&code| at > 0 && is_xml_character(code))?;
            return Some((character, bytes.len() - digits.len() + at + 1));
        }
        code = code * radix + char::from(digit).to_digit(radix)?;
    }
    None
}

fn closes_cdata(bytes: &[u8], at: usize) -> bool {
    bytes.get(at.wrapping_sub(1)) == Some(&b']') && bytes.get(at.wrapping_sub(2)) == Some(&b']')
}

/// How many bytes are looked at together.
const CHUNK: usize = 64;

/// One bit for each special byte of a chunk, lowest first. The loop compiles to vector instructions; the
/// multiplication gathers the lowest bit of eight bytes.
fn special_positions(chunk: &[u8; CHUNK]) -> u64 {
    let flags = chunk.map(|byte| u8::from(is_special(byte)));
    let (words, _) = flags.as_chunks::<8>();
    words
        .iter()
        .rev()
        .fold(0, |bits, word| bits << 8 | u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56)
}

/// Bytes that may end text or be forbidden in it, and two that are rare. Written without branches and with few
/// comparisons, since every byte of a summary passes here.
fn is_special(byte: u8) -> bool {
    let control = (byte < 0x20) & (byte != b'\n');
    // One comparison for both angle brackets, which differ in this bit alone.
    let bracket = (byte & !0b10) == b'<';
    control | bracket | (byte == b'&') | (byte == 0xef)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_or_refused() {
        for (text, expected) in [
            ("&lt;x", Some(('<', 4))),
            ("&#10;", Some(('\n', 5))),
            ("&#x1F600;", Some(('😀', 9))),
            ("&#00000000000000000065;", Some(('A', 23))),
            ("&#;", None),
            ("&#x;", None),
            ("&#xD800;", None),
            ("&#0;", None),
            ("&#xFFFE;", None),
            ("&#99999999999999999999;", None),
            ("&nbsp;", None),
            ("&lt", None),
            ("&", None),
        ] {
            assert_eq!(resolve_reference(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn blank_means_unicode_white_space() {
        assert!(is_blank(" \u{3000}&#160;&#x20;\r\n".as_bytes()));
        assert!(!is_blank("\u{200b}".as_bytes()));
        assert!(!is_blank(b"&#65;"));
    }

    #[test]
    fn decoding_makes_text_of_references_and_line_ends() {
        assert_eq!(decode("a&amp;&lt;b&#x41;\r\nc\rd"), "a&<bA\nc\nd");
        assert!(matches!(decode("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn special_bytes_are_found_where_they_are() {
        for at in 0..CHUNK {
            let mut chunk = [b'x'; CHUNK];
            chunk[at] = b'&';
            assert_eq!(special_positions(&chunk), 1 << at);
        }
        assert_eq!(special_positions(&[0; CHUNK]), u64::MAX);
    }

    #[test]
    fn long_plain_text_is_passed_in_chunks() {
        let long = "x".repeat(1000) + "\u{fffd}" + &"é".repeat(500) + "<";
        assert_eq!(text_end(long.as_bytes(), long.len(), Quote::None), Ok(long.len() - 1));
        let forbidden = "x".repeat(130) + "\u{1}";
        assert!(text_end(forbidden.as_bytes(), forbidden.len(), Quote::None).is_err());
    }
}
