//! Decisions and changes of a session in words. Text of a session is not among them.

use epitome_loop::{ContextMeasurement, RejectionReason, Timestamp};
use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{AttemptReason, Disarmed, Latch, LatchState};
use epitome_sessionruntime::journal::{Committed, MessageRange, RecordBody, WaiterOutcome};

use super::recording::format_as_shown;
use crate::report::{MeasurementReport, printable, tokens};
use crate::utc_time::utc;

/// A moment in UTC.
pub(super) fn time(at: Timestamp) -> String {
    utc(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(at.0))
}

/// What a record says. `compaction` is the number of the compaction that it commits.
pub(super) fn words(body: &RecordBody, compaction: u64) -> String {
    match body {
        RecordBody::Opened(opened) => format!(
            "for {} ({}), window {}, {}",
            printable(&opened.model.model),
            printable(&opened.model.provider),
            tokens(opened.limits.window.get().max(opened.limits.max_input.get())),
            counted(opened.tools.len() as u64, "tool")
        ),
        RecordBody::Imported(imported) => {
            let name = imported.name.as_ref().map_or("a stream".to_owned(), |name| printable(name));
            let repairs = match imported.repairs {
                0 => "nothing repaired".to_owned(),
                repairs => counted(repairs, "repair"),
            };
            format!("from {name} ({}), {repairs}", format_as_shown(&imported.format))
        }
        RecordBody::Appended { first, messages } => {
            let end = first.saturating_add(messages.len() as u64);
            let range = MessageRange { first: *first, end };
            format!("{}: {}", counted(messages.len() as u64, "message"), ranges(&[range]))
        }
        RecordBody::Measured(measurement) => size(measurement),
        RecordBody::Started(start) => {
            let who = match start.reason {
                AttemptReason::Automatic => "by occupancy: the policy's threshold was reached",
                AttemptReason::Manual => "by somebody who asked for it",
            };
            match start.waiters.len() {
                0 => who.to_owned(),
                waiters => format!("{who}; {} waiting", counted(waiters as u64, "command")),
            }
        }
        RecordBody::Committed(committed) => self::committed(committed, compaction),
        RecordBody::Rejected { reason, detail, .. } => match detail {
            Some(detail) => format!("{} ({reason}: {detail})", rejection(*reason)),
            None => format!("{} ({reason})", rejection(*reason)),
        },
        RecordBody::Answered(WaiterOutcome { resolved, .. }) => match resolved {
            true => "a command that waited was told that it is done".to_owned(),
            false => "a command that waited was told that it was refused".to_owned(),
        },
        RecordBody::Undone { in_force } => {
            format!("compactions were taken back; {} in force", counted(*in_force, "compaction"))
        }
        RecordBody::Redone { in_force } => {
            format!("compactions were put back; {} in force", counted(*in_force, "compaction"))
        }
        RecordBody::Latched(latch) => self::latch(latch),
        _ => "a record of another kind".to_owned(),
    }
}

fn size(measurement: &ContextMeasurement) -> String {
    let report = MeasurementReport::from(measurement);
    let about = if report.quality == "heuristic_estimate" { "about " } else { "" };
    let (taken, limit) = (tokens(report.tokens), tokens(report.limit));
    format!("{about}{taken} of {limit} tokens, {:.1} %", report.percent())
}

fn committed(committed: &Committed, compaction: u64) -> String {
    let landing = match committed.landing {
        Landing::Low => "landed low",
        Landing::High => "landed high: a further one alone would not help",
    };
    let kept: u64 = committed.retained.iter().map(MessageRange::count).sum();
    let mut said = format!(
        "compaction {compaction}: from {} to {} tokens ({:.1} to {:.1} %), {landing}; {} kept, a summary of {} tokens",
        tokens(committed.before.input_tokens.get()),
        tokens(committed.after.input_tokens.get()),
        MeasurementReport::from(&committed.before).percent(),
        MeasurementReport::from(&committed.after).percent(),
        counted(kept, "message"),
        tokens(committed.summary_tokens.get()),
    );
    if let Some(cost) = committed.cost_micro_usd {
        said.push_str(&format!("; cost {:.4} USD", cost as f64 / 1e6));
    }
    if !committed.repairs.is_empty() {
        let repairs: Vec<&str> = committed.repairs.iter().map(|repair| repair.as_str()).collect();
        said.push_str(&format!("; repaired in the answer: {}", repairs.join(", ")));
    }
    if let Some(degraded) = &committed.degraded {
        said.push_str(&format!("; a weaker summary was taken ({degraded})"));
    }
    said
}

