//! Exact parts of a whole: `85%`, `12.5%`, `1/15`.

use std::fmt;

use epitome_loop::BasisPoints;

/// A part of a whole, above nothing and at most all of it. Exact: a fifteenth of 30 is 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Reduced, so that equal shares are equal values.
    numerator: u64,
    denominator: u64,
}

/// How many digits a percentage may have behind its point.
const DECIMALS: usize = 6;

impl Share {
    /// The share `numerator / denominator`; `None` unless it is above 0 and at most 1.
    #[must_use]
    pub fn new(numerator: u32, denominator: u32) -> Option<Self> {
        Self::reduced(u64::from(numerator), u64::from(denominator))
    }

    fn reduced(numerator: u64, denominator: u64) -> Option<Self> {
        if numerator == 0 || numerator > denominator {
            return None;
        }
        let (mut divisor, mut rest) = (denominator, numerator);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Reads `85%`, `12.5%` or `1/15`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some((numerator, denominator)) = text.split_once('/') {
            return Self::new(digits(numerator)?.try_into().ok()?, digits(denominator)?.try_into().ok()?);
        }
        let (whole, decimals) = match text.strip_suffix('%')?.split_once('.') {
            Some((whole, decimals)) => (whole, decimals),
            None => (text.strip_suffix('%')?, "0"),
        };
        if decimals.len() > DECIMALS {
            return None;
        }
        let scale = 10_u64.pow(u32::try_from(decimals.len()).ok()?);
        let numerator = digits(whole)?.checked_mul(scale)?.checked_add(digits(decimals)?)?;
        Self::reduced(numerator, 100 * scale)
    }

    /// The share of a whole, rounded down.
    #[must_use]
    pub fn of(self, whole: u64) -> u64 {
        let part = u128::from(whole) * u128::from(self.numerator) / u128::from(self.denominator);
        // A share is at most all of it.
        u64::try_from(part).unwrap_or(whole)
    }

    /// The share in basis points, when it is a whole number of them.
    #[must_use]
    pub fn basis_points(self) -> Option<BasisPoints> {
        let full = u64::from(BasisPoints::FULL_SCALE.get());
        let points = self.numerator * full;
        let whole = points.is_multiple_of(self.denominator).then(|| points / self.denominator)?;
        u16::try_from(whole).ok().map(BasisPoints)
    }

    /// The share that these basis points are; `None` for none and for more than all.
    #[must_use]
    pub fn of_basis_points(points: BasisPoints) -> Option<Self> {
        Self::new(u32::from(points.get()), u32::from(BasisPoints::FULL_SCALE.get()))
    }
}

/// A number of at most nine digits and nothing else.
fn digits(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { text.parse().ok() } else { None }
}

impl fmt::Display for Share {
    /// As a percentage where six digits behind the point say it exactly, else as a fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = 10_u64.pow(6);
        let millionths = self.numerator * 100 * scale;
        if !millionths.is_multiple_of(self.denominator) {
            return write!(f, "{}/{}", self.numerator, self.denominator);
        }
        let percent = millionths / self.denominator;
        write!(f, "{}", percent / scale)?;
        let decimals = format!("{:06}", percent % scale);
        match decimals.trim_end_matches('0') {
            "" => f.write_str("%"),
            decimals => write!(f, ".{decimals}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_are_read_exactly() {
        for (text, whole, part, shown) in [
            ("10%", 128_000, 12_800, "10%"),
            ("12.5%", 9, 1, "12.5%"),
            ("1/15", 128_000, 8_533, "1/15"),
            ("2/30", 30, 2, "1/15"),
            ("1/8", 8, 1, "12.5%"),
            ("100%", u64::MAX, u64::MAX, "100%"),
            ("0.000001%", 100_000_000, 1, "0.000001%"),
            ("1/999999999", 999_999_999, 1, "1/999999999"),
        ] {
            let share = Share::parse(text).unwrap();
            assert_eq!(share.of(whole), part, "{text}");
            assert_eq!(share.to_string(), shown);
        }
        for bad in [
            "",
            "%",
            "0%",
            "0/3",
            "1/0",
            "4/3",
            "101%",
            "100.1%",
            "-1%",
            "+1%",
            "1",
            "85 %",
            "1.%",
            ".5%",
            "1.0000001%",
            "1/",
            "/2",
            "1e1%",
            "1/1000000000",
            "٣%",
            "1/2%",
        ] {
            assert_eq!(Share::parse(bad), None, "{bad}");
        }
        assert_eq!(Share::parse("87.55%").unwrap().basis_points(), Some(BasisPoints(8_755)));
        assert_eq!(Share::parse("87.555%").unwrap().basis_points(), None);
        assert_eq!(Share::parse("1/3").unwrap().basis_points(), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(numerator in 1_u32..999_999_999, denominator in 1_u32..999_999_999) {
            let (least, most) = (numerator.min(denominator), numerator.max(denominator));
            let share = Share::new(least, most).unwrap();
            prop_assert_eq!(Share::parse(&share.to_string()), Some(share));
        }
    }
}
