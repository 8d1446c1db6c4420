//! Whether a measurement may be believed at all.

use std::fmt;

use thiserror::Error;

use crate::{ContextMeasurement, TokenCount};

/// A field of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeasurementField {
    /// The revision of its basis.
    Revision,
    /// The event of its basis.
    ThroughEventId,
    /// Its model.
    Model,
    /// Its fingerprint.
    RequestFingerprint,
    /// Its limit.
    InputLimit,
}

impl fmt::Display for MeasurementField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Revision => "revision",
            Self::ThroughEventId => "through_event_id",
            Self::Model => "model",
            Self::RequestFingerprint => "request_fingerprint",
            Self::InputLimit => "input_limit",
        })
    }
}

/// A measurement lacks what says which request it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("measurement: {field} is absent")]
pub struct InvalidMeasurement {
    /// The first absent field.
    pub field: MeasurementField,
}

impl ContextMeasurement {
    /// Checks that the measurement says what it is of.
    ///
    /// # Errors
    /// [`InvalidMeasurement`] with the first absent field, in the order of [`MeasurementField`].
    pub fn validate(&self) -> Result<(), InvalidMeasurement> {
        let absent = [
            (self.basis.revision.0 == 0, MeasurementField::Revision),
            (self.basis.through_event_id.is_zero(), MeasurementField::ThroughEventId),
            (self.model.validate().is_err(), MeasurementField::Model),
            (self.request_fingerprint.is_zero(), MeasurementField::RequestFingerprint),
            (self.input_limit == TokenCount::ZERO, MeasurementField::InputLimit),
        ];
        match absent.into_iter().find(|(is_absent, _)| *is_absent) {
            Some((_, field)) => Err(InvalidMeasurement { field }),
            None => Ok(()),
        }
    }
}
