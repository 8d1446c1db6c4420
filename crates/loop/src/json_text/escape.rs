//! The escapes of the wire. Most bytes stand for themselves, so what counts is how fast the others are found.

use crate::byte_mask::{BLOCK, mask};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The longest that stands in the place of one byte, rounded up to a word.
const STAND: usize = 8;

/// How many bytes more than it writes a block needs to have room for.
const SPARE: usize = BLOCK + STAND;

/// How long a block of which each byte needs the longest escape becomes.
const LONGEST: usize = 6 * BLOCK;

/// How many bytes are collected before they are appended.
const STAGED: usize = 2_048;

/// How many bytes are summed up before the lanes could overflow: a byte adds at most 5 to its lane.
const SUMMED: usize = 51 * LANES;
const LANES: usize = 32;

/// Collects what is written in small pieces, in an array whose end is known without a look at the buffer that
/// it is appended to: whole blocks can be copied where only a part of them counts.
pub(super) struct Stage {
    bytes: Box<[u8; STAGED]>,
    used: usize,
}

impl Default for Stage {
    fn default() -> Self {
        Self { bytes: Box::new([0; STAGED]), used: 0 }
    }
}

impl Stage {
    /// Appends what was collected.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes.get(..self.used).unwrap_or_default());
        self.used = 0;
    }

    /// Puts bytes as they are.
    #[inline(always)]
    pub(super) fn put(&mut self, out: &mut Vec<u8>, bytes: &[u8]) {
        let end = self.used + bytes.len();
        match self.bytes.get_mut(self.used..end) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.used = end;
            }
            None => {
                self.flush(out);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Puts text with the escapes of a string.
    pub(super) fn put_escaped(&mut self, out: &mut Vec<u8>, text: &[u8]) {
        self.put_marked::<false>(out, text);
    }

    /// Puts JSON in which nothing but the HTML-safe escapes is missing.
    pub(super) fn put_html_safe(&mut self, out: &mut Vec<u8>, json: &[u8]) {
        self.put_marked::<true>(out, json);
    }

    /// Puts bytes, with what stands in the place of each that needs it. With `JSON` the bytes are JSON already.
    fn put_marked<const JSON: bool>(&mut self, out: &mut Vec<u8>, text: &[u8]) {
        let mut rest = text;
        while let Some(source) = rest.first_chunk() {
            let used = self.put_block::<JSON>(out, source, BLOCK);
            rest = rest.get(used..).unwrap_or_default();
        }
        // The rest is less than two blocks; what is missing of them is filled up, and not looked at.
        while !rest.is_empty() {
            let mut source = [0; 2 * BLOCK];
            source.iter_mut().zip(rest).for_each(|(place, byte)| *place = *byte);
            let used = self.put_block::<JSON>(out, &source, BLOCK.min(rest.len()));
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// Puts the first `len` bytes of a block, and says how many it has used, which may be two more.
    #[inline(always)]
    fn put_block<const JSON: bool>(
        &mut self,
        out: &mut Vec<u8>,
        source: &[u8; 2 * BLOCK],
        len: usize,
    ) -> usize {
        if self.used > STAGED - LONGEST - SPARE {
            self.flush(out);
        }
        match write_block::<JSON>(&mut self.bytes, self.used, source, len) {
            Some((used, end)) => {
                self.used = end;
                used
            }
            // There is room, so this does not happen; if it did, the rest would be put as slowly as can be.
            None => put_byte::<JSON>(self, out, source),
        }
    }
}

/// Puts the first byte of a block, or what stands in its place, and says how many bytes that were.
#[cold]
fn put_byte<const JSON: bool>(stage: &mut Stage, out: &mut Vec<u8>, source: &[u8; 2 * BLOCK]) -> usize {
    stage.flush(out);
    let (stand, used) = stand_of::<JSON>(source, 0);
    out.extend_from_slice(stand.bytes.get(..usize::from(stand.len)).unwrap_or_default());
    used
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

/// What stands in the place of a byte of a block, and how many bytes it is for.
#[inline(always)]
fn stand_of<const JSON: bool>(source: &[u8; 2 * BLOCK], at: usize) -> (Stand, usize) {
    if let Some([0xe2, 0x80, last @ (0xa8 | 0xa9)]) = source.get(at..at + 3) {
        let bytes = if *last == 0xa8 { b"\\u2028\0\0" } else { b"\\u2029\0\0" };
        return (Stand { bytes: *bytes, len: 6 }, 3);
    }
    let byte = source.get(at).copied().unwrap_or_default();
    (if JSON { &IN_JSON } else { &IN_STRING }[usize::from(byte)], 1)
}

/// Writes the first `len` bytes of a block from `at` on. Says how many it has used, which may be two more, and
/// where the output ends; `None` if there is no room for it and [`SPARE`] bytes.
#[inline(always)]
fn write_block<const JSON: bool>(
    out: &mut [u8; STAGED],
    mut at: usize,
    source: &[u8; 2 * BLOCK],
    len: usize,
) -> Option<(usize, usize)> {
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
        let (stand, used) = stand_of::<JSON>(source, place);
        room.get_mut(run..run + STAND)?.copy_from_slice(&stand.bytes);
        at += run + usize::from(stand.len);
        from = place + used;
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
            let (mut out, mut stage) = (b"before".to_vec(), Stage::default());
            stage.put(&mut out, b",");
            if json {
                stage.put_html_safe(&mut out, text)
            } else {
                stage.put_escaped(&mut out, text)
            };
            stage.put(&mut out, b"behind");
            stage.flush(&mut out);
            assert_eq!(out, [b"before,", &expected[..], b"behind"].concat(), "{text:?}");
            let added = if json { html_safe_len(text) } else { escapes_len(text) };
            assert_eq!(text.len() as u64 + added, expected.len() as u64, "{text:?}");
        }
    }

    #[test]
    fn a_byte_alone_is_put_by_the_same_rule() {
        for byte in 0..=255 {
            let (mut out, mut stage) = (Vec::new(), Stage::default());
            let mut source = [b'x'; 2 * BLOCK];
            source[0] = byte;
            assert_eq!(put_byte::<false>(&mut stage, &mut out, &source), 1);
            assert_eq!(out, plainly(&[byte], false));
        }
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
        for len in [3, 4, 63, 64, 65, 66, 67, 80, 126, 127, 128, 129, 130, 131, 192, 200] {
            for at in (0..len - 2).filter(|at| at % 64 > 57 || at % 64 < 4 || at + 6 > len) {
                for third in [0xa7, 0xa8, 0xa9, 0xaa] {
                    let mut text = vec![b'<'; len];
                    text[at..at + 3].copy_from_slice(&[0xe2, 0x80, third]);
                    check(&text);
                    if at >= 3 {
                        text[at - 3..at].copy_from_slice(&[0xe2, 0x80, 0xa9]);
                        check(&text);
                    }
                    check(&text[..at + 2]);
                    check(&text[..at + 1]);
                }
            }
        }
    }
}
