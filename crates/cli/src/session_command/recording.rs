//! What a command writes into a journal: where a session came from, and what a compaction came to.

use std::path::Path;
use std::time::SystemTime;

use epitome_loop::{
    AttemptId, CompactionPolicy, ContextBasis, ContextCounter as _, EventId, InferenceCapability,
    LoopDefinition, LoopDefinitionBuilder, Message, Model, RequestFingerprint, SessionId, SharedBytes,
    SharedText, Timestamp, Trigger,
};
use epitome_loopruntime::decision::{AttemptEnd, AttemptReason, Latch};
use epitome_loopruntime::landing_level;
use epitome_sessionruntime::journal::{
    AttemptStart, CodecError, CodecFault, Committed, EncodedRecord, Imported, Journal as _, JournalRecord,
    RecordBody, RestoreError, SessionOpened, StableName, encode_record, replay,
};
use epitome_sessionruntime::{
    CommitTerms, Compaction, Demand, Outcome, Refusal, committed_record, rejection_of,
};
use epitome_transcripts::{Format, Session};
use uuid::Uuid;

use super::failure::JournalFailure;
use super::journal_file::JournalFile;
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::identity::basis_of;
use crate::input::is_stdio;
use crate::profile::HUSTLE;
use crate::target::Target;

/// A session that came from a file, as it is opened in a journal.
pub(crate) struct Beginning {
    opened: SessionOpened,
    imported: Imported,
    /// The event of the messages is that of the file's bytes: the context is the same as without a journal.
    event: EventId,
    messages: std::sync::Arc<[Message]>,
}

impl Beginning {
    /// The beginning of a session that was read from these bytes and repaired.
    pub(crate) fn of(
        args: &SessionArgs,
        source: SharedBytes,
        session: &Session,
        repairs: usize,
        target: &Target,
        policy: CompactionPolicy,
    ) -> Result<Self, Failure> {
        if session.messages().is_empty() {
            return Err(JournalFailure::NoMessages.into());
        }
        let definition = definition(target, policy)?;
        let event = basis_of(&source).through_event_id;
        Ok(Self {
            opened: SessionOpened {
                model: target.model.clone(),
                limits: target.limits,
                policy_revision: definition.policy_revision().clone(),
                tools: session.tools().clone(),
            },
            imported: Imported {
                format: stable_name(session.format())?,
                conversation: args.conversation.map(|number| number as u64),
                name: name_of(args.file()),
                source,
                repairs: repairs as u64,
            },
            event,
            messages: session.messages().clone(),
        })
    }

    fn records(&self, at: Timestamp) -> Vec<JournalRecord> {
        let record = |body| JournalRecord { id: new_event(), at, body };
        vec![
            record(RecordBody::Opened(self.opened.clone())),
            record(RecordBody::Imported(self.imported.clone())),
            JournalRecord {
                id: self.event,
                at,
                body: RecordBody::Appended { first: 0, messages: self.messages.clone() },
            },
        ]
    }
}

fn definition(target: &Target, policy: CompactionPolicy) -> Result<LoopDefinition, Failure> {
    Ok(loop_of(target, policy).build().map_err(JournalFailure::Definition)?)
}

/// The loop that a command's policy defines. It names the embedded summarizer, and counts on this machine.
pub(crate) fn loop_of(target: &Target, policy: CompactionPolicy) -> LoopDefinitionBuilder {
    let model = Model {
        provider: target.model.provider.clone(),
        name: target.model.model.clone(),
        limits: target.limits,
        ..Model::default()
    };
    LoopDefinition::builder(HUSTLE, model)
        .with_context_counter(target.counter.capability())
        .with_inference_capability(InferenceCapability::local())
        .with_compaction(policy)
}

/// Records a session that came from a file.
pub(crate) fn record_import(journal: &JournalFile, beginning: &Beginning) -> Result<SessionId, Failure> {
    append(journal, Trigger::Manual, &beginning.records(now()))
}

