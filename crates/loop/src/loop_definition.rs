//! One agent loop as its host defines it: a model, who counts for it, and what is done about its context.

use thiserror::Error;

use crate::policy_revision::{PolicyParts, policy_revision};
use crate::{
    CapabilityError, CompactionPolicy, CompactionPolicyError, ContextLimitUnknown, ContextObservationError,
    ContextObservationPolicy, CounterCapability, CounterIncompatible, FixedPart, FloorAboveCompact,
    FloorAboveRearm, HustleName, InferenceCapability, Model, ModelError, ResolvedLimits, SharedText,
    TokenCount, ValidPolicy, check_floor, compatible_counter, resolve_context_limits,
};

/// A loop whose parts fit each other. Build one with [`LoopDefinition::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct LoopDefinition {
    name: SharedText,
    model: Model,
    context: Option<LoopContext>,
    floor_warning: Option<FloorAboveRearm>,
    policy_revision: SharedText,
}

/// Who measures a loop's context, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopContext {
    counter: CounterCapability,
    inference: InferenceCapability,
    treatment: Treatment,
}

/// What is done about a measured context.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Treatment {
    Observed(ContextObservationPolicy),
    Compacted(Box<Compacted>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Compacted {
    given: CompactionPolicy,
    valid: ValidPolicy,
}

/// Collects the parts of a loop. Each may be given once.
#[derive(Clone, Debug)]
#[must_use]
pub struct LoopDefinitionBuilder {
    name: SharedText,
    model: Model,
    counter: Option<CounterCapability>,
    inference: Option<InferenceCapability>,
    observation: Option<ContextObservationPolicy>,
    compaction: Option<CompactionPolicy>,
    fixed: Option<FixedPart>,
    given_twice: Option<LoopField>,
}

/// A part of a loop's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoopField {
    /// The loop's name.
    Name,
    /// The model.
    Model,
    /// The counter's capability.
    ContextCounter,
    /// The capability of the path to the model.
    InferenceCapability,
    /// Observation and compaction together.
    ContextPolicy,
    /// The observation policy.
    ContextObservation,
    /// The compaction policy.
    Compaction,
    /// The fixed part of each request.
    FixedPart,
}

impl LoopField {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Model => "model",
            Self::ContextCounter => "context_counter",
            Self::InferenceCapability => "inference_capability",
            Self::ContextPolicy => "context_policy",
            Self::ContextObservation => "context_observation",
            Self::Compaction => "compaction",
            Self::FixedPart => "fixed_part",
        }
    }
}

impl std::fmt::Display for LoopField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parts do not make a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoopDefinitionError {
    /// A part was given twice.
    #[error("loop definition: {0} is given twice")]
    Duplicate(LoopField),
    /// The name is blank.
    #[error("loop definition: the name is missing")]
    MissingName,
    /// The model is not valid.
    #[error("loop definition: {0}")]
    Model(ModelError),
    /// Observation and compaction are both given.
    #[error("loop definition: observation and compaction exclude each other")]
    ConflictingContextPolicy,
    /// Something needs a counter, and there is none.
    #[error("loop definition: a counter is missing")]
    MissingContextCounter,
    /// Something needs the capability of the path to the model, and there is none.
    #[error("loop definition: the capability of the path to the model is missing")]
    MissingInferenceCapability,
    /// Counter and path are given, but nothing that they are for.
    #[error("loop definition: neither observation nor compaction is given")]
    MissingContextPolicy,
    /// The counter's capability is not valid.
    #[error("loop definition: {0}")]
    InvalidContextCounter(CapabilityError),
    /// The capability of the path is not valid.
    #[error("loop definition: {0}")]
    InvalidInferenceCapability(CapabilityError),
    /// The counter does not fit the path.
    #[error("loop definition: {0}")]
    IncompatibleContextCounter(CounterIncompatible),
    /// The observation policy is not valid for the counter.
    #[error("loop definition: {0}")]
    InvalidContextObservation(ContextObservationError),
    /// The compaction policy is not valid for the counter.
    #[error("loop definition: {0}")]
    InvalidCompaction(CompactionPolicyError),
    /// The model's limits are known, and nothing of them is left for input: no request of the loop could ever be
    /// measured against them.
    #[error("loop definition: {0}")]
    Limit(ContextLimitUnknown),
    /// Compaction cannot do its work.
    #[error("loop definition: {0}")]
    Floor(FloorAboveCompact),
    /// A number of the model's sampling is not finite.
    #[error("loop definition: a sampling value is not a finite number")]
    Encoding,
}

