//! Where in a run a hustle failed, and the closed list of reasons.

/// The part of a run in which a hustle failed. The numbers are part of durable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HustleStage {
    /// Waiting in its lane.
    Queue = 1,
    /// Finding the model to ask.
    ModelResolution = 2,
    /// Asking the model, or running the embedded worker.
    Inference = 3,
    /// Taking the output out of the answer.
    Output = 4,
    /// Writing the record of how the run ended.
    Terminal = 5,
    /// Handing the outcome over.
    Finalization = 6,
}

/// Why a hustle failed, without any content. The numbers are part of durable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HustleReason {
    /// Not admitted.
    Rejected = 1,
    /// Canceled from outside.
    Canceled = 2,
    /// Out of time.
    Timeout = 3,
    /// No model to ask.
    ModelResolution = 4,
    /// The model did not answer.
    Inference = 5,
    /// The answer is no output.
    InvalidOutput = 6,
    /// The record could not be written.
    Terminal = 7,
    /// The outcome could not be handed over.
    Finalization = 8,
    /// A fault of our own.
    Internal = 9,
}

impl HustleStage {
    /// Every stage, in the order of a run.
    pub const ALL: [Self; 6] = [
        Self::Queue,
        Self::ModelResolution,
        Self::Inference,
        Self::Output,
        Self::Terminal,
        Self::Finalization,
    ];

    /// The number in records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The stage with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.number() == number)
    }

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::ModelResolution => "model_resolution",
            Self::Inference => "inference",
            Self::Output => "output",
            Self::Terminal => "terminal",
            Self::Finalization => "finalization",
        }
    }
}

impl HustleReason {
    /// Every reason, in the order of its numbers.
    pub const ALL: [Self; 9] = [
        Self::Rejected,
        Self::Canceled,
        Self::Timeout,
        Self::ModelResolution,
        Self::Inference,
        Self::InvalidOutput,
        Self::Terminal,
        Self::Finalization,
        Self::Internal,
    ];

    /// The number in records.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The reason with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.number() == number)
    }

    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Canceled => "canceled",
            Self::Timeout => "timeout",
            Self::ModelResolution => "model_resolution",
            Self::Inference => "inference",
            Self::InvalidOutput => "invalid_output",
            Self::Terminal => "terminal",
            Self::Finalization => "finalization",
            Self::Internal => "internal",
        }
    }
}

/// Whether a record may say that a run failed in this stage for this reason.
///
/// Any stage may run out of time or meet a fault of our own. Beside these a stage has its own reason, and up
/// to the output a run can be canceled; afterwards its outcome is settled. The matrix is the reference
/// implementation's.
#[must_use]
pub fn reason_allowed(stage: HustleStage, reason: HustleReason) -> bool {
    use HustleReason as Why;
    match reason {
        Why::Timeout | Why::Internal => true,
        Why::Canceled => stage <= HustleStage::Output,
        Why::Rejected => stage == HustleStage::Queue,
        Why::ModelResolution => stage == HustleStage::ModelResolution,
        Why::Inference => stage == HustleStage::Inference,
        Why::InvalidOutput => stage == HustleStage::Output,
        Why::Terminal => stage == HustleStage::Terminal,
        Why::Finalization => stage == HustleStage::Finalization,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_one_reason_of_its_own() {
        for stage in HustleStage::ALL {
            assert_eq!(HustleStage::from_number(stage.number()), Some(stage));
            let own = HustleReason::ALL.into_iter().filter(|&reason| {
                let only_here = |other: &HustleStage| *other == stage || !reason_allowed(*other, reason);
                reason_allowed(stage, reason) && HustleStage::ALL.iter().all(only_here)
            });
            assert_eq!(own.count(), 1, "{stage:?}");
        }
        assert_eq!(HustleStage::from_number(0), None);
        assert_eq!(HustleReason::from_number(9), Some(HustleReason::Internal));
        assert_eq!(HustleReason::from_number(10), None);
    }

    #[test]
    fn a_settled_outcome_cannot_be_canceled() {
        assert!(reason_allowed(HustleStage::Output, HustleReason::Canceled));
        assert!(!reason_allowed(HustleStage::Terminal, HustleReason::Canceled));
        assert!(!reason_allowed(HustleStage::Finalization, HustleReason::Canceled));
    }
}
