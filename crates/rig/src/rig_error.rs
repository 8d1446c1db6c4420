//! Why there is no rig.

use epitome_loop::{
    CompactionPolicyError, ContextLimitUnknown, HustleDefinitionError, HustleLimitsError,
    LoopDefinitionError, SharedText,
};
use thiserror::Error;

/// There is no rig: a definition is not valid, or definitions do not fit each other.
///
/// The name is for programs that want to point at it. It is not printed: what is printed counts definitions
/// in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part}: {kind}")]
pub struct RigError {
    /// What is wrong.
    pub kind: RigErrorKind,
    /// Which definition is at fault.
    pub part: RigPart,
    /// The name of the loop or hustle at fault; of the hustle that a loop asks for where that is at fault; empty
    /// for faults of the limits.
    pub name: SharedText,
}

/// A part of what a rig is built from. Loops and hustles are counted from 0 in the order in which they were
/// given, and from 1 in print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RigPart {
    /// The limits of the lanes.
    HustleLimits,
    /// A hustle.
    Hustle(usize),
    /// A loop.
    Loop(usize),
    /// All loops together.
    Loops,
}

impl std::fmt::Display for RigPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::HustleLimits => f.write_str("hustle limits"),
            Self::Hustle(at) => write!(f, "hustle {}", at.saturating_add(1)),
            Self::Loop(at) => write!(f, "loop {}", at.saturating_add(1)),
            Self::Loops => f.write_str("loops"),
        }
    }
}

/// What is wrong with the parts of a rig, in the order in which it is looked for. Loops are looked at one after the
/// other, so a fault of the first comes before any of the second; whether the hustles of their policies exist and
/// fit is looked at when all of them are valid by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RigErrorKind {
    /// The limits of the lanes were given more than once.
    #[error("the limits of the lanes are given more than once")]
    DuplicateHustleLimits,
    /// A limit of the lanes is out of range.
    #[error("{0}")]
    InvalidHustleLimits(HustleLimitsError),
    /// There are hustles, and no limits of their lanes.
    #[error("there are hustles, and the limits of their lanes are missing")]
    MissingHustleLimits,
    /// There are limits of lanes, and no hustle to run in them.
    #[error("there are limits of lanes, and no hustle to run in them")]
    UnusedHustleLimits,
    /// A hustle is not valid.
    #[error("{0}")]
    InvalidHustle(HustleDefinitionError),
    /// Two hustles have one name.
    #[error("an earlier hustle has this name")]
    DuplicateHustle,
    /// There is no loop.
    #[error("there is no loop")]
    NoLoop,
    /// A loop is not valid.
    #[error("{0}")]
    InvalidLoop(LoopDefinitionError),
    /// The limits of a loop's model are known, and what its policy keeps free leaves nothing of them for input.
    #[error("its policy leaves no room for input: {0}")]
    NoRoom(ContextLimitUnknown),
    /// Two loops have one name.
    #[error("an earlier loop has this name")]
    DuplicateLoop,
    /// A compaction policy names a hustle that is not registered.
    #[error("no hustle has the name that its compaction policy asks for")]
    MissingCompactionHustle,
    /// A compaction policy names a hustle that cannot compact for it. A policy that is not valid for its loop's
    /// counter is reported by this kind too, as the reference implementation does, and where other faults of the
    /// loop are: as [`InvalidLoop`](Self::InvalidLoop) is.
    #[error("the hustle of its compaction policy does not fit: {0}")]
    IncompatibleCompactionHustle(Incompatibility),
    /// A compaction policy names a fallback that is not registered.
    #[error("no hustle has the name that its compaction policy has for a fallback")]
    MissingFallbackHustle,
    /// A compaction policy names a fallback that cannot compact for it.
    #[error("the fallback of its compaction policy does not fit: {0}")]
    IncompatibleFallbackHustle(Incompatibility),
}

/// Why a hustle cannot compact for a loop. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Incompatibility {
    /// It runs beside the session, and a compaction is waited for.
    #[error("it runs in the background, and a compaction is waited for")]
    Background,
    /// Its output limit is below the smallest valid summary, or below the smallest answer around one where the
    /// answer carries the identity.
    #[error("its output limit is {limit} bytes, and the smallest summary takes {least}")]
    OutputLimit {
        /// What it allows.
        limit: u64,
        /// What is needed at least.
        least: u64,
    },
    /// Its input limit is below the smallest valid input.
    #[error("its input limit is {limit} bytes, and the smallest input takes {least}")]
    InputLimit {
        /// What it allows.
        limit: u64,
        /// What is needed at least.
        least: u64,
    },
    /// The policy that asks for it is not valid for the loop's counter.
    #[error("{0}")]
    Policy(CompactionPolicyError),
}

impl RigErrorKind {
    /// The stable name of the kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateHustleLimits => "duplicate_hustle_limits",
            Self::InvalidHustleLimits(_) => "invalid_hustle_limits",
            Self::MissingHustleLimits => "missing_hustle_limits",
            Self::UnusedHustleLimits => "unused_hustle_limits",
            Self::InvalidHustle(_) => "invalid_hustle",
            Self::DuplicateHustle => "duplicate_hustle",
            Self::NoLoop => "no_loop",
            Self::InvalidLoop(_) => "invalid_loop",
            Self::NoRoom(_) => "no_room",
            Self::DuplicateLoop => "duplicate_loop",
            Self::MissingCompactionHustle => "missing_compaction_hustle",
            Self::IncompatibleCompactionHustle(_) => "incompatible_compaction_hustle",
            Self::MissingFallbackHustle => "missing_fallback_hustle",
            Self::IncompatibleFallbackHustle(_) => "incompatible_fallback_hustle",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_counts_and_names_nothing() {
        let error = RigError {
            kind: RigErrorKind::IncompatibleCompactionHustle(Incompatibility::InputLimit {
                limit: 10,
                least: 250,
            }),
            part: RigPart::Loop(1),
            name: "canary".into(),
        };
        assert_eq!(
            error.to_string(),
            "loop 2: the hustle of its compaction policy does not fit: its input limit is 10 bytes, and the \
             smallest input takes 250"
        );
        assert!(!format!("{error:?}").contains("canary"));
    }
}
