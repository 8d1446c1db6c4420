//! Looking at 64 bytes at once. Where something stands in text cannot be foreseen, so a loop that stops at it
//! pays for a wrong guess each time; a mask of all places is had without any guess, and walked afterwards.

/// How many bytes one mask is of.
pub(crate) const BLOCK: usize = 64;

/// One bit for each byte, the first lowest: whether `is` says 1 of it. It must say 0 or 1 and be simple enough
/// to become wide instructions.
#[inline(always)]
pub(crate) fn mask(block: &[u8; BLOCK], is: impl Fn(u8) -> u8) -> u64 {
    let mut marks = [0_u8; BLOCK];
    for (mark, byte) in marks.iter_mut().zip(block) {
        *mark = is(*byte);
    }
    let (words, _) = marks.as_chunks::<8>();
    // Shifted before they meet, so that no word waits for another.
    words.iter().enumerate().fold(0, |mask, (at, word)| mask | gather(u64::from_le_bytes(*word)) << (8 * at))
}

/// The eight lowest bits of the eight bytes of a word: the product moves bit 8k to bit 56 + k.
#[inline(always)]
fn gather(word: u64) -> u64 {
    word.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_bit() {
        for at in 0..BLOCK {
            let mut block = [b'.'; BLOCK];
            block[at] = b'!';
            assert_eq!(mask(&block, |byte| u8::from(byte == b'!')), 1 << at);
            assert_eq!(mask(&block, |byte| u8::from(byte != b'!')), !(1 << at));
        }
        assert_eq!(mask(&[b'!'; BLOCK], |byte| u8::from(byte == b'!')), u64::MAX);
    }
}
