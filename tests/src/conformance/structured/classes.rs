//! Where our answers are better than the reference's: one class for each rule.

/// A kind of case that we answer otherwise, on purpose.
#[derive(Clone, Copy, Debug)]
pub struct BetterClass {
    /// The stable name.
    pub name: &'static str,
    /// What is better, in one line.
    pub about: &'static str,
}

pub(super) const ONE_RESCUE_EACH: &str = "one-rescue-each";
pub(super) const EXACT_TRIM: &str = "exact-trim";
pub(super) const SECTIONS_KEPT: &str = "sections-kept";
pub(super) const NO_HOPELESS_CALL: &str = "no-hopeless-call";
pub(super) const BETTER_READING: &str = "better-reading";
pub(super) const NOTHING_FORGED: &str = "nothing-forged";
pub(super) const PAIRS_AND_HEADS: &str = "pairs-and-heads-kept";
pub(super) const MUST_SHRINK: &str = "must-shrink";
pub(super) const TYPED_OUTCOME: &str = "typed-outcome";
pub(super) const NO_ERROR_TEXT: &str = "no-error-text";

/// Every class, in the order of the document that explains them.
pub const BETTER_CLASSES: &[BetterClass] = &[
    BetterClass { name: ONE_RESCUE_EACH, about: "a first answer over the budget is asked for again" },
    BetterClass { name: EXACT_TRIM, about: "trimming uses the budget, and a shell is no summary" },
    BetterClass {
        name: SECTIONS_KEPT,
        about: "trimmed answers keep their sections, unparsed ones stay as they are",
    },
    BetterClass { name: NO_HOPELESS_CALL, about: "a budget that no answer can meet costs no call" },
    BetterClass {
        name: BETTER_READING,
        about: "answers are read without losing or misplacing what they say",
    },
    BetterClass { name: NOTHING_FORGED, about: "no text becomes a heading, a frame or a message" },
    BetterClass { name: PAIRS_AND_HEADS, about: "exchanges, leading system messages and pins stay whole" },
    BetterClass { name: MUST_SHRINK, about: "a pass that does not shrink the history fails" },
    BetterClass { name: TYPED_OUTCOME, about: "errors are typed and hold nothing of what a provider said" },
    BetterClass { name: NO_ERROR_TEXT, about: "a refusal, an error text or a call is never a summary" },
];
