//! Words: which ones carry content, their stems, and the keys they are compared by.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// A word or value, folded to lower case, as a number. Two different words share a key with a probability of
/// about 2^-64 a pair, and the only harm is a wrong rank.
pub(crate) type Key = u64;

/// A map whose keys are [`Key`]s already. Never iterate over it: its order means nothing.
pub(crate) type KeyMap<T> = HashMap<Key, T, BuildHasherDefault<AsIs>>;

/// A set of [`Key`]s. Never iterate over it: its order means nothing.
pub(crate) type KeySet = HashSet<Key, BuildHasherDefault<AsIs>>;

/// Passes a [`Key`] through: it is mixed well enough.
#[derive(Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = key(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// The key of a word or value given in lower case.
pub(crate) fn key(lower: &[u8]) -> Key {
    // Eight bytes at a time through a wide multiplication whose halves are folded together.
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    const FACTOR: u64 = 0xd1b5_4a32_d192_ed03;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let mut state = SEED ^ (lower.len() as u64);
    let mut chunks = lower.chunks_exact(8);
    for chunk in &mut chunks {
        state = fold(state, chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    }
    state = fold(state, chunks.remainder().iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    fold(state, FACTOR)
}

/// Whether a byte belongs to an ASCII word. Bytes of other scripts do not: no cue holds any.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What a word is known for, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Known(u16);

impl Known {
    /// Carries no content.
    pub(crate) const STOP: Self = Self(1);
    /// A month's name or short form.
    pub(crate) const MONTH: Self = Self(1 << 1);
    /// A weekday's name.
    pub(crate) const WEEKDAY: Self = Self(1 << 2);
    /// A style of writing.
    pub(crate) const STYLE: Self = Self(1 << 3);
    /// A number word.
    pub(crate) const NUMBER: Self = Self(1 << 4);
    /// A currency's name.
    pub(crate) const CURRENCY: Self = Self(1 << 5);
    /// `utc` or `gmt`.
    pub(crate) const CLOCK: Self = Self(1 << 6);
    /// The region of a time zone, before `time`.
    pub(crate) const ZONE: Self = Self(1 << 7);
    /// A verb that tells somebody to do something when it comes first.
    pub(crate) const IMPERATIVE: Self = Self(1 << 8);
    /// An imperative that states a convention rather than one task.
    pub(crate) const CONVENTION: Self = Self(1 << 9);
    /// Opens a sentence and says nothing.
    pub(crate) const OPENER: Self = Self(1 << 10);
    /// A programming language (spelling with capitals is checked where it matters).
    pub(crate) const LANGUAGE: Self = Self(1 << 11);
    /// Follows a person's name in a statement about that person.
    pub(crate) const AFTER_NAME: Self = Self(1 << 12);

    /// Whether any bit of `other` is set.
    pub(crate) fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Both sets together.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What the word with this key is known for.
pub(crate) fn known(word: Key) -> Known {
    KNOWN.get(&word).copied().unwrap_or_default()
}

/// Whether a word in lower case may be known for one of `classes`, by its first letter and its length. Most words are
/// told from the known ones by that, without being hashed.
pub(crate) struct FirstLook([u32; 26]);

impl FirstLook {
    /// For these classes.
    pub(crate) fn new(classes: Known) -> Self {
        let mut lengths = [0_u32; 26];
        for (class, words) in CLASSES {
            let words = if class.any(classes) { words } else { &"" };
            for word in words.split_whitespace() {
                if let Some(seen) = letter_of(word.as_bytes()).and_then(|at| lengths.get_mut(at)) {
                    *seen |= bit_of(word.len());
                }
            }
        }
        Self(lengths)
    }

    /// Whether the word may be one of them; true for words that do not begin with `a-z`.
    pub(crate) fn may_be_known(&self, lower: &[u8]) -> bool {
        let lengths = letter_of(lower).and_then(|at| self.0.get(at));
        lengths.is_none_or(|lengths| lengths & bit_of(lower.len()) != 0)
    }
}

fn letter_of(lower: &[u8]) -> Option<usize> {
    lower.first().filter(|first| first.is_ascii_lowercase()).map(|first| usize::from(first - b'a'))
}

fn bit_of(length: usize) -> u32 {
    1 << length.min(31)
}

/// Whether a stem is too general to tell two statements apart.
pub(crate) fn is_light(stem: Key) -> bool {
    LIGHT_STEMS.contains(&stem)
}

/// Whether a stem belongs to how tasks are counted and answers taken note of. Statements that share it have
/// nothing in common by that, though it may tell them apart: the second server is not the third.
pub(crate) fn is_scaffold(stem: Key) -> bool {
    SCAFFOLD_STEMS.contains(&stem)
}

/// Whether a stem is a verb or an adverb that says nothing about what a rule is about.
pub(crate) fn is_general(stem: Key) -> bool {
    GENERAL_STEMS.contains(&stem)
}

/// The word without its inflection.
pub(crate) fn stem(lower: &[u8]) -> &[u8] {
    const SUFFIXES: [&[u8]; 13] = [
        b"ations", b"ation", b"ings", b"ing", b"als", b"al", b"ers", b"ies", b"ied", b"ed", b"es", b"s", b"e",
    ];
    // Most words end in none of these letters.
    if !lower.last().is_some_and(|last| b"sngled".contains(last)) {
        return lower;
    }
    SUFFIXES
        .iter()
        .find_map(|&suffix| lower.strip_suffix(suffix).filter(|stem| stem.len() >= 4))
        .unwrap_or(lower)
}

/// The key of a word's stem.
pub(crate) fn stem_key(lower: &[u8]) -> Key {
    key(stem(lower))
}

static KNOWN: LazyLock<KeyMap<Known>> = LazyLock::new(|| {
    let mut known = KeyMap::<Known>::default();
    for (class, words) in CLASSES {
        for word in words.split_whitespace() {
            let entry = known.entry(key(word.as_bytes())).or_default();
            entry.0 |= class.0;
        }
    }
    known
});

static LIGHT_STEMS: LazyLock<KeySet> = LazyLock::new(|| with_stems(LIGHT));
static SCAFFOLD_STEMS: LazyLock<KeySet> = LazyLock::new(|| with_stems(SCAFFOLD));
static GENERAL_STEMS: LazyLock<KeySet> = LazyLock::new(|| with_stems(GENERAL));

fn with_stems(words: &str) -> KeySet {
    words.split_whitespace().flat_map(|word| [key(word.as_bytes()), stem_key(word.as_bytes())]).collect()
}

const CLASSES: &[(Known, &str)] = &[
    (
        Known::STOP,
        "a an the of to in on for and or but is are was were be been being am it its this that these those \
         we us our ours you your yours i me my mine he she they them their his her with without as at by from so if \
         then than into onto about over under up down out off again there here what which who whom when \
         where why how all any both each few more most other some such no nor not only own same too very \
         can will just should now do does did doing have has had having would could may might must shall \
         please also still yet ever let lets get got go going one two first thing things really let's don't \
         i'm i'll i'd i've we're we'll we've it's that's you're isn't doesn't didn't can't won't don doesn isn",
    ),
    (
        Known::MONTH,
        "january february march april may june july august september october november december jan feb mar \
         apr jun jul aug sep sept oct nov dec",
    ),
    (Known::WEEKDAY, "monday tuesday wednesday thursday friday saturday sunday"),
    (Known::STYLE, "terse concise playful warm formal casual verbose brief light friendly dry"),
    (
        Known::NUMBER,
        "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty \
         seventy eighty ninety hundred thousand million",
    ),
    (Known::CURRENCY, "dollars usd eur euros pounds gbp"),
    (Known::CLOCK, "utc gmt"),
    (Known::ZONE, "pacific eastern central mountain"),
    (
        Known::IMPERATIVE,
        "use keep write reply respond answer end start begin stop add make put include report send ask show \
         give run call return format restate cite pick wait draft open read check verify follow treat assume \
         limit remember ignore leave focus fix implement create build find update remove delete rename \
         refactor test deploy plan book cancel change review explain summarize list prefer exclude skip \
         apply log document store set name move migrate revert print output translate convert compare \
         recommend address investigate debug ensure confirm notify escalate redact pin lock port configure integrate optimize \
         improve clean upgrade install rewrite extend handle prepare analyze generate download evaluate \
         resolve reproduce diagnose adjust split extract replace simplify enable disable connect organize \
         tell help look compute calculate solve rework continue finish complete submit publish sort filter \
         validate transform undo restore get take",
    ),
    (
        Known::CONVENTION,
        "use prefer keep avoid write format return include report treat limit cite quote answer reply \
         respond end start begin restate stick wrap name follow always never log",
    ),
    (Known::OPENER, "please also and then ok okay so but now first finally just kindly"),
    (Known::LANGUAGE, "python rust go typescript javascript kotlin swift java ruby scala haskell elixir c"),
    (Known::AFTER_NAME, "is now owns will has handles leads"),
];

/// General verbs and nouns that many statements share. An entry stands for its stem as well.
const LIGHT: &str = "run runs running host hosted live lives use used using call called calling refer belong belongs want \
     wants ask asks keep keeps stay stays report reported reports need needs require requires let pass work \
     working is be put show make stick send write answer plan set fix fixed total current user users please \
     nobody owner rotation week new old latest base based still explicit approval exceed exceeding never \
     always must everyone refers prefer preferred prefers like rather style date moved move changed change \
     update quick internal internally effort";

/// Words of openings. An entry stands for its stem as well.
const SCAFFOLD: &str = "next step steps task tasks part parts phase stage item items point todo number then second \
     third fourth fifth sixth last finally thank thanks ok great good perfect fine nice okay done looks ready";

/// What rules of every topic say. An entry stands for its stem as well.
const GENERAL: &str = "run runs use used call calling ask keep keeps stay stays make put set need needs want wants like \
     require requires let pass work stick add include take give apply follow prefer preferred prefers always never \
     must ensure only rather instead sure whenever every new old from henceforth please exactly avoid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_drop_inflection_but_keep_four_letters() {
        for (word, expected) in [
            ("deployments", "deployment"),
            ("migrations", "migr"),
            ("running", "runn"),
            ("used", "used"),
            ("rust", "rust"),
        ] {
            assert_eq!(stem(word.as_bytes()), expected.as_bytes(), "{word}");
        }
    }

    #[test]
    fn keys_differ() {
        let mut keys = KeySet::default();
        for number in 0..20_000_u32 {
            assert!(keys.insert(key(format!("word{number}").as_bytes())));
            assert!(keys.insert(key(format!("{number}").as_bytes())));
        }
        assert_ne!(key(b""), key(b"\0"));
        assert_ne!(key(b"ab"), key(b"ba"));
    }

    #[test]
    fn a_first_look_passes_over_no_known_word() {
        let look = FirstLook::new(Known::MONTH.with(Known::CLOCK));
        for (class, words) in CLASSES {
            for word in words.split_whitespace() {
                let is_looked_for = class.any(Known::MONTH.with(Known::CLOCK));
                assert!(!is_looked_for || look.may_be_known(word.as_bytes()), "{word}");
            }
        }
        assert!(!look.may_be_known(b"queue") && look.may_be_known("ä".as_bytes()));
    }

    #[test]
    fn words_are_known_for_what_they_are() {
        assert!(known(key(b"the")).any(Known::STOP));
        assert!(known(key(b"may")).any(Known::MONTH));
        assert!(!known(key(b"postgres")).any(Known::STOP));
        assert!(is_light(stem_key(b"working")));
    }
}
