//! Tool calls and their arguments.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A call of a tool.
pub(crate) struct Call<'t> {
    /// The index of the message that makes it.
    pub(crate) message: usize,
    /// The tool's name.
    pub(crate) name: &'t str,
    /// The plain values among its arguments, in order.
    pub(crate) arguments: Vec<String>,
    /// Whether the tool answered with an error.
    pub(crate) has_failed: bool,
}

/// An argument longer than this is content, not a name for something.
const LONGEST_ARGUMENT: usize = 80;
/// More arguments than this are data.
const MOST_ARGUMENTS: usize = 64;

/// The plain values of a call's JSON input, in order. Nesting beyond the JSON reader's bound, or text that is
/// no JSON, gives none; long values and values of more than one line are left out.
pub(crate) fn arguments(json: &str) -> Vec<String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    Leaves::deserialize(&mut reader).map(|leaves| leaves.0).unwrap_or_default()
}

/// The plain values of a JSON value.
#[derive(Default)]
struct Leaves(Vec<String>);

impl<'de> Deserialize<'de> for Leaves {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LeavesVisitor)
    }
}

impl Leaves {
    fn one(text: &str) -> Self {
        let is_name = (1..=LONGEST_ARGUMENT).contains(&text.trim().len()) && !text.contains(['\n', '\r']);
        Self(if is_name { vec![text.trim().to_owned()] } else { Vec::new() })
    }

    fn take(&mut self, inner: Self) {
        let room = MOST_ARGUMENTS.saturating_sub(self.0.len());
        self.0.extend(inner.0.into_iter().take(room));
    }
}

struct LeavesVisitor;

impl<'de> Visitor<'de> for LeavesVisitor {
    type Value = Leaves;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Leaves, E> {
        Ok(Leaves::one(if value { "true" } else { "false" }))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Leaves, E> {
        Ok(Leaves::one(&value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Leaves, E> {
        Ok(Leaves::one(&value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Leaves, E> {
        Ok(Leaves::one(&value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Leaves, E> {
        Ok(Leaves::one(value))
    }

    fn visit_unit<E>(self) -> Result<Leaves, E> {
        Ok(Leaves::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Leaves, A::Error> {
        let mut leaves = Leaves::default();
        while let Some(inner) = items.next_element()? {
            leaves.take(inner);
        }
        Ok(leaves)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Leaves, A::Error> {
        let mut leaves = Leaves::default();
        while let Some((_, inner)) = entries.next_entry::<serde::de::IgnoredAny, Leaves>()? {
            leaves.take(inner);
        }
        Ok(leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_come_in_order() {
        assert_eq!(
            arguments(r#"{"z": "mia_li", "a": [1, {"b": 2.5, "c": null}], "t": true, "long": "x\ny"}"#),
            ["mia_li", "1", "2.5", "true"]
        );
    }

    #[test]
    fn broken_and_bottomless_input_gives_nothing() {
        assert!(arguments("{\"a\": ").is_empty());
        assert!(arguments("").is_empty());
        assert!(arguments(&"[".repeat(100_000)).is_empty());
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(arguments(&deep).is_empty());
    }
}
