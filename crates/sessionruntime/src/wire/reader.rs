//! Reading JSON piece by piece, straight into values: no tree, one pass, strings borrowed where they can be.
//!
//! A fault either spoils the document, and everything ends there, or it is about one value. Then the reader
//! stands behind that value, so that whoever asked for it can go on and see what else is wrong. This keeps
//! the time linear and the answer independent of the order of the keys.

use std::borrow::Cow;

use epitome_loop::json_scan::{MAX_JSON_DEPTH, measure_value, number_end, skip_white_space};
use epitome_loop::json_string::{StringDecoder, plain_run, string_end};
use epitome_loop::{RawJson, SharedText};

use super::fault::{Fault, WireFault};

pub(crate) type Read<T> = Result<T, Fault>;

/// A place in a document.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many objects and arrays are open.
    level: usize,
    /// Decodes strings with escapes, so that each costs one allocation of its final size.
    decoder: StringDecoder,
}

/// A set of the keys that an object may have: one bit for the index of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys(u32);

impl Keys {
    /// The keys with these indices.
    pub(crate) const fn of(indices: &[usize]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < indices.len() {
            bits |= 1 << indices[at];
            at += 1;
        }
        Self(bits)
    }

    /// The first so many keys.
    pub(crate) const fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These keys must be there; `end` is where the object ended.
    pub(crate) fn require(self, needed: Self, end: usize) -> Read<()> {
        if needed.0 & !self.0 == 0 { Ok(()) } else { Err(Fault::new(WireFault::MissingKey, end)) }
    }

