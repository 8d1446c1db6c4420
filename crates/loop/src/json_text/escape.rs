//! The escapes of the wire. Most bytes stand for themselves, so what counts is how fast the others are found.

use crate::byte_mask::{BLOCK, mask};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// How many bytes more than it writes a writer here needs to have room for.
pub(super) const SPARE: usize = BLOCK + STAND;

/// The longest that stands in the place of one byte, rounded up to a word.
const STAND: usize = 8;

/// How many bytes are summed up before the lanes could overflow: a byte adds at most 5 to its lane.
const SUMMED: usize = 51 * LANES;
const LANES: usize = 32;

/// Writes text with the escapes of a string from `at` on and says where it ends; `None` if there is no room
/// for it and [`SPARE`] bytes.
pub(super) fn write_escaped(out: &mut [u8], at: usize, text: &[u8]) -> Option<usize> {
    write_marked::<false>(out, at, text)
}

/// Writes JSON in which nothing but the HTML-safe escapes is missing, in the same way.
pub(super) fn write_html_safe(out: &mut [u8], at: usize, json: &[u8]) -> Option<usize> {
    write_marked::<true>(out, at, json)
}

/// How many bytes the escapes of a string add to a text.
pub(super) fn escapes_len(text: &[u8]) -> u64 {
    added(text, |byte| {
        let control = u8::from(byte < 0x20);
        let short = u8::from(byte.wrapping_sub(8) < 6) & u8::from(byte != 0x0b);
        let quoted = u8::from(byte == b'"') | u8::from(byte == b'\\');
        5 * (control | is_markup(byte)) - 4 * short + quoted
    })
}

/// How many bytes the HTML-safe escapes add to JSON.
pub(super) fn html_safe_len(json: &[u8]) -> u64 {
    added(json, |byte| 5 * is_markup(byte))
}

/// Sums up what each byte adds, and 3 for each line separator. Both loops over lanes become wide instructions.
fn added(text: &[u8], added_by: impl Fn(u8) -> u8) -> u64 {
    let (lanes, rest) = text.as_chunks::<LANES>();
    let mut sum = 0;
    let mut strange = 0;
    for lanes in lanes.chunks(SUMMED / LANES) {
        let mut sums = [0_u8; LANES];
        for bytes in lanes {
            for (sum, byte) in sums.iter_mut().zip(bytes) {
                *sum += added_by(*byte);
                strange |= u8::from(*byte == 0xe2);
            }
        }
        sum += sums.iter().map(|sum| u64::from(*sum)).sum::<u64>();
    }
    for byte in rest {
        sum += u64::from(added_by(*byte));
        strange |= u8::from(*byte == 0xe2);
    }
    if strange == 0 { sum } else { sum + 3 * line_separators(text) }
}

/// How many line separators a text has, U+2028 and U+2029.
fn line_separators(text: &[u8]) -> u64 {
    let seconds = text.get(1..).unwrap_or_default();
    let thirds = text.get(2..).unwrap_or_default();
    let found =
        text.iter().zip(seconds).zip(thirds).map(|((first, second), third)| {
            u64::from(*first == 0xe2 && *second == 0x80 && third | 1 == 0xa9)
        });
    found.sum()
}

fn is_markup(byte: u8) -> u8 {
    u8::from(byte | 2 == b'>') | u8::from(byte == b'&')
}

/// What stands in the place of a byte: the first `len` of these bytes.
#[derive(Clone, Copy)]
struct Stand {
    bytes: [u8; 8],
    len: u8,
}

/// What stands in the place of each byte of a string.
static IN_STRING: [Stand; 256] = stands(false);

/// What stands in the place of each byte of what is JSON already: quotes, backslashes and white space stay.
static IN_JSON: [Stand; 256] = stands(true);

const fn stands(json: bool) -> [Stand; 256] {
    let mut table = [Stand { bytes: [0; 8], len: 1 }; 256];
    let mut byte = 0;
    while byte < 256 {
        let short = match byte as u8 {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            _ => 0,
        };
        let markup = matches!(byte as u8, b'<' | b'>' | b'&');
        table[byte] = if short != 0 && !json {
            Stand { bytes: [b'\\', short, 0, 0, 0, 0, 0, 0], len: 2 }
        } else if markup || byte < 0x20 && !json {
            let (high, low) = (HEX[byte >> 4], HEX[byte & 15]);
            Stand { bytes: [b'\\', b'u', b'0', b'0', high, low, 0, 0], len: 6 }
        } else {
            Stand { bytes: [byte as u8, 0, 0, 0, 0, 0, 0, 0], len: 1 }
        };
        byte += 1;
    }
    table
}

/// Writes bytes, with an escape in the place of each that needs one. With `JSON` the bytes are JSON already.
fn write_marked<const JSON: bool>(out: &mut [u8], mut at: usize, text: &[u8]) -> Option<usize> {
    let mut rest = text;
    while let Some(source) = rest.first_chunk() {
        let (used, end) = write_block::<JSON>(out, at, source, BLOCK)?;
        at = end;
        rest = rest.get(used..)?;
    }
    // The rest is less than two blocks; what is missing is filled up, and not looked at.
    let mut padded = [0; 3 * BLOCK];
    padded.get_mut(..rest.len())?.copy_from_slice(rest);
    let mut start = 0;
    while start < rest.len() {
        let source = padded.get(start..)?.first_chunk()?;
        let (used, end) = write_block::<JSON>(out, at, source, BLOCK.min(rest.len() - start))?;
        at = end;
        start += used;
    }
    Some(at)
}

