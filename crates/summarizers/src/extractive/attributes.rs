//! Attributes of which a conversation has one current value: a later statement of one retires the earlier.
//!
//! To add an attribute, add a cue class for its head words in [`super::cues`] and an entry here.

use super::cues::Cues;
use super::values::{ValueKind, ValueKinds};

/// An attribute.
pub(crate) struct Attribute {
    /// The cue class of the words that name it.
    pub(crate) head: Cues,
    /// What its values look like; `None` when the whole statement is the value.
    pub(crate) values: Option<ValueKinds>,
    /// Whether there is only one in a conversation. Otherwise two statements are about the same one only if
    /// they share a word that says which, such as `travel` in `travel budget`.
    pub(crate) is_unique: bool,
    /// What becomes of a rule that mentions the old value.
    pub(crate) rules: RulesAbout,
    /// Words, as stems, that belong to the attribute and do not say which one is meant.
    pub(crate) neutral: &'static [&'static str],
}

/// What becomes of a rule that mentions an attribute's value when the value changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RulesAbout {
    /// It is meant of the new value: a limit, a day, a code.
    Follow,
    /// What forbids a value is about that value alone, and no other one lifts it.
    NameTheirOwn,
    /// It was said in one breath with where the work stood, and is about something else.
    Stay,
}

/// All attributes.
pub(crate) const ATTRIBUTES: [Attribute; 12] = [
    Attribute {
        head: Cues::ABOUT_MONEY,
        values: Some(ValueKinds::of(&[ValueKind::Money])),
        is_unique: false,
        rules: RulesAbout::Follow,
        neutral: &[
            "budget", "spend", "spending", "cost", "expens", "ceil", "ceiling", "cap", "capp", "capped",
            "limit", "dollar", "never", "hard",
        ],
    },
    Attribute {
        head: Cues::ABOUT_DEADLINE,
        values: Some(ValueKinds::of(&[ValueKind::Date])),
        is_unique: false,
        rules: RulesAbout::Follow,
        neutral: &["deadlin", "schedul", "target", "due", "date", "hard"],
    },
    Attribute {
        head: Cues::ABOUT_CODENAME,
        values: Some(ValueKinds::of(&[ValueKind::Code, ValueKind::Name])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_TIME_ZONE,
        values: Some(ValueKinds::of(&[ValueKind::TimeZone])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_ON_CALL,
        values: Some(ValueKinds::of(&[ValueKind::Name])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_BRANCH,
        values: Some(ValueKinds::of(&[ValueKind::GitRef])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_ANSWERS,
        values: Some(ValueKinds::of(&[ValueKind::Style])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_PASSCODE,
        values: Some(ValueKinds::of(&[ValueKind::Code])),
        is_unique: false,
        rules: RulesAbout::Follow,
        neutral: &["code", "codes", "passcod", "passwo", "password", "token", "key", "keys"],
    },
    Attribute {
        head: Cues::ABOUT_WEEKDAY,
        values: Some(ValueKinds::of(&[ValueKind::Weekday])),
        is_unique: false,
        rules: RulesAbout::NameTheirOwn,
        neutral: &["standup", "meet", "weekly"],
    },
    Attribute {
        head: Cues::ABOUT_EXAMPLES,
        values: Some(ValueKinds::of(&[ValueKind::Language])),
        is_unique: true,
        rules: RulesAbout::NameTheirOwn,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_NEXT_STEP,
        values: None,
        is_unique: true,
        rules: RulesAbout::Stay,
        neutral: &[],
    },
    Attribute {
        head: Cues::ABOUT_PHASE,
        values: Some(ValueKinds::of(&[ValueKind::Ratio])),
        is_unique: true,
        rules: RulesAbout::Stay,
        neutral: &[],
    },
];
