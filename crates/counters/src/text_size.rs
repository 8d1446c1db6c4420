//! Three ways to size text.

use crate::encoding::Encoding;
use crate::heuristic::estimate_text;

/// How text is sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextSize {
    /// As the encoding counts it.
    Exact(Encoding),
    /// As the encoding counts it, times `percent` / 100, rounded up for each text.
    Scaled { encoding: Encoding, percent: u32 },
    /// By classes of bytes, without a tokenizer.
    Bytes,
}

impl TextSize {
    pub(crate) fn tokens(self, text: &str) -> u64 {
        match self {
            Self::Exact(encoding) => encoding.count(text),
            Self::Scaled { encoding, percent } => {
                encoding.count(text).saturating_mul(u64::from(percent)).div_ceil(100)
            }
            Self::Bytes => estimate_text(text),
        }
    }
}
