//! A session that runs for as long as one command takes.

use std::sync::Arc;
use std::time::Duration;

use epitome_loop::{
    ByteLimits, HustleLimitSettings, HustleSettings, IdentityBinding, LaneLimits, ModelSource, Participation,
    Request, RetryPolicy, SessionId, TokenCount,
};
use epitome_rig::{BoundLoop, Rig};
use epitome_sessionruntime::journal::{Journal, RestoreError};
use epitome_sessionruntime::{
    LoopPorts, OpenError, RequestFrame, Session, SessionPorts, SessionSettings, SummarizerWorker,
};
use epitome_summarizers::Extractive;
use epitome_transcripts::Format;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::past::{Past, Source};
use super::recording::loop_of;
use super::rig_loop;
use crate::failure::Failure;
use crate::profile::{self, HUSTLE};
use crate::session_args::{KeptArgs, LoopArgs, MomentArgs};
use crate::target::Target;

/// A session that runs. It is shut down when the command has done its one thing.
pub(super) struct Live {
    pub(super) journal: JournalFile,
    pub(super) id: SessionId,
    pub(super) session: Session,
    /// What surrounds the conversation in a request.
    pub(super) frame: RequestFrame,
}

/// A loop, with what works for it.
pub(super) struct RunningLoop {
    pub(super) bound: BoundLoop,
    pub(super) ports: LoopPorts,
}

impl Live {
    /// Opens the session that a command names, and takes it over from whoever had it open.
    pub(super) fn open(kept: &KeptArgs, args: &LoopArgs) -> Result<Self, Failure> {
        let policy = match &args.rig {
            None => Some(profile::load(args.policy.as_deref())?),
            Some(_) => None,
        };
        if policy.as_ref().is_some_and(|policy| policy.hustle.trim() != HUSTLE) {
            return Err(Failure::UnknownHustle);
        }
        let journal = JournalFile::change(&kept.journal.file)?;
        let past = Past::of(&journal, kept, &MomentArgs { at: None, record: None })?;
        let id = past.session;
        let opened = past.state().opened().cloned().ok_or(JournalFailure::NoRecords { session: id })?;
        let format = past.source(&journal)?.as_ref().and_then(Source::format).unwrap_or(Format::EpitomeJson);
        let request = Request {
            model: opened.model.clone(),
            tools: opened.tools.clone(),
            // All that ever was in it: a counter that fits today fits a context that comes back as well.
            messages: past.restored.messages.as_slice().into(),
            unseen_tokens: TokenCount(args.unseen),
        };
        let running = match (&args.rig, policy) {
            (Some(path), _) => rig_loop::read(path, args.name.as_deref(), request.clone(), format)?,
            (None, policy) => {
                let target = Target::of_request(&request, opened.limits, format)?;
                let policy = policy.map_or_else(profile::built_in, Ok)?;
                built(&target, profile::for_kept(&policy, &target)?)?
            }
        };
        let frame = RequestFrame {
            tools: request.tools,
            unseen_tokens: request.unseen_tokens,
            ..RequestFrame::default()
        };
        let settings = SessionSettings { frame: frame.clone(), ..SessionSettings::of(id) };
        let kept: Arc<dyn Journal> = journal.journal().clone();
        let ports = SessionPorts::new(kept, running.ports);
        let session = journal.wait(Session::open(&running.bound, settings, ports));
        let session = session.map_err(|error| open_failed(&journal, id, error))?;
        Ok(Self { journal, id, session, frame })
    }

    /// Does one thing with the session, and ends it.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.journal.wait(async {
            let done = work.await;
            self.session.shut_down().await;
            done
        })
    }
}

fn open_failed(journal: &JournalFile, session: SessionId, error: OpenError) -> Failure {
    match error {
        OpenError::Journal(error) | OpenError::Restore(RestoreError::Journal(error)) => journal.failed(error),
        OpenError::Restore(RestoreError::Record { sequence, fault }) => {
            JournalFailure::Record { session, sequence, fault }.into()
        }
        OpenError::Restore(fault) => JournalFailure::Replay { session, fault }.into(),
        error => JournalFailure::Open(error).into(),
    }
}

/// A loop with the embedded summarizer, under a policy of the command.
fn built(target: &Target, policy: epitome_loop::CompactionPolicy) -> Result<RunningLoop, Failure> {
    let rig = Rig::builder()
        .with_loop(loop_of(target, policy))
        .with_hustle(hustle())
        .with_hustle_limits(lanes())
        .build()
        .map_err(|error| JournalFailure::Rig(error.kind))?;
    let bound = rig.bound_loop(HUSTLE).cloned().ok_or(Failure::UnknownHustle)?;
    let ports = LoopPorts {
        counter: target.counter.clone(),
        estimator: target.counter.clone(),
        worker: Some(worker()),
        fallback: None,
    };
    Ok(RunningLoop { bound, ports })
}

/// The worker for an embedded hustle.
pub(super) fn worker() -> Arc<SummarizerWorker> {
    Arc::new(SummarizerWorker::new(Arc::new(Extractive::new())))
}

/// The embedded summarizer as a hustle: it may take whatever a session holds.
fn hustle() -> HustleSettings {
    HustleSettings {
        name: HUSTLE.into(),
        participation: Participation::Blocking,
        timeout: Duration::from_secs(600),
        limits: ByteLimits { input: 16 << 20, output: 1 << 20 },
        model: ModelSource::Embedded,
        policy_revision: "1".into(),
        output_schema: None,
        retry: RetryPolicy::None,
        identity: IdentityBinding::Host,
    }
}

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
