//! What subscribers of a session are told.

use std::sync::Arc;

use epitome_loop::{BasisPoints, PressureLevel};
use epitome_loopruntime::decision::Decision;
use tokio::sync::broadcast;

use super::calibrating::SessionCalibration;
use super::subscription::LEAST_KEPT;
use crate::journal::{JournalRecord, Sequence};
use crate::{HustleFaultChange, HustleRecord};

/// Something happened in a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// A record is durable. A subscriber sees all of them, in order.
    Recorded {
        /// Its place in the journal.
        sequence: Sequence,
        /// The record.
        record: Arc<JournalRecord>,
    },
    /// The pressure is another one.
    LevelChanged {
        /// The level before.
        previous: PressureLevel,
        /// The level now.
        current: PressureLevel,
        /// How full the context is.
        occupancy: BasisPoints,
    },
    /// How a request was decided about.
    Decided(Decision),
    /// A provider's report was held against our count, and requests are counted by it from now on.
    Calibrated(SessionCalibration),
    /// What the hustle that summarizes is at.
    Hustle(HustleRecord),
    /// A worker went on behind the end of its run, so that no summary can be made, or has come back.
    HustleFault(HustleFaultChange),
}

/// An event on its way.
#[derive(Clone, Debug)]
pub(super) struct Published {
    /// The last durable record at that moment, the event's own one included.
    pub(super) last: Sequence,
    pub(super) event: SessionEvent,
}

/// Tells events to whoever listens. It costs nothing before somebody does.
#[derive(Debug, Default)]
pub(super) struct Feed {
    sender: Option<broadcast::Sender<Published>>,
    is_closed: bool,
}

impl Feed {
    pub(super) fn tell(&mut self, last: Sequence, event: impl FnOnce() -> SessionEvent) {
        // When the last one who listened has gone, what is kept for slow ones goes too.
        self.sender.take_if(|sender| sender.receiver_count() == 0);
        if let Some(sender) = &self.sender {
            // Whoever listened may be going just now.
            let _nobody = sender.send(Published { last, event: event() });
        }
    }

    /// Somebody listens from now on. How much is kept for slow ones is settled by the first.
    pub(super) fn listen(&mut self, kept: usize) -> broadcast::Receiver<Published> {
        if self.is_closed {
            // Without a sender there is nothing to wait for.
            return broadcast::channel(LEAST_KEPT).1;
        }
        let sender = self.sender.get_or_insert_with(|| broadcast::Sender::new(kept.max(LEAST_KEPT)));
        sender.subscribe()
    }

    /// Nothing is told any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.sender = None;
    }
}
