//! What a hustle's failure says about the summary it was to give.

use epitome_loop::{
    Cause, CauseKind, InvalidSummary, InvalidSummaryReason, OutputFault, RejectionReason, RunFailure,
    rejection_reason,
};

/// The refusal of a summary that a hustle's failure amounts to, or `None` when the failure is no verdict on a
/// summary and stays what it is.
///
/// A refusal in the failure is taken as it is. Otherwise the first output's fault decides, if it has one of
/// its own and not a further failure inside it: what is unreadable or empty has no shape, what is too large is
/// over the byte limit, what is not JSON is not the wire. A model's refusal is no summary at all, and so no
/// invalid one. The rule is the reference implementation's (vectors `translate_error`).
#[must_use]
pub fn translate_failure(cause: &Cause) -> Option<InvalidSummary> {
    let reason = cause.invalid_summary().or_else(|| {
        let output = cause.iter().find_map(|kind| match kind {
            CauseKind::Output(fault) => Some(fault),
            _ => None,
        });
        match output.flatten()? {
            OutputFault::InvalidShape | OutputFault::EmptyText => Some(InvalidSummaryReason::OutputShape),
            OutputFault::TooLarge => Some(InvalidSummaryReason::ByteLimit),
            OutputFault::InvalidJson => Some(InvalidSummaryReason::Wire),
            OutputFault::Refused => None,
        }
    });
    reason.map(InvalidSummary::from)
}

/// Why a compaction is refused whose hustle failed so: for an invalid summary where the failure amounts to one,
/// else by the order of [`rejection_reason`].
#[must_use]
pub fn compaction_rejection(failure: &RunFailure) -> RejectionReason {
    match failure.cause.as_ref().and_then(translate_failure) {
        Some(_) => RejectionReason::InvalidSummary,
        None => rejection_reason(failure.cause.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{HustleReason, HustleStage};

    fn reason(cause: &Cause) -> Option<InvalidSummaryReason> {
        translate_failure(cause).map(|refused| refused.reason)
    }

    #[test]
    fn a_refusal_goes_before_an_outputs_fault() {
        let shape = Cause::new(CauseKind::Output(Some(OutputFault::InvalidShape)));
        let identity = Cause::new(CauseKind::InvalidSummary(InvalidSummaryReason::Identity));
        assert_eq!(reason(&shape), Some(InvalidSummaryReason::OutputShape));
        let both = Cause::several([shape, identity]).inside(CauseKind::Run);
        assert_eq!(reason(&both), Some(InvalidSummaryReason::Identity));
    }

    #[test]
    fn the_first_output_decides_even_when_it_says_nothing() {
        let framed = Cause::new(CauseKind::Other).inside(CauseKind::Output(Some(OutputFault::InvalidJson)));
        let plain = Cause::new(CauseKind::Output(Some(OutputFault::InvalidJson)));
        assert_eq!(reason(&framed), None);
        assert_eq!(reason(&Cause::several([framed, plain])), None);
        assert_eq!(reason(&Cause::new(CauseKind::Output(Some(OutputFault::Refused)))), None);
    }

    #[test]
    fn a_failure_that_amounts_to_an_invalid_summary_rejects_as_one() {
        let rejected = |kind| {
            let cause = Some(Cause::new(kind));
            let (stage, reason) = (HustleStage::Inference, HustleReason::Inference);
            compaction_rejection(&RunFailure { stage, reason, cause })
        };
        let too_large = CauseKind::Output(Some(OutputFault::TooLarge));
        assert_eq!(rejected(too_large), RejectionReason::InvalidSummary);
        let refused = CauseKind::Output(Some(OutputFault::Refused));
        assert_eq!(rejected(refused), RejectionReason::ExecutionFailed);
        assert_eq!(rejected(CauseKind::Deadline), RejectionReason::Canceled);
        let unknown = RunFailure { stage: HustleStage::Queue, reason: HustleReason::Internal, cause: None };
        assert_eq!(compaction_rejection(&unknown), RejectionReason::Internal);
    }
}
