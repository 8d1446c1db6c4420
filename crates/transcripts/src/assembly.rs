//! Collects what a reader maps, original by original, into a session.

use std::ops::Range;
use std::sync::Arc;

use epitome_loop::{Message, ModelKey, RawJson, Role, SharedText, TokenCount, Usage};

use crate::container::Container;
use crate::faults::Faults;
use crate::session::{Origin, Original};
use crate::{Format, Note, ReportedUsage, Session};

/// A session under way.
#[derive(Default)]
pub(crate) struct Assembly {
    /// Faults of the original under way.
    pub(crate) faults: Faults,
    /// Tool definitions.
    pub(crate) tools: Vec<RawJson>,
    /// The model, where the source names it.
    pub(crate) model: Option<ModelKey>,
    /// What the provider reported last, and the message it came with.
    pub(crate) reported: Option<(usize, Usage)>,
    /// How many messages behind the leading system messages stem from an earlier compaction.
    pub(crate) derived_prefix: usize,
    /// What the session is called.
    pub(crate) title: Option<SharedText>,
    /// The time of the oldest record, as it stands.
    pub(crate) first_timestamp: Option<SharedText>,
    /// Where the session worked last.
    pub(crate) cwd: Option<SharedText>,
    /// The time of the newest record, as it stands.
    pub(crate) last_timestamp: Option<SharedText>,
    /// What the tool that wrote the session says of its model's window.
    pub(crate) context_window: Option<TokenCount>,
    /// How many of them stand before the summary.
    pub(crate) before_summary: usize,
    notes: Vec<Note>,
    unknown_items: u64,
    has_repaired_text: bool,
    originals: Vec<Original>,
    messages: Vec<Message>,
    origins: Vec<Origin>,
}

impl Assembly {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// How many messages at the start are system messages.
    pub(crate) fn leading_system(&self) -> usize {
        self.messages.iter().take_while(|message| message.role() == Role::System).count()
    }

    /// Whether a part of the source is damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Damaged { .. }))
    }

    /// Whether the last record of the source is unfinished.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::UnfinishedTail { .. }))
    }

    /// Takes the messages that one original became.
    pub(crate) fn close(&mut self, original: Original, messages: Vec<Message>) {
        let changed = self.settle_faults();
        let index = self.originals.len();
        self.originals.push(Original { messages: messages.len(), ..original });
        self.origins.extend((0..messages.len()).map(|part| Origin { original: Some(index), part, changed }));
        self.messages.extend(messages);
    }

    /// Takes the messages of several originals that stand mixed. Each names its original among these, and which of
    /// its messages it is.
    pub(crate) fn close_together(
        &mut self,
        originals: Vec<Original>,
        messages: Vec<(usize, usize, Message)>,
    ) {
        let changed = self.settle_faults();
        let first = self.originals.len();
        self.originals.extend(originals);
        for (original, part, message) in messages {
            let original = first + original;
            if let Some(original) = self.originals.get_mut(original) {
                original.messages += 1;
            }
            self.origins.push(Origin { original: Some(original), part, changed });
            self.messages.push(message);
        }
    }

    /// Takes a message that has no bytes of its own in the source.
    pub(crate) fn close_without_original(&mut self, message: Message) {
        self.settle_faults();
        self.origins.push(Origin::OURS);
        self.messages.push(message);
    }

    /// What was reported with these messages is about another context than the one that is read: their figures go.
    pub(crate) fn void_reports(&mut self, messages: Range<usize>) {
        for message in self.messages.get_mut(messages).into_iter().flatten() {
            if let Message::Assistant { usage, .. } = message {
                *usage = None;
            }
        }
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Adds a note about a number of things, unless there are none.
    pub(crate) fn note_count(&mut self, count: u64, note: impl FnOnce(u64) -> Note) {
        if count > 0 {
            self.notes.push(note(count));
        }
    }

    /// The session.
    pub(crate) fn finish(mut self, source: Arc<[u8]>, format: Format, container: Container) -> Session {
        self.note_count(self.unknown_items, |count| Note::UnknownItems { count });
        let reported_usage = self.reported.and_then(|(message, usage)| {
            // No model has a window like that: such a figure is damaged.
            let is_size = |total: &TokenCount| (1..=u64::from(u32::MAX)).contains(&total.get());
            let context_tokens = usage.total_tokens().ok().filter(is_size)?;
            Some(ReportedUsage { message, usage, context_tokens })
        });
        let is_pristine = !self.has_repaired_text;
        let leading_system = self.leading_system();
        Session {
            source,
            format,
            container: Arc::new(container),
            originals: self.originals.into(),
            messages: self.messages.into(),
            origins: self.origins.into(),
            tools: self.tools.into(),
            model: self.model,
            leading_system,
            derived_prefix: self.derived_prefix,
            before_summary: self.before_summary,
            reported_usage,
            title: self.title.filter(|title| !title.trim().is_empty()),
            first_timestamp: self.first_timestamp.filter(|time| !time.is_empty()),
            cwd: self.cwd.filter(|cwd| !cwd.is_empty()),
            last_timestamp: self.last_timestamp.filter(|time| !time.is_empty()),
            context_window: self.context_window,
            notes: self.notes.into(),
            is_pristine,
        }
    }

    /// Turns the faults of the original under way into notes; says whether its text had to be repaired.
    fn settle_faults(&mut self) -> bool {
        let Faults { text, duplicate_keys, invalid_base64, unknown_items } = std::mem::take(&mut self.faults);
        let message = self.messages.len();
        self.note_count(text.lone_surrogates, |count| Note::LoneSurrogates { message, count });
        self.note_count(text.invalid_utf8, |count| Note::InvalidUtf8 { message, count });
        self.note_count(duplicate_keys, |_| Note::DuplicateKeys { message });
        self.note_count(invalid_base64, |_| Note::InvalidBase64 { message });
        self.unknown_items += unknown_items;
        let repaired = text.lone_surrogates > 0 || text.invalid_utf8 > 0;
        self.has_repaired_text |= repaired;
        repaired
    }
}

/// The original at a range that is written as it stands.
pub(crate) fn as_it_stands(range: Range<usize>) -> Original {
    Original { range, messages: 0, wrap: ("", "") }
}
