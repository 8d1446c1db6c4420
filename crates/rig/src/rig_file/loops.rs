//! Loops of a rig file.

use std::num::NonZeroU64;

use epitome_loop::{
    ContextLimits, ContextObservationPolicy, CountQuality, CounterCapability, FixedPart, InferenceCapability,
    LoopDefinition, LoopDefinitionBuilder, Model, ModelCaps, RequestFingerprint, Sampling, SecurityIdentity,
    SharedText, TokenCount,
};

use super::Table;
use crate::policy_wire::{self, PolicyWire};
use crate::rig_wire::{
    AbilityWire, CounterWire, FixedWire, InferenceWire, LoopWire, ModelWire, ObservationWire, SamplingWire,
};
use crate::{FileError, FileProblem};

pub(super) fn builder(wire: LoopWire, table: &Table<'_>) -> Result<LoopDefinitionBuilder, FileError> {
    let LoopWire { name, model, counter, inference, compaction, observation, fixed } = wire;
    let model = read_model(model);
    let limits = model.limits;
    let mut builder = LoopDefinition::builder(name, model);
    // Without a counter the loop is refused when it is built, whatever its policy comes to.
    let mut quality = CountQuality::ExactLocal;
    if let Some(counter) = counter {
        let counter = read_counter(counter, table)?;
        quality = counter.quality;
        builder = builder.with_context_counter(counter);
    }
    if let Some(inference) = inference {
        builder = builder.with_inference_capability(read_inference(inference, table)?);
    }
    if let Some(policy) = compaction {
        builder = builder.with_compaction(read_policy(policy, &limits, quality, table)?);
    }
    if let Some(ObservationWire { reserved_output, safety_margin, count_timeout }) = observation {
        builder = builder.with_context_observation(ContextObservationPolicy {
            reserved_output: TokenCount(reserved_output),
            safety_margin: TokenCount(safety_margin),
            count_timeout: count_timeout.0,
        });
    }
    if let Some(FixedWire { system, tools }) = fixed {
        builder = builder.with_fixed_part(FixedPart { system: TokenCount(system), tools: TokenCount(tools) });
    }
    Ok(builder)
}

fn read_policy(
    wire: PolicyWire,
    limits: &ContextLimits,
    quality: CountQuality,
    table: &Table<'_>,
) -> Result<epitome_loop::CompactionPolicy, FileError> {
    let policy = policy_wire::policy_of(wire, table.document, &table.place(&["compaction"]))?;
    policy
        .resolve(limits, quality)
        .map_err(|unknown| table.fault(&["compaction"], FileProblem::WindowUnknown(unknown)))
}

fn read_model(wire: ModelWire) -> Model {
    let ModelWire {
        provider,
        name,
        api_format,
        base_url,
        origin,
        window,
        max_input,
        max_output,
        abilities,
        thinking_dialect,
        sampling,
    } = wire;
    let tokens = |given: Option<NonZeroU64>| TokenCount(given.map_or(0, NonZeroU64::get));
    let can = |ability| abilities.contains(&ability);
    Model {
        provider: provider.into(),
        api_format: api_format.into(),
        base_url: base_url.into(),
        name: name.into(),
        origin,
        caps: ModelCaps {
            accepts_images: can(AbilityWire::Images),
            tools: can(AbilityWire::Tools),
            thinking: can(AbilityWire::Thinking),
            structured_output: can(AbilityWire::StructuredOutput),
            structured_output_with_tools: can(AbilityWire::StructuredOutputWithTools),
            thinking_dialect: thinking_dialect.into(),
            prompt_caching: can(AbilityWire::PromptCaching),
        },
        limits: ContextLimits {
            window: tokens(window),
            max_input: tokens(max_input),
            max_output: tokens(max_output),
        },
        sampling: read_sampling(sampling),
    }
}

fn read_sampling(wire: SamplingWire) -> Sampling {
    let SamplingWire { temperature, top_p, max_tokens, stop, effort } = wire;
    Sampling {
        temperature,
        top_p,
        max_tokens: max_tokens.map(TokenCount),
        stop: stop.map(|texts| texts.into_iter().map(SharedText::from).collect()),
        effort: effort.into(),
    }
}

fn read_counter(wire: CounterWire, table: &Table<'_>) -> Result<CounterCapability, FileError> {
    let CounterWire { provider, transport, security_identity, retention, tokenizer_rev, quality } = wire;
    Ok(CounterCapability {
        provider: provider.into(),
        transport: transport.into(),
        security_identity: read_identity(security_identity, "counter", table)?,
        retention: retention.into(),
        tokenizer_rev: tokenizer_rev.into(),
        quality: quality.into(),
    })
}

fn read_inference(wire: InferenceWire, table: &Table<'_>) -> Result<InferenceCapability, FileError> {
    let InferenceWire { provider, transport, security_identity, retention } = wire;
    Ok(InferenceCapability {
        provider: provider.into(),
        transport: transport.into(),
        security_identity: read_identity(security_identity, "inference", table)?,
        retention: retention.map(Into::into),
    })
}

/// A digest, in the same 64 digits as a fingerprint.
fn read_identity(
    digits: Option<String>,
    capability: &'static str,
    table: &Table<'_>,
) -> Result<SecurityIdentity, FileError> {
    let Some(digits) = digits else { return Ok(SecurityIdentity::ZERO) };
    let digest = RequestFingerprint::parse(&digits)
        .map_err(|_| table.expected(&[capability, "security_identity"], "64 lower-case hex digits"))?;
    Ok(SecurityIdentity::from_bytes(*digest.as_bytes()))
}
