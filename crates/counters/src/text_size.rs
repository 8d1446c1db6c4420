//! Three ways to size text.

use crate::byte_pairs::BytePairs;
use crate::content_class::ContentClass;
use crate::encoding::Encoding;
use crate::error_band::{Amount, ErrorBand};
use crate::fit::Fit;
use crate::script_shares;
use crate::share_tables::{self, LANGUAGE_SHARES, SEALED_SHARES, SHARES};

/// How text is sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextSize {
    /// As the encoding counts it.
    Exact(Encoding),
    /// As the encoding counts it, fitted to another tokenizer by the class of the text.
    Fitted { encoding: Encoding, fit: Fit },
    /// By pairs of bytes, without a tokenizer.
    Bytes,
}

impl TextSize {
    pub(crate) fn tokens(self, text: &str) -> u64 {
        match self {
            Self::Exact(encoding) => encoding.count(text),
            _ => self.measure(text).tokens,
        }
    }

    /// The size with its doubt.
    pub(crate) fn measure(self, text: &str) -> Amount {
        if let Self::Exact(encoding) = self {
            return Amount::exact(encoding.count(text));
        }
        let pairs = BytePairs::of(text);
        let class = ContentClass::of_pairs(&pairs);
        match self {
            Self::Exact(encoding) => Amount::exact(encoding.count(text)),
            Self::Fitted { encoding, fit } => fit.measure(encoding.count(text), &pairs, class),
            Self::Bytes => Amount::of_thousandths(estimate(text, &pairs, class), self.error_band(class)),
        }
    }

    pub(crate) fn error_band(self, class: ContentClass) -> ErrorBand {
        match self {
            Self::Exact(_) => ErrorBand::EXACT,
            Self::Fitted { fit, .. } => fit.error_band(class),
            // It is off from the encoding, and the encoding from what the model uses.
            Self::Bytes => share_tables::error_band(class).and(Fit::Unpublished.error_band(class)),
        }
    }
}

/// The estimate of a text, rounded up, by the shares of its class.
pub(crate) fn estimate_text(text: &str) -> u64 {
    let pairs = BytePairs::of(text);
    estimate(text, &pairs, ContentClass::of_pairs(&pairs)).div_ceil(1_000)
}

/// Thousandths of a token.
fn estimate(text: &str, pairs: &BytePairs, class: ContentClass) -> u64 {
    let shares = match class {
        ContentClass::OtherLanguage => &LANGUAGE_SHARES,
        ContentClass::Sealed => &SEALED_SHARES,
        _ => &SHARES,
    };
    // Hundredths of a token times thousandths. No text is free.
    let hundredths = pairs.weighted(shares).saturating_add_signed(script_shares::extra(text, pairs));
    hundredths.max(u64::from(!text.is_empty())).saturating_mul(share_tables::factor(class)).div_ceil(100)
}
