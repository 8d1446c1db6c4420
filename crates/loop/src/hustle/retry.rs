//! Whether a hustle runs a second time.
//!
//! A second run is a clean one: nothing of the first answer goes into it. Only two classes of failure earn
//! it, a passing failure of the way to the model and an answer that is malformed but safe.

use std::time::Duration;

use super::{Cause, CauseKind, HustleReason, HustleStage, OutputFault, ToolResponseFault};
use crate::InvalidSummaryReason;

/// Whether a hustle may run twice. The numbers are part of durable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RetryPolicy {
    /// Once and no more.
    None = 0,
    /// A second time after a failure that [`retry_class`] puts into a class, and never a third.
    ClassifiedOnce = 1,
}

impl RetryPolicy {
    /// Every policy.
    pub const ALL: [Self; 2] = [Self::None, Self::ClassifiedOnce];

    /// The number in records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The policy with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.number() == number)
    }

    /// The stable name, used by files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClassifiedOnce => "classified_once",
        }
    }
}

/// The class of a failure, as far as a second run is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// A second run would not help, or must not happen.
    None,
    /// The way to the model failed in passing: network, HTTP 408, 429 or 5xx.
    TransientInference,
    /// The answer was malformed but safe.
    RecoverableAnswer,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Where.
    pub stage: HustleStage,
    /// Why.
    pub reason: HustleReason,
    /// What went wrong, when more is known.
    pub cause: Option<Cause>,
}

/// Everything that decides about a second run.
#[derive(Clone, Copy, Debug)]
pub struct RetryQuestion<'a> {
    /// What the definition allows.
    pub policy: RetryPolicy,
    /// Which try failed; the first is 0.
    pub attempt: u32,
    /// Whether the run was canceled, ran out of time, or ended from outside in another way.
    pub ended: bool,
    /// Whether the controller is poisoned and admits no more work.
    pub poisoned: bool,
    /// How the try failed, if it did.
    pub failure: Option<&'a RunFailure>,
    /// What is left of the run's timeout.
    pub time_left: Duration,
}

/// Whether a hustle runs a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// It does not.
    Stop,
    /// It does.
    Again {
        /// Why.
        class: RetryClass,
        /// How long to wait first, as the provider asked; zero when it did not ask.
        after: Duration,
    },
}

/// The class of a failure.
///
/// A cancellation or deadline anywhere in it rules a second run out. A malformed answer counts only when the
/// whole failure is the output's and it was marked where the answer was judged; text of an answer is never
/// looked at.
#[must_use]
pub fn retry_class(cause: Option<&Cause>) -> RetryClass {
    let Some(cause) = cause.filter(|cause| !cause.has_ended()) else {
        return RetryClass::None;
    };
    // A refusal, and an identity that does not fit, are answers: asking again does not mend them, whatever else failed.
    let refused = cause.iter().any(|kind| kind == CauseKind::Output(Some(OutputFault::Refused)));
    if refused || cause.invalid_summary().is_some_and(|reason| retry_correction(reason).is_none()) {
        return RetryClass::None;
    }
    let network = cause.iter().any(|kind| kind == CauseKind::Network);
    if network || api_error(cause).is_some_and(|(status, _)| is_transient(status)) {
        return RetryClass::TransientInference;
    }
    let tool_fault = cause.iter().find_map(|kind| match kind {
        CauseKind::ToolResponse(fault) => Some(fault),
        _ => None,
    });
    let mut kinds = cause.iter();
    let marked =
        matches!((kinds.next(), kinds.next()), (Some(CauseKind::Output(_)), Some(CauseKind::Malformed)));
    if tool_fault == Some(ToolResponseFault::InvalidTerminal) || marked {
        RetryClass::RecoverableAnswer
    } else {
        RetryClass::None
    }
}

/// Whether to run a second time.
///
/// The class must fit the stage and the reason: a passing failure while the model was asked, a malformed
/// answer while the output was taken. A wait that the provider asks for is kept; when it leaves no time, there
/// is no second run.
#[must_use]
pub fn decide_retry(question: &RetryQuestion<'_>) -> RetryDecision {
    let RetryQuestion { policy, attempt, ended, poisoned, failure, time_left } = *question;
    let (RetryPolicy::ClassifiedOnce, 0, false, false, Some(failure)) =
        (policy, attempt, ended, poisoned, failure)
    else {
        return RetryDecision::Stop;
    };
    let class = retry_class(failure.cause.as_ref());
    let place = match class {
        RetryClass::None => return RetryDecision::Stop,
        RetryClass::TransientInference => (HustleStage::Inference, HustleReason::Inference),
        RetryClass::RecoverableAnswer => (HustleStage::Output, HustleReason::InvalidOutput),
    };
    let asked = failure.cause.as_ref().and_then(api_error).and_then(|(_, retry_after)| retry_after);
    let after = asked.unwrap_or(Duration::ZERO);
    if (failure.stage, failure.reason) == place && after < time_left {
        RetryDecision::Again { class, after }
    } else {
        RetryDecision::Stop
    }
}

