//! Integer arithmetic for scores, so that every platform ranks alike.

/// A score in thousandths.
pub(crate) type Score = i32;

/// How fresh something is that lies `age` messages back, in thousandths: 1000 now, 500 after one half-life.
///
/// The half-life is a sixth of the conversation, and never less than six messages.
pub(crate) fn recency(age: usize, messages: usize) -> Score {
    const ONE: u128 = 1024;
    let half_life = (messages as u128 * 1000 / 6).max(6000);
    let halvings = age as u128 * 1000 * ONE / half_life;
    let (whole, part) = (halvings / ONE, halvings % ONE);
    if whole > 20 {
        return 0;
    }
    // A parabola through 2^0 and 2^-1; it is never off by more than 0.4 %.
    let fraction = ONE - 672 * part / ONE + 160 * part * part / (ONE * ONE);
    ((fraction * 1000 / ONE) >> whole) as Score
}

/// `amount` (thousandths) weighted by a factor in thousandths.
pub(crate) fn weighted(amount: Score, factor: Score) -> Score {
    (i64::from(amount) * i64::from(factor) / 1000) as Score
}

/// How much a word that stands in `holding` of `all` statements says: `log2(1 + all / holding)`, in 256ths.
pub(crate) fn rarity(holding: u32, all: usize) -> u32 {
    let holding = u64::from(holding.max(1));
    log2_in_256ths(all as u64 + holding).saturating_sub(log2_in_256ths(holding))
}

/// The logarithm to base 2 in 256ths, the part between two powers of two taken as a straight line.
pub(crate) fn log2_in_256ths(number: u64) -> u32 {
    let number = number.max(1);
    let whole = number.ilog2();
    let part = (u128::from(number) << 8 >> whole) as u32 - 256;
    256 * whole + part
}

/// What a score is worth for the bytes it takes: the score divided by the fourth root of the length. Short
/// statements rank higher, but not so much that scraps win.
pub(crate) fn rank(score: Score, bytes: usize) -> i64 {
    (i64::from(score) << 20) / fourth_root_in_1024ths(bytes)
}

/// What a score is worth where every byte counts: the score divided by the fourth root of the length, three
/// times.
pub(crate) fn rank_when_tight(score: Score, bytes: usize) -> i64 {
    let cube = i128::from(fourth_root_in_1024ths(bytes)).pow(3);
    ((i128::from(score) << 50) / cube) as i64
}

fn fourth_root_in_1024ths(bytes: usize) -> i64 {
    let bytes = (bytes as u64).clamp(24, 1 << 20);
    (bytes << 40).isqrt().isqrt() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recency_halves() {
        assert_eq!(recency(0, 36), 1000);
        assert_eq!(recency(6, 36), 500);
        assert_eq!(recency(12, 36), 250);
        assert!((recency(3, 36) - 707).abs() <= 5);
        assert_eq!(recency(usize::MAX, 1), 0);
    }

    #[test]
    fn recency_never_grows_with_age() {
        let values: Vec<_> = (0..500).map(|age| recency(age, 100)).collect();
        assert!(values.is_sorted_by(|newer, older| newer >= older));
    }

    #[test]
    fn rare_words_say_more() {
        assert_eq!(rarity(1, 1), 256);
        assert!(rarity(1, 1000) > rarity(10, 1000));
        assert_eq!(log2_in_256ths(8), 3 * 256);
    }

    #[test]
    fn rank_divides_by_the_fourth_root() {
        assert_eq!(rank(1000, 81) / 1024, 1000 / 3);
        assert!(rank(1000, 100) > rank(1000, 200));
        assert!(rank(1000, usize::MAX) > 0);
        assert!(rank_when_tight(i32::MAX, 1) > rank_when_tight(1000, 100));
        assert!(rank_when_tight(1000, 100) > rank_when_tight(2000, 300));
        assert!(rank(1000, 100) < rank(2000, 300));
    }
}
