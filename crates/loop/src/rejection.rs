//! Why a compaction was refused, as a closed list with stable numbers.

use crate::{Cause, CauseKind};

/// Why a compaction was refused. The numbers are part of durable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RejectionReason {
    /// Too many requests wait already.
    ControlLaneFull = 1,
    /// The session is shutting down.
    ShuttingDown = 2,
    /// The user interrupted.
    Interrupted = 3,
    /// Canceled, or out of time.
    Canceled = 4,
    /// The context has moved on.
    StaleBasis = 5,
    /// The record of its progress could not be published.
    ProgressPublication = 6,
    /// There is nothing to compact, or nothing to compact with.
    Unavailable = 7,
    /// The hustle failed.
    ExecutionFailed = 8,
    /// The summary was refused.
    InvalidSummary = 9,
    /// A request could not be counted.
    ContextCountFailed = 10,
    /// The complete new request still does not fit.
    SummaryTooLarge = 11,
    /// A fault of our own.
    Internal = 12,
    /// The room for a request is not known.
    ContextLimitUnknown = 13,
    /// What must stay verbatim does not fit by itself.
    RetainedTailTooLarge = 14,
}

impl RejectionReason {
    /// Every reason, in the order of its numbers.
    pub const ALL: [Self; 14] = [
        Self::ControlLaneFull,
        Self::ShuttingDown,
        Self::Interrupted,
        Self::Canceled,
        Self::StaleBasis,
        Self::ProgressPublication,
        Self::Unavailable,
        Self::ExecutionFailed,
        Self::InvalidSummary,
        Self::ContextCountFailed,
        Self::SummaryTooLarge,
        Self::Internal,
        Self::ContextLimitUnknown,
        Self::RetainedTailTooLarge,
    ];

    /// The number in records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ControlLaneFull => "control_lane_full",
            Self::ShuttingDown => "shutting_down",
            Self::Interrupted => "interrupted",
            Self::Canceled => "canceled",
            Self::StaleBasis => "stale_basis",
            Self::ProgressPublication => "progress_publication",
            Self::Unavailable => "unavailable",
            Self::ExecutionFailed => "execution_failed",
            Self::InvalidSummary => "invalid_summary",
            Self::ContextCountFailed => "context_count_failed",
            Self::SummaryTooLarge => "summary_too_large",
            Self::Internal => "internal",
            Self::ContextLimitUnknown => "context_limit_unknown",
            Self::RetainedTailTooLarge => "retained_tail_too_large",
        }
    }
}

impl std::fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a compaction is refused whose hustle failed so.
///
/// A refused summary goes before everything else, then an unknown limit, then a failed count, and only then a
/// cancellation: what was found out before the run ended says more than that it ended. Anything else is a
/// failed execution, and a refusal without a failure is a fault of our own. The order is the reference
/// implementation's.
#[must_use]
pub fn rejection_reason(cause: Option<&Cause>) -> RejectionReason {
    let Some(cause) = cause else { return RejectionReason::Internal };
    let holds = |wanted| cause.iter().any(|kind| kind == wanted);
    if cause.invalid_summary().is_some() {
        RejectionReason::InvalidSummary
    } else if holds(CauseKind::LimitUnknown) {
        RejectionReason::ContextLimitUnknown
    } else if holds(CauseKind::Count) {
        RejectionReason::ContextCountFailed
    } else if cause.has_ended() {
        RejectionReason::Canceled
    } else {
        RejectionReason::ExecutionFailed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InvalidSummaryReason;

    #[test]
    fn numbers_count_up_without_gaps() {
        let numbers = RejectionReason::ALL.map(RejectionReason::number);
        assert_eq!(numbers.to_vec(), (1..=14).collect::<Vec<_>>());
        assert!(
            RejectionReason::ALL
                .iter()
                .all(|&reason| { RejectionReason::from_number(reason.number()) == Some(reason) })
        );
        assert_eq!(RejectionReason::from_number(0), None);
    }

    #[test]
    fn what_says_more_goes_first() {
        let all = [
            CauseKind::Canceled,
            CauseKind::Count,
            CauseKind::LimitUnknown,
            CauseKind::InvalidSummary(InvalidSummaryReason::Identity),
        ];
        let expected = [
            RejectionReason::Canceled,
            RejectionReason::ContextCountFailed,
            RejectionReason::ContextLimitUnknown,
            RejectionReason::InvalidSummary,
        ];
        for known in 1..=all.len() {
            let cause = Cause::several(all.iter().take(known).map(|&kind| Cause::new(kind)));
            assert_eq!(rejection_reason(Some(&cause)), expected[known - 1]);
        }
    }
}
