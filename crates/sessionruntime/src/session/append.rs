//! Adding to the conversation.

use std::sync::Arc;

use epitome_loop::{ContextBasis, Message, TranscriptError, core_json_len, validate_depth};
use epitome_loopruntime::decision::{Change, ChangeKind};
use epitome_loopruntime::driver::DriverClosed;
use tracing::Instrument as _;

use super::error::SessionError;
use super::handle::Session;

/// At most so many bytes of messages can be appended at once, in their core form: one record holds them.
pub const MAX_APPEND_BYTES: u64 = 256 << 20;

/// Messages are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The context in force, as it was found right after: with these messages, and perhaps with later ones.
    pub basis: ContextBasis,
}

impl Session {
    /// Adds messages to the conversation. They are durable when this returns. While a compaction is under way they wait
    /// for its end, in the order in which they came.
    ///
    /// The host appends the answer of the model, and the results of tools, before it asks for the next request; a
    /// compaction that was asked for begins then.
    ///
    /// # Errors
    /// [`SessionError`]; but for [`SessionError::Halted`] and [`SessionError::Ended`], it is certain that nothing was appended.
    pub async fn append(&self, messages: impl Into<Arc<[Message]>>) -> Result<Appended, SessionError> {
        let messages = messages.into();
        check(&messages)?;
        let count = messages.len();
        let span = tracing::debug_span!(target: "epitome::session", "append", session = %self.id(), count);
        async {
            let place = self.agent_loop.place().await.map_err(|DriverClosed| self.shared.end())?;
            let event = self.shared.event();
            {
                let mut live = self.shared.live();
                live.appends.insert(event, messages);
                live.is_request_under_way = false;
            }
            // Nothing is awaited between keeping the messages and sending their event. A step is over when its outcome
            // is appended, so what waits for a boundary begins.
            let sent = place.at_boundary().change(Change { event, kind: ChangeKind::Append });
            sent.await.map_err(|DriverClosed| self.shared.end())?.map_err(|why| self.shared.refused(why))?;
            Ok(Appended { basis: self.basis() })
        }
        .instrument(span)
        .await
    }
}

fn check(messages: &[Message]) -> Result<(), SessionError> {
    if messages.is_empty() {
        return Err(SessionError::Messages(TranscriptError::Empty));
    }
    validate_depth(messages).map_err(SessionError::Messages)?;
    let bytes = messages.iter().map(core_json_len).fold(0, u64::saturating_add);
    if bytes > MAX_APPEND_BYTES {
        return Err(SessionError::TooLarge { bytes, limit: MAX_APPEND_BYTES });
    }
    Ok(())
}
