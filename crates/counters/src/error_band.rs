//! How far an estimate may be off, and what that means for a limit.

use std::fmt;

use epitome_loop::TokenCount;

/// Around an estimate, where the true count of nine texts in ten lies.
///
/// A band is stated for texts of 200 bytes and more; shorter ones scatter further and weigh less. The errors of
/// many texts cancel in part, so a whole request lies deeper inside than a single text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ErrorBand {
    /// How much smaller than the estimate the true count may be, in percent of the estimate.
    pub below_percent: u8,
    /// How much larger, in percent of the estimate.
    pub above_percent: u8,
}

impl ErrorBand {
    /// How many texts in a hundred lie inside of a band.
    pub const SHARE_PERCENT: u8 = 90;

    /// The band of a count that is no estimate.
    pub const EXACT: Self = Self::new(0, 0);

    pub(crate) const fn new(below_percent: u8, above_percent: u8) -> Self {
        Self { below_percent, above_percent }
    }

    /// Two independent reasons to be off, one upon the other.
    pub(crate) const fn and(self, other: Self) -> Self {
        let below = self.below_percent.saturating_add(other.below_percent);
        let above = self.above_percent.saturating_add(other.above_percent);
        Self { below_percent: if below > 100 { 100 } else { below }, above_percent: above }
    }

    /// An estimate with this band around it.
    pub(crate) const fn around(self, tokens: u64) -> Amount {
        Amount {
            tokens,
            below: tokens.saturating_mul(self.below_percent as u64),
            above: tokens.saturating_mul(self.above_percent as u64),
        }
    }
}

impl fmt::Display for ErrorBand {
    /// `-9..+10 %`, or `exact`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EXACT => f.write_str("exact"),
            Self { below_percent, above_percent } => write!(f, "-{below_percent}..+{above_percent} %"),
        }
    }
}

/// A count with its doubt: what the true count may be less or more.
///
/// The doubt is kept in hundredths of a token, in which a percentage of a whole number is exact. So the doubts of
/// many small parts add up to what they are together; whole tokens come out of it once, at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) tokens: u64,
    /// Hundredths of a token; the largest figure stands for no bound at all.
    pub(crate) below: u64,
    /// Hundredths of a token; the largest figure stands for no bound at all.
    pub(crate) above: u64,
}

/// Parts of a token in which doubt is kept.
const HUNDREDTHS: u64 = 100;

impl Amount {
    pub(crate) const fn exact(tokens: u64) -> Self {
        Self { tokens, below: 0, above: 0 }
    }

    /// An estimate of so many thousandths of a token, rounded up, with a band around it. What was added by
    /// rounding counts among what the true count may be less.
    pub(crate) fn of_thousandths(thousandths: u64, band: ErrorBand) -> Self {
        let amount = band.around(thousandths.div_ceil(1_000));
        let added = (1_000 - thousandths % 1_000) % 1_000;
        Self { below: amount.below.saturating_add(added.div_ceil(10)), ..amount }
    }

    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            below: self.below.saturating_add(other.below),
            above: self.above.saturating_add(other.above),
        }
    }

    /// The same count, in doubt by at least this band.
    #[must_use]
    pub(crate) fn at_least(self, band: ErrorBand) -> Self {
        let least = band.around(self.tokens);
        Self { below: self.below.max(least.below), above: self.above.max(least.above), ..self }
    }

    /// The same count, in doubt by at least one token either way.
    #[must_use]
    pub(crate) fn never_sure(self) -> Self {
        Self { below: self.below.max(1), above: self.above.max(1), ..self }
    }

    /// Whole tokens, rounded outward.
    pub(crate) fn range(self) -> CountRange {
        let whole = |doubt: u64| if doubt == u64::MAX { u64::MAX } else { doubt.div_ceil(HUNDREDTHS) };
        CountRange {
            low: TokenCount(self.tokens.saturating_sub(whole(self.below))),
            tokens: TokenCount(self.tokens),
            high: TokenCount(self.tokens.saturating_add(whole(self.above))),
        }
    }
}

