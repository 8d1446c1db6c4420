//! The walk through a text that finds secrets, from left to right, none twice.

use super::{SecretKind, assignment, private_key, tokens, url_password};

/// A secret in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: SecretKind,
}

/// Finds secrets. Each step looks at most so far around it as its kind allows, so the whole walk is linear.
pub(super) struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The password of the URL that the walk is in.
    url_password: Option<(usize, usize)>,
    /// Where the run of characters of tokens ends that the walk is in.
    run_end: usize,
    /// How many tokens were looked for in it.
    tries: u32,
}

/// So many tokens are looked for in one run: `sk-sk-sk-...` must not be read from each of its places to its end.
const MOST_TRIES: u32 = 16;
/// A run of base64 behind its announcement that is at least as long is data, such as a picture.
const DATA_BYTES: usize = 64;

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0, url_password: None, run_end: 0, tries: 0 }
    }

    /// The secret that is recognized at this byte, which is its first or the sign in front of it.
    fn find(&mut self, byte: u8) -> Option<Found> {
        let (bytes, at) = (self.bytes, self.at);
        if let Some((start, end)) = self.url_password {
            if at == start {
                self.url_password = None;
                return Some(Found { start, end, kind: SecretKind::UrlPassword });
            }
            if at > start {
                self.url_password = None;
            } else if at + 1 == start {
                // The colon in front of a password assigns nothing.
                return None;
            }
        }
        match byte {
            b'-' => private_key::at(bytes, at),
            b':' | b'=' => {
                if self.url_password.is_none() {
                    self.url_password = url_password::at(bytes, at);
                }
                assignment::at(bytes, at)
            }
            b' ' => assignment::header_at(bytes, at).or_else(|| assignment::option_at(bytes, at)),
            b',' => {
                self.skip_data();
                None
            }
            byte if byte.is_ascii_alphabetic() && is_start(bytes, at) && tokens::may_begin(bytes, at) => {
                self.find_token()
            }
            _ => None,
        }
    }

    fn find_token(&mut self) -> Option<Found> {
        if self.at >= self.run_end {
            self.run_end = self.at + run(self.bytes, self.at, tokens::is_of_token);
            self.tries = 0;
        }
        self.tries = self.tries.saturating_add(1);
        if self.tries > MOST_TRIES { None } else { tokens::at(self.bytes, self.at) }
    }

    /// Behind `base64,` stands data.
    fn skip_data(&mut self) {
        let before = self.bytes.get(..self.at).unwrap_or_default();
        if before.ends_with(b"base64") {
            let data = run(self.bytes, self.at + 1, |byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
            });
            if data >= DATA_BYTES {
                self.at += data;
            }
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        while let Some(byte) = self.bytes.get(self.at) {
            if let Some(found) = self.find(*byte) {
                self.at = found.end;
                return Some(found);
            }
            self.at += 1;
        }
        None
    }
}

/// How many bytes from `start` on are of a kind.
pub(super) fn run(bytes: &[u8], start: usize, is_one: impl Fn(u8) -> bool) -> usize {
    bytes.get(start..).unwrap_or_default().iter().take_while(|byte| is_one(**byte)).count()
}

/// The byte in front of this place.
pub(super) fn before(bytes: &[u8], at: usize) -> Option<u8> {
    at.checked_sub(1).and_then(|at| bytes.get(at)).copied()
}

/// Whether a word may start here: no letter or digit in front, unless that ends an escape.
fn is_start(bytes: &[u8], at: usize) -> bool {
    match before(bytes, at) {
        Some(byte) if byte.is_ascii_alphanumeric() => ends_escape(bytes.get(..at).unwrap_or_default()),
        _ => true,
    }
}

/// Whether a text ends with an escape: `\n` or `\u003d` of text that quotes text, `%3D` of an address, or a sequence that
/// colours a terminal, with its first character or without.
fn ends_escape(text: &[u8]) -> bool {
    match text {
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        [.., b'%', a, b] => [a, b].into_iter().all(u8::is_ascii_hexdigit),
        [.., b'\\', b'u', a, b, c, d] => [a, b, c, d].into_iter().all(u8::is_ascii_hexdigit),
        [before @ .., _] => ends_colour(before),
        [] => false,
    }
}

/// Whether a text is that of a terminal's sequence up to its last letter: `[`, and numbers.
fn ends_colour(text: &[u8]) -> bool {
    const MOST: usize = 24;
    let is_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b'?');
    let numbers = text.iter().rev().take(MOST).take_while(|byte| is_number(byte)).count();
    let opened = text.len().checked_sub(numbers).and_then(|end| text.get(..end)).unwrap_or_default();
    match opened {
        [.., b'\x1b', b'['] => true,
        [.., b'['] => numbers > 0,
        _ => false,
    }
}
