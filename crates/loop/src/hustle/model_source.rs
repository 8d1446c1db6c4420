//! Where a hustle's answer comes from.

use crate::{ModelKey, SharedText};

/// The prompt revision of every embedded hustle: its worker is part of this program and changes only with it.
pub const EMBEDDED_PROMPT_REVISION: &str = "embedded.v1";

/// Where a hustle's answer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// The model of the loop that asks, as it is at that moment.
    CurrentLoop {
        /// What the model is told.
        prompt: SystemPrompt,
    },
    /// A model of the hustle's own, for example a cheaper one.
    Named {
        /// The name under which the host knows the client that reaches the model. Not blank.
        client: SharedText,
        /// Which model.
        model: ModelKey,
        /// The author's revision of the client's settings. Not blank; changed whenever these change.
        revision: SharedText,
        /// What the model is told.
        prompt: SystemPrompt,
    },
    /// No model: a worker of this program, such as the extractive summarizer.
    Embedded,
}

/// What a hustle's model is told, with the author's revision of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    /// The prompt itself. Not blank. It never leaves the definition: the descriptor holds its digest.
    pub text: SharedText,
    /// The author's revision of it. Not blank.
    pub revision: SharedText,
}

impl ModelSource {
    /// The prompt, if a model is asked.
    #[must_use]
    pub fn prompt(&self) -> Option<&SystemPrompt> {
        match self {
            Self::CurrentLoop { prompt } | Self::Named { prompt, .. } => Some(prompt),
            Self::Embedded => None,
        }
    }
}
