//! Decisions about requests, and what compactions came to, in words and for machines.

use epitome_loopruntime::Landing;
use epitome_loopruntime::decision::{Decision, Disarmed, LatchRule, Verdict};
use epitome_sessionruntime::{CompactionReport, RejectionReport};
use serde::Serialize;

use super::words::{counted, rejection};
use crate::report::{MeasurementReport, level_name, tokens};
use crate::summarizer::{SummarizerReport, UsageReport, carried_rules, show_answer};

/// One decision.
#[derive(Serialize)]
pub(super) struct DecisionLine {
    occupancy_basis_points: u16,
    level: &'static str,
    /// `proceed`, `attempt` or `context_limit`.
    verdict: &'static str,
    rule: &'static str,
    words: String,
}

impl From<&Decision> for DecisionLine {
    fn from(decision: &Decision) -> Self {
        let Decision { reading, verdict, rule, .. } = decision;
        let (rule_name, rule_words) = rule_words(*rule);
        let (verdict, said) = match verdict {
            Verdict::Proceed => ("proceed", "may be sent"),
            Verdict::Attempt => ("attempt", "a compaction comes first"),
            Verdict::ContextLimit { .. } => ("context_limit", "does not fit"),
        };
        let full = f64::from(reading.occupancy.get()) / 100.0;
        Self {
            occupancy_basis_points: reading.occupancy.get(),
            level: level_name(reading.level),
            verdict,
            rule: rule_name,
            words: format!("{full:.1} % full: {said}: {rule_words}"),
        }
    }
}

impl DecisionLine {
    pub(super) fn words(&self) -> &str {
        &self.words
    }
}

fn rule_words(rule: LatchRule) -> (&'static str, &'static str) {
    match rule {
        LatchRule::NotAutomatic => ("not_automatic", "the policy compacts only when asked"),
        LatchRule::BelowRearm => ("below_rearm", "it is below rearm_below"),
        LatchRule::BelowThreshold => ("below_threshold", "it is below compact_at"),
        LatchRule::AtThreshold => ("at_threshold", "it is at compact_at or above, and armed"),
        LatchRule::Retry => {
            ("retry", "it is at compact_at or above, and one attempt failed for a reason that may pass")
        }
        LatchRule::SameContext => ("same_context", "there was an attempt for this context"),
        LatchRule::Disarmed(Disarmed::LandedHigh) => {
            ("disarmed_landed_high", "the last compaction landed too high to be worth another")
        }
        LatchRule::Disarmed(Disarmed::Failed) => {
            ("disarmed_failed", "two attempts failed for reasons that may pass")
        }
        LatchRule::Disarmed(Disarmed::Cannot) => {
            ("disarmed_cannot", "the last attempt was refused for a reason that stays")
        }
        LatchRule::Disarmed(Disarmed::Undone) => ("disarmed_undone", "the user took a compaction back"),
        LatchRule::PaidByGrowth => ("paid_by_growth", "it has grown by a step since the last attempt"),
        LatchRule::PaidByWaiting => ("paid_by_waiting", "enough time has passed since an attempt failed"),
    }
}

/// A compaction that took effect.
#[derive(Serialize)]
pub(super) struct CompactionLine {
    before: MeasurementReport,
    after: MeasurementReport,
    landing: &'static str,
    replaced_messages: u64,
    kept_messages: u64,
    summary_tokens: u64,
    left_out: [u64; 5],
    /// Why the fallback wrote the summary; `None`: the first choice did.
    degraded: Option<String>,
    /// What was repaired in a model's answer, by name.
    answer_repairs: Vec<String>,
    /// The user's rules that the model's summary lacked, as they were put into it.
    carried_constraints: Vec<String>,
    /// What a provider reported for the summary.
    usage: Option<UsageReport>,
}

impl From<&CompactionReport> for CompactionLine {
    fn from(report: &CompactionReport) -> Self {
        Self {
            before: (&report.before).into(),
            after: (&report.after).into(),
            landing: match report.landing {
                Landing::Low => "low",
                Landing::High => "high",
            },
            replaced_messages: report.replaced,
            kept_messages: report.kept,
            summary_tokens: report.summary_tokens.get(),
            left_out: report.left_out,
            degraded: report.degraded.as_ref().map(ToString::to_string),
            answer_repairs: report.repairs.iter().map(ToString::to_string).collect(),
            carried_constraints: carried_rules(&report.carried),
            usage: report.usage.as_ref().map(Into::into),
        }
    }
}

impl CompactionLine {
    pub(super) fn show(
        &self,
        out: &mut impl std::io::Write,
        summarizer: &SummarizerReport,
    ) -> std::io::Result<()> {
        writeln!(out, "before    {}", self.before)?;
        writeln!(out, "after     {}", self.after)?;
        let (replaced, kept) = (counted(self.replaced_messages, "message"), tokens(self.kept_messages));
        let summary = tokens(self.summary_tokens);
        writeln!(out, "compacted {replaced} replaced by a summary of {summary} tokens, {kept} kept")?;
        if self.landing == "high" {
            writeln!(out, "note      it landed high: a further compaction alone would not help")?;
        }
        summarizer.show(out, self.degraded.as_deref())?;
        show_answer(out, &self.answer_repairs, &self.carried_constraints)
    }
}

/// An attempt that was refused.
#[derive(Serialize)]
pub(super) struct RejectionLine {
    reason: &'static str,
    detail: Option<String>,
    words: String,
    /// What providers reported for answers that came to nothing.
    usage: Option<UsageReport>,
}

impl From<&RejectionReport> for RejectionLine {
    fn from(report: &RejectionReport) -> Self {
        let RejectionReport { reason, detail, usage, .. } = report;
        let finer = detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"));
        Self {
            reason: reason.as_str(),
            detail: detail.as_ref().map(ToString::to_string),
            words: format!("{} ({reason}{finer})", rejection(*reason)),
            usage: usage.as_ref().map(Into::into),
        }
    }
}

impl RejectionLine {
    pub(super) fn words(&self) -> &str {
        &self.words
    }
}
