//! What a compaction came to, as a journal records it.

use epitome_loop::{
    AttemptId, ContextBasis, ContextMeasurement, ContextRevision, EventId, Message, RejectionReason,
    RequestFingerprint,
};

use crate::earlier_summary::leading_system;
use crate::journal::{Committed, MessageRange, StableName};
use crate::outcome::{Compaction, RefusalReason};

/// What a commit says beside the compaction itself.
#[derive(Clone, Debug)]
pub struct CommitTerms<'a> {
    /// The attempt that it ends.
    pub attempt: AttemptId,
    /// The id of the record: the new context goes through this event.
    pub event: EventId,
    /// The fingerprint of the new request, in the context that the commit makes: that of [`CommitTerms::post`].
    pub post_fingerprint: RequestFingerprint,
    /// The messages that were compacted, as they stood in [`crate::SessionContext::messages`].
    pub messages: &'a [Message],
    /// What the summary cost, in millionths of a US dollar, when the host knows.
    pub cost_micro_usd: Option<u64>,
}

impl CommitTerms<'_> {
    /// The context that a commit makes: one revision further, through its own event.
    #[must_use]
    pub fn post(basis: ContextBasis, event: EventId) -> ContextBasis {
        ContextBasis {
            revision: ContextRevision(basis.revision.0.saturating_add(1)),
            through_event_id: event,
        }
    }
}

/// The record of a compaction that is put in place.
///
/// `number_of` gives the number in the session of the message at an index of the compacted messages; `None` for one
/// that was never appended, such as the summary of the commit before, which no commit keeps.
#[must_use]
pub fn committed_record(
    compaction: &Compaction,
    terms: CommitTerms<'_>,
    number_of: impl Fn(usize) -> Option<u64>,
) -> Committed {
    let CommitTerms { attempt, event, post_fingerprint, messages, cost_micro_usd } = terms;
    let basis = compaction.before.basis;
    let post = CommitTerms::post(basis, event);
    let appended = compaction.kept.iter().filter_map(|&at| Some((messages.get(at)?, number_of(at)?)));
    let (kept, numbers): (Vec<Message>, Vec<u64>) =
        appended.map(|(message, number)| (message.clone(), number)).unzip();
    Committed {
        attempt,
        basis,
        post,
        summary: compaction.summary.raw().clone(),
        retained: MessageRange::of_numbers(numbers).into(),
        // The summary stands right behind the system messages that lead what is kept.
        leading: leading_system(&kept) as u64,
        before: compaction.before.clone(),
        after: ContextMeasurement {
            basis: post,
            request_fingerprint: post_fingerprint,
            ..compaction.after.clone()
        },
        summary_tokens: compaction.summary_tokens,
        landing: compaction.landing,
        usage: compaction.usage,
        cost_micro_usd,
        repairs: compaction.repairs.as_slice().into(),
        degraded: compaction.degraded.clone(),
    }
}

/// A refusal as a record has it: its reason, and the finer cause where one reason covers several.
#[must_use]
pub fn rejection_of(reason: &RefusalReason) -> (RejectionReason, Option<StableName>) {
    (reason.rejection(), reason.detail().and_then(|detail| StableName::new(detail).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{
        CountError, InvalidSummary, InvalidSummaryReason, SummarizerError, TokenCount, TooLargeDetail,
    };

    #[test]
    fn a_refusal_keeps_its_name_and_its_detail() {
        let large = |pinned| match pinned {
            true => RefusalReason::PinnedTooLarge {
                pinned_tokens: TokenCount(1),
                over: TokenCount(1),
                max_summary_tokens: TokenCount(1),
                input_limit: TokenCount(1),
            },
            false => RefusalReason::RetainedTailOverBytes { tail_bytes: 1, max_request_bytes: 1 },
        };
        for reason in [
            RefusalReason::ContextCountFailed(crate::CountFailure::Counter(CountError::ToolsNotExact)),
            RefusalReason::Unavailable(epitome_loopruntime::Unavailable::NothingToCompact),
            RefusalReason::PinInvalid { message: 1 },
            large(true),
            large(false),
            RefusalReason::ExecutionFailed(SummarizerError::Unavailable),
            RefusalReason::InvalidSummary(InvalidSummary::from(InvalidSummaryReason::XmlRoot)),
            RefusalReason::SummaryTooLarge(epitome_loop::SummaryTooLarge {
                measurement: measurement(),
                detail: TooLargeDetail::NotSmaller,
            }),
        ] {
            let (rejection, detail) = rejection_of(&reason);
            assert_eq!(rejection.as_str(), reason.as_str());
            assert_eq!(detail.as_ref().map(StableName::as_str), reason.detail());
        }
    }

    fn measurement() -> epitome_loop::ContextMeasurement {
        epitome_loop::ContextMeasurement {
            basis: ContextBasis::default(),
            model: epitome_loop::ModelKey::new("p", "m"),
            request_fingerprint: epitome_loop::RequestFingerprint::from_bytes([1; 32]),
            input_tokens: TokenCount(1),
            input_limit: TokenCount(2),
            quality: epitome_loop::CountQuality::ExactLocal,
        }
    }
}
