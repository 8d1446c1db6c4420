//! Leave to send a request.

use std::sync::Arc;

use epitome_loop::{
    BasisPoints, ContextMeasurement, Message, PressureLevel, RejectionReason, ValidPolicy, validate_depth,
};
use epitome_loopruntime::decision::{Reply, Waiter};
use epitome_loopruntime::driver::DriverClosed;
use epitome_loopruntime::landing_level;
use tracing::Instrument as _;

use super::calibrating;
use super::error::{AdmitError, OverBytes, SessionError};
use super::frame::{Framed, RequestFrame};
use super::handle::Session;
use super::live::Snapshot;
use super::report::{AttemptReport, CompactionReport, RejectionReport};
use crate::journal::StableName;
use crate::measuring::Measuring;
use crate::room;

/// So often is a request measured again because the conversation changed meanwhile.
const MOST_ROUNDS: u32 = 64;

/// A request may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The messages to send: the system prompt of the frame, the conversation, and the frame's tail.
    pub messages: Arc<[Message]>,
    /// What the request takes; `None` when the loop's context is left to itself.
    pub measurement: Option<ContextMeasurement>,
    /// How pressing it is.
    pub level: PressureLevel,
    /// The newest compaction that took effect before this leave was given.
    pub compacted: Option<CompactionReport>,
    /// The newest attempt that was refused before this leave was given. The request goes out unchanged by it.
    pub refused: Option<RejectionReport>,
}

impl Session {
    /// Asks for leave to send a request: measures it complete, compacts first if the policy says so, and gives the
    /// messages to send.
    ///
    /// The context does not change between the measurement and the answer; whatever is appended later belongs to the
    /// next request.
    ///
    /// # Errors
    /// [`AdmitError`]; the conversation is what it was, but for a compaction that took effect.
    pub async fn admit(&self, frame: RequestFrame) -> Result<Admitted, AdmitError> {
        let span = tracing::debug_span!(target: "epitome::session", "admit", session = %self.id());
        self.admit_within(frame).instrument(span).await
    }

    async fn admit_within(&self, frame: RequestFrame) -> Result<Admitted, AdmitError> {
        let (mut compacted, mut refused) = (None, None);
        let framed = self.framed(frame)?;
        for _ in 0..MOST_ROUNDS {
            let Some(context) = self.shared.live().request(&framed) else {
                return Err(AdmitError::Empty);
            };
            let measuring = context.binding.measuring(&context.framed, context.basis);
            let Some(mut measuring) = measuring.map_err(AdmitError::Fingerprint)? else {
                // Nobody asks the loop; but that there is one can be seen.
                drop(self.agent_loop.place().await.map_err(|DriverClosed| self.shared.end())?);
                let messages = context.messages;
                return Ok(self.leave(Admitted {
                    messages,
                    measurement: None,
                    level: PressureLevel::Unknown,
                    compacted,
                    refused,
                }));
            };
            measuring.scale = calibrating::scale(&self.shared, &context.binding).await;
            let counted = measuring.measure_whole(Arc::clone(&context.messages)).await;
            let measurement = counted.map_err(AdmitError::Count)?;
            let over_bytes = over_bytes(&measuring, &context);
            let reply = self.ask(measurement.clone(), &context, &measuring).await?;
            if !Arc::ptr_eq(&context.binding, &self.shared.live().binding) {
                // It was measured for a loop that is another one by now.
                continue;
            }
            match reply {
                Reply::Committed(attempt) => {
                    if let Some(AttemptReport::Committed(report)) = self.report_of(attempt) {
                        compacted = Some(*report);
                    }
                }
                Reply::Rejected(attempt, reason) => refused = Some(self.rejection(attempt, reason)),
                Reply::NotAdmitted(RejectionReason::StaleBasis) => {}
                Reply::NotAdmitted(RejectionReason::ShuttingDown) => {
                    return Err(SessionError::Ended.into());
                }
                Reply::NotAdmitted(reason) => return Err(AdmitError::NotAdmitted(reason)),
                Reply::Halted => return Err(self.shared.halted().into()),
                // A context that is only watched goes out however full it is.
                Reply::ContextLimit { exhausted, retry_after, refused }
                    if context.binding.policy().is_some() =>
                {
                    if self.gives_up_reports(&mut measuring, &context).await {
                        continue;
                    }
                    let measurement = Box::new(measurement);
                    let detail = self.detail_of(refused);
                    return Err(AdmitError::ContextLimit {
                        measurement,
                        over_bytes,
                        exhausted,
                        retry_after,
                        refused,
                        detail,
                    });
                }
                Reply::Send | Reply::ContextLimit { .. } => {
                    let level = {
                        let mut live = self.shared.live();
                        let is_same = live.basis == context.basis;
                        let next = is_same.then_some(live.state.messages());
                        live.calibrating.sent(&context.framed, next);
                        live.state.tracker().level()
                    };
                    return Ok(self.leave(Admitted {
                        messages: context.messages,
                        measurement: Some(measurement),
                        level,
                        compacted,
                        refused,
                    }));
                }
            }
        }
        Err(AdmitError::Unsettled { rounds: MOST_ROUNDS })
    }