/// Writes the first `len` bytes of a block from `at` on. Says how many it has used, which may be two more, and
/// where the output ends.
#[inline(always)]
fn write_block<const JSON: bool>(
    out: &mut [u8],
    mut at: usize,
    source: &[u8; 2 * BLOCK],
    len: usize,
) -> Option<(usize, usize)> {
    let stands = if JSON { &IN_JSON } else { &IN_STRING };
    let mut special = mask(source.first_chunk()?, |byte| {
        let markup = is_markup(byte) | u8::from(byte == 0xe2);
        let other = u8::from(byte < 0x20) | u8::from(byte == b'"') | u8::from(byte == b'\\');
        if JSON { markup } else { markup | other }
    });
    if len < BLOCK {
        special &= (1 << len) - 1;
    }
    let mut from = 0;
    while special != 0 {
        let place = special.trailing_zeros() as usize;
        special &= special - 1;
        let run = place - from;
        let room = out.get_mut(at..at + SPARE)?;
        copy_run(source, from, run, room)?;
        let mut stand = stands[usize::from(*source.get(place)?)];
        from = place + 1;
        if let [0xe2, 0x80, last @ (0xa8 | 0xa9)] = source.get(place..place + 3)? {
            let bytes = if *last == 0xa8 { b"\\u2028\0\0" } else { b"\\u2029\0\0" };
            stand = Stand { bytes: *bytes, len: 6 };
            from = place + 3;
        }
        room.get_mut(run..run + STAND)?.copy_from_slice(&stand.bytes);
        at += run + usize::from(stand.len);
    }
    // A separator may have reached over the end of the block.
    let run = len.saturating_sub(from);
    copy_run(source, from, run, out.get_mut(at..at + SPARE)?)?;
    Some((len.max(from), at + run))
}

/// Copies a run of at most a block, and some bytes behind it.
#[inline(always)]
fn copy_run(source: &[u8; 2 * BLOCK], from: usize, len: usize, room: &mut [u8]) -> Option<()> {
    const SHORT: usize = 32;
    room.get_mut(..SHORT)?.copy_from_slice(source.get(from..from + SHORT)?);
    if len > SHORT {
        room.get_mut(SHORT..BLOCK)?.copy_from_slice(source.get(from + SHORT..from + BLOCK)?);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, byte by byte, as plainly as it can be said.
    fn plainly(text: &[u8], json: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            let separator =
                text.get(at..at + 3).is_some_and(|three| matches!(three, [0xe2, 0x80, 0xa8 | 0xa9]));
            match byte {
                _ if separator => {
                    out.extend_from_slice(format!("\\u20{:02x}", text[at + 2] - 0x80).as_bytes());
                    at += 2;
                }
                b'<' | b'>' | b'&' => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                0..0x20 | b'"' | b'\\' if !json => match byte {
                    8 => out.extend_from_slice(b"\\b"),
                    9 => out.extend_from_slice(b"\\t"),
                    10 => out.extend_from_slice(b"\\n"),
                    12 => out.extend_from_slice(b"\\f"),
                    13 => out.extend_from_slice(b"\\r"),
                    b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                },
                _ => out.push(byte),
            }
            at += 1;
        }
        out
    }

    fn check(text: &[u8]) {
        for json in [false, true] {
            let expected = plainly(text, json);
            let mut out = vec![0; 6 + expected.len() + SPARE];
            let write = if json { write_html_safe } else { write_escaped };
            assert_eq!(write(&mut out, 6, text), Some(6 + expected.len()), "{text:?}");
            assert_eq!(&out[6..6 + expected.len()], expected, "{text:?}");
            assert_eq!(out[..6], [0; 6]);
            let added = if json { html_safe_len(text) } else { escapes_len(text) };
            assert_eq!(text.len() as u64 + added, expected.len() as u64, "{text:?}");
        }
    }

    #[test]
    fn without_room_nothing_is_said_to_be_written() {
        let mut out = vec![0; 300];
        assert_eq!(write_escaped(&mut out, 0, &[b'<'; 38]), Some(228));
        assert_eq!(write_escaped(&mut out, 0, &[b'<'; 39]), None);
        assert_eq!(write_escaped(&mut out, 300, b"x"), None);
        assert_eq!(write_escaped(&mut out, 300, b""), Some(300));
    }

    #[test]
    fn every_byte_in_every_place_is_escaped_by_the_rule() {
        for byte in 0..=255 {
            for len in [1, 16, 17, 63, 64, 65, 127, 128, 129] {
                for at in [0, len / 3, len / 2, len - 1] {
                    let mut text = vec![b'x'; len];
                    text[at] = byte;
                    check(&text);
                }
            }
            check(&[byte; 77]);
            check(&[byte; 4_000]);
        }
    }

    #[test]
    fn neighbours_do_not_disturb_each_other() {
        for first in 0..=255 {
            for second in [0, 1, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0x3b, 0x3c, 0x3d, 0x3e, 0x3f]
                .into_iter()
                .chain([0x5b, 0x5c, 0x5d, 0x7f, 0x80, 0xa1, 0xe1, 0xe2, 0xe3, 0xff])
            {
                check(&[first, second, b'x', first, second, second, b'x', b'y', second, first]);
            }
        }
    }

    #[test]
    fn line_separators_are_found_across_blocks() {
        for at in 0..140 {
            for third in [0xa7, 0xa8, 0xa9, 0xaa] {
                let mut text = vec![b'x'; 200];
                text[at..at + 3].copy_from_slice(&[0xe2, 0x80, third]);
                check(&text);
                check(&text[..at + 3]);
                check(&text[..at + 2]);
                check(&text[..at + 1]);
            }
        }
    }
}
