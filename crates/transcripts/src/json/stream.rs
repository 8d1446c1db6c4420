//! The next JSON value of a source, whatever separates the values, with a way on after damage.

use std::collections::VecDeque;
use std::ops::Range;

use super::scan::{scan, skip_space};
use super::source::{LONG, Source};

/// What stands next in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole value.
    Value(Range<usize>),
    /// Bytes that are no value.
    Damage(Damage),
}

/// A stretch of bytes that is no JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The stretch, from the start of the torn value to where reading went on.
    pub(crate) range: Range<usize>,
    /// The first byte that could not be part of the torn value; it may lie behind the stretch.
    pub(crate) fault: usize,
}

/// Reads one value after another: a single value, JSON Lines, pretty-printed values in a row, and several
/// values on one line alike.
///
/// After damage it goes on at the first `{"` of the same line at which a whole object starts that is followed
/// by the line's end or by another object, or else at the next line. Every byte is looked at a bounded number
/// of times.
pub(crate) struct Values<'a> {
    source: &'a [u8],
    at: usize,
    /// What was found behind damage while the way on was looked for.
    ahead: VecDeque<Found>,
    /// Where long values stand.
    long: Vec<Range<usize>>,
}

impl<'a> Values<'a> {
    /// Reads from an offset on.
    pub(crate) fn new(source: &'a [u8], at: usize) -> Self {
        Self { source, at, ahead: VecDeque::new(), long: Vec::new() }
    }

    /// How far it has read.
    pub(crate) fn reached(&self) -> usize {
        self.at
    }

    /// The source, with a way past the long values that were found in it.
    pub(crate) fn into_source(self) -> Source<'a> {
        Source::new(self.source, self.long)
    }

    fn scan(&mut self, start: usize) -> Result<usize, usize> {
        let long = &mut self.long;
        scan(self.source, start, |value| {
            if value.len() >= LONG {
                long.push(value);
            }
        })
    }

    /// Queues what can be read of a stretch at whose `fault` the value that begins at `start` broke off.
    fn recover(&mut self, start: usize, fault: usize) {
        let mut damaged = start;
        // A string cannot hold a line break, so a whole record inside of the unfinished value was seen as a
        // part of it. One more pass finds all of them.
        for whole in self.whole_objects(start, fault) {
            self.found_damage(damaged..whole.start, fault);
            damaged = whole.end;
            self.ahead.push_back(Found::Value(whole));
        }
        let line = line_start(self.source, fault);
        if damaged < line {
            self.found_damage(damaged..line, fault);
            damaged = skip_space(self.source, line);
        }
        self.recover_line(damaged, if damaged == start { start + 1 } else { damaged }, fault);
    }

    /// Queues the next whole object of one line, which is searched from `from` on.
    fn recover_line(&mut self, start: usize, from: usize, fault: usize) {
        let line_end = line_end(self.source, start);
        // A prefix cut inside a string swallows the start of the object that follows it, so the search goes
        // back two bytes from the fault. Each try begins at or behind the last fault, which keeps it linear.
        let mut from = from.max(fault.saturating_sub(2));
        while let Some(next) = next_object(self.source, from, line_end) {
            let reached = match self.scan(next) {
                Ok(end) if self.ends_well(end) => {
                    self.found_damage(start..next, fault);
                    self.ahead.push_back(Found::Value(next..end));
                    self.at = end;
                    return;
                }
                Ok(end) => end,
                Err(later) => later,
            };
            from = (next + 1).max(reached.saturating_sub(2));
        }
        self.found_damage(start..line_end, fault);
        self.at = line_end;
    }

    /// The outermost whole objects between an unfinished value's start and its fault that end a line.
    fn whole_objects(&self, start: usize, fault: usize) -> Vec<Range<usize>> {
        let mut whole: Vec<Range<usize>> = Vec::new();
        let seen = self.source.get(..fault).unwrap_or_default();
        let _broken_off = scan(seen, start, |value| {
            // What ends with the source inside of a line is a part of a value that is still being written.
            let ends_with_source = value.end == self.source.len();
            if seen.get(value.start..).is_some_and(|text| text.starts_with(b"{\""))
                && !(ends_with_source && line_start(self.source, value.start) < value.start)
                && self.ends_well(value.end)
            {
                while whole.last().is_some_and(|inner| inner.start > value.start) {
                    whole.pop();
                }
                whole.push(value);
            }
        });
        whole
    }

    fn found_damage(&mut self, range: Range<usize>, fault: usize) {
        let range = skip_space(self.source, range.start)..range.end;
        if range.start < range.end {
            self.ahead.push_back(Found::Damage(Damage { range, fault }));
        }
    }

    /// Whether what follows a value after damage may follow a record.
    fn ends_well(&self, end: usize) -> bool {
        let next =
            self.source.get(end..).unwrap_or_default().iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        matches!(next, None | Some(b'\n' | b'\r' | b'{' | 0))
    }
}

