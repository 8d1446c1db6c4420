//! What a host knows about the results of tools that messages do not say.

use epitome_loop::{SharedText, ToolUse};

/// How long the result of a tool is worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Retention {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It can be had again, so it is withheld from the summarizer.
    Requery,
    /// It is a receipt that cannot be had again: its exchange is kept while there is room.
    Durable,
}

/// Where a result stands.
#[derive(Clone, Copy, Debug)]
pub struct ResultPlace<'m> {
    /// Index of the message.
    pub message: usize,
    /// Index of the block, where results are blocks; 0 where the message is the result.
    pub block: usize,
    /// The id of its call.
    pub tool_use_id: &'m SharedText,
    /// The call that it answers, where there is one.
    pub call: Option<&'m ToolUse>,
}

/// What a host knows about one result.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResultNote {
    /// How long it is worth keeping.
    pub retention: Retention,
    /// The tool's name, where the host knows it; otherwise that of the call is used.
    pub tool: Option<SharedText>,
}

/// Tells what is known about results. The unit type knows nothing.
pub trait ResultNotes: Send + Sync {
    /// What is known about this result.
    fn note(&self, place: ResultPlace<'_>) -> ResultNote;
}

impl ResultNotes for () {
    fn note(&self, _: ResultPlace<'_>) -> ResultNote {
        ResultNote::default()
    }
}

impl<F: Fn(ResultPlace<'_>) -> ResultNote + Send + Sync> ResultNotes for F {
    fn note(&self, place: ResultPlace<'_>) -> ResultNote {
        self(place)
    }
}
