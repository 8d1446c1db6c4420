//! A model as a loop uses it: where it is, what it can do, and how it is sampled.

use thiserror::Error;

use crate::{
    ContextLimits, ContextLimitsError, ModelKey, ModelKeyError, SharedText, TokenCount, base_url,
    model::ModelKeyField,
};

/// A model with everything that shapes the requests sent to it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Model {
    /// Who serves it, for example `anthropic`.
    pub provider: SharedText,
    /// The dialect of its interface, for example `openai`.
    pub api_format: SharedText,
    /// Where it is served; empty for the provider's own address.
    pub base_url: SharedText,
    /// Its name at the provider.
    pub name: SharedText,
    /// A number by which the host tells where the definition came from. It has no meaning here, but it is part
    /// of a request's identity.
    pub origin: u8,
    /// What it can do.
    pub caps: ModelCaps,
    /// What it can hold.
    pub limits: ContextLimits,
    /// How it is sampled.
    pub sampling: Sampling,
}

/// What a model can do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ModelCaps {
    /// It looks at pictures.
    pub accepts_images: bool,
    /// It calls tools.
    pub tools: bool,
    /// It reasons before it answers.
    pub thinking: bool,
    /// It keeps to a schema.
    pub structured_output: bool,
    /// It keeps to a schema while tools are offered; needs `structured_output` and `tools`.
    pub structured_output_with_tools: bool,
    /// How reasoning is asked for: `adaptive` or `budget`; empty when that is not known, or when it does not
    /// reason.
    pub thinking_dialect: SharedText,
    /// Its provider caches prefixes.
    pub prompt_caching: bool,
}

/// How a model is sampled; `None` leaves a choice to the provider.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<f64>,
    /// Nucleus share.
    pub top_p: Option<f64>,
    /// Largest answer.
    pub max_tokens: Option<TokenCount>,
    /// Texts that end an answer.
    pub stop: Option<Vec<SharedText>>,
    /// How hard to think, in the provider's words; empty for its default.
    pub effort: SharedText,
}

/// A model is not usable as defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The name is empty.
    #[error("the model has no name")]
    Name,
    /// The address is neither https with a host nor http on this machine, or it carries credentials.
    #[error("the base URL must be https, or http on this machine, without credentials")]
    BaseUrl,
    /// The reasoning dialect is unknown, or given for a model that does not reason.
    #[error("the thinking dialect is unknown, or the model does not think")]
    ThinkingDialect,
    /// Structured output with tools is claimed without structured output or without tools.
    #[error("structured output with tools needs both structured output and tools")]
    StructuredOutputWithTools,
    /// The limits contradict each other.
    #[error("{0}")]
    Limits(ContextLimitsError),
    /// The provider is empty.
    #[error("{0}")]
    Key(ModelKeyError),
}

impl Model {
    /// Checks the definition.
    ///
    /// # Errors
    /// [`ModelError`] with the first fault, in the order name, abilities, limits, address, provider.
    pub fn validate(&self) -> Result<(), ModelError> {
        if self.name.is_empty() {
            return Err(ModelError::Name);
        }
        let caps = &self.caps;
        if caps.structured_output_with_tools && !(caps.structured_output && caps.tools) {
            return Err(ModelError::StructuredOutputWithTools);
        }
        match caps.thinking_dialect.as_str() {
            "" => {}
            "adaptive" | "budget" if caps.thinking => {}
            _ => return Err(ModelError::ThinkingDialect),
        }
        self.limits.validate().map_err(ModelError::Limits)?;
        if !self.base_url.is_empty() && !base_url::is_allowed(&self.base_url) {
            return Err(ModelError::BaseUrl);
        }
        if self.provider.is_empty() {
            return Err(ModelError::Key(ModelKeyError { field: ModelKeyField::Provider }));
        }
        Ok(())
    }

    /// The key under which counts and measurements name this model.
    #[must_use]
    pub fn key(&self) -> ModelKey {
        ModelKey { provider: self.provider.clone(), model: self.name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model { provider: "anthropic".into(), name: "claude-x".into(), ..Model::default() }
    }

    #[test]
    fn an_address_may_be_left_to_the_client_and_is_checked_otherwise() {
        let verdict = |url: &str| Model { base_url: url.into(), ..model() }.validate();
        assert_eq!(verdict(""), Ok(()));
        assert_eq!(verdict("https://x.com/v1"), Ok(()));
        assert_eq!(verdict("http://x.com"), Err(ModelError::BaseUrl));
    }

    #[test]
    fn abilities_agree_with_each_other() {
        let mut thinking = model();
        thinking.caps.thinking = true;
        assert_eq!(thinking.validate(), Ok(()), "how it is asked to need not be known");
        thinking.caps.thinking_dialect = "budget".into();
        assert_eq!(thinking.validate(), Ok(()));
        thinking.caps.thinking_dialect = "loud".into();
        assert_eq!(thinking.validate(), Err(ModelError::ThinkingDialect));
        thinking.caps = ModelCaps { thinking_dialect: "budget".into(), ..ModelCaps::default() };
        assert_eq!(thinking.validate(), Err(ModelError::ThinkingDialect));
        let mut structured = model();
        structured.caps.structured_output_with_tools = true;
        structured.caps.structured_output = true;
        assert_eq!(structured.validate(), Err(ModelError::StructuredOutputWithTools));
        structured.caps.tools = true;
        assert_eq!(structured.validate(), Ok(()));
        assert_eq!(Model::default().validate(), Err(ModelError::Name));
    }
}
