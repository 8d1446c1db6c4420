//! What goes wrong inside one original while it is mapped.

use crate::json::{Text, Value};

/// Small faults of the original under way. Mapping goes on; the session's notes tell of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// Text that had to be repaired.
    pub(crate) text: Text,
    /// Objects in which a key that is read occurs twice.
    pub(crate) duplicate_keys: u64,
    /// Attachments that are not valid base64.
    pub(crate) invalid_base64: u64,
    /// Items of unknown kind.
    pub(crate) unknown_items: u64,
}

impl Faults {
    /// [`Value::pick`], with double keys counted.
    pub(crate) fn pick<'a, const N: usize>(
        &mut self,
        value: Value<'a>,
        names: [&str; N],
    ) -> [Option<Value<'a>>; N] {
        let (found, twice) = value.pick(names);
        self.duplicate_keys += u64::from(twice);
        found
    }

    /// Adds the faults of another part of the same original.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { text, duplicate_keys, invalid_base64, unknown_items } = other;
        self.text.lone_surrogates += text.lone_surrogates;
        self.text.invalid_utf8 += text.invalid_utf8;
        self.duplicate_keys += duplicate_keys;
        self.invalid_base64 += invalid_base64;
        self.unknown_items += unknown_items;
    }

    /// The text of a string value; empty for anything else.
    pub(crate) fn string(&mut self, value: Option<Value<'_>>) -> String {
        value.and_then(|value| value.text(&mut self.text)).unwrap_or_default().into_owned()
    }
}