/// Records a session that came from a file, and what a compaction of it came to. `fingerprint` is that of the request in
/// another context.
pub(crate) fn record_outcome(
    journal: &JournalFile,
    beginning: &Beginning,
    outcome: &Outcome,
    demand: Demand,
    trigger: Trigger,
    fingerprint: impl Fn(ContextBasis) -> RequestFingerprint,
) -> Result<SessionId, Failure> {
    let at = now();
    let mut records = beginning.records(at);
    let mut write = |id, body| records.push(JournalRecord { id, at, body });
    let measurement = match outcome {
        Outcome::LeftAlone { measurement, .. } => Some(measurement),
        Outcome::Compacted(done) => Some(&done.before),
        Outcome::Refused(refusal) => refusal.before.as_ref(),
    };
    // One that does not say what it is of is no measurement to a journal.
    let measurement = measurement.filter(|measurement| measurement.validate().is_ok());
    if let Some(measurement) = measurement {
        write(new_event(), RecordBody::Measured(measurement.clone()));
    }
    let attempt = AttemptId::from_bytes(new_id());
    let reason = match demand {
        Demand::Threshold => AttemptReason::Automatic,
        Demand::Manual => AttemptReason::Manual,
    };
    if let Some(measurement) = measurement
        && !matches!(outcome, Outcome::LeftAlone { .. })
    {
        let start = AttemptStart { attempt, reason, basis: measurement.basis, waiters: [].into() };
        write(new_event(), RecordBody::Started(start));
    }
    let end = match outcome {
        Outcome::LeftAlone { .. } => None,
        Outcome::Compacted(done) => {
            let event = new_event();
            let post_fingerprint = fingerprint(CommitTerms::post(done.before.basis, event));
            let committed = committed(beginning, done, attempt, event, post_fingerprint);
            write(event, RecordBody::Committed(Box::new(committed)));
            Some(AttemptEnd::Landed(done.after.occupancy()))
        }
        Outcome::Refused(refusal) => {
            let Refusal { before, reason, usage } = &**refusal;
            let (reason, detail) = rejection_of(reason);
            write(new_event(), RecordBody::Rejected { attempt, reason, detail, usage: *usage });
            before.as_ref().map(|before| AttemptEnd::Refused(reason, before.occupancy()))
        }
    };
    if let (Some(end), Some(measurement)) = (end, measurement) {
        let is_automatic = reason == AttemptReason::Automatic;
        let latch = Latch { attempted: is_automatic.then_some(measurement.basis), ..Latch::default() };
        let latch = latch.ended(end, reason, landing_level(trigger), at);
        if latch != Latch::default() {
            write(new_event(), RecordBody::Latched(latch));
        }
    }
    append(journal, trigger, &records)
}

fn committed(
    beginning: &Beginning,
    done: &Compaction,
    attempt: AttemptId,
    event: EventId,
    post_fingerprint: RequestFingerprint,
) -> Committed {
    let terms =
        CommitTerms { attempt, event, post_fingerprint, messages: &beginning.messages, cost_micro_usd: None };
    // All messages came from one file, so a message's index is its number.
    committed_record(done, terms, |index| Some(index as u64))
}

/// Writes the records of a new session in one go.
fn append(journal: &JournalFile, trigger: Trigger, records: &[JournalRecord]) -> Result<SessionId, Failure> {
    let session = SessionId::from_bytes(new_id());
    // What cannot be read back is not written.
    replay(trigger, (1..).zip(records))
        .map_err(|fault| JournalFailure::Replay { session, fault: RestoreError::Replay(fault) })?;
    let encoded = records.iter().map(encode_record).collect::<Result<Vec<EncodedRecord>, CodecError>>();
    let encoded = encoded.map_err(JournalFailure::NotWritable)?;
    journal.ask(async {
        let lease = journal.journal().open(session).await?;
        journal.journal().append(&lease, encoded).await
    })?;
    Ok(session)
}

/// Ids ascend with time, so that the newest session of a journal is its last one.
fn new_id() -> [u8; 16] {
    Uuid::now_v7().into_bytes()
}

fn new_event() -> EventId {
    EventId::from_bytes(new_id())
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// The name of a format in records.
fn stable_name(format: Format) -> Result<StableName, JournalFailure> {
    let no_name = CodecError { fault: CodecFault::UnknownKind, at: 0 };
    StableName::read(&in_records(format)).map_err(|_| JournalFailure::NotWritable(no_name))
}

fn in_records(format: Format) -> String {
    format.as_str().replace('-', "_")
}

/// The format with this name in records.
pub(crate) fn format_named(name: &StableName) -> Option<Format> {
    Format::ALL.into_iter().find(|format| in_records(*format) == name.as_str())
}

/// The name of a format as people and other reports have it.
pub(crate) fn format_as_shown(name: &StableName) -> String {
    format_named(name).map_or_else(|| name.to_string(), |format| format.as_str().to_owned())
}

/// The name of a file, without its folder.
fn name_of(path: &Path) -> Option<SharedText> {
    let name = path.file_name().filter(|_| !is_stdio(path))?;
    Some(name.to_string_lossy().as_ref().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_in_records() {
        for format in Format::ALL {
            assert_eq!(format_named(&stable_name(format).unwrap()), Some(format));
        }
        assert_eq!(format_named(&StableName::read("of_tomorrow").unwrap()), None);
    }

    #[test]
    fn ids_ascend() {
        let ids: Vec<[u8; 16]> = std::iter::repeat_with(new_id).take(100).collect();
        assert!(ids.is_sorted());
        assert_eq!(name_of(Path::new("-")), None);
        assert_eq!(name_of(Path::new("a/b.json")).unwrap(), "b.json");
    }
}
