//! A JSON value in place.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::{skip_space, skip_string};
use super::source::Source;
use super::string::Text;

/// A value of a source that the scan has accepted. Copying it copies three numbers.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    source: &'a Source<'a>,
    start: usize,
    end: usize,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

impl<'a> Value<'a> {
    /// The value at a range that the scan has accepted.
    pub(super) fn new(source: &'a Source<'a>, range: Range<usize>) -> Self {
        Self { source, start: range.start, end: range.end }
    }

    /// Where it stands.
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Its bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.source.bytes().get(self.start..self.end).unwrap_or_default()
    }

    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        match self.source.bytes().get(self.start) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Whether it is an array.
    pub(crate) fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// The elements of an array; none of anything else.
    pub(crate) fn elements(self) -> impl Iterator<Item = Value<'a>> {
        let mut at = if self.is_array() { self.start + 1 } else { self.end };
        std::iter::from_fn(move || {
            at = skip_space(self.source.bytes(), at);
            if at + 1 >= self.end {
                return None;
            }
            let end = self.source.end_of(at);
            let element = Value { source: self.source, start: at, end };
            at = skip_space(self.source.bytes(), end) + 1;
            Some(element)
        })
    }

    /// The fields of an object with their raw keys (without quotes); none of anything else.
    pub(crate) fn fields(self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> {
        self.fields_with_places().map(|(key, value, _)| (key, value))
    }

    /// As [`Value::fields`], with the offset at which each key begins.
    pub(crate) fn fields_with_places(self) -> impl Iterator<Item = (&'a [u8], Value<'a>, usize)> {
        let mut at = if self.is_object() { self.start + 1 } else { self.end };
        std::iter::from_fn(move || {
            at = skip_space(self.source.bytes(), at);
            if at + 1 >= self.end {
                return None;
            }
            let place = at;
            let key_end = skip_string(self.source.bytes(), at);
            let key = self.source.bytes().get(at + 1..key_end.saturating_sub(1)).unwrap_or_default();
            let start = skip_space(self.source.bytes(), skip_space(self.source.bytes(), key_end) + 1);
            let end = self.source.end_of(start);
            at = skip_space(self.source.bytes(), end) + 1;
            Some((key, Value { source: self.source, start, end }, place))
        })
    }

    /// The values of some fields, each the last one of its name; null counts as absent. The second part says
    /// whether one of the names occurred twice.
    pub(crate) fn pick<const N: usize>(self, names: [&str; N]) -> ([Option<Value<'a>>; N], bool) {
        let (found, twice) = self.find(names);
        (found.map(|value| value.filter(|value| value.kind() != Kind::Null)), twice)
    }

    /// As [`Value::pick`], with null where a field is null.
    pub(crate) fn find<const N: usize>(self, names: [&str; N]) -> ([Option<Value<'a>>; N], bool) {
        let mut found = [None; N];
        let mut twice = false;
        for (key, value) in self.fields() {
            let decoded;
            let key = if memchr::memchr(b'\\', key).is_none() {
                key
            } else {
                decoded = Text::default().decode(key).into_owned();
                decoded.as_bytes()
            };
            for (name, slot) in names.iter().zip(&mut found) {
                if name.as_bytes() == key {
                    twice |= slot.replace(value).is_some();
                }
            }
        }
        (found, twice)
    }

    /// The value of one field; null counts as absent.
    pub(crate) fn get(self, name: &str) -> Option<Value<'a>> {
        let ([value], _) = self.pick([name]);
        value
    }

    /// Whether an object has a field of this name, null or not.
    pub(crate) fn has(self, name: &str) -> bool {
        self.fields().any(|(key, _)| key == name.as_bytes())
    }

    /// The text of a string; `None` of anything else.
    pub(crate) fn text(self, text: &mut Text) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| text.decode(self.inner()))
    }

    /// Whether it is a string with exactly this text, written without escapes.
    pub(crate) fn is_text(self, text: &str) -> bool {
        self.kind() == Kind::String && self.inner() == text.as_bytes()
    }

    /// A string without its quotes, as it stands.
    pub(crate) fn inner(self) -> &'a [u8] {
        self.source.bytes().get(self.start + 1..self.end.saturating_sub(1)).unwrap_or_default()
    }

    /// A number that is whole, not negative and fits.
    pub(crate) fn number(self) -> Option<u64> {
        std::str::from_utf8(self.bytes()).ok()?.parse().ok()
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(self) -> bool {
        self.bytes() == b"true"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_elements_are_walked_in_place() {
        let source = Source::small(b"{ \"a\" : [ 1 , {\"x\":\"]\"} , \"q\\\"\" ] ,\"b\":null, \"c\":-1e3}");
        let object = source.whole();
        let array = object.get("a").unwrap();
        let elements: Vec<_> = array.elements().map(Value::bytes).collect();
        assert_eq!(elements, [&b"1"[..], b"{\"x\":\"]\"}", b"\"q\\\"\""]);
        assert!(object.get("b").is_none() && object.has("b"));
        assert_eq!(object.get("c").unwrap().bytes(), b"-1e3");
        for empty in ["[ ]", "{ }", "1", " null "] {
            let source = Source::small(empty.as_bytes());
            assert_eq!(source.whole().elements().count() + source.whole().fields().count(), 0);
        }
    }

    #[test]
    fn the_last_of_two_equal_keys_wins_and_is_reported() {
        let source = Source::small(br#"{"role":"user","r\u006fle":"assistant"}"#);
        let (found, twice) = source.whole().pick(["role", "content"]);
        assert!(twice);
        assert!(found[0].unwrap().is_text("assistant") && found[1].is_none());
    }
}
