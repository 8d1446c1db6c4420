//! Judging what a summarizer came back with, before anything is done with it.

use epitome_loop::{
    CompactionInput, CompactionOutput, ContextBasis, InvalidSummary, InvalidSummaryReason, Message, ModelKey,
    RequestFingerprint, SharedBytes, SharedText, TokenCount, Usage,
};
use epitome_loopruntime::{ConversationSummary, parse_summary_text};

use crate::wire::{SummaryAnswer, decode_output};

/// Which context, model and request a run is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// Which context is summarized.
    pub basis: ContextBasis,
    /// Which model the context is for.
    pub model: ModelKey,
    /// Which request the context belongs to.
    pub request_fingerprint: RequestFingerprint,
}

impl From<&CompactionInput> for RunIdentity {
    fn from(input: &CompactionInput) -> Self {
        Self {
            basis: input.basis(),
            model: input.model().clone(),
            request_fingerprint: input.request_fingerprint(),
        }
    }
}

/// The attempt that is being finalized: what its result is held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultTerms {
    /// For which context, model and request a summary is wanted.
    pub identity: RunIdentity,
    /// How many tokens the producer may have put out.
    pub max_summary_tokens: TokenCount,
    /// How many bytes the output may have; with 0 nothing is accepted.
    pub output_byte_limit: u64,
}

impl ResultTerms {
    /// The terms of an attempt on this input.
    #[must_use]
    pub fn of(input: &CompactionInput, output_byte_limit: u64) -> Self {
        Self { identity: input.into(), max_summary_tokens: input.max_summary_tokens(), output_byte_limit }
    }
}

/// What a run produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// The output, and how it is bound to the input it was made for.
    pub output: RunOutput,
    /// What the run cost: reported by the provider, or measured by the loop's counter when no model was asked.
    pub usage: Option<Usage>,
}

/// An output, by the way in which its identity is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutput {
    /// The producer answers in wire v1 and repeats the identity of its input. For commands and services that
    /// the host does not drive itself.
    Echo(SharedBytes),
    /// The producer returns nothing but the summary's text; the host knows to which input it bound the run.
    Host {
        /// The text.
        summary: SharedText,
        /// What the run was bound to when it was started.
        bound: RunIdentity,
    },
}

/// A summary that keeps its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenSummary {
    /// The summary and the identity it is bound to.
    pub output: CompactionOutput,
    /// The summary, read under the strict grammar.
    pub summary: ConversationSummary,
}

/// Judges a result, in this order: size, usage, token budget, wire (only with [`RunOutput::Echo`]), identity,
/// grammar, shape of the output. The first fault is the reason.
///
/// # Errors
/// [`InvalidSummary`]: `byte_limit` when the output has more bytes than allowed; `token_usage` when the usage
/// is unknown or says that nothing was put out; `token_limit` when more was put out than allowed; `wire` when
/// the output is not wire v1; `identity` when it belongs to another context, model or request, or to none;
/// `xml_syntax`, `xml_root`, `xml_structure` and `xml_content` from the grammar; `output_shape` when the
/// summary is not one text that says something.
pub fn validate_result(result: RunResult, terms: &ResultTerms) -> Result<ProvenSummary, InvalidSummary> {
    let RunResult { output, usage } = result;
    let size = match &output {
        RunOutput::Echo(output) => output.len(),
        RunOutput::Host { summary, .. } => summary.len(),
    };
    if terms.output_byte_limit == 0 || size as u64 > terms.output_byte_limit {
        return Err(InvalidSummaryReason::ByteLimit.into());
    }
    let produced = usage.map_or(TokenCount::ZERO, |usage| usage.output);
    if produced == TokenCount::ZERO {
        return Err(InvalidSummaryReason::TokenUsage.into());
    }
    if produced > terms.max_summary_tokens {
        return Err(InvalidSummaryReason::TokenLimit.into());
    }
    let (summary, identity) = match output {
        RunOutput::Echo(output) => {
            let SummaryAnswer { basis, model, request_fingerprint, summary } =
                decode_output(&output).map_err(|_| InvalidSummaryReason::Wire)?;
            (summary, RunIdentity { basis, model, request_fingerprint })
        }
        RunOutput::Host { summary, bound } => (summary, bound),
    };
    if identity != terms.identity {
        return Err(InvalidSummaryReason::Identity.into());
    }
    let summary = parse_summary_text(summary)?;
    let RunIdentity { basis, model, request_fingerprint } = identity;
    let message = Message::user(summary.raw().clone());
    let output = CompactionOutput::new(basis, model, request_fingerprint, Some(&message))?;
    Ok(ProvenSummary { output, summary })
}

#[cfg(test)]
mod tests {
    use super::*;
    use epitome_loop::{ContextRevision, EventId};

    const XML: &str = "<conversation_summary><goal>g</goal><constraints/><decisions/><state>s</state>\
                       <open_items/></conversation_summary>";

    fn input(revision: u64) -> CompactionInput {
        CompactionInput::new(
            ContextBasis {
                revision: ContextRevision(revision),
                through_event_id: EventId::from_bytes([1; 16]),
            },
            ModelKey::new("p", "m"),
            RequestFingerprint::from_bytes([2; 32]),
            [Message::user("x")].into(),
            TokenCount(20),
        )
        .unwrap()
    }

    fn host(summary: &str, bound: &CompactionInput, produced: u64) -> RunResult {
        RunResult {
            output: RunOutput::Host { summary: summary.into(), bound: bound.into() },
            usage: Some(Usage { output: TokenCount(produced), ..Usage::default() }),
        }
    }

    fn reason(result: RunResult, terms: &ResultTerms) -> &'static str {
        validate_result(result, terms).map_or_else(|error| error.reason.as_str(), |_| "ok")
    }

    #[test]
    fn a_host_holds_the_identity_in_the_producers_place() {
        let (attempt, other) = (input(7), input(8));
        let terms = ResultTerms::of(&attempt, 1_000);
        let proven = validate_result(host(XML, &attempt, 20), &terms).unwrap();
        assert_eq!(proven.output.summary(), proven.summary.raw());
        assert_eq!(proven.output.basis(), attempt.basis());
        // A run that was started for an earlier context must not finish a later one.
        assert_eq!(reason(host(XML, &other, 20), &terms), "identity");
    }

    #[test]
    fn the_order_of_the_checks_decides_the_reason() {
        let (attempt, other) = (input(7), input(8));
        let terms = |limit| ResultTerms::of(&attempt, limit);
        let unknown = |summary, bound| RunResult { usage: None, ..host(summary, bound, 0) };
        assert_eq!(reason(unknown("x", &other), &terms(0)), "byte_limit");
        assert_eq!(reason(host("", &attempt, 1), &terms(0)), "byte_limit");
        assert_eq!(reason(unknown("x", &other), &terms(1)), "token_usage");
        assert_eq!(reason(host("x", &other, 0), &terms(1)), "token_usage");
        assert_eq!(reason(host("x", &other, 21), &terms(1)), "token_limit");
        assert_eq!(reason(host("x", &other, 20), &terms(1)), "identity");
        assert_eq!(reason(host("x", &attempt, 20), &terms(1)), "xml_structure");
        let echo =
            RunResult { output: RunOutput::Echo(XML.as_bytes().to_vec().into()), ..host(XML, &attempt, 20) };
        assert_eq!(reason(echo, &terms(1_000)), "wire");
    }
}
