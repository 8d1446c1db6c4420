//! The hustles that a policy asks for, with what works for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use epitome_loop::{
    ByteLimits, CompactionPolicy, HustleLimitSettings, HustleName, HustleSettings, IdentityBinding,
    LaneLimits, ModelSource, Participation, RetryPolicy, Sampling, SharedText, SystemPrompt, TokenCount,
};
use epitome_rig::{BoundLoop, PolicyFile, Rig};
use epitome_sessionruntime::{
    AuditFailed, HustleAudit, HustleController, HustleRecord, HustleWorker, RegisteredHustle,
    SummarizerWorker,
};
use epitome_summarizers::{Extractive, MODEL_PROMPT, MODEL_PROMPT_REVISION};
use tokio::runtime::Handle;

use super::args::{FormKind, asked};
use super::asked_model::{AskedModel, ModelWish};
use super::asked_program;
use super::watch::{Watch, WatchedWorker};
use super::{SummarizerArgs, SummarizerFault, SummarizerKind};
use crate::failure::Failure;
use crate::profile::HUSTLE;
use crate::session_command::recording::loop_of;
use crate::target::Target;

/// How long writing a summary may take where nothing else is said.
const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

/// The revision of how requests are made and answers are read here, of all definitions.
const REVISION: &str = "1";

/// Who writes the summaries of one command: the first choice, and the fallback where there is one.
#[derive(Clone)]
pub(crate) struct Summarizing {
    pub(super) hustles: Vec<AskedHustle>,
    /// Whether the user's rules that a summary lacks are carried into it.
    pub(super) carries: bool,
}

/// One who may be asked.
#[derive(Clone)]
pub(super) struct AskedHustle {
    pub(super) name: SharedText,
    pub(super) kind: SummarizerKind,
    pub(super) worker: Arc<dyn HustleWorker>,
    pub(super) watch: Watch,
    /// Which model, where one is asked.
    pub(super) model: Option<AskedModel>,
    /// Its definition, where it is this command's own.
    pub(super) settings: Option<HustleSettings>,
}

impl Summarizing {
    /// Those whom the policy asks. The options have had their say in it ([`SummarizerArgs::apply`]).
    pub(crate) fn of(args: &SummarizerArgs, policy: &PolicyFile) -> Result<Self, Failure> {
        let timeout = args.summarizer_timeout.map_or(USUAL_TIMEOUT, Duration::from_secs);
        let hustles = asked(policy)?.into_iter().map(|kind| match kind {
            SummarizerKind::Extractive => Ok(embedded()),
            SummarizerKind::Model => model(args, timeout),
            SummarizerKind::Command => program(args, timeout),
        });
        Ok(Self { hustles: hustles.collect::<Result<_, Failure>>()?, carries: policy.carry_constraints })
    }

    /// Those whom the policy asks, for commands that ask nobody: the loop is the same one, and nothing needs to be said
    /// about how they would be reached.
    pub(crate) fn unasked(policy: &PolicyFile) -> Result<Self, Failure> {
        let hustles = asked(policy)?.into_iter().map(|kind| AskedHustle {
            name: kind.as_str().into(),
            kind,
            settings: Some(settings(kind, USUAL_TIMEOUT, ModelSource::Embedded)),
            ..embedded()
        });
        Ok(Self { hustles: hustles.collect(), carries: policy.carry_constraints })
    }

    /// Those whom a rig's loop asks, for commands that ask nobody.
    pub(crate) fn idle(bound: &BoundLoop) -> Self {
        let compaction = bound.compaction();
        let definitions =
            compaction.into_iter().flat_map(|bound| std::iter::once(bound.hustle).chain(bound.fallback));
        let hustles = definitions.map(|definition| AskedHustle {
            name: definition.name().as_str().into(),
            settings: None,
            ..embedded()
        });
        Self { hustles: hustles.collect(), carries: true }
    }

    /// Whether nobody but the embedded summarizer is asked, and nobody after it.
    pub(crate) fn is_embedded_alone(&self) -> bool {
        matches!(self.hustles.as_slice(), [only] if only.kind == SummarizerKind::Extractive && only.settings.is_some())
    }

    /// The loop of a policy of this command, with its hustles.
    pub(crate) fn bound(&self, target: &Target, policy: CompactionPolicy) -> Result<BoundLoop, Failure> {
        let mut rig = Rig::builder().with_loop(loop_of(target, policy)).with_hustle_limits(lanes());
        for settings in self.hustles.iter().filter_map(|hustle| hustle.settings.clone()) {
            rig = rig.with_hustle(settings);
        }
        let rig = rig.build().map_err(|error| SummarizerFault::Rig(error.kind))?;
        // It is the only loop of the rig.
        Ok(rig.bound_loop(HUSTLE).cloned().ok_or(SummarizerFault::UnknownHustle)?)
    }

