//! Reads the tree into structs that derive their reading.
//!
//! The error type is ours, so that what a derived reader would quote (an unknown key, a wrong value) is dropped
//! where it arises, and what remains is a closed kind with a place.

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::{Entry, Fault, Node, Value};
use crate::{FileProblem, PlacePart};

impl Fault {
    fn without_place(problem: FileProblem) -> Self {
        Self { at: None, place: Vec::new(), problem }
    }

    fn expected(what: &dyn de::Expected) -> Self {
        let what = match what.to_string().as_str() {
            "a boolean" => "true or false".into(),
            "a string" => "text in quotes".into(),
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".into(),
            "a nonzero u64" => "a whole number, 1 or more".into(),
            "f64" => "a number".into(),
            "a sequence" => "a list".into(),
            "a map" => "a table".into(),
            // Our own words, or those of the derived readers; neither knows the file.
            other => other.to_owned().into(),
        };
        Self::without_place(FileProblem::Expected { what })
    }

    /// Says where, if nothing further in has.
    fn or_at(mut self, at: usize) -> Self {
        self.at.get_or_insert(at);
        self
    }

    fn inside(mut self, part: PlacePart) -> Self {
        self.place.push(part);
        self
    }
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.problem, f)
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.problem, f)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    /// Only reached by readers that are not ours; their words may quote.
    fn custom<T: Display>(_: T) -> Self {
        Self::without_place(FileProblem::Expected { what: "another value".into() })
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn invalid_length(_: usize, expected: &dyn de::Expected) -> Self {
        Self::expected(expected)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::without_place(FileProblem::UnknownWord { known })
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::without_place(FileProblem::UnknownKey { known })
    }

    fn missing_field(key: &'static str) -> Self {
        Self::without_place(FileProblem::MissingKey { key })
    }

    fn duplicate_field(_: &'static str) -> Self {
        Self::without_place(FileProblem::DuplicateKey)
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(visitor, &[])
    }

    /// A struct is a table and nothing else: a derived reader would also take a list, by position, and never look
    /// at what it has too many of. A struct says its keys; those are what a place may name.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            Value::List(_) => Err(Fault::expected(&visitor).or_at(self.at)),
            _ => self.visit(visitor, fields),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// An enumeration is a word.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.value {
            Value::Text(word) => {
                visitor.visit_enum(StrDeserializer::new(word)).map_err(|fault: Fault| fault.or_at(self.at))
            }
            _ => Err(Fault::at(self.at, FileProblem::UnknownWord { known: variants })),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

impl Node {
    fn visit<'de, V: Visitor<'de>>(
        &'de self,
        visitor: V,
        fields: &'static [&'static str],
    ) -> Result<V::Value, Fault> {
        let visited = match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::Integer(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_i128(*number),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(values) => {
                let mut list = List { values: values.iter(), read: 0 };
                visitor.visit_seq(&mut list).and_then(|read| list.end().map(|()| read))
            }
            Value::Table(entries) => {
                let mut table = Table { entries: entries.iter(), current: None, fields, read: 0 };
                visitor.visit_map(&mut table).and_then(|read| table.end().map(|()| read))
            }
            Value::Other => Err(de::Error::invalid_type(Unexpected::Other("date"), &visitor)),
        };
        visited.map_err(|fault| fault.or_at(self.at))
    }
}

struct List<'de> {
    values: std::slice::Iter<'de, Node>,
    read: usize,
}

impl List<'_> {
    /// A reader of so many values leaves the rest of a longer list; nothing of a file is passed over.
    fn end(mut self) -> Result<(), Fault> {
        let Some(surplus) = self.values.next() else { return Ok(()) };
        let what = format!("a list of {} values", self.read).into();
        let fault = Fault::at(surplus.at, FileProblem::Expected { what });
        Err(fault.inside(PlacePart::Entry(self.read.saturating_add(1))))
    }
}

impl<'de> SeqAccess<'de> for List<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.values.next() else { return Ok(None) };
        self.read += 1;
        seed.deserialize(node).map(Some).map_err(|fault| fault.inside(PlacePart::Entry(self.read)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

struct Table<'de> {
    entries: std::slice::Iter<'de, Entry>,
    current: Option<&'de Entry>,
    fields: &'static [&'static str],
    read: usize,
}

impl Table<'_> {
    /// Nothing of a file is passed over, whatever the reader of a table is content with.
    fn end(mut self) -> Result<(), Fault> {
        let Some(surplus) = self.entries.next() else { return Ok(()) };
        let what = format!("a table of {} values", self.read).into();
        Err(Fault::at(surplus.at, FileProblem::Expected { what }))
    }

    /// How a place names the current key: by itself when the format defines it, else by its number.
    fn part(&self) -> PlacePart {
        let key = self.current.map_or("", |entry| entry.key.as_str());
        match self.fields.iter().find(|field| **field == key) {
            Some(field) => PlacePart::Key(field),
            None => PlacePart::Entry(self.read),
        }
    }
}

impl<'de> MapAccess<'de> for Table<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        self.current = Some(entry);
        self.read += 1;
        let key = StrDeserializer::<Fault>::new(&entry.key);
        seed.deserialize(key).map(Some).map_err(|fault| fault.or_at(entry.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.current {
            Some(entry) => seed.deserialize(&entry.value).map_err(|fault| fault.inside(self.part())),
            None => Err(Fault::without_place(FileProblem::Expected { what: "a key".into() })),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