/// What the model is told before a second run about a summary that was refused for this reason: a fixed
/// sentence, with nothing of its answer in it. `None` for reasons that a second run must not follow: a wrong
/// identity is no slip of form, and size and usage are not mended by asking again.
#[must_use]
pub fn retry_correction(reason: InvalidSummaryReason) -> Option<&'static str> {
    use InvalidSummaryReason as Why;
    match reason {
        Why::Wire => Some("Your previous answer was not the JSON object that was asked for."),
        Why::OutputShape => Some("Your previous answer held no readable summary."),
        Why::XmlSyntax => Some("Your previous answer was not well-formed XML; escape &, < and > in text."),
        Why::XmlRoot => Some("Your previous answer did not have <conversation_summary> as its only root."),
        Why::XmlStructure => Some(
            "Your previous answer did not have the five sections goal, constraints, decisions, state and \
             open_items, each once and in this order, and nothing else.",
        ),
        Why::XmlContent => Some("Your previous answer said nothing in goal or in state."),
        Why::Identity | Why::ByteLimit | Why::TokenUsage | Why::TokenLimit => None,
    }
}

/// The failure of an answer that was refused as a summary. When it was malformed but safe, it is marked so and
/// earns a second run.
#[must_use]
pub fn malformed_answer(reason: InvalidSummaryReason) -> Cause {
    let refused = Cause::new(CauseKind::InvalidSummary(reason));
    match retry_correction(reason) {
        Some(_) => refused.inside(CauseKind::Malformed).inside(CauseKind::Output(None)),
        None => refused.inside(CauseKind::Output(None)),
    }
}

/// The first answer with an error in it.
fn api_error(cause: &Cause) -> Option<(u16, Option<Duration>)> {
    cause.iter().find_map(|kind| match kind {
        CauseKind::Api { status, retry_after } => Some((status, retry_after)),
        _ => None,
    })
}

fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..=599)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transient(retry_after: Option<u64>) -> RunFailure {
        let retry_after = retry_after.map(Duration::from_secs);
        RunFailure {
            stage: HustleStage::Inference,
            reason: HustleReason::Inference,
            cause: Some(Cause::new(CauseKind::Api { status: 429, retry_after })),
        }
    }

    fn ask(failure: &RunFailure) -> RetryQuestion<'_> {
        RetryQuestion {
            policy: RetryPolicy::ClassifiedOnce,
            attempt: 0,
            ended: false,
            poisoned: false,
            failure: Some(failure),
            time_left: Duration::from_secs(10),
        }
    }

    #[test]
    fn a_wait_is_kept_while_there_is_time_for_it() {
        let again = |seconds| RetryDecision::Again {
            class: RetryClass::TransientInference,
            after: Duration::from_secs(seconds),
        };
        assert_eq!(decide_retry(&ask(&transient(None))), again(0));
        assert_eq!(decide_retry(&ask(&transient(Some(9)))), again(9));
        assert_eq!(decide_retry(&ask(&transient(Some(10)))), RetryDecision::Stop);
        assert_eq!(decide_retry(&RetryQuestion { attempt: 1, ..ask(&transient(None)) }), RetryDecision::Stop);
        assert_eq!(
            decide_retry(&RetryQuestion { ended: true, ..ask(&transient(None)) }),
            RetryDecision::Stop
        );
    }

    #[test]
    fn what_the_model_has_answered_is_not_asked_again_whatever_else_failed() {
        let network = || Cause::new(CauseKind::Network);
        for answer in [
            CauseKind::Output(Some(OutputFault::Refused)),
            CauseKind::InvalidSummary(InvalidSummaryReason::Identity),
        ] {
            for several in [[network(), Cause::new(answer)], [Cause::new(answer), network()]] {
                assert_eq!(retry_class(Some(&Cause::several(several))), RetryClass::None);
            }
        }
        assert_eq!(retry_class(Some(&network())), RetryClass::TransientInference);
    }

    #[test]
    fn a_malformed_summary_earns_a_second_run_and_keeps_its_reason() {
        for reason in InvalidSummaryReason::ALL {
            let cause = malformed_answer(reason);
            assert_eq!(cause.invalid_summary(), Some(reason));
            let failure = RunFailure {
                stage: HustleStage::Output,
                reason: HustleReason::InvalidOutput,
                cause: Some(cause),
            };
            let again = decide_retry(&ask(&failure)) != RetryDecision::Stop;
            assert_eq!(again, retry_correction(reason).is_some(), "{reason}");
        }
    }

    #[test]
    fn an_identity_mismatch_is_not_asked_about_again() {
        let cause = Cause::new(CauseKind::InvalidSummary(InvalidSummaryReason::Identity))
            .inside(CauseKind::Malformed)
            .inside(CauseKind::Output(None));
        assert_eq!(retry_class(Some(&cause)), RetryClass::None);
    }
}
