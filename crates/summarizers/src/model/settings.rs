//! What a model is asked with.

use std::fmt;
use std::sync::Arc;

use epitome_loop::{ContextLimits, ContextLimitsError, Sampling, SharedText, TextEstimator, TokenCount};
use thiserror::Error;

use super::forms::SummaryForm;
use super::prompt::MODEL_PROMPT;

/// What a [`crate::ModelSummarizer`] asks with.
#[derive(Clone)]
pub struct ModelSummarizerSettings {
    /// The provider's name of the summarizing model.
    pub model: SharedText,
    /// The window of the summarizing model, whatever that of the conversation's model is. Window or largest input must
    /// be known.
    pub limits: ContextLimits,
    /// What the model is told about its work. The contract on sections, form, budget and data is added to it.
    pub prompt: SharedText,
    /// The form that the answer is asked in.
    pub form: SummaryForm,
    /// How the model is sampled. A largest answer that is given here holds.
    pub sampling: Sampling,
    /// Room in the answer for reasoning, in tokens, besides the summary.
    pub reasoning: TokenCount,
    /// Sizes text by the summarizing model's tokenizer. Without it the request's estimator is used, with a larger margin.
    pub estimator: Option<Arc<dyn TextEstimator>>,
}

impl ModelSummarizerSettings {
    /// Settings for a model with a window: our own prompt, plain XML, the provider's sampling, no room for reasoning.
    #[must_use]
    pub fn new(model: impl Into<SharedText>, limits: ContextLimits) -> Self {
        Self {
            model: model.into(),
            limits,
            prompt: MODEL_PROMPT.into(),
            form: SummaryForm::default(),
            sampling: Sampling::default(),
            reasoning: TokenCount::ZERO,
            estimator: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ModelSummarizerError> {
        if self.model.trim().is_empty() {
            return Err(ModelSummarizerError::NoModel);
        }
        if self.prompt.trim().is_empty() {
            return Err(ModelSummarizerError::NoPrompt);
        }
        self.limits.validate().map_err(ModelSummarizerError::Limits)?;
        if self.limits.window == TokenCount::ZERO && self.limits.max_input == TokenCount::ZERO {
            return Err(ModelSummarizerError::UnknownWindow);
        }
        Ok(())
    }
}

impl fmt::Debug for ModelSummarizerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, limits, prompt, form, sampling, reasoning, estimator } = self;
        f.debug_struct("ModelSummarizerSettings")
            .field("model", model)
            .field("limits", limits)
            .field("prompt", prompt)
            .field("form", form)
            .field("sampling", sampling)
            .field("reasoning", reasoning)
            .field("has_estimator", &estimator.is_some())
            .finish()
    }
}

/// No model can be asked with these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModelSummarizerError {
    /// The model has no name.
    #[error("the summarizing model has no name")]
    NoModel,
    /// The prompt is blank.
    #[error("the prompt of the summarizing model is blank")]
    NoPrompt,
    /// The limits contradict each other.
    #[error("the summarizing model: {0}")]
    Limits(ContextLimitsError),
    /// Neither window nor largest input is known, so nothing can be planned for.
    #[error("the window of the summarizing model is not known")]
    UnknownWindow,
}
