//! The published byte-pair encodings, guarded against the one input that makes the tokenizer panic.

use std::fmt;

use epitome_loop::{TextEstimator, TokenCount};
use tiktoken_rs::CoreBPE;

/// A published byte-pair encoding of OpenAI.
///
/// The vocabulary is loaded on first use, once per process: about 130 ms and 53 MB for
/// [`Encoding::O200kBase`], 55 ms and 28 MB for [`Encoding::Cl100kBase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// `o200k_base`: GPT-4o and everything after it.
    O200kBase,
    /// `cl100k_base`: GPT-4, GPT-4 Turbo, GPT-3.5 Turbo.
    Cl100kBase,
}

impl Encoding {
    /// The published name: `o200k_base` or `cl100k_base`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::O200kBase => "o200k_base",
            Self::Cl100kBase => "cl100k_base",
        }
    }

    /// How many tokens the text takes as ordinary text: a literal `<|endoftext|>` is thirteen characters
    /// that somebody wrote, not a control token.
    ///
    /// Equal to `tiktoken_rs::CoreBPE::count_ordinary` wherever that does not panic. It panics on more than
    /// [`LONGEST_BLANK_RUN`] blanks between a line break and a visible character; such a run is counted in
    /// pieces of that length, which differs from the true count by a few tokens per piece of a million.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        self.safe_pieces(text).map(|piece| as_u64(self.bpe().count_ordinary(piece))).sum()
    }

    /// The tokenizer behind this encoding, loaded on first use.
    pub(crate) fn bpe(self) -> &'static CoreBPE {
        match self {
            Self::O200kBase => tiktoken_rs::o200k_base_singleton(),
            Self::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
        }
    }

    /// The text, cut only inside blank runs that the tokenizer cannot take.
    fn safe_pieces(self, text: &str) -> SafePieces<'_> {
        SafePieces { rest: text, last_run_is_safe: self == Self::Cl100kBase }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TextEstimator for Encoding {
    fn estimate(&self, text: &str) -> TokenCount {
        TokenCount(self.count(text))
    }
}

/// How many blanks in a row, line breaks not among them, the tokenizer takes without a panic.
///
/// Of the alternatives of both patterns only `\s+(?!\S)` needs backtracking, and the regex engine keeps one
/// stack entry per blank, a million at most. A run that ends in a line break matches an earlier alternative,
/// so only the blanks behind the last line break count.
pub(crate) const LONGEST_BLANK_RUN: usize = 999_998;

struct SafePieces<'a> {
    rest: &'a str,
    /// `cl100k_base` has `\s++$`, which takes a run at the very end without backtracking.
    last_run_is_safe: bool,
}

impl<'a> Iterator for SafePieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = over_long_run(self.rest, self.last_run_is_safe).unwrap_or(self.rest.len());
        let (piece, rest) = self.rest.split_at_checked(cut).unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(piece)
    }
}

/// Where to cut the first run of blanks that is too long: behind its first [`LONGEST_BLANK_RUN`] blanks.
fn over_long_run(text: &str, last_run_is_safe: bool) -> Option<usize> {
    if text.len() <= LONGEST_BLANK_RUN {
        return None;
    }
    let mut run = 0_usize;
    let mut cut = None;
    for (at, character) in text.char_indices() {
        if matches!(character, '\n' | '\r') {
            (run, cut) = (0, None);
        } else if character.is_whitespace() {
            if run == LONGEST_BLANK_RUN {
                cut = Some(at);
            }
            run += 1;
        } else {
            if cut.is_some() {
                return cut;
            }
            run = 0;
        }
    }
    cut.filter(|_| !last_run_is_safe)
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