/// A count of a whole request with the range in which the true count is to be expected.
///
/// Each part of the request contributes the band of its own class, as if all of them erred the same way: a
/// range that is rather too wide than too narrow. Marks around messages contribute where the provider does not
/// publish them. The range of an estimate is never a point: it reaches one token either way at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CountRange {
    /// The lower end.
    pub low: TokenCount,
    /// The estimate itself, in the middle of the errors; or the exact count.
    pub tokens: TokenCount,
    /// The upper end: what guards a limit.
    pub high: TokenCount,
}

impl CountRange {
    /// The range as a band around its estimate, in percent rounded up.
    #[must_use]
    pub fn band(&self) -> ErrorBand {
        let percent = |part: u64| {
            let share = (u128::from(part) * 100).div_ceil(u128::from(self.tokens.get().max(1)));
            u8::try_from(share).unwrap_or(u8::MAX)
        };
        ErrorBand::new(
            percent(self.tokens.get().saturating_sub(self.low.get())),
            percent(self.high.get().saturating_sub(self.tokens.get())),
        )
    }

    /// What must stay free below a limit so that a request whose estimate just fits still fits when the true
    /// count is at the upper end: `limit` x above / (100 + above), rounded up. Meant as the safety margin of
    /// a compaction policy. Zero for an exact count, and never for an estimate, unless `limit` is zero.
    #[must_use]
    pub fn safety_margin(&self, limit: TokenCount) -> TokenCount {
        let above = u128::from(self.high.get().saturating_sub(self.tokens.get()));
        let margin = (u128::from(limit.get()) * above).div_ceil(u128::from(self.high.get().max(1)));
        TokenCount(u64::try_from(margin).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_lets_the_upper_end_fit() {
        for (tokens, above, limit) in [(900_u64, 10_u8, 1_000_u64), (1, 35, 200_000), (77, 13, 999)] {
            let range = ErrorBand::new(5, above).around(tokens * 1_000).range();
            let margin = range.safety_margin(TokenCount(limit)).get();
            let largest = limit - margin;
            assert!(largest * (100 + u64::from(above)) <= limit * 100, "{largest} of {limit}");
            assert!((largest + 1) * (100 + u64::from(above)) > limit * 100 - 100, "{largest} of {limit}");
            assert_eq!(range.band(), ErrorBand::new(5, above));
        }
        let exact = Amount::exact(500).range();
        assert_eq!((exact.safety_margin(TokenCount(1_000)), exact.band()), (TokenCount(0), ErrorBand::EXACT));
        assert_eq!(Amount::default().range().safety_margin(TokenCount(10)), TokenCount(0));
    }

    #[test]
    fn doubts_of_small_parts_add_up_and_are_rounded_once() {
        let band = ErrorBand::new(10, 15);
        let sum = |parts: u64| (0..parts).fold(Amount::default(), |sum, _| sum.plus(band.around(1)));
        let range = sum(1_000).range();
        assert_eq!((range.low, range.high), (TokenCount(900), TokenCount(1_150)));
        let range = sum(1).range();
        assert_eq!((range.low, range.high), (TokenCount(0), TokenCount(2)));
        // 1.03 tokens became two.
        let rounded = Amount::of_thousandths(1_030, band);
        assert_eq!((rounded.tokens, rounded.below, rounded.above), (2, 20 + 97, 30));
        assert_eq!(Amount::of_thousandths(2_000, band), band.around(2));
        assert_eq!(Amount::of_thousandths(0, band), Amount::default());
        let sure = Amount::exact(500);
        assert_eq!(sure.never_sure().range().band(), ErrorBand::new(1, 1));
        assert_eq!(sure.at_least(band), band.around(500));
        assert_eq!(ErrorBand::new(20, 20).around(500).at_least(band), ErrorBand::new(20, 20).around(500));
    }

    #[test]
    fn bands_are_shown_and_added() {
        assert_eq!(ErrorBand::new(9, 10).to_string(), "-9..+10 %");
        assert_eq!(ErrorBand::EXACT.to_string(), "exact");
        assert_eq!(ErrorBand::new(60, 250).and(ErrorBand::new(60, 20)), ErrorBand::new(100, 255));
        let huge = ErrorBand::new(100, 200).around(u64::MAX).range();
        assert_eq!((huge.low, huge.high), (TokenCount(0), TokenCount(u64::MAX)));
    }
}
