//! The published byte-pair encodings, guarded against the one input that makes the tokenizer panic.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use epitome_loop::{TextEstimator, TokenCount};
use tiktoken_rs::CoreBPE;

use crate::memo;

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
    /// Equal to `tiktoken_rs::CoreBPE::count_ordinary` wherever that does not panic. It panics on a million
    /// blanks with no line break among or behind them; such a run is counted in pieces of a million, which
    /// differs from the true count by a few tokens for each piece.
    ///
    /// Short pieces that were counted before on the same thread are looked up: on transcripts of agents that
    /// is a few times faster, and it takes half a megabyte for each thread that counts.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        memo::count(self, text)
    }

    /// The tokens of ordinary text, in pieces that the tokenizer can take.
    pub(crate) fn tokens(self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        for piece in self.safe_pieces(text) {
            if tokens.is_empty() {
                tokens = self.bpe().encode_ordinary(piece);
            } else {
                tokens.extend(self.bpe().encode_ordinary(piece));
            }
        }
        tokens
    }

    /// The length of a token in bytes, read from the vocabulary at most once.
    pub(crate) fn token_len(self, token: u32) -> usize {
        static O200K: TokenLengths = [const { AtomicU8::new(0) }; MOST_TOKENS];
        static CL100K: TokenLengths = [const { AtomicU8::new(0) }; MOST_TOKENS];
        let lengths = match self {
            Self::O200kBase => &O200K,
            Self::Cl100kBase => &CL100K,
        };
        let read = || self.bpe().decode_bytes(&[token]).map_or(0, |bytes| bytes.len());
        let Some(known) = usize::try_from(token).ok().and_then(|token| lengths.get(token)) else {
            return read();
        };
        match known.load(Relaxed) {
            0 => {
                let length = read();
                known.store(u8::try_from(length).unwrap_or(0), Relaxed);
                length
            }
            length => usize::from(length),
        }
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

/// Lengths by token, 0 where it has not been asked for yet.
type TokenLengths = [AtomicU8; MOST_TOKENS];

/// Above the largest token of ordinary text in either vocabulary.
const MOST_TOKENS: usize = 200_000;

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
