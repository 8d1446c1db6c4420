//! The definition of a hustle.

use std::fmt;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{
    EMBEDDED_PROMPT_REVISION, HustleDefinitionError, HustleDescriptor, HustleDescriptorParts, HustleRevision,
    ModelDescriptor, ModelSource, OutputSchema, RetryPolicy,
};
use crate::{HustleName, SharedText};

/// Largest byte limit of an input or an output: 16 MiB.
pub const MAX_PAYLOAD_BYTES: u64 = 16 * 1024 * 1024;

/// Which lane a hustle runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Participation {
    /// The session waits for it.
    Blocking,
    /// It goes on beside the session.
    Background,
}

impl Participation {
    /// The stable name, used by files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Background => "background",
        }
    }
}

/// How a hustle's answer is bound to its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdentityBinding {
    /// The host binds the run to the input, and the answer is the bare summary. For models.
    Host,
    /// The answer is wire v1 with the identity in it. For external commands and services.
    Echo,
}

impl IdentityBinding {
    /// The stable name, used by files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Echo => "echo",
        }
    }
}

/// How large a hustle's input and output may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteLimits {
    /// The encoded input: 1 to [`MAX_PAYLOAD_BYTES`].
    pub input: u64,
    /// The answer: 1 to [`MAX_PAYLOAD_BYTES`].
    pub output: u64,
}

/// Which payload a byte limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// What the hustle is given.
    Input,
    /// What it answers.
    Output,
}

impl fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// A hustle as its author writes it. There is no default: every value is a decision. Checked by
/// [`HustleDefinition::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleSettings {
    /// The name by which policies refer to it.
    pub name: SharedText,
    /// Which lane it runs in.
    pub participation: Participation,
    /// How long a run may take, waiting in the lane not included. Not zero.
    pub timeout: Duration,
    /// How large input and output may be.
    pub limits: ByteLimits,
    /// Where its answer comes from, and what a model is told.
    pub model: ModelSource,
    /// The author's revision of how requests are made and answers are read. Not blank.
    pub policy_revision: SharedText,
    /// The schema of its answer, if it has one.
    pub output_schema: Option<OutputSchema>,
    /// Whether it may run twice.
    pub retry: RetryPolicy,
    /// How an answer is bound to its input.
    pub identity: IdentityBinding,
}

/// A hustle, checked: a named, bounded, one-shot side task.
///
/// It holds the system prompt, so records take its [`descriptor`](Self::descriptor) instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HustleDefinition {
    model: ModelSource,
    output_schema: Option<OutputSchema>,
    descriptor: HustleDescriptor,
}

impl HustleDefinition {
    /// Checks a hustle.
    ///
    /// # Errors
    /// [`HustleDefinitionError`] with the first fault, in the order of [`HustleDescriptor::new`].
    pub fn new(settings: HustleSettings) -> Result<Self, HustleDefinitionError> {
        let HustleSettings {
            name,
            participation,
            timeout,
            limits,
            model,
            policy_revision,
            output_schema,
            retry,
            identity,
        } = settings;
        let (prompt_revision, prompt_sha256) = describe_prompt(&model);
        let descriptor = HustleDescriptor::new(HustleDescriptorParts {
            name,
            participation,
            model: describe_model(&model),
            prompt_revision,
            prompt_sha256,
            output_schema: output_schema.as_ref().map(OutputSchema::descriptor),
            policy_revision,
            timeout,
            limits,
            retry,
            identity,
        })?;
        Ok(Self { model, output_schema, descriptor })
    }

