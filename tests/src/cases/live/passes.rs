//! Passes: what a host asks for that may compact, and what comes of it.

use epitome_loop::RejectionReason;
use epitome_loopruntime::Landing;
use epitome_sessionruntime::{
    AdmitError, CompactError, CompactionReport, RejectionReport, RequestFrame, Session,
};

/// What came of a pass.
pub(super) struct Passed {
    /// In the words of the case files.
    pub(super) outcome: &'static str,
    /// Why, for people.
    pub(super) reason: String,
    /// What the whole request took before, where that is known.
    pub(super) tokens: Option<u64>,
    /// The compaction, when there was one.
    pub(super) report: Option<CompactionReport>,
}

/// Asks for leave to send a request.
pub(super) async fn admit(session: Session, frame: RequestFrame) -> Passed {
    match session.admit(frame).await {
        Ok(admitted) => {
            let tokens = admitted.measurement.map(|measured| measured.input_tokens.get());
            match (admitted.compacted, admitted.refused) {
                (Some(report), _) => Passed::compacted(report),
                (None, Some(refused)) => Passed { tokens, ..Passed::refused(&refused) },
                (None, None) => Passed::left_alone(tokens),
            }
        }
        Err(AdmitError::ContextLimit { measurement, refused, detail, exhausted, .. }) => {
            let tokens = Some(measurement.input_tokens.get());
            let refused = match refused {
                Some(reason) => {
                    Passed::refused_for(reason, detail.as_ref().map_or("", |detail| detail.as_str()))
                }
                None => {
                    Passed { reason: format!("at the limit, exhausted: {exhausted}"), ..Passed::nothing() }
                }
            };
            // Where nothing fits, leaving the session alone is no answer.
            let outcome = if refused.outcome == "no_compact" { "error" } else { refused.outcome };
            Passed { outcome, tokens, ..refused }
        }
        Err(AdmitError::Empty) => Passed::left_alone(None),
        Err(error) => Passed { reason: error.to_string(), ..Passed::nothing() },
    }
}

/// Asks for a compaction, whatever the size.
pub(super) async fn compact(session: Session) -> Passed {
    match session.compact(None).await {
        Ok(report) => Passed::compacted(report),
        Err(CompactError::Rejected(refused)) => Passed::refused(&refused),
        Err(error) => Passed { reason: error.to_string(), ..Passed::nothing() },
    }
}

impl Passed {
    fn nothing() -> Self {
        Self { outcome: "error", reason: String::new(), tokens: None, report: None }
    }

    fn left_alone(tokens: Option<u64>) -> Self {
        let reason = tokens.map_or_else(String::new, |tokens| format!("at {tokens} tokens"));
        Self { outcome: "no_compact", reason, tokens, report: None }
    }

    fn compacted(report: CompactionReport) -> Self {
        let (before, after) = (report.before.input_tokens, report.after.input_tokens);
        Self {
            outcome: "compact",
            reason: format!("{before} to {after} tokens"),
            tokens: Some(before.get()),
            report: Some(report),
        }
    }

    fn refused(refused: &RejectionReport) -> Self {
        let detail = refused.detail.as_ref().map(ToString::to_string).unwrap_or_default();
        Self::refused_for(refused.reason, &detail)
    }

    fn refused_for(reason: RejectionReason, detail: &str) -> Self {
        let outcome = match (reason, detail) {
            // With nothing to summarize the session is left alone.
            (RejectionReason::Unavailable, "nothing_to_compact") => "no_compact",
            (RejectionReason::InvalidSummary | RejectionReason::SummaryTooLarge, _) => "reject_summary",
            _ => "error",
        };
        Self { outcome, reason: format!("{reason} {detail}"), ..Self::nothing() }
    }

    /// Whether it failed, so that nothing may have changed.
    pub(super) fn failed(&self) -> bool {
        self.outcome != "compact"
    }

    /// Whether it landed where a further one would begin at once.
    pub(super) fn landed_high(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.landing == Landing::High)
    }
}
