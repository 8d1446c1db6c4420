//! What went wrong in a hustle, as closed words without any content.

use std::time::Duration;

use crate::InvalidSummaryReason;

/// One failure in a [`Cause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CauseKind {
    /// Canceled from outside.
    Canceled,
    /// Out of time.
    Deadline,
    /// A failure of which no more is known, or a frame around another one.
    Other,
    /// Several failures at once; they follow in order.
    Several,
    /// A hustle's run failed.
    Run,
    /// The way to the model failed: no connection, a cut answer.
    Network,
    /// The model's provider answered with an error.
    Api {
        /// The HTTP status.
        status: u16,
        /// How long the provider asks to wait before another try.
        retry_after: Option<Duration>,
    },
    /// The model called tools in a way that gives no output.
    ToolResponse(ToolResponseFault),
    /// The answer is no output; `None` when the failure inside says why.
    Output(Option<OutputFault>),
    /// Directly inside [`CauseKind::Output`]: the answer was safe but malformed, so one clean second run may
    /// help. Made by [`crate::malformed_answer`].
    Malformed,
    /// A summary was refused.
    InvalidSummary(InvalidSummaryReason),
    /// The room for a request is not known.
    LimitUnknown,
    /// A request could not be counted.
    Count,
    /// The complete new request still does not fit. The core that counts it says so itself; in a hustle's
    /// failure it means nothing more than that the run failed.
    SummaryTooLarge,
    /// The input was not valid.
    InvalidInput,
}

/// In which way a model's tool calls give no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolResponseFault {
    /// Not of a readable form.
    InvalidShape,
    /// The answer ended for a reason that does not go with tool calls.
    FinishReason,
    /// A tool that was not offered.
    UnknownTool,
    /// Arguments that are not JSON.
    MalformedArguments,
    /// A call without id.
    MissingCallId,
    /// Two calls with one id.
    DuplicateCallId,
    /// The output and other calls in one answer.
    MixedResponse,
    /// The output more than once.
    DuplicateTerminal,
    /// The output does not obey its schema.
    InvalidTerminal,
    /// Over the byte limit.
    TooLarge,
    /// The model refused.
    Refused,
}

impl ToolResponseFault {
    /// Every fault.
    pub const ALL: [Self; 11] = [
        Self::InvalidShape,
        Self::FinishReason,
        Self::UnknownTool,
        Self::MalformedArguments,
        Self::MissingCallId,
        Self::DuplicateCallId,
        Self::MixedResponse,
        Self::DuplicateTerminal,
        Self::InvalidTerminal,
        Self::TooLarge,
        Self::Refused,
    ];

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidShape => "invalid_shape",
            Self::FinishReason => "finish_reason",
            Self::UnknownTool => "unknown_tool",
            Self::MalformedArguments => "malformed_arguments",
            Self::MissingCallId => "missing_call_id",
            Self::DuplicateCallId => "duplicate_call_id",
            Self::MixedResponse => "mixed_response",
            Self::DuplicateTerminal => "duplicate_terminal",
            Self::InvalidTerminal => "invalid_terminal",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
        }
    }
}

/// In which way a model's answer is no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutputFault {
    /// Not of a readable form.
    InvalidShape,
    /// No text.
    EmptyText,
    /// Over the byte limit.
    TooLarge,
    /// Not JSON where JSON is asked for.
    InvalidJson,
    /// The model refused.
    Refused,
}

impl OutputFault {
    /// Every fault.
    pub const ALL: [Self; 5] =
        [Self::InvalidShape, Self::EmptyText, Self::TooLarge, Self::InvalidJson, Self::Refused];

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidShape => "invalid_shape",
            Self::EmptyText => "empty_text",
            Self::TooLarge => "too_large",
            Self::InvalidJson => "invalid_json",
            Self::Refused => "refused",
        }
    }
}

/// A failure with everything inside it, outermost first.
///
/// Failures stand in one list, in the order in which a search goes through them: a failure, then what is
/// inside it, and of several the first with everything inside it before the second. Nothing here recurses,
/// however deep failures nest.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cause {
    /// Innermost first, so that a frame around everything is one push.
    kinds: Vec<CauseKind>,
}

impl Cause {
    /// A failure with nothing inside it.
    #[must_use]
    pub fn new(kind: CauseKind) -> Self {
        Self { kinds: vec![kind] }
    }

    /// Several failures at once, searched in this order.
    #[must_use]
    pub fn several(causes: impl IntoIterator<Item = Self, IntoIter: DoubleEndedIterator>) -> Self {
        let mut kinds: Vec<CauseKind> = causes.into_iter().rev().flat_map(|cause| cause.kinds).collect();
        kinds.push(CauseKind::Several);
        Self { kinds }
    }

    /// This failure inside another one.
    ///
    /// An output's fault gives way to the failure inside it, which says more.
    #[must_use]
    pub fn inside(mut self, kind: CauseKind) -> Self {
        self.kinds.push(match kind {
            CauseKind::Output(_) => CauseKind::Output(None),
            other => other,
        });
        self
    }

    /// The failures, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = CauseKind> {
        self.kinds.iter().rev().copied()
    }

    /// Whether a cancellation or a deadline is in it anywhere.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.iter().any(|kind| matches!(kind, CauseKind::Canceled | CauseKind::Deadline))
    }

    /// The first refusal of a summary in it.
    #[must_use]
    pub fn invalid_summary(&self) -> Option<InvalidSummaryReason> {
        self.iter().find_map(|kind| match kind {
            CauseKind::InvalidSummary(reason) => Some(reason),
            _ => None,
        })
    }
}

impl From<CauseKind> for Cause {
    fn from(kind: CauseKind) -> Self {
        Self::new(kind)
    }
}

impl std::fmt::Debug for Cause {
    /// The failures, outermost first.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_goes_outside_in_and_first_to_last() {
        let first = Cause::new(CauseKind::Canceled).inside(CauseKind::Network);
        let second = Cause::new(CauseKind::Count);
        let both = Cause::several([first, second]).inside(CauseKind::Run);
        let seen: Vec<_> = both.iter().collect();
        use CauseKind::{Canceled, Count, Network, Run, Several};
        assert_eq!(seen, [Run, Several, Network, Canceled, Count]);
        assert_eq!(format!("{both:?}"), "[Run, Several, Network, Canceled, Count]");
        assert!(both.has_ended());
        assert_eq!(both.invalid_summary(), None);
    }

    #[test]
    fn a_failure_inside_an_output_replaces_its_fault() {
        let cause = Cause::new(CauseKind::Other).inside(CauseKind::Output(Some(OutputFault::InvalidJson)));
        assert_eq!(cause.iter().next(), Some(CauseKind::Output(None)));
    }

    #[test]
    fn depth_costs_nothing_but_memory() {
        let deep =
            (0..200_000).fold(Cause::new(CauseKind::Deadline), |cause, _| cause.inside(CauseKind::Other));
        assert!(deep.clone().has_ended());
        assert_eq!(deep.iter().count(), 200_001);
    }
}
