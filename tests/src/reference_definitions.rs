//! Reads the models, capabilities and policies that vectors describe into our types.

use std::time::Duration;

use epitome_loop::{
    BasisPoints, CapabilityError, CompactionPolicy, ContextLimits, ContextObservationPolicy, CountQuality,
    CounterCapability, CounterPolicy, InferenceCapability, KeepRecent, Model, ModelCaps, NumericCapability,
    RequestFingerprint, Sampling, SecurityIdentity, SharedText,
};
use serde_json::Value;

use crate::reference_form::{ReadError, flag, number, string, text, tokens, word};

type Read<T> = Result<T, ReadError>;

/// Reads a model's definition.
pub(crate) fn read_model_definition(value: &Value) -> Read<Model> {
    let (caps, limits, sampling) = (&value["caps"], &value["limits"], &value["sampling"]);
    Ok(Model {
        provider: text(value, "provider")?,
        api_format: text(value, "api_format")?,
        base_url: text(value, "base_url")?,
        name: text(value, "name")?,
        origin: byte(value, "origin")?,
        caps: ModelCaps {
            accepts_images: flag(caps, "accepts_images"),
            tools: flag(caps, "tools"),
            thinking: flag(caps, "thinking"),
            structured_output: flag(caps, "structured_output"),
            structured_output_with_tools: flag(caps, "structured_output_with_tools"),
            thinking_dialect: text(caps, "thinking_dialect")?,
            prompt_caching: flag(caps, "prompt_caching"),
        },
        limits: ContextLimits {
            window: tokens(limits, "window_tokens")?,
            max_input: tokens(limits, "max_input_tokens")?,
            max_output: tokens(limits, "max_output_tokens")?,
        },
        sampling: Sampling {
            temperature: float(sampling, "temperature")?,
            top_p: float(sampling, "top_p")?,
            max_tokens: optional(sampling, "max_tokens", |value| tokens(value, "max_tokens"))?,
            stop: optional(sampling, "stop", read_stop)?,
            effort: text(sampling, "effort")?,
        },
    })
}

fn read_stop(sampling: &Value) -> Read<Vec<SharedText>> {
    sampling["stop"].as_array().ok_or(ReadError::Malformed)?.iter().map(string).collect()
}

/// Reads a counter's capability; its numbers may be refused.
pub(crate) fn read_counter(value: &Value) -> Read<Result<CounterCapability, CapabilityError>> {
    let numbers = read_capability(value)?;
    Ok(numbers.counter(text(value, "tokenizer_rev")?, byte(value, "quality")?))
}

/// Reads the capability of a request's path; its numbers may be refused.
pub(crate) fn read_inference(value: &Value) -> Read<Result<InferenceCapability, CapabilityError>> {
    Ok(read_capability(value)?.inference())
}

fn read_capability(value: &Value) -> Read<NumericCapability> {
    // An identity is spelled as a fingerprint is.
    let identity = RequestFingerprint::parse(word(value, "security_identity")?);
    Ok(NumericCapability {
        provider: text(value, "provider")?,
        transport: byte(value, "transport")?,
        security_identity: SecurityIdentity::from_bytes(
            *identity.map_err(|_| ReadError::Malformed)?.as_bytes(),
        ),
        retention: byte(value, "retention")?,
    })
}

/// Reads a compaction policy.
pub(crate) fn read_policy(value: &Value) -> Read<CompactionPolicy> {
    Ok(CompactionPolicy {
        automatic: flag(value, "automatic"),
        counter_policy: match number(value, "counter_policy")? {
            1 => CounterPolicy::RequireExact,
            2 => CounterPolicy::AllowConservative,
            _ => CounterPolicy::Unknown,
        },
        compact_at: basis_points(value, "compact_at")?,
        rearm_below: basis_points(value, "rearm_below")?,
        reserved_output: tokens(value, "reserved_output")?,
        safety_margin: tokens(value, "safety_margin")?,
        max_summary_tokens: tokens(value, "max_summary_tokens")?,
        count_timeout: nanoseconds(value, "count_timeout_nanos")?,
        hustle: text(value, "hustle")?,
        keep_recent: Some(KeepRecent {
            segments: negative_is_zero(number(value, "keep_recent_segments"))?,
            tokens: tokens(value, "keep_recent_tokens")?,
        }),
        max_request_bytes: None,
        fallback: None,
        carry_constraints: true,
    })
}

/// Reads an observation policy.
pub(crate) fn read_observation(value: &Value) -> Read<ContextObservationPolicy> {
    Ok(ContextObservationPolicy {
        reserved_output: tokens(value, "reserved_output")?,
        safety_margin: tokens(value, "safety_margin")?,
        count_timeout: nanoseconds(value, "count_timeout_nanos")?,
    })
}

/// Reads the quality of a counter; 0 is unknown.
pub(crate) fn read_quality(value: &Value) -> Read<Option<CountQuality>> {
    Ok(CountQuality::from_number(byte(value, "quality")?).ok())
}

/// Zero is refused as negative numbers are: both mean that nothing is kept, or no time is left.
pub(crate) fn negative_is_zero(number: Read<u64>) -> Read<u64> {
    match number {
        Err(ReadError::Negative) => Ok(0),
        other => other,
    }
}

fn nanoseconds(value: &Value, key: &str) -> Read<Duration> {
    Ok(Duration::from_nanos(negative_is_zero(number(value, key))?))
}

fn basis_points(value: &Value, key: &str) -> Read<BasisPoints> {
    u16::try_from(number(value, key)?).map(BasisPoints).map_err(|_| ReadError::Malformed)
}

fn byte(value: &Value, key: &str) -> Read<u8> {
    u8::try_from(number(value, key)?).map_err(|_| ReadError::Malformed)
}

fn optional<T>(value: &Value, key: &str, read: impl FnOnce(&Value) -> Read<T>) -> Read<Option<T>> {
    if value[key].is_null() { Ok(None) } else { read(value).map(Some) }
}

/// A float in decimal text.
fn float(value: &Value, key: &str) -> Read<Option<f64>> {
    optional(value, key, |value| word(value, key)?.parse().map_err(|_| ReadError::Malformed))
}