    /// The name by which policies refer to it.
    #[must_use]
    pub fn name(&self) -> &HustleName {
        self.descriptor.name()
    }
    /// Which lane it runs in.
    #[must_use]
    pub fn participation(&self) -> Participation {
        self.descriptor.parts().participation
    }
    /// How long a run may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.descriptor.parts().timeout
    }
    /// How large input and output may be.
    #[must_use]
    pub fn limits(&self) -> ByteLimits {
        self.descriptor.parts().limits
    }
    /// Where its answer comes from, and what a model is told.
    #[must_use]
    pub fn model(&self) -> &ModelSource {
        &self.model
    }
    /// The schema of its answer.
    #[must_use]
    pub fn output_schema(&self) -> Option<&OutputSchema> {
        self.output_schema.as_ref()
    }
    /// Whether it may run twice.
    #[must_use]
    pub fn retry(&self) -> RetryPolicy {
        self.descriptor.parts().retry
    }
    /// How an answer is bound to its input.
    #[must_use]
    pub fn identity(&self) -> IdentityBinding {
        self.descriptor.parts().identity
    }

    /// The definition without its secrets.
    #[must_use]
    pub fn descriptor(&self) -> &HustleDescriptor {
        &self.descriptor
    }

    /// The digest of the descriptor: two hustles with one revision behave alike.
    #[must_use]
    pub fn policy_revision(&self) -> HustleRevision {
        self.descriptor.revision()
    }
}

/// Revision and digest of the prompt. A blank prompt has no digest, which the descriptor's check refuses.
fn describe_prompt(model: &ModelSource) -> (SharedText, [u8; 32]) {
    match model.prompt() {
        None => (EMBEDDED_PROMPT_REVISION.into(), Sha256::digest([]).into()),
        Some(prompt) if prompt.text.trim().is_empty() => (prompt.revision.clone(), [0; 32]),
        Some(prompt) => (prompt.revision.clone(), Sha256::digest(prompt.text.as_bytes()).into()),
    }
}

fn describe_model(model: &ModelSource) -> ModelDescriptor {
    match model {
        ModelSource::CurrentLoop { .. } => ModelDescriptor::CurrentLoop,
        ModelSource::Embedded => ModelDescriptor::Embedded,
        ModelSource::Named { client, model, revision, .. } => ModelDescriptor::Named {
            client: client.clone(),
            model: model.clone(),
            revision: revision.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HustleNameError, SystemPrompt};

    fn settings(text: &str) -> HustleSettings {
        HustleSettings {
            name: "context.compact".into(),
            participation: Participation::Blocking,
            timeout: Duration::from_secs(60),
            limits: ByteLimits { input: 1 << 20, output: 1 << 16 },
            model: ModelSource::CurrentLoop {
                prompt: SystemPrompt { text: text.into(), revision: "p1".into() },
            },
            policy_revision: "v1".into(),
            output_schema: None,
            retry: RetryPolicy::None,
            identity: IdentityBinding::Host,
        }
    }

    #[test]
    fn the_prompt_shows_in_the_revision_and_nowhere_else() {
        let secret = HustleDefinition::new(settings("canary-7291")).unwrap();
        assert!(!format!("{secret:?} {:?}", secret.descriptor()).contains("canary"));
        let other = HustleDefinition::new(settings("another")).unwrap();
        assert_ne!(secret.policy_revision(), other.policy_revision());
        assert_eq!(
            secret.policy_revision(),
            HustleDefinition::new(settings("canary-7291")).unwrap().policy_revision()
        );
    }

    #[test]
    fn faults_are_typed_and_say_which_field() {
        let refused = |settings| HustleDefinition::new(settings).unwrap_err();
        assert_eq!(refused(settings(" \n")), HustleDefinitionError::SystemPrompt);
        let reserved = HustleSettings { name: "_looprig.x".into(), ..settings("p") };
        assert_eq!(refused(reserved), HustleDefinitionError::Name(HustleNameError::Reserved));
        let wide = ByteLimits { input: 1, output: MAX_PAYLOAD_BYTES + 1 };
        let wide = refused(HustleSettings { limits: wide, ..settings("p") });
        assert_eq!(wide, HustleDefinitionError::ByteLimit(PayloadKind::Output));
        assert_eq!(wide.to_string(), "the output limit must be from 1 to 16777216 bytes");
        assert_eq!((wide.kind(), wide.field()), ("invalid_limits", "limits"));
        let embedded = HustleSettings { model: ModelSource::Embedded, ..settings("p") };
        assert!(HustleDefinition::new(embedded).is_ok());
    }
}
