//! What the exit of a program says.

use std::process::ExitStatus;

use epitome_loop::{CauseKind, OutputFault};

use crate::hustles::WorkStage;

/// What the exit of a program says about its answer. The codes are those of `sysexits.h` where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitVerdict {
    /// 0: the answer stands on stdout.
    Answered,
    /// 65 (`EX_DATAERR`): the program cannot work on this input. It is not asked again.
    InvalidInput,
    /// 75 (`EX_TEMPFAIL`): a passing failure, such as a network that is down. A second try may help.
    Passing,
    /// 77 (`EX_NOPERM`): what the program asked refuses to answer. It is not asked again.
    Refused,
    /// Any other code, or the end by a signal.
    Failed,
}

/// The verdict of an exit.
#[must_use]
pub fn exit_verdict(status: ExitStatus) -> ExitVerdict {
    match status.code() {
        Some(0) => ExitVerdict::Answered,
        Some(65) => ExitVerdict::InvalidInput,
        Some(75) => ExitVerdict::Passing,
        Some(77) => ExitVerdict::Refused,
        _ => ExitVerdict::Failed,
    }
}

impl ExitVerdict {
    /// The failure that it amounts to; `None` when there is an answer.
    pub(super) fn failure(self) -> Option<(WorkStage, CauseKind)> {
        match self {
            Self::Answered => None,
            Self::InvalidInput => Some((WorkStage::Inference, CauseKind::InvalidInput)),
            Self::Passing => Some((WorkStage::Inference, CauseKind::Network)),
            Self::Refused => Some((WorkStage::Output, CauseKind::Output(Some(OutputFault::Refused)))),
            Self::Failed => Some((WorkStage::Inference, CauseKind::Other)),
        }
    }
}