    /// Who works for the hustle of this name.
    pub(crate) fn worker(&self, name: &HustleName) -> Option<Arc<dyn HustleWorker>> {
        let found = self.hustles.iter().find(|hustle| hustle.name.as_str() == name.as_str())?;
        Some(Arc::new(WatchedWorker { worker: found.worker.clone(), watch: found.watch.clone() }))
    }

    /// The lanes for one compaction of this loop, in this runtime.
    pub(crate) fn controller(&self, bound: &BoundLoop, runtime: Handle) -> Result<HustleController, Failure> {
        let compaction = bound.compaction().ok_or(SummarizerFault::UnknownHustle)?;
        let definitions = std::iter::once(compaction.hustle).chain(compaction.fallback);
        let hustles = definitions.map(|definition| {
            let worker = self.worker(definition.name()).ok_or(SummarizerFault::UnknownHustle)?;
            Ok(RegisteredHustle { definition: definition.clone(), worker })
        });
        let hustles = hustles.collect::<Result<Vec<_>, SummarizerFault>>()?;
        let lanes = HustleController::new(runtime, *compaction.limits, hustles, Arc::new(NoRecords));
        Ok(lanes.map_err(SummarizerFault::Setup)?)
    }
}

/// A compaction of a file leaves no records of its runs.
struct NoRecords;

#[async_trait]
impl HustleAudit for NoRecords {
    async fn record(&self, _record: HustleRecord) -> Result<(), AuditFailed> {
        Ok(())
    }
}

/// What every definition here has in common: it may take whatever a session holds.
fn settings(kind: SummarizerKind, timeout: Duration, model: ModelSource) -> HustleSettings {
    HustleSettings {
        name: kind.as_str().into(),
        participation: Participation::Blocking,
        timeout,
        limits: ByteLimits { input: 16 << 20, output: 1 << 20 },
        model,
        policy_revision: REVISION.into(),
        output_schema: None,
        retry: match kind {
            SummarizerKind::Extractive => RetryPolicy::None,
            SummarizerKind::Model | SummarizerKind::Command => RetryPolicy::ClassifiedOnce,
        },
        identity: match kind {
            SummarizerKind::Extractive | SummarizerKind::Model => IdentityBinding::Host,
            SummarizerKind::Command => IdentityBinding::Echo,
        },
    }
}

/// The worker of the embedded summarizer.
pub(super) fn embedded_worker() -> Arc<dyn HustleWorker> {
    Arc::new(SummarizerWorker::new(Arc::new(Extractive::new())))
}

fn embedded() -> AskedHustle {
    let kind = SummarizerKind::Extractive;
    AskedHustle {
        name: kind.as_str().into(),
        kind,
        worker: embedded_worker(),
        watch: Watch::default(),
        model: None,
        settings: Some(settings(kind, USUAL_TIMEOUT, ModelSource::Embedded)),
    }
}

fn model(args: &SummarizerArgs, timeout: Duration) -> Result<AskedHustle, Failure> {
    let kind = SummarizerKind::Model;
    let watch = Watch::default();
    let prompt = SystemPrompt { text: MODEL_PROMPT.into(), revision: MODEL_PROMPT_REVISION.into() };
    let wish = ModelWish {
        endpoint: args.model_endpoint.as_ref().ok_or(SummarizerFault::NoEndpoint)?,
        model: args.summarizer_model.as_deref(),
        limits: None,
        prompt: prompt.clone(),
        sampling: Sampling::default(),
        reasoning: args.summarizer_reasoning.map(TokenCount),
        timeout,
    };
    let found = AskedModel::find(&wish, args, &watch)?;
    let source = ModelSource::Named {
        client: found.endpoint.name().into(),
        model: found.key(),
        revision: REVISION.into(),
        prompt,
    };
    Ok(AskedHustle {
        name: kind.as_str().into(),
        kind,
        worker: found.worker(&wish, args.summarizer_form.unwrap_or(FormKind::Auto))?,
        watch,
        model: Some(found),
        settings: Some(settings(kind, timeout, source)),
    })
}

fn program(args: &SummarizerArgs, timeout: Duration) -> Result<AskedHustle, Failure> {
    let kind = SummarizerKind::Command;
    let watch = Watch::default();
    Ok(AskedHustle {
        name: kind.as_str().into(),
        kind,
        worker: asked_program::worker(args, &watch)?,
        watch,
        model: None,
        settings: Some(settings(kind, timeout, ModelSource::Embedded)),
    })
}

/// The lanes of a command: it does one thing.
fn lanes() -> HustleLimitSettings {
    let lane = LaneLimits { concurrent: 1, queued: 1 };
    HustleLimitSettings {
        blocking: lane,
        background: lane,
        audit_timeout: Duration::from_secs(30),
        finalization_timeout: Duration::from_secs(30),
        worker_drain_timeout: Duration::from_secs(30),
    }
}
