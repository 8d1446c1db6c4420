//! A record as one JSON object: the keys are those of `docs/session-command.md`.

use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Disarmed, LatchState};
use epitome_sessionruntime::journal::{JournalRecord, MessageRange, RecordBody, Sequence};
use serde::Serialize;

use super::recording::format_as_shown;
use super::words::{time, words};
use crate::report::MeasurementReport;
use crate::summarizer::UsageReport;

/// One record. Keys that have nothing to do with its kind are left out.
#[derive(Serialize)]
pub(super) struct LogLine {
    record: Sequence,
    id: String,
    time: String,
    /// Nanoseconds since 1970-01-01 UTC.
    at: u64,
    kind: &'static str,
    words: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    opened: Option<OpenedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<ImportedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    appended: Option<AppendedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<MeasurementReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<StartedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    committed: Option<CommittedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<RejectedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<AnsweredLine>,
    /// How many compactions are in force, behind `undone` and `redone`.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latched: Option<LatchedLine>,
}

#[derive(Serialize)]
struct OpenedLine {
    provider: String,
    model: String,
    window: u64,
    policy_revision: String,
    tools: usize,
}

#[derive(Serialize)]
struct ImportedLine {
    name: Option<String>,
    format: String,
    conversation: Option<u64>,
    repairs: u64,
}

#[derive(Serialize)]
struct AppendedLine {
    first: u64,
    messages: usize,
}

#[derive(Serialize)]
struct StartedLine {
    attempt: String,
    /// `automatic` or `manual`.
    reason: &'static str,
    waiters: usize,
}

#[derive(Serialize)]
struct CommittedLine {
    attempt: String,
    compaction: u64,
    before: MeasurementReport,
    after: MeasurementReport,
    /// `low` or `high`.
    landing: &'static str,
    summary_tokens: u64,
    summary_bytes: usize,
    kept_messages: u64,
    /// Pairs of a first number and the one behind the last.
    kept: Vec<[u64; 2]>,
    usage: Option<UsageReport>,
    cost_micro_usd: Option<u64>,
    repairs: Vec<String>,
    degraded: Option<String>,
}

#[derive(Serialize)]
struct RejectedLine {
    attempt: String,
    reason: &'static str,
    detail: Option<String>,
    /// What was paid for answers that came to nothing.
    usage: Option<UsageReport>,
}

#[derive(Serialize)]
struct AnsweredLine {
    attempt: String,
    command: String,
    resolved: bool,
}

#[derive(Serialize)]
struct LatchedLine {
    armed: bool,
    /// `landed_high`, `failed`, `cannot` or `undone`.
    why: Option<&'static str>,
    landing_basis_points: Option<u16>,
    failures: u32,
}

impl LogLine {
    pub(super) fn of(sequence: Sequence, record: &JournalRecord, compaction: u64) -> Self {
        let JournalRecord { id, at, body } = record;
        let mut line = Self {
            record: sequence,
            id: id.to_string(),
            time: time(*at),
            at: at.0,
            kind: body.kind(),
            words: words(body, compaction),
            opened: None,
            imported: None,
            appended: None,
            measured: None,
            started: None,
            committed: None,
            rejected: None,
            answered: None,
            in_force: None,
            latched: None,
        };
        line.fill(body, compaction);
        line
    }

    fn fill(&mut self, body: &RecordBody, compaction: u64) {
        match body {
            RecordBody::Opened(opened) => {
                self.opened = Some(OpenedLine {
                    provider: opened.model.provider.as_str().to_owned(),
                    model: opened.model.model.as_str().to_owned(),
                    window: opened.limits.window.get().max(opened.limits.max_input.get()),
                    policy_revision: opened.policy_revision.as_str().to_owned(),
                    tools: opened.tools.len(),
                });
            }
            RecordBody::Imported(imported) => {
                self.imported = Some(ImportedLine {
                    name: imported.name.as_ref().map(|name| name.as_str().to_owned()),
                    format: format_as_shown(&imported.format),
                    conversation: imported.conversation,
                    repairs: imported.repairs,
                });
            }
            RecordBody::Appended { first, messages } => {
                self.appended = Some(AppendedLine { first: *first, messages: messages.len() });
            }
            RecordBody::Measured(measurement) => self.measured = Some(measurement.into()),
            RecordBody::Started(start) => {
                let reason = match start.reason {
                    AttemptReason::Automatic => "automatic",
                    AttemptReason::Manual => "manual",
                };
                let (attempt, waiters) = (start.attempt.to_string(), start.waiters.len());
                self.started = Some(StartedLine { attempt, reason, waiters });
            }
            RecordBody::Committed(committed) => {
                self.committed = Some(CommittedLine {
                    attempt: committed.attempt.to_string(),
                    compaction,
                    before: (&committed.before).into(),
                    after: (&committed.after).into(),
                    landing: match committed.landing {
                        Landing::Low => "low",
                        Landing::High => "high",
                    },
                    summary_tokens: committed.summary_tokens.get(),
                    summary_bytes: committed.summary.len(),
                    kept_messages: committed.retained.iter().map(MessageRange::count).sum(),
                    kept: committed.retained.iter().map(|range| [range.first, range.end]).collect(),
                    usage: committed.usage.as_ref().map(Into::into),
                    cost_micro_usd: committed.cost_micro_usd,
                    repairs: committed.repairs.iter().map(ToString::to_string).collect(),
                    degraded: committed.degraded.as_ref().map(ToString::to_string),
                });
            }
            RecordBody::Rejected { attempt, reason, detail, usage } => {
                let (attempt, detail) = (attempt.to_string(), detail.as_ref().map(ToString::to_string));
                let usage = usage.as_ref().map(Into::into);
                self.rejected = Some(RejectedLine { attempt, reason: reason.as_str(), detail, usage });
            }
            RecordBody::Answered(outcome) => {
                let (attempt, command) = (outcome.attempt.to_string(), outcome.command.to_string());
                self.answered = Some(AnsweredLine { attempt, command, resolved: outcome.resolved });
            }
            RecordBody::Undone { in_force } | RecordBody::Redone { in_force } => {
                self.in_force = Some(*in_force);
            }
            RecordBody::Latched(latch) => {
                let (why, landing) = match latch.state {
                    LatchState::Armed => (None, None),
                    LatchState::Disarmed { why, landing } => (Some(why), landing),
                };
                self.latched = Some(LatchedLine {
                    armed: why.is_none(),
                    why: why.map(|why| match why {
                        Disarmed::LandedHigh => "landed_high",
                        Disarmed::Failed => "failed",
                        Disarmed::Cannot => "cannot",
                        Disarmed::Undone => "undone",
                    }),
                    landing_basis_points: landing.map(|points| points.get()),
                    failures: latch.failures,
                });
            }
            _ => {}
        }
    }
}