impl Iterator for Values<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if let Some(found) = self.ahead.pop_front() {
            return Some(found);
        }
        let start = skip_space(self.source, self.at);
        let rest = self.source.get(start..).filter(|rest| !rest.is_empty())?;
        let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
        if zeros > 0 {
            self.at = start + zeros;
            return Some(Found::Damage(Damage { range: start..start + zeros, fault: start }));
        }
        match self.scan(start) {
            Ok(end) => {
                self.at = end;
                Some(Found::Value(start..end))
            }
            Err(fault) => {
                self.recover(start, fault);
                self.ahead.pop_front()
            }
        }
    }
}

fn line_start(source: &[u8], at: usize) -> usize {
    let before = source.get(..at).unwrap_or_default();
    memchr::memrchr(b'\n', before).map_or(0, |found| found + 1)
}

fn line_end(source: &[u8], at: usize) -> usize {
    let rest = source.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(source.len(), |found| at + found)
}

fn next_object(source: &[u8], from: usize, line_end: usize) -> Option<usize> {
    let line = source.get(from..line_end)?;
    memchr::memmem::find(line, b"{\"").map(|found| from + found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(source: &str) -> (Vec<&str>, Vec<usize>) {
        let mut values = Vec::new();
        let mut damaged = Vec::new();
        for found in Values::new(source.as_bytes(), 0) {
            match found {
                Found::Value(range) => values.push(source.get(range).unwrap()),
                Found::Damage(damage) => damaged.push(damage.range.start),
            }
        }
        (values, damaged)
    }

    #[test]
    fn reads_values_however_they_are_parted() {
        assert_eq!(
            read("{\"a\":1}\n\n[2]{\"b\":{\n}}\r\n3"),
            (vec!["{\"a\":1}", "[2]", "{\"b\":{\n}}", "3"], vec![])
        );
        assert_eq!(read(" \n"), (vec![], vec![]));
    }

    #[test]
    fn goes_on_inside_a_torn_line() {
        let torn = "{\"id\":1}\n{\"id\":2,\"role\":\"assis{\"id\":3,\"t\":\"x {\\\"y\"}\n{\"id\":4}";
        assert_eq!(read(torn), (vec!["{\"id\":1}", "{\"id\":3,\"t\":\"x {\\\"y\"}", "{\"id\":4}"], vec![9]));
        for cut in [
            "{",
            "{\"",
            "{\"a",
            "{\"a\"",
            "{\"a\":\"x\\",
            "{\"a\":\"\\u12",
            "{\"a\":tr",
            "{\"a\":1,",
            "[",
            "[1",
        ] {
            let line = format!("{cut}{{\"id\":3}}\n{{\"id\":4}}");
            let (values, damaged) = read(&line);
            assert_eq!((values, damaged), (vec!["{\"id\":3}", "{\"id\":4}"], vec![0]), "{line}");
        }
    }

    #[test]
    fn goes_on_at_the_next_line() {
        assert_eq!(read("{\"a\":\"cut\n{\"b\":1}\n{\"c\":"), (vec!["{\"b\":1}"], vec![0, 18]));
        assert_eq!(read("{\"a\":1}\n\0\0\0\0{\"b\":2}\n"), (vec!["{\"a\":1}", "{\"b\":2}"], vec![8]));
    }

    #[test]
    fn parts_of_an_unfinished_value_are_no_records() {
        for cut in ["{\"m\":{\"role\":\"user\"}", "{\"m\":[{\"a\":1},{\"b\":2}", "[{\"a\":1}"] {
            assert_eq!(read(&format!("{{\"a\":1}}\n{cut}")), (vec!["{\"a\":1}"], vec![8]), "{cut}");
        }
    }

    #[test]
    fn parts_of_a_torn_value_are_no_records() {
        let torn = "{\"messages\":[\n{\"role\":\"user\"},\n{\"role\":\"assistant\",\"content\":\"x";
        assert_eq!(read(torn).0, Vec::<&str>::new());
    }

    #[test]
    fn hostile_lines_take_linear_time() {
        for unit in ["{\"a\":", "{\"a\":\"", "{\"", "{\"a\":1,", "[{\"a\":[", "\"{\"a", "{\"a\":1}x"] {
            let mut line = unit.repeat(200_000);
            line.push('\n');
            line.push_str("{\"b\":2}");
            assert_eq!(read(&line).0.last(), Some(&"{\"b\":2}"), "{unit}");
            let mut lines = format!("{unit}\n").repeat(200_000);
            lines.push_str("{\"b\":2}");
            assert_eq!(read(&lines).0.last(), Some(&"{\"b\":2}"), "{unit}");
        }
    }

    proptest! {
        #[test]
        fn never_loses_a_line_behind_damage(junk in "[\\[\\]{}\",:a1\\\\ \0]{0,40}") {
            let source = format!("{{\"a\":1}}\n{junk}\n{{\"b\":2}}\n");
            let (values, damaged) = read(&source);
            prop_assert_eq!(values.first(), Some(&"{\"a\":1}"));
            // An unfinished value may run into the next line only where JSON allows a line break.
            let swallowed = values.last() != Some(&"{\"b\":2}");
            prop_assert!(!swallowed || values.iter().any(|value| value.contains('\n')), "{:?}", damaged);
        }
    }
}
