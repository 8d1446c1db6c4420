//! A compaction policy in a file: thresholds as shares, budgets as tokens or as shares of the model's window.
//!
//! A file may serve many models, so its numbers may depend on the window. [`PolicyFile::resolve`] works them out
//! for one. `docs/policy.md` explains each key.

use std::time::Duration;

use epitome_loop::{
    BasisPoints, CompactionPolicy, CompactionPolicyError, ContextLimits, CountQuality, CounterPolicy,
    KeepRecent, PolicyField, SharedText, TokenCount,
};
use thiserror::Error;

use crate::document::Document;
use crate::policy_wire::{self, PolicyWire};
use crate::{FileError, FileFormat, FilePlace, FileProblem, Share};

/// A policy as its file says it. Reading one checks what does not depend on a model.
///
/// The fields are those of [`CompactionPolicy`], where a number of tokens may also be a share of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// Whether occupancy alone may start a compaction.
    pub automatic: bool,
    /// Which counts may do so; unknown where the policy is not automatic and does not say.
    pub counter_policy: CounterPolicy,
    /// Occupancy at which to compact; 0 where the policy is not automatic and does not say.
    pub compact_at: BasisPoints,
    /// Occupancy below which a further compaction may start.
    pub rearm_below: RearmLevel,
    /// Room kept for the model's answer.
    pub reserved_output: Amount,
    /// Room kept for the error of the count.
    pub safety_margin: Amount,
    /// What takes the place of the margin when the counter is exact; `None`: the margin itself.
    pub safety_margin_if_exact: Option<Amount>,
    /// The summary's budget.
    pub max_summary_tokens: Amount,
    /// How long a count may take.
    pub count_timeout: Duration,
    /// Which hustle summarizes.
    pub hustle: SharedText,
    /// How much recent conversation stays verbatim; `None`: nothing.
    pub keep_recent: Option<KeepRecentAmount>,
    /// Largest encoded request in bytes, where the provider has such a limit.
    pub max_request_bytes: Option<u64>,
    /// Which other hustle summarizes when the first one gave no valid summary; `None`: the compaction is refused.
    pub fallback: Option<SharedText>,
    /// Whether the user's rules that a model's summary lacks are put into it; a file that does not say means yes.
    pub carry_constraints: bool,
}

/// A number of tokens, or how to work one out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// So many.
    Tokens(TokenCount),
    /// A share of the window, rounded down and held between two bounds.
    OfWindow {
        /// Which share.
        share: Share,
        /// At least so many.
        at_least: Option<TokenCount>,
        /// At most so many.
        at_most: Option<TokenCount>,
    },
}

/// The level below which a further compaction may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RearmLevel {
    /// This occupancy.
    At(BasisPoints),
    /// This share of the level at which to compact, rounded down to a basis point.
    ShareOfCompactAt(Share),
}

/// How much recent conversation stays verbatim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeepRecentAmount {
    /// At most so many segments; `None`: as many as there is room for.
    pub segments: Option<u64>,
    /// At most so many tokens.
    pub tokens: Amount,
}

/// The policy depends on the window, and neither window nor input limit is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the policy has shares of the window, and the window is not known")]
pub struct WindowUnknown;

/// Reads a policy file, in TOML or JSON. Any bytes may be given.
///
/// # Errors
/// [`FileError`] with the first fault and its place.
pub fn read_policy_file(bytes: &[u8]) -> Result<PolicyFile, FileError> {
    PolicyFile::read(bytes, FileFormat::detect(bytes))
}

impl PolicyFile {
    /// Reads a policy file in this format.
    ///
    /// # Errors
    /// [`FileError`] with the first fault and its place: the text, then keys and values, then what contradicts a
    /// rule of [`CompactionPolicy::validate`] whatever the model and the counter.
    pub fn read(bytes: &[u8], format: FileFormat) -> Result<Self, FileError> {
        let document = Document::parse(bytes, format)?;
        let wire: PolicyWire = document.decode()?;
        policy_wire::policy_of(wire, &document, &FilePlace::default())
    }

    /// The policy as a file in JSON.
    ///
    /// [`read_policy_file`] reads it back to an equal value if it is a policy that a file can hold: one that some
    /// model and counter would make valid, with `compact_at` and `rearm_below` not above 10,000 basis points, with
    /// no `at_least` above its `at_most`, and, where it is automatic, with everything that this needs. Any other
    /// is refused when it is read.
    #[must_use]
    pub fn to_json(&self) -> String {
        policy_wire::json_of(self)
    }

