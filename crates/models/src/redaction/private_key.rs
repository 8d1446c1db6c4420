//! Blocks with private keys, as PEM and PGP write them.

use memchr::memmem;

use super::SecretKind;
use super::scan::{Found, run};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// A block is no longer: the largest keys in use have a quarter of it.
const MOST_BYTES: usize = 65_536;
/// What stands in front of a key in older files.
const HEADERS: [&[u8]; 2] = [b"Proc-Type:", b"DEK-Info:"];
/// A header is no longer.
const MOST_HEADER: usize = 256;
/// No word is so long.
const LONG_LINE: usize = 40;
const LINE_ENDS: [&[u8]; 4] = [b"\r\n", b"\n", b"\\r\\n", b"\\n"];
/// So long may the name of a kind of key be.
const MOST_NAME: usize = 64;

/// The block that begins at this byte. One without an end goes as far as its lines look like a key's.
pub(super) fn at(bytes: &[u8], start: usize) -> Option<Found> {
    let rest = bytes.get(start..)?;
    let body = rest.strip_prefix(BEGIN)?;
    let name = label(body)?;
    let body_start = start + BEGIN.len() + name + DASHES.len();
    if !is_body(bytes.get(body_start..)?) {
        return None;
    }
    let end = match whole(bytes, body_start) {
        Some(end) => end,
        None => body_start + Some(cut(bytes, body_start)).filter(|length| *length > 0)?,
    };
    Some(Found { start, end, kind: SecretKind::PrivateKey })
}

/// Whether a key may follow: a new line, or a long run of base64. Program text that only speaks of such blocks goes
/// on otherwise.
fn is_body(behind: &[u8]) -> bool {
    let behind = behind.strip_prefix(b" ").unwrap_or(behind);
    LINE_ENDS.iter().any(|end| behind.starts_with(end))
        || run(behind.get(..behind.len().min(LONG_LINE)).unwrap_or_default(), 0, is_base64) == LONG_LINE
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The length of a label that names a private key, closed by dashes.
fn label(text: &[u8]) -> Option<usize> {
    let length = run(text.get(..text.len().min(MOST_NAME))?, 0, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    let name = text.get(..length)?;
    let is_private = name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK");
    (is_private && text.get(length..)?.starts_with(DASHES)).then_some(length)
}

/// Where the block ends whose end is the next thing between dashes.
fn whole(bytes: &[u8], body_start: usize) -> Option<usize> {
    let rest = bytes.get(body_start..)?;
    let rest = rest.get(..rest.len().min(MOST_BYTES))?;
    let dashes = memmem::find(rest, DASHES)?;
    let name = label(rest.get(dashes..)?.strip_prefix(END)?)?;
    Some(body_start + dashes + END.len() + name + DASHES.len())
}

/// How far a block without an end goes: over lines of base64 and headers, to the end of the last one. A line may
/// be broken by the two characters `\n`, as in text that quotes text.
fn cut(bytes: &[u8], body_start: usize) -> usize {
    let (mut length, mut end) = (0, 0);
    while length < MOST_BYTES {
        let rest = bytes.get(body_start + length..).unwrap_or_default();
        let rest = rest.get(..rest.len().min(MOST_BYTES)).unwrap_or_default();
        let is_header = HEADERS.iter().any(|header| rest.starts_with(header));
        let line = if is_header {
            run(rest.get(..rest.len().min(MOST_HEADER)).unwrap_or_default(), 0, |byte| {
                byte.is_ascii_graphic() && byte != b'\\' || byte == b' '
            })
        } else {
            run(rest, 0, is_base64)
        };
        let behind = rest.get(line..).unwrap_or_default();
        // A short line that goes on as something else is the beginning of that.
        let is_alone = behind.first().is_none_or(|byte| b"\r\n\\\"'`".contains(byte));
        if is_alone && line > 0 || line >= LONG_LINE {
            end = length + line;
        }
        match LINE_ENDS.iter().find(|end| behind.starts_with(end)) {
            Some(line_end) => length += line + line_end.len(),
            None => break,
        }
    }
    end
}
