//! What reports of the provider taught about counts, in words and for machines.

use epitome_sessionruntime::SessionCalibration;
use serde::Serialize;

use crate::report::tokens;

/// By what a session is counted.
#[derive(Serialize)]
pub(super) struct CalibrationLine {
    /// How many tokens ten thousand counted ones are taken for.
    factor_basis_points: u16,
    /// What goes out beside what is counted, as it was stated and as it was found.
    beside_tokens: u64,
    /// What the provider reported last, and what the counter says of the same.
    reported_tokens: u64,
    counted_tokens: u64,
}

impl From<&SessionCalibration> for CalibrationLine {
    fn from(calibration: &SessionCalibration) -> Self {
        let SessionCalibration { model: _, factor, beside, counted, unseen: _, reported } = calibration;
        Self {
            factor_basis_points: factor.get(),
            beside_tokens: beside.get(),
            reported_tokens: reported.get(),
            counted_tokens: counted.get(),
        }
    }
}

impl CalibrationLine {
    pub(super) fn words(&self) -> String {
        let Self { factor_basis_points, beside_tokens, reported_tokens, counted_tokens } = *self;
        format!(
            "by the provider's {}, counted as {}: {} beside the messages, and {:.2} for each counted token",
            tokens(reported_tokens),
            tokens(counted_tokens),
            tokens(beside_tokens),
            f64::from(factor_basis_points) / 1e4
        )
    }
}
