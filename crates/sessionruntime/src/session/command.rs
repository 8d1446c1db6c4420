//! Asking for a compaction.

use epitome_loop::{AttemptId, RejectionReason, SharedText};
use epitome_loopruntime::decision::{Boundary, Reply, Waiter};
use epitome_loopruntime::driver::DriverClosed;
use tracing::Instrument as _;

use super::error::CompactError;
use super::handle::Session;
use super::report::{AttemptReport, CompactionReport, RejectionReport};

impl Session {
    /// Compacts now, however full the context is, and waits for the outcome. `instructions` tell the summarizer what to
    /// pay attention to.
    ///
    /// It begins at once when no request is under way, else when the answer to that request is appended, the next
    /// request is asked for, or the [time](super::SessionLimits::boundary_timeout) for that is over. Up to 64 commands wait for one attempt together; their instructions go in together if they
    /// came before it began.
    ///
    /// # Errors
    /// [`CompactError`]; the context is what it was.
    pub async fn compact(&self, instructions: Option<SharedText>) -> Result<CompactionReport, CompactError> {
        let span = tracing::debug_span!(target: "epitome::session", "compact", session = %self.id());
        self.compact_within(instructions).instrument(span).await
    }

    async fn compact_within(
        &self,
        instructions: Option<SharedText>,
    ) -> Result<CompactionReport, CompactError> {
        let place = self.agent_loop.place().await.map_err(|DriverClosed| self.shared.end())?;
        let waiter = Waiter { created_at: self.shared.now(), command: self.shared.command() };
        let is_request_under_way = {
            let mut live = self.shared.live();
            let text = instructions.filter(|text| !text.trim().is_empty());
            live.instructions.extend(text.map(|text| (waiter.command, text)));
            live.is_request_under_way
        };
        let attempt = self.shared.attempt();
        let place = if is_request_under_way { place } else { place.at_boundary() };
        let mut answer = place.compact(waiter, attempt);
        let answered = match tokio::time::timeout(self.limits.boundary_timeout, &mut answer).await {
            Ok(answered) => answered,
            Err(_) => {
                // Nobody said what became of the request. If the attempt runs already, this changes nothing.
                self.boundary(Boundary::Step).await?;
                answer.await
            }
        };
        match answered.map_err(|DriverClosed| self.shared.end())? {
            Reply::Committed(attempt) => match self.report_of(attempt) {
                Some(AttemptReport::Committed(report)) => Ok(*report),
                _ => Err(CompactError::NotAdmitted(RejectionReason::Internal)),
            },
            Reply::Rejected(attempt, reason) => Err(CompactError::Rejected(self.rejection(attempt, reason))),
            Reply::NotAdmitted(reason) => Err(CompactError::NotAdmitted(reason)),
            Reply::Halted => Err(CompactError::Session(self.shared.halted())),
            // These are answers to requests alone.
            Reply::Send | Reply::ContextLimit { .. } => {
                Err(CompactError::NotAdmitted(RejectionReason::Internal))
            }
        }
    }

    /// What is known of an attempt, as long as there is no newer one.
    pub(super) fn report_of(&self, attempt: AttemptId) -> Option<AttemptReport> {
        let live = self.shared.live();
        live.newest_attempt.as_ref().filter(|report| report.attempt() == attempt).cloned()
    }

    pub(super) fn rejection(&self, attempt: AttemptId, reason: RejectionReason) -> RejectionReport {
        match self.report_of(attempt) {
            Some(AttemptReport::Rejected(report)) => report,
            _ => RejectionReport { attempt, reason, detail: None, usage: None },
        }
    }
}
