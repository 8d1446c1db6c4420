//! A conversation beside the bytes that it was read from.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use epitome_loop::{Message, ModelKey, RawJson, SharedText, TokenCount, Usage};

use crate::container::Container;
use crate::{Format, Note};

/// A conversation as it would be sent next, beside the bytes that it was read from. Cloning copies pointers.
#[derive(Clone)]
pub struct Session {
    pub(crate) source: Arc<[u8]>,
    pub(crate) format: Format,
    pub(crate) container: Arc<Container>,
    pub(crate) originals: Arc<[Original]>,
    pub(crate) messages: Arc<[Message]>,
    pub(crate) origins: Arc<[Origin]>,
    pub(crate) tools: Arc<[RawJson]>,
    pub(crate) model: Option<ModelKey>,
    pub(crate) leading_system: usize,
    pub(crate) derived_prefix: usize,
    /// How many messages of the derived prefix stand before the summary in it.
    pub(crate) before_summary: usize,
    pub(crate) reported_usage: Option<ReportedUsage>,
    pub(crate) title: Option<SharedText>,
    pub(crate) first_timestamp: Option<SharedText>,
    pub(crate) cwd: Option<SharedText>,
    pub(crate) last_timestamp: Option<SharedText>,
    pub(crate) context_window: Option<TokenCount>,
    pub(crate) notes: Arc<[Note]>,
    /// Whether every message is as it was read, so that the whole source may be written again.
    pub(crate) is_pristine: bool,
}

/// One message as it stands in the source. It may have become several neutral messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Original {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// What is written before and behind its bytes; a reply is no request message without it.
    pub(crate) wrap: (&'static str, &'static str),
    /// How many neutral messages it became.
    pub(crate) messages: usize,
}

/// Where a neutral message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Index of its original; `None` when it was made by us or is a reply that is no message of a request.
    pub(crate) original: Option<usize>,
    /// Which of the messages of its original it is.
    pub(crate) part: usize,
    /// Whether its original may not be written in its place.
    pub(crate) changed: bool,
}

impl Origin {
    /// The origin of a message that has no bytes of its own in the source.
    pub(crate) const OURS: Self = Self { original: None, part: 0, changed: true };
}

/// What a provider reported for the newest request in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedUsage {
    /// Index of the assistant message that the report came with. Messages behind it are not in the report.
    pub message: usize,
    /// The report.
    pub usage: Usage,
    /// The context up to and including that message: input, cached input and output.
    pub context_tokens: TokenCount,
}

impl Session {
    /// Which format it was read from.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The messages that would be sent next, leading system messages included.
    #[must_use]
    pub fn messages(&self) -> &Arc<[Message]> {
        &self.messages
    }

    /// The tool definitions, as the provider's JSON.
    #[must_use]
    pub fn tools(&self) -> &Arc<[RawJson]> {
        &self.tools
    }

    /// The model as named in the source; the provider is guessed where the source does not name it.
    #[must_use]
    pub fn model(&self) -> Option<&ModelKey> {
        self.model.as_ref()
    }

    /// How many messages at the start are system messages.
    #[must_use]
    pub fn leading_system(&self) -> usize {
        self.leading_system
    }

    /// How many messages behind the leading system messages stem from an earlier compaction that is marked
    /// as such in the source. Text that merely looks like a summary is not counted.
    #[must_use]
    pub fn derived_prefix(&self) -> usize {
        self.derived_prefix
    }

    /// Whether the format leaves system prompt and tools out, so that a size taken from the messages alone is
    /// too small.
    #[must_use]
    pub fn lacks_system_and_tools(&self) -> bool {
        self.container.lacks_prompt()
    }

    /// What the provider reported last, where it still describes this context. Reports from before a
    /// compaction are void and not given, here and with the messages.
    #[must_use]
    pub fn reported_usage(&self) -> Option<ReportedUsage> {
        self.reported_usage
    }

    /// What its tool calls the session, where its format says so. The words are the model's or the user's: not
    /// to be trusted.
    #[must_use]
    pub fn title(&self) -> Option<&SharedText> {
        self.title.as_ref()
    }

    /// The time of its oldest record as the source writes it, where its format says so.
    #[must_use]
    pub fn first_timestamp(&self) -> Option<&SharedText> {
        self.first_timestamp.as_ref()
    }

    /// The directory that the session worked in last, where its format says so.
    #[must_use]
    pub fn cwd(&self) -> Option<&SharedText> {
        self.cwd.as_ref()
    }

    /// The time of its newest record as the source writes it, where its format says so.
    #[must_use]
    pub fn last_timestamp(&self) -> Option<&SharedText> {
        self.last_timestamp.as_ref()
    }

    /// How many tokens the model can hold, by the word of the tool that wrote the session.
    #[must_use]
    pub fn context_window(&self) -> Option<TokenCount> {
        self.context_window
    }

    /// Where a message of another state of this session, such as before a repair, stands now. `None` when it is
    /// not there any more.
    #[must_use]
    pub fn position_of(&self, other: &Self, index: usize) -> Option<usize> {
        let (message, origin) = (other.messages.get(index)?, other.origins.get(index)?);
        let by_origin = |now: &Origin| {
            origin.original.is_some() && now.original == origin.original && now.part == origin.part
        };
        let by_content = |now: &Message| Arc::ptr_eq(now.blocks(), message.blocks());
        let found = self.origins.iter().position(by_origin);
        found.or_else(|| self.messages.iter().position(by_content))
    }

    /// What the reader noticed.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("format", &self.format)
            .field("bytes", &self.source.len())
            .field("messages", &self.messages.len())
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}
