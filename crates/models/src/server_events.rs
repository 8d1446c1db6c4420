//! Server-sent events, read as they come (WHATWG HTML, section 9.2): names and data; ids and pauses mean nothing
//! here.

use memchr::memchr2;

/// Splits what comes into events. What it keeps is one event that is not whole yet; whoever feeds it bounds that.
#[derive(Default)]
pub(crate) struct ServerEvents {
    /// The line that is not whole yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return, so that a line feed now belongs to it.
    after_return: bool,
    /// The first line is behind us, and with it a byte-order mark.
    begun: bool,
}

/// One whole event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerEvent<'a> {
    /// Its kind; empty where the server gives none.
    pub(crate) name: &'a [u8],
    /// Its data.
    pub(crate) data: &'a [u8],
}

impl ServerEvents {
    /// Takes more bytes and hands on each event that is whole now.
    ///
    /// # Errors
    /// The first one of `each`, which ends it.
    pub(crate) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(ServerEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.after_return = rest.get(end) == Some(&b'\r');
            self.line.extend_from_slice(rest.get(..end).unwrap_or_default());
            rest = rest.get(end + 1..).unwrap_or_default();
            self.end_line(&mut each)?;
        }
        Ok(())
    }

    /// Nothing more comes: hands on an event whose lines are whole and that lacks only the empty line behind it.
    ///
    /// # Errors
    /// That of `each`.
    pub(crate) fn end<E>(&mut self, mut each: impl FnMut(ServerEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.line.is_empty() && self.begun { self.end_line(&mut each) } else { Ok(()) }
    }

    fn end_line<E>(&mut self, each: &mut impl FnMut(ServerEvent<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let had_data = std::mem::take(&mut self.has_data);
            let told =
                if had_data { each(ServerEvent { name: &self.name, data: &self.data }) } else { Ok(()) };
            self.name.clear();
            self.data.clear();
            self.line.clear();
            return told;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let field = line.get(..colon).unwrap_or_default();
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            _ => {}
        }
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = ServerEvents::default();
        let mut seen = Vec::new();
        for piece in pieces {
            let kept = reader.feed(piece, |event| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                seen.push((text(event.name), text(event.data)));
                Ok::<(), ()>(())
            });
            assert_eq!(kept, Ok(()));
        }
        seen
    }

    #[test]
    fn events_are_read_by_the_standard() {
        let text = b"\xef\xbb\xbf: hello\nevent: one\ndata: a\ndata:b\nid: 7\n\n\ndata\r\n\r\ndata:  c\r\revent: x\n\nunknown: 1\n\ndata: cut";
        let pairs = [("one", "a\nb"), ("", ""), ("", " c")];
        assert_eq!(events(&[text]), pairs.map(|(name, data)| (name.to_owned(), data.to_owned())));
    }

    #[test]
    fn an_event_whose_lines_are_whole_is_one_at_the_end() {
        for (text, is_one) in
            [(&b"data: a\n"[..], true), (b"data: a", false), (b"", false), (b"event: x\n", false)]
        {
            let mut reader = ServerEvents::default();
            let mut seen = 0;
            let mut count = |_: ServerEvent<'_>| {
                seen += 1;
                Ok::<(), ()>(())
            };
            assert_eq!(reader.feed(text, &mut count).and_then(|()| reader.end(&mut count)), Ok(()));
            assert_eq!(seen == 1, is_one);
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let mut reader = ServerEvents::default();
        let mut seen = 0;
        let result = reader.feed(b"data: 1\n\ndata: 2\n\n", |_| {
            seen += 1;
            Err(seen)
        });
        assert_eq!((result, seen), (Err(1), 1));
    }

    proptest! {
        #[test]
        fn how_it_is_cut_does_not_matter(
            lines in prop::collection::vec("(event|data|id|)(: ?|:|)[a-c:\u{e9} ]{0,4}(\n|\r|\r\n)|\n|\r\n|\r", 0..24),
            cuts in prop::collection::vec(1_usize..6, 1..40),
        ) {
            let text = lines.concat();
            let whole = events(&[text.as_bytes()]);
            let mut rest = text.as_bytes();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, left) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = left;
            }
            prop_assert_eq!(events(&pieces), whole);
        }
    }
}
