//! What a target format cannot hold.

use std::collections::BTreeMap;
use std::fmt;

/// What a user message says of which nothing else can be held.
pub(crate) const LEFT_OUT: &str = "[left out: this format cannot hold it]";

/// A kind of thing that a target format cannot hold as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LossKind {
    /// A provider's own item, left out.
    Opaque,
    /// Reasoning, left out: it is unsigned, or signed for another provider.
    Thinking,
    /// A provider's state of a call, left out.
    CallState,
    /// A picture, left out.
    Image,
    /// A recording, left out.
    Audio,
    /// A file, left out.
    Document,
    /// A refusal, written as text.
    Refusal,
    /// A system message, left out.
    System,
    /// A system message in the middle, written as a user message.
    SystemAsUser,
    /// A result inside another message, left out.
    NestedResult,
    /// A call in a message that is not the model's, left out.
    MisplacedCall,
    /// The mark that a result is an error, left out.
    ErrorFlag,
    /// Arguments that are no JSON object, wrapped into one.
    Arguments,
    /// A tool definition of a form that has no counterpart, left out.
    Tool,
}

impl LossKind {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::Thinking => "thinking",
            Self::CallState => "call_state",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Document => "document",
            Self::Refusal => "refusal_as_text",
            Self::System => "system",
            Self::SystemAsUser => "system_as_user",
            Self::NestedResult => "nested_result",
            Self::MisplacedCall => "misplaced_call",
            Self::ErrorFlag => "error_flag",
            Self::Arguments => "arguments_wrapped",
            Self::Tool => "tool",
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How often a kind of thing did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loss {
    /// What did not fit.
    pub kind: LossKind,
    /// How often.
    pub count: u64,
}

/// Counts losses while a target is written.
#[derive(Debug, Default)]
pub(crate) struct Losses(BTreeMap<LossKind, u64>);

impl Losses {
    pub(crate) fn add(&mut self, kind: LossKind) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// The losses in the order of their kinds.
    pub(crate) fn into_list(self) -> Vec<Loss> {
        self.0.into_iter().map(|(kind, count)| Loss { kind, count }).collect()
    }
}
