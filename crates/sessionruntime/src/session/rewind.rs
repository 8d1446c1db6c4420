//! Taking compactions back, and putting them in force again.

use epitome_loopruntime::decision::{Change, ChangeKind, Rewind};
use epitome_loopruntime::driver::DriverClosed;

use super::error::SessionError;
use super::handle::Session;

impl Session {
    /// Takes the newest compaction back: the context is what it was before it, with everything that was appended since.
    /// Says how many compactions are in force then.
    ///
    /// The policy will not start one by itself again before the context has become smaller or has grown by a step.
    ///
    /// # Errors
    /// [`SessionError::NoSuchCompaction`] when none is in force; [`SessionError`].
    pub async fn undo(&self) -> Result<u64, SessionError> {
        self.rewind(Rewind::Back(1)).await
    }

    /// Puts the compaction that was taken back last in force again. A new compaction ends what can be put in force again.
    ///
    /// # Errors
    /// [`SessionError::NoSuchCompaction`] when none was taken back; [`SessionError`].
    pub async fn redo(&self) -> Result<u64, SessionError> {
        self.rewind(Rewind::Forward(1)).await
    }

    /// Goes to the context with so many compactions in force: 0 is the whole conversation.
    ///
    /// # Errors
    /// [`SessionError::NoSuchCompaction`] when there are not so many, or just so many already; [`SessionError`].
    pub async fn rewind_to(&self, in_force: u64) -> Result<u64, SessionError> {
        self.rewind(Rewind::To(in_force)).await
    }

    async fn rewind(&self, rewind: Rewind) -> Result<u64, SessionError> {
        let place = self.agent_loop.place().await.map_err(|DriverClosed| self.shared.end())?;
        let event = self.shared.event();
        let sent = place.at_boundary().change(Change { event, kind: ChangeKind::Rewind(rewind) });
        sent.await.map_err(|DriverClosed| self.shared.end())?.map_err(|why| self.shared.refused(why))?;
        Ok(self.shared.live().state.in_force())
    }
}