    /// No other keys may be there; `start` is where the object started.
    pub(crate) fn allow(self, allowed: Self, start: usize) -> Read<()> {
        if self.0 & !allowed.0 == 0 { Ok(()) } else { Err(Fault::new(WireFault::UnknownKey, start)) }
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: skip_white_space(text.as_bytes(), 0), level: 0, decoder: StringDecoder::default() }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Reads an object that may have these keys, each once. `value` reads the value of the key with an index.
    ///
    /// A fault of the object's own keys outweighs those of its values; of several, the first counts.
    pub(crate) fn object(
        &mut self,
        keys: &[&str],
        mut value: impl FnMut(&mut Self, usize) -> Read<()>,
    ) -> Read<Keys> {
        if self.peek() != Some(b'{') {
            return Err(self.unexpected());
        }
        let (mut seen, mut next) = (0, 0);
        let (mut key_fault, mut value_fault) = (None, None);
        self.step();
        self.level += 1;
        let mut more = !self.take(b'}');
        while more {
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault(WireFault::Syntax));
            }
            let key = match self.short_text() {
                Err(fault) if !fault.spoils_the_document() => Err(Fault::new(WireFault::UnknownKey, key_at)),
                key => known_key(&key?, keys, next, key_at),
            };
            self.expect(b':')?;
            let read = match key {
                _ if value_fault.is_some() => self.pass_over(),
                Ok(index) => value(self, index),
                Err(_) => self.pass_over(),
            };
            match read {
                Err(fault) if fault.spoils_the_document() => return Err(fault),
                Err(fault) => value_fault = Some(fault),
                Ok(()) => {}
            }
            match key {
                Ok(index) if seen & 1 << index == 0 => (seen, next) = (seen | 1 << index, index + 1),
                Ok(_) => _ = key_fault.get_or_insert(Fault::new(WireFault::DuplicateKey, key_at)),
                Err(fault) => _ = key_fault.get_or_insert(fault),
            }
            more = self.take(b',');
            if !more {
                self.expect(b'}')?;
            }
        }
        self.level -= 1;
        key_fault.or(value_fault).map_or(Ok(Keys(seen)), Err)
    }

    /// Reads an array; `item` reads each element. Of several faults, the first counts.
    pub(crate) fn array(&mut self, mut item: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.peek() != Some(b'[') {
            return Err(self.unexpected());
        }
        let mut fault = None;
        self.step();
        self.level += 1;
        let mut more = !self.take(b']');
        while more {
            match if fault.is_some() { self.pass_over() } else { item(self) } {
                Err(found) if found.spoils_the_document() => return Err(found),
                Err(found) => fault = Some(found),
                Ok(()) => {}
            }
            more = self.take(b',');
            if !more {
                self.expect(b']')?;
            }
        }
        self.level -= 1;
        fault.map_or(Ok(()), Err)
    }

    /// Reads a string that is to be kept.
    pub(crate) fn text(&mut self) -> Read<SharedText> {
        let start = self.open_string()?;
        match self.plain_string(start) {
            Some(text) => Ok(SharedText::from(text)),
            None => self.decode(start, |text| SharedText::from(text)),
        }
    }

    /// Reads a string that is looked at and dropped.
    pub(crate) fn short_text(&mut self) -> Read<Cow<'a, str>> {
        let start = self.open_string()?;
        match self.plain_string(start) {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.decode(start, |text| Cow::Owned(text.to_owned())),
        }
    }

    /// Reads a whole number from 0 to 2^64 - 1, written in plain digits.
    pub(crate) fn unsigned(&mut self) -> Read<u64> {
        let start = self.at;
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => {}
            _ => return Err(self.unexpected()),
        }
        let end = number_end(self.text.as_bytes(), start)?;
        self.go_to(end);
        // A sign, a point or an exponent is no digit, and overflow is no number.
        self.slice(start, end).parse().map_err(|_| Fault::new(WireFault::Number, start))
    }

    pub(crate) fn boolean(&mut self) -> Read<bool> {
        if self.take_word("true") {
            Ok(true)
        } else if self.take_word("false") {
            Ok(false)
        } else {
            Err(self.unexpected())
        }
    }

    /// Takes `null` if it stands here.
    pub(crate) fn null(&mut self) -> bool {
        self.take_word("null")
    }

    /// Whether an object stands here.
    pub(crate) fn is_object(&self) -> bool {
        self.peek() == Some(b'{')
    }

    /// Reads any value, byte for byte.
    pub(crate) fn raw(&mut self) -> Read<RawJson> {
        let raw = RawJson::take_from(self.text, self.at, MAX_JSON_DEPTH - self.level)?;
        self.go_to(self.at + raw.as_str().len());
        Ok(raw)
    }

    /// Passes over a value, whatever it is.
    pub(crate) fn pass_over(&mut self) -> Read<()> {
        let extent = measure_value(self.text.as_bytes(), self.at, MAX_JSON_DEPTH - self.level)?;
        self.go_to(self.at + extent.len);
        Ok(())
    }

    /// Passes over a value that is not wanted here, and gives the fault for it.
    pub(crate) fn refuse(&mut self, what: WireFault) -> Fault {
        let fault = self.fault(what);
        self.pass_over().err().unwrap_or(fault)
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Read<()> {
        if self.at < self.text.len() { Err(self.fault(WireFault::Syntax)) } else { Ok(()) }
    }

    /// What stands here is not what should: nothing of JSON, or a value of another type.
    fn unexpected(&mut self) -> Fault {
        self.refuse(if self.peek() == Some(b'n') { WireFault::Null } else { WireFault::WrongType })
    }

    /// Takes a string without escapes as it stands there.
    fn plain_string(&mut self, start: usize) -> Option<&'a str> {
        let end = start + plain_run(self.text.as_bytes(), start);
        if self.byte(end) != Some(b'"') {
            return None;
        }
        let text = self.slice(start, end);
        self.go_to(end + 1);
        Some(text)
    }

    fn open_string(&mut self) -> Read<usize> {
        if self.peek() == Some(b'"') { Ok(self.at + 1) } else { Err(self.unexpected()) }
    }

    /// Decodes a string whose first byte behind the quote stands at `start`.
    fn decode<T>(&mut self, start: usize, keep: impl FnOnce(&str) -> T) -> Read<T> {
        match self.decoder.decode(self.text, start) {
            Ok((text, end)) => {
                let kept = keep(text);
                self.go_to(end);
                Ok(kept)
            }
            Err(fault) => {
                let fault = Fault::from(fault);
                if !fault.spoils_the_document() {
                    self.go_to(string_end(self.text.as_bytes(), start - 1)?);
                }
                Err(fault)
            }
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.step();
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(WireFault::Syntax)) }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.rest(self.at).starts_with(word.as_bytes());
        if found {
            self.go_to(self.at + word.len());
        }
        found
    }

    /// Past one byte and the white space behind it.
    fn step(&mut self) {
        self.go_to(self.at + 1);
    }

    fn go_to(&mut self, at: usize) {
        self.at = skip_white_space(self.text.as_bytes(), at);
    }

    fn fault(&self, what: WireFault) -> Fault {
        Fault::new(what, self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn rest(&self, at: usize) -> &'a [u8] {
        self.text.as_bytes().get(at..).unwrap_or_default()
    }

    /// Both places stand beside ASCII, so the range is one of whole characters.
    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }
}

/// The index of a key among those that may stand here. `likely` is tried first: keys usually come in order.
fn known_key(key: &str, keys: &[&str], likely: usize, at: usize) -> Read<usize> {
    if keys.get(likely).is_some_and(|likely| *likely == key) {
        return Ok(likely);
    }
    keys.iter().position(|known| *known == key).ok_or_else(|| {
        let folded: String = key.chars().map(fold_case).collect();
        let what = if keys.contains(&folded.as_str()) { WireFault::KeyCase } else { WireFault::UnknownKey };
        Fault::new(what, at)
    })
}

/// Lower case, with the two letters outside ASCII that stand for ASCII ones when case is ignored.
fn fold_case(character: char) -> char {
    match character {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => character.to_ascii_lowercase(),
    }
}
