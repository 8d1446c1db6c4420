//! Where in a rig file a fault of the rig is.

use epitome_loop::{
    ContextLimitUnknown, HustleDefinitionError, HustleLimitsError, LoopDefinitionError, LoopField,
    PayloadKind, TokenCount,
};

use super::Table;
use crate::document::Document;
use crate::policy_file::broken_rule;
use crate::{FileError, FilePlace, FileProblem, Incompatibility, RigError, RigErrorKind, RigPart};

/// The fault with its place.
pub(super) fn located(error: &RigError, document: &Document<'_>) -> FileError {
    let problem = FileProblem::Rig(error.kind);
    match error.part {
        RigPart::Loops => document.fault(FilePlace::default(), problem),
        RigPart::HustleLimits => {
            let keys: &[&'static str] = match error.kind {
                RigErrorKind::InvalidHustleLimits(fault) => keys_of_limits(fault),
                _ => &[],
            };
            document.fault(FilePlace::of(&[&["hustle_limits"], keys].concat()), problem)
        }
        RigPart::Hustle(at) => {
            let keys: &[&'static str] = match error.kind {
                RigErrorKind::InvalidHustle(fault) => keys_of_hustle(fault),
                _ => &["name"],
            };
            Table { document, list: "hustles", at }.fault(keys, problem)
        }
        RigPart::Loop(at) => {
            let table = Table { document, list: "loops", at };
            match error.kind {
                RigErrorKind::IncompatibleCompactionHustle(Incompatibility::Policy(fault)) => {
                    broken_rule(fault, document, &table.place(&["compaction"]))
                }
                RigErrorKind::InvalidLoop(fault) => table.fault(keys_of_loop(fault), problem),
                RigErrorKind::NoRoom(fault) => table.fault(key_of_limit(fault), problem),
                RigErrorKind::DuplicateLoop => table.fault(&["name"], problem),
                RigErrorKind::MissingFallbackHustle | RigErrorKind::IncompatibleFallbackHustle(_) => {
                    table.fault(&["compaction", "fallback"], problem)
                }
                _ => table.fault(&["compaction", "hustle"], problem),
            }
        }
    }
}

fn keys_of_limits(fault: HustleLimitsError) -> &'static [&'static str] {
    match fault {
        HustleLimitsError::BlockingConcurrent => &["blocking", "concurrent"],
        HustleLimitsError::BlockingQueued => &["blocking", "queued"],
        HustleLimitsError::BackgroundConcurrent => &["background", "concurrent"],
        HustleLimitsError::BackgroundQueued => &["background", "queued"],
        HustleLimitsError::AuditTimeout => &["audit_timeout"],
        HustleLimitsError::FinalizationTimeout => &["finalization_timeout"],
        HustleLimitsError::WorkerDrainTimeout => &["worker_drain_timeout"],
        _ => &[],
    }
}

fn keys_of_hustle(fault: HustleDefinitionError) -> &'static [&'static str] {
    match fault {
        HustleDefinitionError::Name(_) => &["name"],
        HustleDefinitionError::Timeout => &["timeout"],
        HustleDefinitionError::ByteLimit(PayloadKind::Input) => &["input_bytes"],
        HustleDefinitionError::ByteLimit(PayloadKind::Output) => &["output_bytes"],
        HustleDefinitionError::PromptRevision => &["prompt", "revision"],
        HustleDefinitionError::SystemPrompt => &["prompt"],
        HustleDefinitionError::PolicyRevision => &["policy_revision"],
        HustleDefinitionError::OutputSchemaName => &["output_schema", "name"],
        HustleDefinitionError::OutputSchemaDigest => &["output_schema"],
        HustleDefinitionError::OutputSchemaRevision => &["output_schema", "revision"],
        HustleDefinitionError::NamedModelKey => &["model"],
        HustleDefinitionError::NamedModelRevision => &["model", "revision"],
        HustleDefinitionError::NamedModelClient => &["model", "client"],
        _ => &[],
    }
}

/// The limit of the model that is too small.
fn key_of_limit(fault: ContextLimitUnknown) -> &'static [&'static str] {
    match fault {
        ContextLimitUnknown::NoRoom { window, reserved_output, safety_margin, .. } => {
            let kept_free = [reserved_output, safety_margin].into_iter().sum();
            if window != TokenCount::ZERO && window <= kept_free {
                &["model", "window"]
            } else {
                &["model", "max_input"]
            }
        }
        _ => &["model"],
    }
}

fn keys_of_loop(fault: LoopDefinitionError) -> &'static [&'static str] {
    match fault.field() {
        LoopField::Name => &["name"],
        LoopField::Model => &["model"],
        LoopField::ContextCounter => &["counter"],
        LoopField::InferenceCapability => &["inference"],
        LoopField::ContextObservation => &["observation"],
        LoopField::Compaction => &["compaction"],
        LoopField::FixedPart => &["fixed"],
        _ => &[],
    }
}
