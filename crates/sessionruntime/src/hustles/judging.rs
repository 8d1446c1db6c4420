//! Judging what a worker answered: size, shape, and for a compaction everything that a summary must keep.

use epitome_loop::{
    Cause, CauseKind, HustleDefinition, IdentityBinding, InvalidSummaryReason, OutputFault, SharedText,
    TokenCount, Usage, malformed_answer,
};

use super::{HustleSummary, HustleValue, SummaryTask, WorkAnswer};
use crate::{ResultTerms, RunOutput, RunResult, decode_output, validate_result};

/// The host's own check of an outcome.
///
/// It may panic: that ends the run and nothing else.
pub trait HustleValidator: Send + Sync {
    /// Checks an outcome.
    ///
    /// # Errors
    /// What is wrong, in closed words; [`malformed_answer`] where a second try would help.
    fn validate(&self, value: &HustleValue) -> Result<(), Cause>;
}

impl<F: Fn(&HustleValue) -> Result<(), Cause> + Send + Sync> HustleValidator for F {
    fn validate(&self, value: &HustleValue) -> Result<(), Cause> {
        self(value)
    }
}

/// Takes the outcome out of an answer, or says why there is none.
pub(super) fn judge(
    definition: &HustleDefinition,
    task: Option<&SummaryTask>,
    answer: WorkAnswer,
) -> Result<HustleValue, Cause> {
    let limit = definition.limits().output;
    if answer.output.len() as u64 > limit {
        return Err(Cause::new(CauseKind::Output(Some(OutputFault::TooLarge))));
    }
    let Some(task) = task else {
        return Ok(HustleValue::Bytes(answer.output));
    };
    let WorkAnswer { output, usage, spent, left_out, repairs, carried } = answer;
    let (output, summary) = match definition.identity() {
        IdentityBinding::Host => {
            let text = std::str::from_utf8(&output).ok().filter(|text| !text.trim().is_empty());
            let summary =
                SharedText::from(text.ok_or_else(|| malformed_answer(InvalidSummaryReason::OutputShape))?);
            let bound = (&task.input).into();
            (RunOutput::Host { summary: summary.clone(), bound }, summary)
        }
        IdentityBinding::Echo => {
            // Looked into early, because a summary must be known to be sized.
            let answer = decode_output(&output).map_err(|_| malformed_answer(InvalidSummaryReason::Wire))?;
            (RunOutput::Echo(output), answer.summary)
        }
    };
    let is_estimated = usage.is_none() && spent.is_none();
    let usage = usage.unwrap_or_else(|| estimated(task, &summary));
    let terms = ResultTerms {
        identity: task.attempt.clone(),
        max_summary_tokens: task.input.max_summary_tokens(),
        output_byte_limit: limit,
    };
    let proven = validate_result(RunResult { output, usage: Some(usage) }, &terms)
        .map_err(|refused| malformed_answer(refused.reason))?;
    let usage = spent.unwrap_or(usage);
    Ok(HustleValue::Summary(Box::new(HustleSummary {
        proven,
        usage,
        is_estimated,
        left_out,
        repairs,
        carried,
    })))
}

/// How many bytes of output an outcome stands for.
pub(super) fn output_bytes(value: &HustleValue) -> u64 {
    let len = match value {
        HustleValue::Summary(summary) => summary.proven.output.summary().len(),
        HustleValue::Bytes(output) => output.len(),
    };
    len as u64
}

/// What the outcome is known to have cost.
pub(super) fn usage_of(value: &HustleValue) -> Option<Usage> {
    match value {
        HustleValue::Summary(summary) => Some(summary.usage),
        HustleValue::Bytes(_) => None,
    }
}

/// Without a provider's word the loop's counter says what was put out: one token at least, so that what is wrong
/// with an empty summary is said by its grammar.
fn estimated(task: &SummaryTask, summary: &str) -> Usage {
    Usage { output: task.estimator.estimate(summary).max(TokenCount(1)), ..Usage::default() }
}
