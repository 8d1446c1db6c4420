//! A session that runs for as long as one command takes.

use std::sync::Arc;

use epitome_loop::{ContextCounter, Request, SessionId, TokenCount};
use epitome_rig::{BoundLoop, PolicyFile};
use epitome_sessionruntime::journal::{Journal, RestoreError};
use epitome_sessionruntime::{LoopPorts, OpenError, RequestFrame, Session, SessionPorts, SessionSettings};
use epitome_transcripts::Format;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use super::past::{Past, Source};
use super::rig_loop;
use crate::failure::Failure;
use crate::profile;
use crate::session_args::{KeptArgs, LoopArgs, MomentArgs};
use crate::summarizer::{SummarizerArgs, Summarizing};
use crate::target::Target;

/// A session that runs. It is shut down when the command has done its one thing.
pub(super) struct Live {
    pub(super) journal: JournalFile,
    pub(super) id: SessionId,
    pub(super) session: Session,
    /// What surrounds the conversation in a request.
    pub(super) frame: RequestFrame,
    /// Who writes the summaries.
    pub(super) summarizing: Summarizing,
}

/// A loop, with what works for it.
pub(super) struct RunningLoop {
    pub(super) bound: BoundLoop,
    pub(super) ports: LoopPorts,
    /// Who writes the summaries.
    pub(super) summarizing: Summarizing,
}

impl Live {
    /// Opens the session that a command names, and takes it over from whoever had it open. `summarizer` is there for
    /// commands by which a compaction may be made.
    pub(super) fn open(
        kept: &KeptArgs,
        args: &LoopArgs,
        summarizer: Option<&SummarizerArgs>,
    ) -> Result<Self, Failure> {
        let own = match &args.rig {
            None => Some(Own::of(args, summarizer)?),
            Some(_) => None,
        };
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
        let running = match (&args.rig, own) {
            (Some(path), _) => {
                let name = args.name.as_deref();
                rig_loop::read(path, name, request.clone(), format, summarizer)?
            }
            (None, own) => {
                let target = Target::of_request(&request, opened.limits, format)?;
                let Own { policy, summarizing } = own.map_or_else(|| Own::of(args, summarizer), Ok)?;
                built(&target, profile::for_kept(&policy, &target)?, summarizing)?
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
        Ok(Self { journal, id, session, frame, summarizing: running.summarizing })
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

/// A policy of this command, and whom it asks.
struct Own {
    policy: PolicyFile,
    summarizing: Summarizing,
}

impl Own {
    fn of(args: &LoopArgs, summarizer: Option<&SummarizerArgs>) -> Result<Self, Failure> {
        let mut policy = profile::load(args.policy.as_deref())?;
        match summarizer {
            Some(summarizer) => {
                summarizer.apply(&mut policy)?;
                let summarizing = Summarizing::of(summarizer, &policy)?;
                Ok(Self { policy, summarizing })
            }
            None => {
                SummarizerArgs::default().apply(&mut policy)?;
                let summarizing = Summarizing::unasked(&policy)?;
                Ok(Self { policy, summarizing })
            }
        }
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

/// A loop of this command, under a policy of it.
fn built(
    target: &Target,
    policy: epitome_loop::CompactionPolicy,
    summarizing: Summarizing,
) -> Result<RunningLoop, Failure> {
    let bound = summarizing.bound(target, policy)?;
    RunningLoop::of(bound, target.counter.clone(), target, summarizing)
}

impl RunningLoop {
    /// A loop with those who work for its hustles.
    pub(super) fn of(
        bound: BoundLoop,
        counter: Arc<dyn ContextCounter>,
        target: &Target,
        summarizing: Summarizing,
    ) -> Result<Self, Failure> {
        let compaction = bound.compaction();
        let ports = LoopPorts {
            counter,
            estimator: target.counter.clone(),
            worker: compaction.and_then(|compaction| summarizing.worker(compaction.hustle.name())),
            fallback: compaction.and_then(|compaction| summarizing.worker(compaction.fallback?.name())),
        };
        Ok(Self { bound, ports, summarizing })
    }
}