    /// Whether it is the provider's reports alone by which the request does not fit: by the count without them it would be
    /// less full than a compaction has to make it. A report may be a sum, or of something else, and without leave to send
    /// no better one would ever come; so they are given up, and the next answer teaches anew.
    async fn gives_up_reports(&self, measuring: &mut Measuring, context: &Snapshot) -> bool {
        if measuring.scale.take().is_none() {
            return false;
        }
        let Ok(bare) = measuring.measure_whole(Arc::clone(&context.messages)).await else { return false };
        let gives_up = bare.occupancy() < landing_level(context.binding.trigger());
        if gives_up {
            self.shared.live().calibrating.give_up(&context.binding);
            tracing::warn!(
                target: "epitome::session",
                counted = bare.input_tokens.get(),
                input_limit = bare.input_limit.get(),
                "reports given up: by them nothing would fit"
            );
        }
        gives_up
    }

    /// The frame of this request. It goes with the request alone; commands without one take the newest.
    fn framed(&self, frame: RequestFrame) -> Result<Arc<Framed>, AdmitError> {
        let known = Arc::clone(&self.shared.live().framed);
        let framed = if known.frame == frame {
            known
        } else {
            validate_depth(frame.runtime_tail.as_slice()).map_err(AdmitError::RuntimeTail)?;
            Arc::new(Framed::new(frame).map_err(AdmitError::Fingerprint)?)
        };
        self.shared.live().framed = Arc::clone(&framed);
        Ok(framed)
    }

    async fn ask(
        &self,
        measurement: ContextMeasurement,
        context: &Snapshot,
        measuring: &Measuring,
    ) -> Result<Reply, SessionError> {
        let place = self.agent_loop.place().await.map_err(|DriverClosed| self.shared.end())?;
        let waiter = Waiter { created_at: self.shared.now(), command: self.shared.command() };
        {
            let mut live = self.shared.live();
            // What this request is summarized for, should it open an attempt.
            live.frames.insert(waiter.command, Arc::clone(&context.framed));
            live.calibrating.measured(measuring);
        }
        let byte_occupancy = byte_occupancy(measuring, context);
        let asked = place.admit(waiter, self.shared.attempt(), measurement, byte_occupancy);
        asked.await.map_err(|DriverClosed| self.shared.end())
    }

    /// The finer cause of the newest refusal, if it is one for this reason.
    fn detail_of(&self, refused: Option<RejectionReason>) -> Option<StableName> {
        match &self.shared.live().newest_attempt {
            Some(AttemptReport::Rejected(report)) if Some(report.reason) == refused => report.detail.clone(),
            _ => None,
        }
    }

    fn leave(&self, admitted: Admitted) -> Admitted {
        let mut live = self.shared.live();
        live.is_request_under_way = true;
        live.rest();
        drop(live);
        admitted
    }
}

fn over_bytes(measuring: &Measuring, context: &Snapshot) -> Option<OverBytes> {
    let limit = context.binding.policy().and_then(ValidPolicy::max_request_bytes)?;
    let bytes = context.bytes.saturating_add(measuring.request_bytes(&[]));
    (bytes > limit).then_some(OverBytes { bytes, limit })
}

fn byte_occupancy(measuring: &Measuring, context: &Snapshot) -> BasisPoints {
    let limit = context.binding.policy().and_then(ValidPolicy::max_request_bytes);
    room::byte_occupancy(context.bytes.saturating_add(measuring.request_bytes(&[])), limit)
}