    /// The policy for a model with these limits and a counter of this quality. Its rules are not checked again:
    /// see [`CompactionPolicy::validate`].
    ///
    /// # Errors
    /// [`WindowUnknown`] when a share is to be taken of a window that is not known. A known input limit takes the
    /// place of an unknown window.
    pub fn resolve(
        &self,
        limits: &ContextLimits,
        quality: CountQuality,
    ) -> Result<CompactionPolicy, WindowUnknown> {
        let Self {
            automatic,
            counter_policy,
            compact_at,
            rearm_below,
            reserved_output,
            safety_margin,
            safety_margin_if_exact,
            max_summary_tokens,
            count_timeout,
            hustle,
            keep_recent,
            max_request_bytes,
            fallback,
            carry_constraints,
        } = self;
        let window = if limits.window == TokenCount::ZERO { limits.max_input } else { limits.window };
        let margin = match (quality, safety_margin_if_exact) {
            (CountQuality::ExactProvider | CountQuality::ExactLocal, Some(margin)) => margin,
            _ => safety_margin,
        };
        Ok(CompactionPolicy {
            automatic: *automatic,
            counter_policy: *counter_policy,
            compact_at: *compact_at,
            rearm_below: rearm_below.under(*compact_at),
            reserved_output: reserved_output.in_window(window)?,
            safety_margin: margin.in_window(window)?,
            max_summary_tokens: max_summary_tokens.in_window(window)?,
            count_timeout: *count_timeout,
            hustle: hustle.clone(),
            keep_recent: keep_recent.map(|keep| keep.in_window(window)).transpose()?,
            max_request_bytes: *max_request_bytes,
            fallback: fallback.clone(),
            carry_constraints: *carry_constraints,
        })
    }
}

impl Amount {
    fn in_window(self, window: TokenCount) -> Result<TokenCount, WindowUnknown> {
        match self {
            Self::Tokens(tokens) => Ok(tokens),
            Self::OfWindow { .. } if window == TokenCount::ZERO => Err(WindowUnknown),
            Self::OfWindow { share, at_least, at_most } => {
                let part = TokenCount(share.of(window.get())).max(at_least.unwrap_or_default());
                Ok(at_most.map_or(part, |most| part.min(most)))
            }
        }
    }
}

impl RearmLevel {
    fn under(self, compact_at: BasisPoints) -> BasisPoints {
        match self {
            Self::At(level) => level,
            // A share of 16 bits has no more than 16 bits.
            Self::ShareOfCompactAt(share) => {
                BasisPoints(u16::try_from(share.of(u64::from(compact_at.get()))).unwrap_or(u16::MAX))
            }
        }
    }
}

impl KeepRecentAmount {
    fn in_window(self, window: TokenCount) -> Result<KeepRecent, WindowUnknown> {
        Ok(KeepRecent { segments: self.segments.unwrap_or(u64::MAX), tokens: self.tokens.in_window(window)? })
    }
}

/// A rule of the policy that the file breaks, at the key that breaks it.
pub(crate) fn broken_rule(
    error: CompactionPolicyError,
    document: &Document<'_>,
    place: &FilePlace,
) -> FileError {
    let keys: &[&'static str] = match error.field {
        PolicyField::KeepRecentSegments => &["keep_recent", "segments"],
        PolicyField::KeepRecentTokens => &["keep_recent", "tokens"],
        PolicyField::ReservedOutput => &["reserved_output"],
        PolicyField::MaxSummaryTokens => &["max_summary_tokens"],
        PolicyField::CountTimeout => &["count_timeout"],
        PolicyField::Hustle => &["hustle"],
        PolicyField::Fallback => &["fallback"],
        PolicyField::SafetyMargin => &["safety_margin"],
        PolicyField::MaxRequestBytes => &["max_request_bytes"],
        PolicyField::RearmBelow => &["rearm_below"],
        PolicyField::CompactAt => &["compact_at"],
        PolicyField::CounterPolicy => &["counter_policy"],
        _ => &[],
    };
    let inner = FilePlace::of(keys);
    let whole = FilePlace([place.0.as_slice(), inner.0.as_slice()].concat());
    document.fault(whole, FileProblem::Policy(error))
}
