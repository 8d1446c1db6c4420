//! A source of JSON values, with a way past its long ones.

use std::ops::Range;

use super::scan::skip_value;
use super::value::Value;

/// Values of at least this many bytes are remembered; shorter ones are passed over faster byte by byte.
pub(super) const LONG: usize = 512;

/// Bytes that hold JSON values, and where the long ones among them end.
///
/// A field is found by passing over the fields before it. Without the memory, each level of nesting would be
/// passed over once for every level around it.
pub(crate) struct Source<'a> {
    bytes: &'a [u8],
    /// Long values by their start.
    long: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    /// A source whose long values are known.
    pub(super) fn new(bytes: &'a [u8], mut long: Vec<Range<usize>>) -> Self {
        long.sort_unstable_by_key(|range| range.start);
        Self { bytes, long }
    }

    /// A source that is one value, or some known values, and small.
    pub(crate) fn small(bytes: &'a [u8]) -> Self {
        Self { bytes, long: Vec::new() }
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value at a range that was found to be one.
    pub(crate) fn value(&self, range: Range<usize>) -> Value<'_> {
        Value::new(self, range)
    }

    /// The value that all of the bytes are, white space around it aside.
    pub(crate) fn whole(&self) -> Value<'_> {
        let space = self.bytes.len() - self.bytes.trim_ascii_start().len();
        self.value(space..space + self.bytes.trim_ascii().len())
    }

    /// Where the value that starts at `start` ends.
    pub(super) fn end_of(&self, start: usize) -> usize {
        match self.long.binary_search_by_key(&start, |range| range.start) {
            Ok(at) => self.long.get(at).map_or(start, |range| range.end),
            Err(_) => skip_value(self.bytes, start),
        }
    }
}