impl LoopDefinitionError {
    /// The stable name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Duplicate(_) => "duplicate_option",
            Self::MissingName => "missing_name",
            Self::Model(_) => "invalid_model",
            Self::ConflictingContextPolicy => "conflicting_context_policy",
            Self::MissingContextCounter => "missing_context_counter",
            Self::MissingInferenceCapability => "missing_inference_capability",
            Self::MissingContextPolicy => "missing_context_policy",
            Self::InvalidContextCounter(_) => "invalid_context_counter",
            Self::InvalidInferenceCapability(_) => "invalid_inference_capability",
            Self::IncompatibleContextCounter(_) => "incompatible_context_counter",
            Self::InvalidContextObservation(_) => "invalid_context_observation",
            Self::InvalidCompaction(_) => "invalid_compaction",
            Self::Limit(_) => "context_limit_unknown",
            Self::Floor(_) => "floor_above_compact_at",
            Self::Encoding => "encoding",
        }
    }

    /// The part at fault.
    #[must_use]
    pub fn field(&self) -> LoopField {
        match self {
            Self::Duplicate(field) => *field,
            Self::MissingName => LoopField::Name,
            Self::Model(_) | Self::Encoding | Self::Limit(_) => LoopField::Model,
            Self::ConflictingContextPolicy | Self::MissingContextPolicy => LoopField::ContextPolicy,
            Self::MissingContextCounter
            | Self::InvalidContextCounter(_)
            | Self::IncompatibleContextCounter(_) => LoopField::ContextCounter,
            Self::MissingInferenceCapability | Self::InvalidInferenceCapability(_) => {
                LoopField::InferenceCapability
            }
            Self::InvalidContextObservation(_) => LoopField::ContextObservation,
            Self::InvalidCompaction(_) | Self::Floor(_) => LoopField::Compaction,
        }
    }
}

impl LoopDefinitionBuilder {
    /// The name that the loop is to have.
    #[must_use]
    pub fn name(&self) -> &SharedText {
        &self.name
    }

    /// The compaction policy as given so far.
    #[must_use]
    pub fn compaction(&self) -> Option<&CompactionPolicy> {
        self.compaction.as_ref()
    }

    /// Says who counts.
    pub fn with_context_counter(mut self, counter: CounterCapability) -> Self {
        let before = self.counter.replace(counter).is_some();
        self.once(LoopField::ContextCounter, before)
    }

    /// Says which way requests take to the model.
    pub fn with_inference_capability(mut self, inference: InferenceCapability) -> Self {
        let before = self.inference.replace(inference).is_some();
        self.once(LoopField::InferenceCapability, before)
    }

    /// Has the context measured and published, and never compacted. Excludes
    /// [`LoopDefinitionBuilder::with_compaction`].
    pub fn with_context_observation(mut self, policy: ContextObservationPolicy) -> Self {
        let before = self.observation.replace(policy).is_some();
        self.once(LoopField::ContextObservation, before)
    }

    /// Has the context compacted by this policy. Excludes
    /// [`LoopDefinitionBuilder::with_context_observation`].
    pub fn with_compaction(mut self, policy: CompactionPolicy) -> Self {
        let before = self.compaction.replace(policy).is_some();
        self.once(LoopField::Compaction, before)
    }

    /// Says what each request holds besides the conversation, so that the floor can be checked.
    pub fn with_fixed_part(mut self, fixed: FixedPart) -> Self {
        let before = self.fixed.replace(fixed).is_some();
        self.once(LoopField::FixedPart, before)
    }

    fn once(mut self, field: LoopField, before: bool) -> Self {
        if before && self.given_twice.is_none() {
            self.given_twice = Some(field);
        }
        self
    }

    /// Checks the parts and puts them together.
    ///
    /// # Errors
    /// [`LoopDefinitionError`] with the first fault, in the order of its variants.
    pub fn build(self) -> Result<LoopDefinition, LoopDefinitionError> {
        let Self { name, model, counter, inference, observation, compaction, fixed, given_twice } = self;
        if let Some(field) = given_twice {
            return Err(LoopDefinitionError::Duplicate(field));
        }
        if name.trim().is_empty() {
            return Err(LoopDefinitionError::MissingName);
        }
        model.validate().map_err(LoopDefinitionError::Model)?;
        if observation.is_some() && compaction.is_some() {
            return Err(LoopDefinitionError::ConflictingContextPolicy);
        }
        let nothing =
            counter.is_none() && inference.is_none() && observation.is_none() && compaction.is_none();
        let context = if nothing {
            None
        } else {
            let counter = counter.ok_or(LoopDefinitionError::MissingContextCounter)?;
            let inference = inference.ok_or(LoopDefinitionError::MissingInferenceCapability)?;
            Some(LoopContext::new(counter, inference, observation, compaction)?)
        };
        let room = context.as_ref().map(|context| context.room(&model)).transpose()?.flatten();
        let floor_warning = match (context.as_ref().and_then(LoopContext::compaction), room, fixed) {
            (Some(policy), Some(room), Some(fixed)) => {
                check_floor(policy, &room, fixed).map_err(LoopDefinitionError::Floor)?
            }
            _ => None,
        };
        let parts = PolicyParts {
            observation: context.as_ref().and_then(LoopContext::observation),
            compaction: context.as_ref().and_then(LoopContext::compaction_as_given),
            counter: context.as_ref().map(|context| &context.counter),
            inference: context.as_ref().map(|context| &context.inference),
            model: &model,
        };
        let policy_revision = policy_revision(&parts).map_err(|_| LoopDefinitionError::Encoding)?;
        Ok(LoopDefinition { name, model, context, floor_warning, policy_revision })
    }
}

