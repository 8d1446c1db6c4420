//! Keeps the newest measurement and the level it stands for.

use epitome_loop::{
    BasisPoints, ContextBasis, ContextMeasurement, ContextRevision, EventId, InvalidMeasurement,
    PressureLevel, Trigger,
};
use thiserror::Error;

use crate::pressure_level;

/// How full the context was when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct PressureTracker {
    basis: ContextBasis,
    measurement: Option<ContextMeasurement>,
    level: PressureLevel,
}

/// What a measurement changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureChange {
    /// How full the context is.
    pub occupancy: BasisPoints,
    /// The level before.
    pub previous: PressureLevel,
    /// The level now.
    pub current: PressureLevel,
    /// Whether the measurement is another one than before.
    pub is_new_measurement: bool,
}

/// There is no basis after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NextBasisError {
    /// The event is absent.
    #[error("the next basis has no event")]
    NoEvent,
    /// The revisions are used up.
    #[error("there is no revision after {}", u64::MAX)]
    RevisionOverflow,
}

impl PressureTracker {
    /// A tracker as it stood: the basis, and the newest measurement with the level that it stands for by itself.
    ///
    /// # Errors
    /// [`InvalidMeasurement`] when the measurement does not say what it is of.
    pub fn restore(
        basis: ContextBasis,
        measurement: Option<ContextMeasurement>,
        trigger: Trigger,
    ) -> Result<Self, InvalidMeasurement> {
        let bare = Self::default().at(basis);
        match measurement {
            None => Ok(bare),
            Some(measurement) => bare.apply(measurement, trigger).map(|(tracker, _)| tracker),
        }
    }

    /// Takes in the measurement of a request.
    ///
    /// # Errors
    /// [`InvalidMeasurement`] when it does not say what it is of; the tracker is what it was.
    pub fn apply(
        self,
        measurement: ContextMeasurement,
        trigger: Trigger,
    ) -> Result<(Self, PressureChange), InvalidMeasurement> {
        measurement.validate()?;
        let occupancy = measurement.occupancy();
        let current = pressure_level(self.level, occupancy, trigger);
        let is_new_measurement = self.measurement.as_ref() != Some(&measurement);
        let change = PressureChange { occupancy, previous: self.level, current, is_new_measurement };
        Ok((Self { measurement: Some(measurement), level: current, ..self }, change))
    }

    /// The basis that a further event makes.
    ///
    /// # Errors
    /// [`NextBasisError`] when there is none.
    pub fn next_basis(&self, event: EventId) -> Result<ContextBasis, NextBasisError> {
        if event.is_zero() {
            return Err(NextBasisError::NoEvent);
        }
        let revision = self.basis.revision.0.checked_add(1).ok_or(NextBasisError::RevisionOverflow)?;
        Ok(ContextBasis { revision: ContextRevision(revision), through_event_id: event })
    }

    /// The tracker with another basis. The newest measurement stays until there is one of the new context.
    #[must_use]
    pub fn at(self, basis: ContextBasis) -> Self {
        Self { basis, ..self }
    }

    /// The tracker under another policy: the newest measurement stands for the level that it has by itself.
    #[must_use]
    pub fn under(self, trigger: Trigger) -> Self {
        let level = self.measurement.as_ref().map_or(self.level, |measurement| {
            pressure_level(PressureLevel::Unknown, measurement.occupancy(), trigger)
        });
        Self { level, ..self }
    }

    /// The context that is live.
    #[must_use]
    pub fn basis(&self) -> ContextBasis {
        self.basis
    }

    /// The newest measurement.
    #[must_use]
    pub fn measurement(&self) -> Option<&ContextMeasurement> {
        self.measurement.as_ref()
    }

    /// The level that it stands for.
    #[must_use]
    pub fn level(&self) -> PressureLevel {
        self.level
    }
}
