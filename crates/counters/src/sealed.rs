//! What text costs that only the provider can read: signatures, encrypted reasoning, compaction items.

use crate::error_band::{Amount, ErrorBand};
use crate::models::Family;

/// How the length of sealed text follows from the tokens in it. Measured: see `docs/counting.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedRule {
    /// The provider does not charge for what it sealed.
    Free,
    /// So many bytes of base64 that hold nothing, and then so many for ten tokens.
    ByLength { empty: u64, ten_tokens: u64 },
}

impl SealedRule {
    pub(crate) const fn of(family: Family) -> Self {
        match family {
            Family::OpenAi => Self::ByLength { empty: 800, ten_tokens: 61 },
            Family::Anthropic => Self::ByLength { empty: 250, ten_tokens: 55 },
            Family::Gemini => Self::Free,
            Family::Other => Self::UNKNOWN,
        }
    }

    /// The rule of whoever sealed something, by the name of its format: a session may be for another model than
    /// the one that wrote it, or for one that is not known.
    pub(crate) fn of_format(self, format: &str) -> Self {
        let begins = |names: &[&str]| names.iter().any(|name| format.starts_with(name));
        if begins(&["anthropic"]) {
            Self::of(Family::Anthropic)
        } else if begins(&["openai"]) {
            Self::of(Family::OpenAi)
        } else if begins(&["gemini", "google"]) {
            Self::of(Family::Gemini)
        } else {
            self
        }
    }

    /// A quarter of the length, which is above what any provider shows.
    pub(crate) const UNKNOWN: Self = Self::ByLength { empty: 0, ten_tokens: 40 };

    /// What base64 text of this length costs.
    pub(crate) fn cost(self, length: usize) -> Amount {
        match self {
            Self::Free => Amount::default(),
            Self::ByLength { empty, ten_tokens } => {
                let length = u64::try_from(length).unwrap_or(u64::MAX).saturating_sub(empty);
                SEALED_BAND.around(length.saturating_mul(10).div_ceil(ten_tokens))
            }
        }
    }
}

/// What is in it is not known, and a provider may leave it out of the context without saying so.
const SEALED_BAND: ErrorBand = ErrorBand::new(50, 25);

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths beside what the provider said was in them: an OpenAI compaction item and reasoning, and
    /// reasoning of Claude.
    #[test]
    fn lengths_tell_what_is_inside() {
        let openai = SealedRule::of(Family::OpenAi);
        for (length, tokens) in [(13_668, 2_112_u64), (2_764, 320), (0, 0), (100, 0)] {
            assert!(openai.cost(length).tokens.abs_diff(tokens) <= tokens / 20, "{length}");
        }
        let claude = SealedRule::of(Family::Anthropic);
        for (length, tokens) in [(3_532, 547_u64), (4_328, 734), (1_920, 305)] {
            assert!(claude.cost(length).tokens.abs_diff(tokens) <= tokens / 10, "{length}");
        }
        assert_eq!(SealedRule::of(Family::Gemini).cost(50_000).tokens, 0);
        assert_eq!(claude.of_format("gemini.signs_before"), SealedRule::Free);
        assert_eq!(SealedRule::UNKNOWN.of_format("anthropic"), claude);
        assert_eq!(claude.of_format("openai-responses"), openai);
        assert_eq!(claude.of_format(""), claude);
    }
}
