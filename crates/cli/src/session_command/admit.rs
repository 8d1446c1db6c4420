//! `epitome session admit`.

use std::io::Write as _;

use epitome_sessionruntime::{AdmitError, Admitted, OverBytes};
use serde::Serialize;

use super::calibration_line::CalibrationLine;
use super::decisions::{CompactionLine, DecisionLine, RejectionLine};
use super::failure::JournalFailure;
use super::live::Live;
use crate::failure::Failure;
use crate::report::{MeasurementReport, VERSION, emphasis, level_name, print_json, tokens};
use crate::session_args::AdmitArgs;
use crate::summarizer::SummarizerReport;

#[derive(Serialize)]
struct Report {
    report: u32,
    /// `admitted`, `context_limit` or `failed`.
    outcome: &'static str,
    session: String,
    decisions: Vec<DecisionLine>,
    /// The request as it may be sent, or as it does not fit.
    measurement: Option<MeasurementReport>,
    level: Option<&'static str>,
    /// By what it was counted, where the provider has reported anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<CalibrationLine>,
    messages: Option<usize>,
    compacted: Option<CompactionLine>,
    refused: Option<RejectionLine>,
    /// Whether no compaction will be tried until the context has become smaller or the user acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    exhausted: Option<bool>,
    /// Bytes of the request, when it is they that do not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    over_bytes: Option<OverBytesLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    summarizer: SummarizerReport,
}

#[derive(Serialize)]
struct OverBytesLine {
    bytes: u64,
    limit: u64,
}

pub(super) fn run(args: &AdmitArgs) -> Result<(), Failure> {
    let live = Live::open(&args.kept, &args.agent_loop, Some(&args.summarizer))?;
    let (admitted, trace) = live.run(async {
        let admitted = live.session.admit(live.frame.clone()).await;
        (admitted, live.session.decision_trace().await)
    });
    let mut report = Report {
        report: VERSION,
        outcome: "failed",
        session: live.id.to_string(),
        // Whoever has ended decides nothing more.
        decisions: trace.unwrap_or_default().iter().map(Into::into).collect(),
        measurement: None,
        level: None,
        calibration: live.session.calibration().as_ref().map(Into::into),
        messages: None,
        compacted: None,
        refused: None,
        exhausted: None,
        over_bytes: None,
        retry_after_ms: None,
        message: None,
        summarizer: live.summarizing.report(),
    };
    match &admitted {
        Ok(Admitted { messages, measurement, level, compacted, refused }) => {
            report.outcome = "admitted";
            report.measurement = measurement.as_ref().map(Into::into);
            report.level = Some(level_name(*level));
            report.messages = Some(messages.len());
            report.compacted = compacted.as_ref().map(Into::into);
            report.refused = refused.as_ref().map(Into::into);
        }
        Err(error) => {
            report.message = Some(error.to_string());
            if let AdmitError::ContextLimit { measurement, over_bytes, exhausted, retry_after, .. } = error {
                report.outcome = "context_limit";
                report.measurement = Some((&**measurement).into());
                report.exhausted = Some(*exhausted);
                let line = |over: &OverBytes| OverBytesLine { bytes: over.bytes, limit: over.limit };
                report.over_bytes = over_bytes.as_ref().map(line);
                let wait = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                report.retry_after_ms = wait;
            }
        }
    }
    match args.json {
        true => print_json(&report)?,
        false => show(&report).map_err(Failure::io("standard output"))?,
    }
    admitted.map(drop).map_err(|error| {
        let summarizer = live.summarizing.advice();
        JournalFailure::NotAdmitted { error, summarizer }.into()
    })
}

fn show(report: &Report) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "session   {}", emphasis(&report.session))?;
    for decision in &report.decisions {
        writeln!(out, "decided   {}", decision.words())?;
    }
    if let Some(compacted) = &report.compacted {
        compacted.show(&mut out, &report.summarizer)?;
    }
    if let Some(refused) = &report.refused {
        writeln!(out, "refused   {}", refused.words())?;
    }
    if let Some(measurement) = &report.measurement {
        writeln!(out, "request   {measurement}")?;
    }
    if let Some(calibration) = &report.calibration {
        writeln!(out, "counted   {}", calibration.words())?;
    }
    if let Some(OverBytesLine { bytes, limit }) = &report.over_bytes {
        let (bytes, limit) = (tokens(*bytes), tokens(*limit));
        writeln!(out, "bytes     {bytes} where the policy allows {limit}")?;
    }
    match (report.exhausted, report.retry_after_ms) {
        (_, Some(wait)) => {
            writeln!(out, "retry     another compaction is tried after {:.0} s", wait as f64 / 1e3)?;
        }
        (Some(true), None) => {
            writeln!(out, "retry     none is tried until the context is smaller or you act")?;
        }
        _ => {}
    }
    match report.outcome {
        "admitted" => writeln!(out, "admitted  the request may be sent"),
        _ => writeln!(out, "held back the request may not be sent"),
    }
}
