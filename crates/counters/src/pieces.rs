//! Where text may be cut without changing its tokens.

/// Cuts text at places where the pre-tokenizers of both encodings split in any case, so that the counts of
/// the pieces add up to the count of the whole.
///
/// The patterns never look back, and ahead only behind a run of blanks. So a cut is safe where no match can
/// reach across it and where the run of blanks in front of it, if there is one, ends in the same places with
/// and without what follows. That holds
///
/// - between a letter and a digit, either way round, and between a mark and a digit behind it: no alternative
///   takes both;
/// - behind a letter or digit, before a mark or a line break: letters go on only with a contraction, so never
///   before an apostrophe;
/// - before the last blank of a run that a visible character follows: `\s+(?!\S)` leaves exactly that blank
///   to the next match;
/// - behind the last line break of a run, where blanks or a visible character follow: `\s*[\r\n]+` stops
///   there, and so does the tail `[\r\n/]*` of a run of marks, except before a slash.
///
/// Only ASCII is looked at; next to anything else there is no cut.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// The text up to the first cut at least `bytes` ahead, as one.
    pub(crate) fn pass_over(&mut self, bytes: usize) -> &'a str {
        let ahead = self.rest;
        let mut passed = 0;
        while passed < bytes
            && let Some(piece) = self.next()
        {
            passed += piece.len();
        }
        ahead.split_at_checked(passed).map_or("", |(passed, _)| passed)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        // A cut stands between two ASCII bytes, so it is a character boundary.
        let cut = first_cut(self.rest.as_bytes());
        let (piece, rest) = self.rest.split_at_checked(cut).unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(piece)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Mark,
    Blank,
    Break,
    /// Not ASCII.
    Other,
}

impl Class {
    fn is_space(self) -> bool {
        matches!(self, Self::Blank | Self::Break)
    }
}

const CLASS_OF: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' | 0x0b | 0x0c => Class::Blank,
            b'\n' | b'\r' => Class::Break,
            _ => Class::Mark,
        };
        byte += 1;
    }
    classes
};

/// The first safe cut behind the start, or the end of the text.
fn first_cut(bytes: &[u8]) -> usize {
    let class_at = |at: usize| bytes.get(at).map(|&byte| CLASS_OF[usize::from(byte)]);
    let mut at = 0;
    while let Some(class) = class_at(at) {
        let mut end = at + 1;
        if class.is_space() {
            match space_run(bytes, at) {
                Run::Cut(cut) => return cut,
                Run::Whole(run_end) => end = run_end,
            }
        } else {
            while class_at(end) == Some(class) {
                end += 1;
            }
            let cut = match (class, class_at(end)) {
                (Class::Letter, Some(Class::Mark)) => bytes.get(end) != Some(&b'\''),
                (Class::Letter, Some(Class::Digit | Class::Break)) => true,
                (Class::Digit, Some(Class::Letter | Class::Mark | Class::Break)) => true,
                (Class::Mark, Some(Class::Digit)) => true,
                _ => false,
            };
            if cut {
                return end;
            }
        }
        at = end;
    }
    bytes.len()
}

enum Run {
    Cut(usize),
    /// No cut inside; the run ends here.
    Whole(usize),
}

/// Looks for a cut in or right behind the run of blanks and breaks that starts at `start`.
fn space_run(bytes: &[u8], start: usize) -> Run {
    let mut behind_break = None;
    let mut end = start;
    while let Some(&byte) = bytes.get(end) {
        match CLASS_OF[usize::from(byte)] {
            Class::Break => behind_break = Some(end + 1),
            Class::Blank => {}
            _ => break,
        }
        end += 1;
    }
    // What is not ASCII may be a blank, too, so that the run is longer than it looks.
    let followed = bytes.get(end).is_some_and(u8::is_ascii);
    let alone = start == 0 || bytes.get(start - 1).is_some_and(u8::is_ascii);
    let last_blank = end - 1;
    match behind_break {
        Some(cut) if cut == end && followed && bytes.get(end) != Some(&b'/') => Run::Cut(cut),
        Some(cut) if cut < end && followed && alone => Run::Cut(cut),
        None if followed && alone && last_blank > 0 => Run::Cut(last_blank),
        _ => Run::Whole(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Encoding;

    fn pieces(text: &str) -> Vec<&str> {
        Pieces::of(text).collect()
    }

    #[test]
    fn cuts_where_the_pattern_splits_anyway() {
        assert_eq!(pieces("let x = foo.bar(42);"), ["let", " x", " =", " foo", ".bar", "(", "42", ");"]);
        assert_eq!(pieces("a\n    b"), ["a", "\n", "   ", " b"]);
        assert_eq!(pieces("}\n\n  \n\tb"), ["}\n\n  \n", "\tb"]);
        assert_eq!(pieces("don't 7's a1"), ["don't", " 7", "'s", " a", "1"]);
    }

    #[test]
    fn does_not_cut_where_it_might_not() {
        assert_eq!(pieces("=\n/="), ["=\n/="]);
        assert_eq!(pieces("a\u{a0} b"), ["a\u{a0} b"]);
        assert_eq!(pieces("a \u{a0}b"), ["a \u{a0}b"]);
        assert_eq!(pieces("(x"), ["(x"]);
        assert_eq!(pieces("é漢 "), ["é漢 "]);
        assert_eq!(pieces("x  "), ["x  "]);
    }

    /// Every text of up to four characters out of those that the patterns treat differently: the tokens of
    /// the pieces, one after another, are the tokens of the whole.
    #[test]
    fn no_token_reaches_across_a_cut() {
        const CHARACTERS: [char; 12] =
            ['a', 'B', '1', ' ', '\n', '\t', '=', '/', '\'', 's', '\u{a0}', '\u{301}'];
        for encoding in [Encoding::O200kBase, Encoding::Cl100kBase] {
            for number in 0..CHARACTERS.len().pow(4) {
                let digits = (0..4).map(|place| number / CHARACTERS.len().pow(place) % CHARACTERS.len());
                let text: String = digits.map(|digit| CHARACTERS[digit]).collect();
                let piecewise: Vec<u32> =
                    Pieces::of(&text).flat_map(|piece| encoding.tokens(piece)).collect();
                assert_eq!(piecewise, encoding.tokens(&text), "{encoding} {text:?}");
            }
        }
    }
}
