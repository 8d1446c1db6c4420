//! One statement of the conversation with what was found in it.

use std::borrow::Cow;

use epitome_loop::Section;

use super::cues::Cues;
use super::fixed_point::Score;
use super::recognize::Content;
use super::statements::Label;
use super::values::{Value, ValueKinds};
use super::words::{Key, Known};

/// Marks a rule that the assistant stated: it weighs less than the user's, now and in the next summary.
pub(crate) const ASSISTANT_MARK: &str = "(assistant) ";

/// Who made a statement. This decides what the statement may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The previous summary, as the host typed it.
    Previous(Section),
    /// The user.
    User,
    /// The host's standing instructions.
    System,
    /// The model.
    Assistant,
    /// A tool, or a file.
    Tool,
    /// Program text or machine output inside a message: it has no authority, whoever sent it.
    Pasted,
}

impl Origin {
    /// Whether the statement has the user's authority: the user's own, the host's, or one that an earlier
    /// summary took over from them.
    pub(crate) fn has_authority(self) -> bool {
        matches!(self, Self::Previous(_) | Self::User | Self::System)
    }
}

/// Where a statement stands. Orders statements by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    /// 0 for the previous summary, then the message's index plus one.
    pub(crate) message: u32,
    /// The statement's index in its message.
    pub(crate) line: u32,
}

impl Place {
    /// The place of the `line`-th statement of a message.
    pub(crate) fn in_message(message: usize, line: usize) -> Self {
        Self {
            message: u32::try_from(message).unwrap_or(u32::MAX).saturating_add(1),
            line: u32::try_from(line).unwrap_or(u32::MAX),
        }
    }

    /// The place of the `line`-th statement of the previous summary.
    pub(crate) fn in_previous(line: usize) -> Self {
        Self { message: 0, line: u32::try_from(line).unwrap_or(u32::MAX) }
    }
}

/// A statement and what was found in it.
#[derive(Clone)]
pub(crate) struct Statement<'t> {
    /// The words, with single spaces, without list mark and known label.
    pub(crate) text: Cow<'t, str>,
    pub(crate) origin: Origin,
    pub(crate) place: Place,
    /// The section it goes to if it is selected.
    pub(crate) section: Section,
    /// What it is worth.
    pub(crate) score: Score,
    pub(crate) cues: Cues,
    pub(crate) label: Option<Label>,
    pub(crate) values: Box<[Value]>,
    /// The keys of its content words, sorted.
    pub(crate) words: Box<[Key]>,
    /// What its first word that is no opener is known for.
    pub(crate) first_word: Known,
    /// Something later took its place, or it says nothing new.
    pub(crate) is_retired: bool,
    /// One of the first things the user said: the goal may be among them, whatever they score.
    pub(crate) is_opening: bool,
}

impl<'t> Statement<'t> {
    /// A statement with its content, not judged yet.
    pub(crate) fn new(
        text: Cow<'t, str>,
        origin: Origin,
        place: Place,
        cues: Cues,
        label: Option<Label>,
        content: &Content,
    ) -> Self {
        Self {
            text,
            origin,
            place,
            section: Section::State,
            score: 0,
            cues,
            label,
            values: content.values.as_slice().into(),
            words: content.words.as_slice().into(),
            first_word: content.first_word,
            is_retired: false,
            is_opening: false,
        }
    }

    /// Whether it is a question.
    pub(crate) fn is_question(&self) -> bool {
        self.text.trim_end().ends_with(['?', '？'])
    }

    /// Whether it has any of these cue classes.
    pub(crate) fn has(&self, cues: Cues) -> bool {
        self.cues.any(cues)
    }

    /// Whether somebody with authority forbids something in it.
    pub(crate) fn prohibits(&self) -> bool {
        self.has(Cues::PROHIBITION)
            && match self.origin {
                Origin::Previous(section) => section == Section::Constraints,
                Origin::User | Origin::System => true,
                Origin::Assistant | Origin::Tool | Origin::Pasted => false,
            }
    }

    /// Whether it is a rule for the user's whole session rather than a task.
    pub(crate) fn is_rule(&self) -> bool {
        self.prohibits() || self.has(Cues::SCOPE)
    }

    /// Whether it withdraws an earlier plan.
    pub(crate) fn overrides(&self) -> bool {
        self.has(Cues::OVERRIDE) || self.has(Cues::IGNORE) && self.has(Cues::EARLIER)
    }

    /// Whether it says nothing but that something was heard.
    pub(crate) fn is_acknowledgement(&self) -> bool {
        self.has(Cues::ACKNOWLEDGEMENT) && super::statements::count_words(&self.text) <= 8
    }

    /// Whether it has a value of one of these kinds.
    pub(crate) fn has_value(&self, kinds: ValueKinds) -> bool {
        self.values.iter().any(|value| kinds.has(value.kind))
    }
}

/// The keys that two sorted lists share.
pub(crate) fn shared<'k>(left: &'k [Key], right: &'k [Key]) -> impl Iterator<Item = Key> + 'k {
    let mut right = right.iter().copied().peekable();
    left.iter().copied().filter(move |&key| {
        while right.next_if(|&other| other < key).is_some() {}
        right.peek() == Some(&key)
    })
}
