//! Fits of a published encoding to tokenizers that are not published, each with its band of error.

use crate::byte_pairs::BytePairs;
use crate::content_class::ContentClass;
use crate::error_band::{Amount, ErrorBand};

/// How a tokenizer that is not published is approximated: by the count of `o200k_base`, scaled by the class of
/// the text, and a share for each word that is glued to what stands before it.
///
/// The figures are thousandths. `docs/counting.md` says what they were fitted on and how they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fit {
    /// Claude up to 4.6. Its vocabulary knows words behind a blank better than words inside of paths and calls.
    Claude,
    /// Claude from 4.7 on: a tokenizer that takes up to 35 per cent more by its maker's word; a fifth is taken
    /// as the middle.
    ClaudeNew,
    /// Gemini.
    Gemini,
    /// Models whose makers publish no tokenizer, or one that is not built in.
    Unpublished,
}

/// The figures of one fit.
struct Figures {
    /// Tokens per thousand of the encoding, by class.
    per_mille: [u64; 7],
    /// Thousandths of a token for each word behind a mark, a quote or a digit.
    glued: u64,
    /// Thousandths of a token for each capital inside of a word.
    hump: u64,
    bands: [ErrorBand; 7],
}

const fn band(below: u8, above: u8) -> ErrorBand {
    ErrorBand::new(below, above)
}

// In the order of `ContentClass::ALL`: prose, code, json, log, sealed, other language, blank.
//
// For sealed text, other languages and blanks no provider's figure was at hand; their rows are assumptions, and
// their bands are wide.
const CLAUDE: Figures = Figures {
    per_mille: [1_080, 1_130, 1_050, 1_100, 1_150, 1_400, 1_000],
    glued: 500,
    hump: 570,
    bands: [band(11, 12), band(10, 12), band(12, 12), band(10, 12), band(25, 25), band(30, 30), band(30, 30)],
};

const CLAUDE_NEW: Figures = Figures {
    per_mille: [1_296, 1_356, 1_260, 1_320, 1_380, 1_680, 1_200],
    glued: 600,
    hump: 684,
    bands: [band(24, 24), band(24, 24), band(24, 24), band(24, 24), band(35, 35), band(40, 40), band(40, 40)],
};

const GEMINI: Figures = Figures {
    per_mille: [1_020, 1_050, 1_050, 1_050, 1_100, 1_050, 1_000],
    glued: 0,
    hump: 0,
    bands: [band(12, 15), band(15, 20), band(15, 20), band(15, 25), band(25, 40), band(25, 30), band(40, 40)],
};

const UNPUBLISHED: Figures = Figures {
    per_mille: [1_030, 1_050, 1_050, 1_050, 1_100, 1_150, 1_000],
    glued: 0,
    hump: 0,
    bands: [band(12, 20), band(15, 30), band(15, 25), band(15, 30), band(25, 40), band(30, 60), band(40, 60)],
};

impl Fit {
    /// Where the true counts of nine texts in ten of a class lie around an estimate by this fit.
    #[must_use]
    pub fn error_band(self, class: ContentClass) -> ErrorBand {
        self.figures().bands.get(class as usize).copied().unwrap_or(ErrorBand::EXACT)
    }

    /// The size of a text of which `encoded` is the count by the encoding.
    pub(crate) fn measure(self, encoded: u64, pairs: &BytePairs, class: ContentClass) -> Amount {
        let figures = self.figures();
        let scale = figures.per_mille.get(class as usize).copied().unwrap_or(1_000);
        let glued = figures.glued.saturating_mul(pairs.glued_words());
        let humps = figures.hump.saturating_mul(pairs.humps());
        let thousandths = encoded.saturating_mul(scale).saturating_add(glued).saturating_add(humps);
        Amount::of_thousandths(thousandths, self.error_band(class))
    }

    fn figures(self) -> &'static Figures {
        match self {
            Self::Claude => &CLAUDE,
            Self::ClaudeNew => &CLAUDE_NEW,
            Self::Gemini => &GEMINI,
            Self::Unpublished => &UNPUBLISHED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Fit; 4] = [Fit::Claude, Fit::ClaudeNew, Fit::Gemini, Fit::Unpublished];

    #[test]
    fn a_fit_is_near_its_encoding_and_never_free() {
        let text =
            "crates/loop/src/model.rs: pub fn windowTokens(self) -> u64 { self.limits.window.get() }\n";
        let pairs = BytePairs::of(text);
        for fit in ALL {
            let tokens = fit.measure(100, &pairs, ContentClass::Code).tokens;
            assert!((100..180).contains(&tokens), "{fit:?}: {tokens}");
            assert_eq!(fit.measure(0, &BytePairs::of(""), ContentClass::Prose), Amount::default());
            assert_eq!(fit.measure(1, &BytePairs::of("a"), ContentClass::Prose).tokens, 2);
        }
    }

    #[test]
    fn every_class_has_a_band_that_leaves_something() {
        for fit in ALL {
            for class in ContentClass::ALL {
                let band = fit.error_band(class);
                assert!((5..=60).contains(&band.below_percent), "{fit:?} {class}: {band}");
                assert!((5..=60).contains(&band.above_percent), "{fit:?} {class}: {band}");
            }
        }
    }
}
