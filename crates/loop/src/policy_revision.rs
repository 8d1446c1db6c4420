//! The revision of what a loop does about its context. The form is ours; it is hashed and never read back.

use crate::canonical_json::{
    NotFinite, write_counter, write_flag, write_inference, write_model, write_optional,
};
use crate::fingerprint::revision;
use crate::json_text::{JsonBytes, JsonSink};
use crate::{
    CompactionPolicy, ContextObservationPolicy, CounterCapability, CounterPolicy, InferenceCapability,
    KeepRecent, Model, SharedText,
};

/// Everything that goes into the revision.
pub(crate) struct PolicyParts<'a> {
    pub(crate) observation: Option<&'a ContextObservationPolicy>,
    pub(crate) compaction: Option<&'a CompactionPolicy>,
    pub(crate) counter: Option<&'a CounterCapability>,
    pub(crate) inference: Option<&'a InferenceCapability>,
    pub(crate) model: &'a Model,
}

/// Lower-case hex SHA-256 over the parts.
pub(crate) fn policy_revision(parts: &PolicyParts<'_>) -> Result<SharedText, NotFinite> {
    let PolicyParts { observation, compaction, counter, inference, model } = *parts;
    let mut out = JsonBytes::default();
    out.plain("{\"ContextObservation\":");
    write_or_null(&mut out, observation, write_observation);
    out.plain(",\"Compaction\":");
    write_or_null(&mut out, compaction, write_compaction);
    out.plain(",\"CounterCapability\":");
    write_or_null(&mut out, counter, write_counter);
    out.plain(",\"InferenceCapability\":");
    write_or_null(&mut out, inference, write_inference);
    out.plain(",\"Model\":");
    write_model(&mut out, model)?;
    out.plain("}");
    Ok(revision(&out.into_bytes()))
}

fn write_or_null<S: JsonSink, T>(out: &mut S, value: Option<&T>, write: impl FnOnce(&mut S, &T)) {
    match value {
        Some(value) => write(out, value),
        None => out.plain("null"),
    }
}

fn write_observation(out: &mut JsonBytes, policy: &ContextObservationPolicy) {
    let ContextObservationPolicy { reserved_output, safety_margin, count_timeout } = *policy;
    out.plain("{\"ReservedOutput\":");
    out.number(reserved_output.get());
    out.plain(",\"SafetyMargin\":");
    out.number(safety_margin.get());
    out.plain(",\"CountTimeout\":");
    out.plain(&count_timeout.as_nanos().to_string());
    out.plain("}");
}

fn write_compaction(out: &mut JsonBytes, policy: &CompactionPolicy) {
    let CompactionPolicy {
        automatic,
        counter_policy,
        compact_at,
        rearm_below,
        reserved_output,
        safety_margin,
        max_summary_tokens,
        count_timeout,
        hustle,
        keep_recent,
        max_request_bytes,
        fallback,
        carry_constraints,
    } = policy;
    out.plain("{\"Automatic\":");
    write_flag(out, *automatic);
    out.plain(",\"CounterPolicy\":");
    out.number(match counter_policy {
        CounterPolicy::Unknown => 0,
        CounterPolicy::RequireExact => 1,
        CounterPolicy::AllowConservative => 2,
    });
    out.plain(",\"CompactAt\":");
    out.number(u64::from(compact_at.get()));
    out.plain(",\"RearmBelow\":");
    out.number(u64::from(rearm_below.get()));
    out.plain(",\"ReservedOutput\":");
    out.number(reserved_output.get());
    out.plain(",\"SafetyMargin\":");
    out.number(safety_margin.get());
    out.plain(",\"MaxSummaryTokens\":");
    out.number(max_summary_tokens.get());
    out.plain(",\"CountTimeout\":");
    out.plain(&count_timeout.as_nanos().to_string());
    out.plain(",\"Hustle\":");
    out.string(hustle);
    out.plain(",\"KeepRecent\":");
    match keep_recent {
        None => out.plain("null"),
        Some(KeepRecent { segments, tokens }) => {
            out.plain("{\"Segments\":");
            out.number(*segments);
            out.plain(",\"Tokens\":");
            out.number(tokens.get());
            out.plain("}");
        }
    }
    out.plain(",\"MaxRequestBytes\":");
    write_optional(out, *max_request_bytes);
    // A policy that says nothing of these keeps the revision that it had before there were such words.
    if let Some(fallback) = fallback {
        out.plain(",\"Fallback\":");
        out.string(fallback);
    }
    if !carry_constraints {
        out.plain(",\"CarryConstraints\":");
        write_flag(out, *carry_constraints);
    }
    out.plain("}");
}
