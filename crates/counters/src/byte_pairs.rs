//! How often each kind of byte follows each other kind: all that is looked at in a text to size it.

/// What a byte is, as far as tokenizers care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteClass {
    Lower,
    Upper,
    Digit,
    /// A blank or a tab.
    Space,
    /// A line break.
    Break,
    /// A double quote, which tells JSON from code.
    Quote,
    /// Any other visible ASCII mark.
    Mark,
    Control,
    /// A byte inside a character of several.
    Continuation,
    /// The first byte of a Latin letter with an accent.
    Latin,
    /// The first byte of Greek, Cyrillic, Hebrew, Arabic and their like.
    Lead2,
    /// The first byte of Indic scripts, Thai, Georgian and their like.
    Indic,
    /// The first byte of typographic marks, arrows, frames.
    Symbol,
    /// The first byte of Chinese, Japanese, Korean.
    Lead3,
    /// The first byte of emoji and rare scripts.
    Lead4,
}

use ByteClass as C;

/// How many classes there are.
pub(crate) const CLASSES: usize = 15;

/// The row of a byte that repeats the one before it, whatever its class.
pub(crate) const REPEATED: usize = CLASSES;

/// Rows and columns lie this far apart.
const STRIDE: usize = 16;

/// Pairs of neighboring bytes in a text, by the class of the first and the class of the second. The first byte
/// counts as one behind a line break, a byte equal to the one before it as one of the row [`REPEATED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BytePairs {
    cells: [u64; STRIDE * STRIDE],
}

impl BytePairs {
    /// Counts the pairs of a text, in one pass.
    pub(crate) fn of(text: &str) -> Self {
        // Two tables in turn: with one, a run of equal pairs would wait for its own last write.
        let (mut even, mut odd) = ([0_u64; STRIDE * STRIDE], [0_u64; STRIDE * STRIDE]);
        let mut before = b'\n';
        let mut pairs = text.as_bytes().chunks_exact(2);
        for pair in &mut pairs {
            if let &[first, second] = pair {
                even[usize::from(cell(before, first))] += 1;
                odd[usize::from(cell(first, second))] += 1;
                before = second;
            }
        }
        if let &[last] = pairs.remainder() {
            even[usize::from(cell(before, last))] += 1;
        }
        even.iter_mut().zip(odd).for_each(|(sum, more)| *sum += more);
        Self { cells: even }
    }

    /// How often `second` follows `first` without repeating its byte.
    pub(crate) fn count(&self, first: ByteClass, second: ByteClass) -> u64 {
        self.cells.get(first as usize * STRIDE + second as usize).copied().unwrap_or(0)
    }

    /// How many bytes of a class there are.
    pub(crate) fn of_class(&self, class: ByteClass) -> u64 {
        self.cells.iter().skip(class as usize).step_by(STRIDE).sum()
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.cells.iter().sum()
    }

    /// The sum of a share for each pair.
    pub(crate) fn weighted(&self, shares: &[[u8; CLASSES]; CLASSES + 1]) -> u64 {
        let rows = self.cells.chunks_exact(STRIDE).zip(shares);
        let row = |(cells, shares): (&[u64], &[u8; CLASSES])| -> u64 {
            cells.iter().zip(shares).map(|(&count, &share)| count.saturating_mul(u64::from(share))).sum()
        };
        rows.map(row).fold(0, u64::saturating_add)
    }

    /// Words that stand right behind a mark, a quote or a digit: parts of paths, calls, markup.
    pub(crate) fn glued_words(&self) -> u64 {
        [C::Mark, C::Quote, C::Digit]
            .into_iter()
            .map(|before| self.count(before, C::Lower) + self.count(before, C::Upper))
            .sum()
    }

    /// Words that begin with a capital inside a word.
    pub(crate) fn humps(&self) -> u64 {
        self.count(C::Lower, C::Upper)
    }
}

/// The cell of a pair of bytes.
fn cell(before: u8, byte: u8) -> u8 {
    let row = if byte == before { (REPEATED * STRIDE) as u8 } else { ROW_OF[usize::from(before)] };
    // Both halves are below sixteen.
    row | CLASS_OF[usize::from(byte)]
}

const CLASS_OF: [u8; 256] = {
    let mut classes = [0_u8; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => C::Lower,
            b'A'..=b'Z' => C::Upper,
            b'0'..=b'9' => C::Digit,
            b' ' | b'\t' => C::Space,
            b'\n' | b'\r' => C::Break,
            b'"' => C::Quote,
            b'!'..=b'~' => C::Mark,
            0..=0x7f => C::Control,
            0x80..=0xbf => C::Continuation,
            0xc0..=0xcb => C::Latin,
            0xcc..=0xdf => C::Lead2,
            0xe0..=0xe1 => C::Indic,
            0xe2 => C::Symbol,
            0xe3..=0xef => C::Lead3,
            0xf0..=0xff => C::Lead4,
        } as u8;
        byte += 1;
    }
    classes
};

const ROW_OF: [u8; 256] = {
    let mut rows = CLASS_OF;
    let mut byte = 0;
    while byte < 256 {
        rows[byte] *= STRIDE as u8;
        byte += 1;
    }
    rows
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_once_each() {
        let pairs = BytePairs::of("aB aa\u{e9}7.x");
        assert_eq!(pairs.bytes(), 10);
        assert_eq!(pairs.count(C::Break, C::Lower), 1);
        assert_eq!((pairs.count(C::Lower, C::Upper), pairs.humps()), (1, 1));
        assert_eq!(pairs.count(C::Space, C::Lower), 1);
        assert_eq!(pairs.count(C::Latin, C::Continuation), 1);
        assert_eq!(pairs.count(C::Mark, C::Lower), pairs.glued_words());
        assert_eq!(pairs.of_class(C::Lower), 4);
        assert_eq!(BytePairs::of("").bytes(), 0);
    }

    #[test]
    fn a_share_for_each_pair_is_summed() {
        let mut shares = [[0; CLASSES]; CLASSES + 1];
        shares[REPEATED][C::Space as usize] = 3;
        shares[C::Break as usize][C::Space as usize] = 5;
        assert_eq!(BytePairs::of("    ").weighted(&shares), 3 * 3 + 5);
    }
}
