//! Typed values: what a summary must not lose and what tells two versions of a statement apart.

use super::words::Key;

/// What kind of value a piece of text is. Where two kinds fit, the one that stands first here wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueKind {
    /// A web address.
    Url,
    /// An e-mail address.
    Email,
    /// A sum, in digits or words.
    Money,
    /// A day.
    Date,
    /// A branch such as `feature/x`.
    GitRef,
    /// A file path or file name.
    Path,
    /// `3 of 5`.
    Ratio,
    /// A hexadecimal digest or a long number.
    Hash,
    /// A time zone.
    TimeZone,
    /// A day of the week.
    Weekday,
    /// A programming language.
    Language,
    /// A style of writing.
    Style,
    /// Letters and digits mixed: a ticket, a booking, a model.
    Code,
    /// A name in program text.
    Identifier,
    /// A person's first and last name.
    Name,
    /// A capitalized word inside a sentence.
    Proper,
    /// A version, or a number of two digits or more.
    Number,
    /// Text in quotes.
    Quoted,
    /// An argument of a tool call that is none of the above.
    Argument,
}

impl ValueKind {
    /// A set that holds this kind alone.
    pub(crate) const fn alone(self) -> ValueKinds {
        ValueKinds(1 << self as u32)
    }
}

/// A set of value kinds, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct ValueKinds(u32);

impl ValueKinds {
    /// The set of these kinds.
    pub(crate) const fn of(kinds: &[ValueKind]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < kinds.len() {
            bits |= kinds[at].alone().0;
            at += 1;
        }
        Self(bits)
    }

    /// Whether the kind is in the set.
    pub(crate) const fn has(self, kind: ValueKind) -> bool {
        self.0 & kind.alone().0 != 0
    }
}

/// A value inside a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// What it is.
    pub(crate) kind: ValueKind,
    /// Byte offset of its first byte in the statement.
    pub(crate) start: u32,
    /// Byte offset after its last byte.
    pub(crate) end: u32,
    /// Its text in lower case.
    pub(crate) key: Key,
}
