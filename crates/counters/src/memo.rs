//! Remembers the counts of short pieces of text, of which agents' transcripts repeat the same few thousand.

use std::cell::RefCell;

use crate::encoding::Encoding;
use crate::pieces::Pieces;

/// The count of a text as the sum over its pieces: those that are known are looked up, the others left to the
/// tokenizer, in spans as long as possible.
pub(crate) fn count(encoding: Encoding, text: &str) -> u64 {
    let with_memo = |memos: &RefCell<Memos>| {
        let mut memos = memos.try_borrow_mut().ok()?;
        let memo = match encoding {
            Encoding::O200kBase => &mut memos.o200k,
            Encoding::Cl100kBase => &mut memos.cl100k,
        };
        Some(memo.get_or_insert_with(Memo::new).count(encoding, text))
    };
    // A thread that is ending has no memo any more.
    let counted = MEMOS.try_with(with_memo).ok().flatten();
    counted.unwrap_or_else(|| as_u64(encoding.tokens(text).len()))
}

thread_local! {
    static MEMOS: RefCell<Memos> = const { RefCell::new(Memos { o200k: None, cl100k: None }) };
}

struct Memos {
    o200k: Option<Memo>,
    cl100k: Option<Memo>,
}

/// A table of fixed size with a few entries for each hash: 557 kB.
struct Memo {
    keys: Box<[[u128; WAYS]]>,
    counts: Box<[[u8; WAYS]]>,
}

const WAYS: usize = 2;
const SETS: usize = 1 << 14;
/// Longest piece that is remembered, in bytes: with its length it fills the key.
const LONGEST: usize = 15;
/// After so many unknown pieces in a row they are learned, as their like may follow.
const LESSON: usize = 16;
/// The most that is passed over at once, in bytes.
const LONGEST_STRIDE: usize = 8 << 10;
/// The key of no piece, as none is empty.
const FREE: u128 = 0;

impl Memo {
    fn new() -> Self {
        Self { keys: vec![[FREE; WAYS]; SETS].into(), counts: vec![[0; WAYS]; SETS].into() }
    }

    fn count(&mut self, encoding: Encoding, text: &str) -> u64 {
        let mut total = 0_u64;
        let mut pieces = Pieces::of(text);
        // The unknown pieces before `at` that have not been counted yet.
        let mut unknown = Unknown::default();
        let mut at = 0;
        let mut stride = 0;
        while let Some(piece) = pieces.next() {
            let key = key_of(piece);
            let end = at + piece.len();
            if let Some(count) = key.and_then(|key| self.look_up(key)) {
                total += count + self.learn(encoding, text.get(unknown.from..at), unknown);
                unknown = Unknown { from: end, short_pieces: 0 };
                stride = 0;
            } else {
                unknown.short_pieces += usize::from(key.is_some());
            }
            at = end;
            if unknown.short_pieces == LESSON {
                total += self.learn(encoding, text.get(unknown.from..at), unknown);
                // Text in which nothing is known, such as random words, is not worth learning: it is passed
                // over in growing strides.
                let strange = pieces.pass_over(stride);
                total += as_u64(encoding.tokens(strange).len());
                stride = (2 * stride).clamp(LESSON, LONGEST_STRIDE);
                at += strange.len();
                unknown = Unknown { from: at, short_pieces: 0 };
            }
        }
        total + self.learn(encoding, text.get(unknown.from..), unknown)
    }

    /// Counts a span of unknown pieces and remembers the short ones.
    fn learn(&mut self, encoding: Encoding, span: Option<&str>, unknown: Unknown) -> u64 {
        let span = span.unwrap_or_default();
        if span.is_empty() {
            return 0;
        }
        let tokens = encoding.tokens(span);
        if unknown.short_pieces > 0 {
            let mut lengths = tokens.iter().map(|&token| encoding.token_len(token));
            for piece in Pieces::of(span) {
                // No token reaches across a cut, so whole tokens make up the piece.
                let mut left = piece.len();
                let mut count = 0_u8;
                while left > 0 {
                    left = left.saturating_sub(lengths.next().unwrap_or(left));
                    count = count.saturating_add(1);
                }
                if let Some(key) = key_of(piece) {
                    self.remember(key, count);
                }
            }
        }
        as_u64(tokens.len())
    }

    fn look_up(&self, key: u128) -> Option<u64> {
        let set = set_of(key);
        let way = self.keys.get(set)?.iter().position(|&known| known == key)?;
        self.counts.get(set)?.get(way).map(|&count| u64::from(count))
    }

    /// The newest entry of a set comes first and pushes the oldest one out.
    fn remember(&mut self, key: u128, count: u8) {
        let set = set_of(key);
        if let (Some(keys), Some(counts)) = (self.keys.get_mut(set), self.counts.get_mut(set)) {
            *keys = [key, keys[0]];
            *counts = [count, counts[0]];
        }
    }
}

/// A span of pieces that are not in the table.
#[derive(Clone, Copy, Default)]
struct Unknown {
    from: usize,
    /// How many of them are short enough to be remembered.
    short_pieces: usize,
}

/// The piece and its length in one number; `None` when it is too long to be remembered.
fn key_of(piece: &str) -> Option<u128> {
    let mut key = [0_u8; LONGEST + 1];
    let (length, bytes) = key.split_last_mut()?;
    bytes.get_mut(..piece.len())?.copy_from_slice(piece.as_bytes());
    *length = u8::try_from(piece.len()).ok()?;
    Some(u128::from_le_bytes(key))
}

fn set_of(key: u128) -> usize {
    // Both halves are spread by odd numbers; the high bits are the good ones.
    let (high, low) = ((key >> 64) as u64, key as u64);
    let spread = (low ^ high.wrapping_mul(0xd6e8_feb8_6659_fd93)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> (64 - SETS.trailing_zeros())) as usize
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
