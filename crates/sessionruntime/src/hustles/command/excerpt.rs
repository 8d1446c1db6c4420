//! The beginning and the end of a stream that may be endless.

use std::collections::VecDeque;
use std::fmt;

use epitome_loop::SharedBytes;

/// How much is kept of the beginning, and again of the end: 4 KiB.
const KEPT: usize = 4 * 1024;

/// What a program wrote to stderr: its beginning, its end, and how much it was. `Debug` prints sizes alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StderrExcerpt {
    /// The first 4 KiB.
    pub first: SharedBytes,
    /// The last 4 KiB of what follows the first.
    pub last: SharedBytes,
    /// How many bytes were written in all.
    pub total: u64,
}

impl StderrExcerpt {
    /// How many bytes between beginning and end were let go.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.total.saturating_sub((self.first.len() + self.last.len()) as u64)
    }
}

impl fmt::Debug for StderrExcerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes of stderr>", self.total)
    }
}

/// Collects an excerpt in constant space.
#[derive(Default)]
pub(super) struct Excerpt {
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
}

impl Excerpt {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT.saturating_sub(self.first.len())));
        self.first.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(KEPT)..).unwrap_or_default();
        let too_many = (self.last.len() + rest.len()).saturating_sub(KEPT);
        self.last.drain(..too_many);
        self.last.extend(rest);
    }

    pub(super) fn finish(self) -> StderrExcerpt {
        StderrExcerpt { first: self.first.into(), last: Vec::from(self.last).into(), total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept_however_the_bytes_come() {
        let all: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        for total in [0, 1, KEPT, KEPT + 1, 2 * KEPT, 2 * KEPT + 1, all.len()] {
            for step in [1, 7, KEPT, 9_000, 20_000] {
                let mut excerpt = Excerpt::default();
                all[..total].chunks(step).for_each(|chunk| excerpt.push(chunk));
                let kept = excerpt.finish();
                assert_eq!(kept.total, total as u64);
                let first = total.min(KEPT);
                assert_eq!(*kept.first, all[..first], "{total} by {step}");
                assert_eq!(*kept.last, all[total - (total - first).min(KEPT)..total], "{total} by {step}");
                assert_eq!(kept.left_out(), (total as u64).saturating_sub(2 * KEPT as u64));
            }
        }
    }

    #[test]
    fn debug_shows_a_size() {
        let mut excerpt = Excerpt::default();
        excerpt.push(b"canary");
        assert_eq!(format!("{:?}", excerpt.finish()), "<6 bytes of stderr>");
    }
}