impl LoopContext {
    /// The policies are known to exclude each other.
    fn new(
        counter: CounterCapability,
        inference: InferenceCapability,
        observation: Option<ContextObservationPolicy>,
        compaction: Option<CompactionPolicy>,
    ) -> Result<Self, LoopDefinitionError> {
        if observation.is_none() && compaction.is_none() {
            return Err(LoopDefinitionError::MissingContextPolicy);
        }
        counter.validate().map_err(LoopDefinitionError::InvalidContextCounter)?;
        inference.validate().map_err(LoopDefinitionError::InvalidInferenceCapability)?;
        compatible_counter(&inference, &counter).map_err(LoopDefinitionError::IncompatibleContextCounter)?;
        let quality = counter.quality;
        let treatment = match (observation, compaction) {
            (_, Some(given)) => {
                let valid = given.validate(Some(quality)).map_err(LoopDefinitionError::InvalidCompaction)?;
                Treatment::Compacted(Box::new(Compacted { given, valid }))
            }
            (Some(policy), None) => {
                policy.validate(quality).map_err(LoopDefinitionError::InvalidContextObservation)?;
                Treatment::Observed(policy)
            }
            (None, None) => return Err(LoopDefinitionError::MissingContextPolicy),
        };
        Ok(Self { counter, inference, treatment })
    }

    /// The room for input that the policy leaves. Nothing is said about a model whose window and input limit are
    /// both unknown.
    fn room(&self, model: &Model) -> Result<Option<ResolvedLimits>, LoopDefinitionError> {
        if model.limits.window == TokenCount::ZERO && model.limits.max_input == TokenCount::ZERO {
            return Ok(None);
        }
        let (reserved_output, safety_margin) = match &self.treatment {
            Treatment::Observed(policy) => (policy.reserved_output, policy.safety_margin),
            Treatment::Compacted(policy) => (policy.valid.reserved_output(), policy.valid.safety_margin()),
        };
        resolve_context_limits(&model.key(), &model.limits, reserved_output, safety_margin)
            .map(Some)
            .map_err(LoopDefinitionError::Limit)
    }

    /// Who counts.
    #[must_use]
    pub fn counter(&self) -> &CounterCapability {
        &self.counter
    }

    /// Which way requests take to the model.
    #[must_use]
    pub fn inference(&self) -> &InferenceCapability {
        &self.inference
    }

    /// The observation policy, when the context is only watched.
    #[must_use]
    pub fn observation(&self) -> Option<&ContextObservationPolicy> {
        match &self.treatment {
            Treatment::Observed(policy) => Some(policy),
            Treatment::Compacted(_) => None,
        }
    }

    /// The compaction policy, checked.
    #[must_use]
    pub fn compaction(&self) -> Option<&ValidPolicy> {
        match &self.treatment {
            Treatment::Observed(_) => None,
            Treatment::Compacted(policy) => Some(&policy.valid),
        }
    }

    /// The compaction policy as its author gave it, with the fields that it does not use.
    #[must_use]
    pub fn compaction_as_given(&self) -> Option<&CompactionPolicy> {
        match &self.treatment {
            Treatment::Observed(_) => None,
            Treatment::Compacted(policy) => Some(&policy.given),
        }
    }
}

impl LoopDefinition {
    /// Starts a definition. Without further parts the loop's context is left to itself.
    pub fn builder(name: impl Into<SharedText>, model: Model) -> LoopDefinitionBuilder {
        LoopDefinitionBuilder {
            name: name.into(),
            model,
            counter: None,
            inference: None,
            observation: None,
            compaction: None,
            fixed: None,
            given_twice: None,
        }
    }

    /// The loop's name, as given.
    #[must_use]
    pub fn name(&self) -> &SharedText {
        &self.name
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What is done about the context; `None` when it is left to itself.
    #[must_use]
    pub fn context(&self) -> Option<&LoopContext> {
        self.context.as_ref()
    }

    /// The compaction policy, when there is one.
    #[must_use]
    pub fn compaction(&self) -> Option<&ValidPolicy> {
        self.context.as_ref()?.compaction()
    }

    /// The hustle that compacts, when there is one.
    #[must_use]
    pub fn compaction_hustle(&self) -> Option<&HustleName> {
        self.compaction().map(ValidPolicy::hustle)
    }

    /// What the floor check warns of. Nothing when the fixed part or the model's limits were not given.
    #[must_use]
    pub fn floor_warning(&self) -> Option<&FloorAboveRearm> {
        self.floor_warning.as_ref()
    }

    /// Changes whenever the policy as given, one of the two capabilities or the model does: lower-case hex
    /// SHA-256. Fields that a policy does not use are part of it, so that a later change that uses them is not
    /// the first to be seen.
    #[must_use]
    pub fn policy_revision(&self) -> &SharedText {
        &self.policy_revision
    }
}

#[cfg(test)]
mod tests;
