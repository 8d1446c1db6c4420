//! What a request takes, and what it may take.

use epitome_loop::{BasisPoints, ResolvedLimits, TokenCount, ValidPolicy, occupancy};
use epitome_loopruntime::retained_tail_fits;

/// What a request takes.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) tokens: u64,
    /// 0 where the policy does not ask for bytes.
    pub(crate) bytes: u64,
}

/// What a request with a summary may take, up to a level.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) tokens: u64,
    pub(crate) bytes: Option<u64>,
    pub(crate) summary_tokens: u64,
}

impl Room {
    pub(crate) fn up_to(level: BasisPoints, limits: &ResolvedLimits, policy: &ValidPolicy) -> Self {
        Self {
            tokens: share_of(limits.input_limit.get(), level),
            bytes: policy.max_request_bytes().map(|limit| share_of(limit, level)),
            summary_tokens: policy.max_summary_tokens().get(),
        }
    }

    /// Whether a request and a summary of the largest size stay below.
    pub(crate) fn holds(&self, kept: Size) -> bool {
        // A token is four bytes or so. The summarizer is told how many bytes are left, so a quarter is enough.
        let summary = self.summary_tokens.saturating_mul(4);
        let has_room = |limit: u64| kept.bytes.saturating_add(summary.min(limit / 4)) <= limit;
        self.holds_tokens(kept) && self.bytes.is_none_or(has_room)
    }

    pub(crate) fn holds_tokens(&self, kept: Size) -> bool {
        retained_tail_fits(kept.tokens, self.summary_tokens, self.tokens)
    }
}

/// The share of a limit that a level stands for, rounded down.
fn share_of(limit: u64, level: BasisPoints) -> u64 {
    let share = u128::from(limit) * u128::from(level.get()) / u128::from(BasisPoints::FULL_SCALE.get());
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// How full a request is by its bytes: full scale exactly when it has more than the limit, 0 without one.
pub(crate) fn byte_occupancy(bytes: u64, limit: Option<u64>) -> BasisPoints {
    match limit {
        None => BasisPoints(0),
        Some(limit) if bytes > limit => BasisPoints::FULL_SCALE,
        Some(limit) => {
            let share = occupancy(TokenCount(bytes), TokenCount(limit)).unwrap_or(BasisPoints::FULL_SCALE);
            share.min(BasisPoints(BasisPoints::FULL_SCALE.get() - 1))
        }
    }
}