pub(super) fn rejection(reason: RejectionReason) -> &'static str {
    match reason {
        RejectionReason::ControlLaneFull => "too many requests waited already",
        RejectionReason::ShuttingDown => "the session was shutting down",
        RejectionReason::Interrupted => "the user interrupted",
        RejectionReason::Canceled => "canceled, or out of time",
        RejectionReason::StaleBasis => "the context had moved on meanwhile",
        RejectionReason::ProgressPublication => "its progress could not be made known",
        RejectionReason::Unavailable => "there was nothing to compact, or nothing to compact with",
        RejectionReason::ExecutionFailed => "the summarizer failed",
        RejectionReason::InvalidSummary => "the summary was not valid",
        RejectionReason::ContextCountFailed => "a request could not be counted",
        RejectionReason::SummaryTooLarge => "the new request would not have been small enough",
        RejectionReason::Internal => "a fault of the software, or a crash",
        RejectionReason::ContextLimitUnknown => "the room for a request is not known",
        RejectionReason::RetainedTailTooLarge => "what must stay word for word does not fit by itself",
    }
}

pub(super) fn latch(latch: &Latch) -> String {
    let failures = match latch.failures {
        0 => String::new(),
        failures => format!("; {} in a row", counted(u64::from(failures), "failure")),
    };
    match latch.state {
        LatchState::Armed => format!("armed: at the threshold a compaction starts{failures}"),
        LatchState::Disarmed { why, landing } => {
            let why = match why {
                Disarmed::LandedHigh => "the last one landed too high to be worth another",
                Disarmed::Failed => "two failed for reasons that may pass",
                Disarmed::Cannot => "the last one was refused for a reason that stays",
                Disarmed::Undone => "the user took one back",
            };
            let left = landing.map_or(String::new(), |left| {
                format!(", with the context {:.1} % full", f64::from(left.get()) / 100.0)
            });
            format!("disarmed: {why}{left}; none starts by itself below the hard limit{failures}")
        }
    }
}

/// A number of things.
pub(super) fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", tokens(number))
}

/// Messages by number, as people name them: `#0-#3, #7`.
pub(super) fn ranges(ranges: &[MessageRange]) -> String {
    let shown = ranges.iter().filter(|range| range.count() > 0).map(|range| match range.count() {
        1 => format!("#{}", range.first),
        _ => format!("#{}-#{}", range.first, range.end.saturating_sub(1)),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::BasisPoints;

    #[test]
    fn numbers_are_told_as_people_name_them() {
        let range = |first, end| MessageRange { first, end };
        assert_eq!(ranges(&[range(0, 4), range(7, 8), range(9, 9)]), "#0-#3, #7");
        assert_eq!(ranges(&[]), "none");
        assert_eq!((counted(1, "tool"), counted(1_000, "tool")), ("1 tool".into(), "1,000 tools".into()));
        assert_eq!(time(Timestamp(1_767_607_445_999_999_999)), "2026-01-05T10:04:05Z");
        assert!(time(Timestamp(u64::MAX)).starts_with("2554-"));
    }

    #[test]
    fn every_reason_and_latch_has_words_of_its_own() {
        let mut reasons: Vec<_> = RejectionReason::ALL.map(rejection).to_vec();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), RejectionReason::ALL.len());
        let disarmed = |why| {
            let state = LatchState::Disarmed { why, landing: Some(BasisPoints(7_050)) };
            latch(&Latch { state, failures: 2, ..Latch::default() })
        };
        let all = [Disarmed::LandedHigh, Disarmed::Failed, Disarmed::Cannot, Disarmed::Undone].map(disarmed);
        assert!(all.iter().all(|said| said.contains("70.5 % full") && said.ends_with("2 failures in a row")));
        assert_eq!(latch(&Latch::default()), "armed: at the threshold a compaction starts");
    }
}
